"""What is set aside for a step that may be seen before it is paid; caps that are raised; records in their place."""

from itertools import pairwise
from operator import le

import pytest

from discreet.accounting import Laplace, Pure
from discreet.ledger import Budget, Ledger, verify
from discreet.ledger.accounts import gate_of


@pytest.fixture
def ledger(address):
    """A ledger in which people may be asked about for an epsilon of 1."""
    with Ledger(address) as ledger:
        ledger.cap(Budget(1), table="people")
        yield ledger


def ask(ledger):
    return ledger.spend(Laplace(10, 1), "how many smoke?", table="people", analyst="ana")


def test_a_raised_renyi_cap_has_no_limit_below_what_it_had_and_the_same_cap_may_be_set_again(ledger, address):
    one, two, three = (Budget(epsilon, 1e-6, "renyi") for epsilon in (1.19, 1.2, 5))
    ledger.cap(one, table="visits")
    limits = [limit_of(ledger)]
    for budget in (two, three):
        ledger.raise_cap(budget, table="visits")
        limits.append(limit_of(ledger))
    for before, after in pairwise(limits):
        assert all(map(le, before, after))
    # With shares of its own the second would lower some.
    assert not all(map(le, limits[0], gate_of(two).limit))
    head = ledger.head
    ledger.cap(three, table="visits")
    assert ledger.head == head
    verify(address)


def limit_of(ledger):
    (account,) = [one for one in ledger.balances() if one.scope.tables == ("visits",)]
    return account.gate.limit


def test_a_stake_is_given_back_to_who_has_not_used_it_and_paid_by_everybody_else(ledger, address):
    given, taken = (ledger.reserve(Pure(0.25), "a toss", table="people", analyst="ana", stake=True) for _ in range(2))
    assert ledger.stakes == {given, taken}
    ledger.close_hold(given, unused=True)
    assert ledger.remaining(table="people") == Budget(0.75)
    ledger.close_hold(taken)
    assert not ledger.holds
    (paid,) = ledger.history()
    assert (paid.event, paid.analyst, paid.why) == (Pure(0.25), "ana", "a toss")
    assert ledger.balances(table="people")[0].spent == Budget(0.25)
    with Ledger(address) as reopened:
        assert reopened.remaining(table="people") == Budget(0.75)
        assert not reopened.holds
    verify(address, prices=True)


def test_a_stake_from_which_something_was_paid_is_a_hold_like_others(ledger):
    stake = ledger.reserve(Pure(0.5), "a toss", table="people", analyst="ana", stake=True)
    ledger.spend(Pure(0.25), "a hit", table="people", analyst="ana", hold=stake)
    assert not ledger.stakes
    ledger.close_hold(stake)
    assert ledger.remaining(table="people") == Budget(0.75)


def test_a_record_that_must_be_the_next_entry_is_not_kept_behind_another(ledger):
    receipt = ask(ledger)
    last = ledger.head.sequence
    ask(ledger)
    assert not ledger.record(receipt, b"1207", after=last)
    assert ledger.history()[0].released is None
    assert ledger.record(receipt, b"1207", after=ledger.head.sequence)
    assert ledger.history()[0].released == b"1207"

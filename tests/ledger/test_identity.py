"""A ledger binds a table's public identity: its unit, its version, and with whom it shares people."""

import subprocess
import sys
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting.event import Pure
from discreet.errors import (
    BadParameter,
    BadSchema,
    BudgetExceeded,
    DiscreetError,
    KeyReused,
    LedgerDamaged,
    TableChanged,
)
from discreet.ledger import Budget, Ledger, verify
from discreet.ledger.store import Draft, stamp
from discreet.schema.unit import Identity, Unit, people_groups

ONE, HALF = Budget(epsilon=1), Pure(Fraction(1, 2))
PEOPLE = Identity("people")
UNITS = (
    Unit(),
    Unit("who"),
    Unit("who", 5),
    Unit("id", 5),
    Unit("who", 5, "replace_one"),
    Unit(neighbors="replace_one"),
)


def pay(ledger, table, epsilon=Fraction(1, 100), **named):
    return ledger.spend(Pure(Fraction(epsilon)), "a count", table=table, **named)


# Units.


@pytest.mark.parametrize("after", UNITS)
@pytest.mark.parametrize("before", UNITS)
def test_a_unit_is_the_one_that_was_bound_or_nothing_is_paid(tmp_path, before, after):
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        ledger.cap(ONE, table="people")
        pay(ledger, Identity("people", before))
        head = ledger.head
        again = Identity("people", after)
        if before == after:
            pay(ledger, again)
            return
        for ask in (
            lambda: pay(ledger, again),
            lambda: ledger.reserve(HALF, "all", table=again),
            lambda: ledger.bind(again),
        ):
            with pytest.raises(BadSchema) as refused:
                ask()
            assert before.describe in str(refused.value)
            assert after.describe in str(refused.value)
            assert "Declare the unit as it was" in str(refused.value)
        assert ledger.head == head


def test_not_even_a_new_version_may_have_another_unit(address):
    with Ledger(address) as ledger:
        ledger.bind(PEOPLE)
        with pytest.raises(BadSchema, match="one row is added or removed"):
            ledger.bind(Identity("people", Unit("who", 5), "2"))


def test_the_name_alone_does_not_pay_for_a_table_that_is_bound(address):
    with Ledger(address) as ledger:
        ledger.cap(ONE, table="people")
        pay(ledger, "people")
        pay(ledger, PEOPLE)
        head = ledger.head
        with pytest.raises(BadParameter, match=r"Give table\.identity"):
            pay(ledger, "people")
        with pytest.raises(BadParameter, match=r"Give table\.identity"):
            ledger.reserve(HALF, "all", table="people")
        assert ledger.head == head


def test_an_identity_outlives_its_process_and_binding_it_again_writes_nothing(address):
    said = Identity("people", Unit("who", 3), "2024", ("visits",), "files 17")
    with Ledger(address) as ledger:
        ledger.bind(said)
    with Ledger(address) as ledger:
        assert ledger.tables == {"people": said}
        head = ledger.head
        ledger.bind(said)
        assert ledger.head == head
    assert verify(address).state.tables["people"].identity == said


# Versions.


def test_what_was_spent_on_one_version_stays_spent_on_the_next(address):
    with Ledger(address) as ledger:
        ledger.cap(ONE, table="people")
        pay(ledger, PEOPLE, Fraction(6, 10))
        with pytest.raises(BudgetExceeded):
            pay(ledger, Identity("people", version="2"), Fraction(6, 10))
        pay(ledger, Identity("people", version="2"), Fraction(4, 10))
        assert ledger.remaining(table="people").epsilon == 0


def test_whoever_has_an_older_version_pays_nothing_and_reserves_nothing_and_sees_why(address):
    with Ledger(address) as old, Ledger(address) as new:
        old.cap(ONE, table="people")
        pay(old, PEOPLE)
        hold = old.reserve(HALF, "a session", table=PEOPLE)
        new.bind(Identity("people", version="2"))
        head = new.head
        for ask in (
            lambda: pay(old, PEOPLE),
            lambda: pay(old, PEOPLE, hold=hold),
            lambda: old.reserve(Pure(Fraction(1, 9)), "more", table=PEOPLE),
            lambda: old.look(PEOPLE),
            lambda: old.bind(PEOPLE),
        ):
            with pytest.raises(
                TableChanged, match=r'version "2" of table "people" was declared .* versions never come back'
            ):
                ask()
        assert old.head == head
        old.close_hold(hold)


STALE = """
import sys
from fractions import Fraction
from discreet.errors import TableChanged
from discreet.ledger import Ledger
from discreet.accounting.event import Pure
from discreet.schema.unit import Identity
with Ledger(sys.argv[1]) as ledger:
    ledger.spend(Pure(Fraction(1, 100)), "before", table=Identity("people"))
    print("paid", flush=True)
    sys.stdin.readline()
    try:
        ledger.spend(Pure(Fraction(1, 100)), "after", table=Identity("people"))
        print("paid")
    except TableChanged:
        print("refused")
"""


def test_a_worker_of_an_older_version_in_another_process_is_refused_inside_the_spend(address):
    with Ledger(address) as ledger:
        ledger.cap(ONE, table="people")
        worker = subprocess.Popen([sys.executable, "-c", STALE, address], stdin=-1, stdout=-1, text=True)
        assert worker.stdout.readline() == "paid\n"
        ledger.bind(Identity("people", version="2"))
        assert worker.communicate("\n")[0] == "refused\n"
        assert len(ledger.history()) == 1


def test_a_version_never_comes_back(address):
    with Ledger(address) as ledger:
        for version in ("1", "b", "3"):
            ledger.bind(Identity("people", version=version))
        for version in ("1", "b"):
            with pytest.raises(TableChanged, match="versions never come back"):
                ledger.bind(Identity("people", version=version))


def test_a_key_of_an_older_version_is_not_answered_again(address):
    with Ledger(address) as ledger:
        ledger.cap(ONE, table="people")
        ledger.record(pay(ledger, PEOPLE, key="k", body=b"q"), b"9999")
        assert pay(ledger, PEOPLE, key="k", body=b"q").released == b"9999"
        second = Identity("people", version="2")
        with pytest.raises(KeyReused, match="another version of the table"):
            pay(ledger, second, key="k", body=b"q")
        ledger.record(pay(ledger, second, key="new", body=b"q"), b"30000")
        assert pay(ledger, second, key="new", body=b"q").released == b"30000"


def test_what_was_told_before_versions_were_declared_is_of_the_first(address):
    with Ledger(address) as ledger:
        ledger.cap(ONE, table="people")
        pay(ledger, "people")
        ledger.bind(PEOPLE)
        assert ledger.since("people") == 0
        ledger.bind(Identity("people", version="2"))
        assert ledger.since("people") == ledger.head.sequence
    with Ledger(address) as ledger:
        ledger.cap(ONE, table="visits")
        pay(ledger, "visits")
        ledger.bind(Identity("visits", version="2"))
        assert ledger.since("visits") == ledger.head.sequence


# Sources.


def test_a_source_that_changed_pays_nothing_until_its_owner_declares_or_confirms(address):
    before, after = (Identity("people", fingerprint=f"files {n}") for n in (1, 2))
    with Ledger(address) as ledger:
        ledger.cap(ONE, table="people")
        pay(ledger, before)
        head = ledger.head
        for ask in (lambda: pay(ledger, after), lambda: ledger.bind(after), lambda: ledger.look(after)):
            with pytest.raises(TableChanged) as refused:
                ask()
            assert "version: 2" in str(refused.value)
            assert "discreet schema confirm" in str(refused.value)
            assert "files" not in str(refused.value)
        assert ledger.head == head
        ledger.bind(after, confirm=True)
        pay(ledger, after)
        assert ledger.since("people") == 0
        with pytest.raises(TableChanged):
            pay(ledger, before)
        pay(ledger, Identity("people", version="2", fingerprint="files 1"))


def test_a_source_that_nobody_can_tell_is_taken_at_its_word_and_forgets_nothing(address):
    with Ledger(address) as ledger:
        ledger.cap(ONE, table="people")
        pay(ledger, PEOPLE)
        pay(ledger, Identity("people", fingerprint="files 1"))
        pay(ledger, PEOPLE)
        with pytest.raises(TableChanged):
            pay(ledger, Identity("people", fingerprint="files 2"))


# People.


def test_caps_of_their_own_are_not_enough_for_tables_that_share_people(address):
    a, b = Identity("a", shares_people_with=("b",)), Identity("b")
    with Ledger(address) as ledger:
        ledger.cap(ONE, table="a")
        ledger.cap(ONE, table="b")
        ledger.bind(a)
        head = ledger.head
        for table in (a, b):
            with pytest.raises(BadParameter, match=r"shares people with .* --table a --table b"):
                pay(ledger, table, Fraction(9, 10))
        with pytest.raises(BadParameter, match="shares people"):
            ledger.reserve(HALF, "all", table=a)
        with pytest.raises(BadParameter, match="shares people"):
            ledger.remaining(table="b")
        assert not ledger.history()
        assert ledger.head.sequence <= head.sequence + 1
        ledger.cap(ONE, tables=("a", "b"))
        pay(ledger, a, Fraction(9, 10))
        with pytest.raises(BudgetExceeded):
            pay(ledger, b, Fraction(9, 10))


def test_a_cap_of_each_analyst_over_all_sharing_tables_is_not_one_over_all_analysts(address):
    with Ledger(address) as ledger:
        ledger.cap(ONE, table="a")
        ledger.cap(ONE, tables=("a", "b"), analyst="*")
        with pytest.raises(BadParameter, match="shares people"):
            pay(ledger, Identity("a", shares_people_with=("b",)))


def test_what_was_once_said_to_share_people_does_so_for_ever(address):
    with Ledger(address) as ledger:
        ledger.bind(Identity("a", shares_people_with=("b",)))
        ledger.bind(Identity("a"))
        ledger.bind(Identity("a", version="2"))
        assert ledger.sharing("a") == ledger.sharing("b") == ("a", "b")


NAMES = st.sampled_from("abcde")


@given(st.lists(st.tuples(NAMES, st.sets(NAMES, max_size=2)), max_size=6))
def test_groups_are_the_components_of_the_graph(declared):
    shares = {}
    for name, others in declared:
        shares.setdefault(name, set()).update(others - {name})
    edges = {(name, other) for name, others in shares.items() for other in others}
    found = people_groups(shares)
    for name in "abcde":
        reached, before = {name}, set()
        while reached != before:
            before = set(reached)
            reached |= {y for x, y in edges if x in before} | {x for x, y in edges if y in before}
        assert found.get(name, frozenset(name)) == reached


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("declare"), NAMES, st.sets(NAMES, max_size=2)),
            st.tuples(st.just("cap"), st.sets(NAMES, max_size=4), st.sampled_from([1, 2])),
            st.tuples(st.just("spend"), NAMES, st.sampled_from([Fraction(1, 4), Fraction(9, 10)])),
        ),
        max_size=14,
    )
)
def test_whatever_is_declared_and_capped_in_whatever_order_people_keep_one_budget(tmp_path_factory, steps):
    """Every spend that is accepted fits a cap over all tables that share people with it, as said until then."""
    shares, spent = {name: set() for name in "abcde"}, dict.fromkeys("abcde", Fraction(0))
    with Ledger(tmp_path_factory.mktemp("any") / "ledger.sqlite") as ledger:
        for what, *said in steps:
            try:
                match what:
                    case "declare":
                        shares[said[0]] |= said[1] - {said[0]}
                        ledger.bind(Identity(said[0], shares_people_with=tuple(said[1] - {said[0]})))
                    case "cap":
                        ledger.cap(Budget(epsilon=said[1]), tables=tuple(said[0]))
                    case "spend":
                        pay(ledger, Identity(said[0], shares_people_with=tuple(shares[said[0]])), said[1])
                        spent[said[0]] += said[1]
                        people = people_groups(shares).get(said[0], frozenset(said[0]))
                        over = [cap for scope, cap in ledger.caps.items() if people <= set(scope.tables or "abcde")]
                        assert sum(spent[name] for name in people) <= min(cap.epsilon for cap in over)
            except DiscreetError:
                pass


# Whoever reads the log.


@pytest.mark.parametrize(
    "wrong",
    [
        {"unit": {"key": "who", "contributions": 5, "neighbors": "add_remove"}},
        {"version": "1"},
        {"version": 3},
        {"unit": {"key": None, "contributions": 5, "neighbors": "add_remove"}},
    ],
)
def test_an_entry_that_no_right_program_would_write_is_not_believed(tmp_path, wrong):
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        ledger.bind(PEOPLE)
        ledger.bind(Identity("people", version="2"))
        said = {"owner": "x", "table": "people", "version": "2", "shares_people_with": [], "fingerprint": None}
        said |= {"unit": {"key": None, "contributions": 1, "neighbors": "add_remove"}}
        with pytest.raises(LedgerDamaged):
            ledger._log.submit(lambda state: Draft({**stamp(state.at, "table"), **said, **wrong}))


def test_a_spend_beside_a_joint_cap_is_not_believed(tmp_path):
    with Ledger(tmp_path / "ledger.sqlite") as ledger, Ledger(tmp_path / "ledger.sqlite") as reader:
        ledger.cap(ONE, table="a")
        ledger.bind(Identity("a", shares_people_with=("b",)))
        said = {"table": "a", "analyst": "x", "why": "y", "event": {}, "charge": {"pure": [1]}}
        ledger._log.submit(lambda state: Draft({**stamp(state.at, "spend"), **said}))
        with pytest.raises(LedgerDamaged, match="share people"):
            _ = reader.head


def test_a_balance_counts_with_the_contributions_of_the_tables_it_is_about(tmp_path):
    """So the command line, which sees only the ledger, says what the page and the schema say."""
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        for name, contributions in (("visits", 3), ("people", 1)):
            ledger.cap(Budget(epsilon=1, delta=1e-9), table=name)
            ledger.bind(Identity(name, Unit(key="who", contributions=contributions)))
        left = {one.scope.tables: one for one in ledger.balances()}
        for name, contributions in (("visits", 3), ("people", 1)):
            balance = left[(name,)]
            assert balance.counts_left(error=50) == balance.counts_left(error=50, contributions=contributions)
        assert left[("visits",)].counts_left(error=50) < left[("people",)].counts_left(error=50)

"""Record and replay of releases: every request, what was opened and drawn for it, what was paid and kept.

As in neighbours.py: on the second table every release is what the first's was, so the maker of a release must ask for
exactly the same. What the true values tell apart is computed from them and from the noise that was drawn, request by
request, and compared with what the ledger charged.
"""

import sys
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass, replace
from fractions import Fraction
from itertools import combinations
from math import inf
from uuid import uuid4

import numpy as np
import pytest

import discreet.curator.release_run
import discreet.lab.textbook.small_db
import discreet.mechanism.smalldb
from discreet import noise
from discreet.accounting.event import Nothing
from discreet.accounting.filter import FULL_TICKS
from discreet.accounting.filter import loss as price_of
from discreet.accounting.gaussian_dp import gaussian_limit
from discreet.curator import Curator
from discreet.curator.release_run import RequestExecutor
from discreet.errors import BudgetExceeded, TooLarge
from discreet.model.mixture.ensemble import fit_ensemble
from discreet.plan.plan import Choose, Distances, Farthest, Measure, SmallTable
from support.coin_replay import Replayed, distances_of, listening_to_coins
from support.model_sessions import HeardLedger
from support.neighbours import HeardTable, declared_loss, differences, disorder, loss, outcome

# Tables that SmallDB looks at, and tables times questions: so few that all their probabilities can be listed.
MOST_TABLES, MOST_WORK = 2**14, 2**14


@dataclass
class Recorded(Replayed):
    """A session in which releases were made: the requests, the events that were paid, and what came of it."""

    requests: list = field(default_factory=list)
    charged: list = field(default_factory=list)
    bills: list = field(default_factory=list)
    refusals: list = field(default_factory=list)
    tables: list = field(default_factory=list)
    levels: list = field(default_factory=list)
    open_holds: int = 0


@dataclass
class Payment:
    """Of one payment: the request that it was for, its event, what was opened and what was drawn."""

    request: object
    event: object
    opened: list = field(default_factory=list)
    drawn: list = field(default_factory=list)
    mechanism: object = None


@contextmanager
def quick_fits(*, members=2, components=4, steps=15):
    """Models are fitted in a fraction of the time: what is asked of the rows is the same."""

    def quick(*args, **named):
        few = {"members": members, "components": min(named["components"], components), "steps": steps}
        return fit_ensemble(*args, **{**named, **few})

    with pytest.MonkeyPatch.context() as patch:
        for name, module in sorted(sys.modules.items()):
            if name.startswith("discreet.release") and hasattr(module, "fit_ensemble"):
                patch.setattr(module, "fit_ensemble", quick)
        yield


@contextmanager
def heard_requests(session):
    """Hear every request that the executor is asked to do."""
    right = RequestExecutor.do

    def do(self, request, *more):
        session.calls.append(("request", plain(request)))
        session.requests.append(request)
        return right(self, request, *more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RequestExecutor, "do", do)
        yield


@contextmanager
def heard_tables(session, rng, first=None):
    """Hear how small tables are chosen; with a `first` session, choose its own. There are few to choose from."""
    right = discreet.curator.release_run.choosing

    def choosing(*args, **named):
        mechanism, imbalances = right(*args, **named)
        session.tables.append(mechanism)
        return mechanism, imbalances

    def draw_level(counts, distances, rate):
        session.calls.append(("draw", "small_table", rate, len(counts)))
        place = len(session.levels)
        if first is None:
            # By its law, in doubles.
            there = np.flatnonzero(counts)
            far = np.array(distances)[there]
            mass = np.asarray(counts)[there] * np.exp(-float(rate) * (far - far.min()))
            level = int(rng.choice(there, p=mass / mass.sum()))
        else:
            level = first.levels[place] if place < len(first.levels) else int(np.argmax(counts))
        session.levels.append(level)
        return level

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(discreet.lab.textbook.small_db, "MOST_WORK", MOST_WORK)
        patch.setattr(discreet.lab.textbook.small_db, "MOST_MULTISETS", MOST_TABLES)
        patch.setattr(discreet.curator.release_run, "choosing", choosing)
        patch.setattr(discreet.mechanism.smalldb, "draw_level", draw_level)
        # Which of the tables that are equally good: nothing depends on it.
        patch.setattr(noise, "uniform_below", lambda bound: bound // 2)
        yield


def plain(value):
    """A request or an event as something that can be compared, numbers to the last bit."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, tuple | list):
        return tuple(map(plain, value))
    if is_dataclass(value) and not value.__eq__.__qualname__.startswith(type(value).__name__):
        return type(value).__name__, *(plain(getattr(value, each.name)) for each in fields(value))
    return value


def recorded(table, work, *, folder, budget, seed=0, first=None, release=None):
    """All that a curator does for some `work`: it asks questions and makes releases, each one as it comes."""
    session = Recorded()
    rng = np.random.default_rng(seed)
    hear = listening_to_coins(session, rng, first)
    address = folder / f"{uuid4().hex}.sqlite"
    small = heard_tables(session, rng, first)
    with quick_fits(), hear, small, heard_requests(session), HeardLedger(address) as ledger:
        ledger.session = session
        desk = Curator(HeardTable(table.schema, table.source, session), budget=budget, ledger=ledger)
        for how, what, wish in work:
            if how == "release":
                session.calls.append(("outcome", released(session, desk, what, wish)))
            else:
                session.calls.append(("outcome", outcome(desk, how, what, wish)))
        (account,) = ledger.balances(table="data")
        session.ticks, session.kind = account.spent_ticks, account.gate.kind
        session.spent, session.charged = session.ticks, [spend.event for spend in ledger.history(table="data")]
        session.open_holds = len(ledger.holds)
        charges = [account.gate.charge(event) for event in session.charged]
        assert session.ticks == tuple(map(sum, zip(*charges, strict=True))), "the account is the sum of its events"
    return session


def released(session, desk, goal, wish):
    """What an analyst gets: the model to the last bit and the bill, or an error to the last letter."""
    before, asked = desk.ledger.balances(table="data")[0], len(session.requests)
    try:
        found = desk.release(goal, **wish)
    except Exception as error:
        # Of whatever type: a neighbour must see the same one.
        session.refusals.append(type(error))
        return type(error).__name__, str(error)
    (after,) = desk.ledger.balances(table="data")
    paid = tuple(now - then for now, then in zip(after.spent_ticks, before.spent_ticks, strict=True))
    session.bills.append((paid, found.bill, after.gate, wish["budget"], session.requests[asked:]))
    bill = replace(found.bill, made="")
    return plain([found.marginal(scope) for scope in found.goal.scopes]), repr(bill), found.method


def payments_of(session):
    """Every payment in its order. What is paid outside of a request has none: questions, and what is public."""
    releases, requests, tables = iter(session.releases), iter(session.requests), iter(session.tables)
    asked = None
    for call in session.calls:
        match call[0]:
            case "request":
                asked = next(requests)
            case "spend":
                payment = Payment(asked, call[1])
                if isinstance(asked, SmallTable):
                    payment.mechanism = next(tables)
            case "open":
                payment.opened.append(next(releases))
            case "draw":
                payment.drawn.append(call[1:])
            case "record":
                asked = None
                yield payment
            case "outcome":
                # A request that was refused was not paid.
                asked = None


# --- What is wrong ---------------------------------------------------------------------------------------------------


def broken_promises(tables, work, **named):
    """What is wrong with a session on two neighbours, as sentences; and the session on the first."""
    one, other = tables
    first = recorded(one, work, **named)
    second = recorded(other, work, first=first, **named)
    # Once they go apart, there is nothing to compare their values with.
    broken = [*differences(first, second)] or [*disorder(first), *unkept(first), *overdrawn(first, second)]
    return list(dict.fromkeys(broken)), first


def unkept(session):
    """Whether a release cost other than its bill says, more than its budget, or left something set aside."""
    if session.open_holds:
        yield "a hold is open"
    if any(not issubclass(error, BudgetExceeded | TooLarge) for error in session.refusals):
        yield "an error that is no refusal"
    for paid, bill, gate, budget, requests in session.bills:
        # What is full is full.
        pairs = [(now, said) for now, said in zip(paid, bill.grains, strict=True) if now < FULL_TICKS]
        if not pairs or any(now != said for now, said in pairs):
            yield "another bill"
        if price(session, requests) > limit_of(gate, budget):
            yield "more than the budget"


def price(session, requests):
    """What requests cost in the currency of a release, exactly."""
    events = [payment.event for payment in payments_of(session) if any(payment.request is each for each in requests)]
    return sum((price_of(event, by="pure" if session.kind == "pure" else "gaussian") for event in events), Fraction(0))


def limit_of(gate, budget):
    return budget.epsilon if gate.kind == "pure" else gaussian_limit(budget.epsilon, budget.delta)


def overdrawn(first, second):
    """Whether neighbours differ by more than a seal says, or what is drawn for them by more than was paid."""
    for one, other in zip(payments_of(first), payments_of(second), strict=True):
        for part, same in zip(one.opened, other.opened, strict=True):
            beyond = (
                loss(part, same, first.kind) > declared_loss(part, first.kind)
                if part.stretches
                else further(part, same)
            )
            if beyond:
                yield "more than declared"
        lost, paid = lost_and_paid(one, other, first.kind)
        if lost > paid:
            yield "more than paid"


def further(part, same):
    """Whether true values move by more than their seal says, in any norm."""
    moves = [abs(a - b) for a, b in zip(part.values, same.values, strict=True)]
    said = part.sensitivity
    return sum(moves) > said.l1 or sum(each**2 for each in moves) > said.l2_squared or max(moves) > said.linf


def lost_and_paid(one, other, kind):
    """What a payment's releases tell apart, and what was charged for it: squared mu, epsilon, or a bounded range."""
    if isinstance(one.event, Nothing):
        # For nothing nothing may be told: only what no person can move.
        return (inf if [each.values for each in one.opened] != [each.values for each in other.opened] else 0), 0
    match one.request:
        case None | Measure():
            lost = sum((loss(a, b, kind) for a, b in zip(one.opened, other.opened, strict=True)), Fraction(0))
            return lost, price_of(one.event, by="pure" if kind == "pure" else "gaussian")
        case Distances(_, expected) | Farthest(_, expected):
            here, there = (distances_of(each.opened, expected) for each in (one, other))
        case Choose(_, expected):
            here, there = (surprises_of(each.opened, expected) for each in (one, other))
        case SmallTable():
            return range_of(one.mechanism, one.opened, other.opened), one.event.epsilon
    moves = [a - b for a, b in zip(here, there, strict=True)]
    match one.drawn:
        case [("rounded_gaussian", sigma, size)]:
            assert size == len(moves)
            return sum(move**2 for move in moves) / sigma**2, one.event.squared_sensitivity / one.event.sigma**2
        case [("gumbel_race", rate, size)]:
            assert size == len(moves)
            return (max(moves) - min(moves)) * rate, one.event.epsilon
    raise AssertionError(f"something else was drawn: {one.drawn}")


def surprises_of(opened, expected):
    (part,) = opened
    return [abs(value - int(middle)) for value, middle in zip(part.values, expected, strict=True)]


def range_of(mechanism, opened, others):
    """How far the losses of all tables that could have been chosen lie apart."""
    (one,), (other,) = opened, others
    here, there = (mechanism.law(part.values).probabilities for part in (one, other))
    losses = [float((here[table] / there[table]).log().mid()) for table in here]
    # The logarithms are right to many digits; a range of exactly epsilon must pass.
    return Fraction(max(losses) - min(losses)) * (1 - Fraction(1, 10**9))


# --- What is asked for -----------------------------------------------------------------------------------------------


def random_goal(rng, domain):
    """Marginals of up to three columns, some of them, with weights or without."""
    names = list(domain)
    every = [each for size in (1, 2, 3) for each in combinations(names, size)]
    # A column of one cell says nothing by itself.
    every = [each for each in every if max(domain[name].size for name in each) > 1]
    chosen = [every[place] for place in rng.permutation(len(every))[: rng.integers(1, len(every) + 1)]]
    return {each: float(rng.integers(1, 5)) for each in chosen} if rng.integers(2) else chosen

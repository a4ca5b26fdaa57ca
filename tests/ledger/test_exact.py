"""The ledger beside the truth in exact rational arithmetic (truth.py), with events chosen to hurt.

Every call to a real ledger in a real file is judged: what is granted fits every cap exactly, what fits is not refused,
what is refused changes nothing. The same laws, on a ledger with a well-known mistake in it, fail.
"""

import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from json import loads
from math import isfinite
from operator import add
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from discreet.accounting import (
    ORDERS,
    TICK,
    AboveThreshold,
    Approximate,
    Coin,
    Compose,
    DiscreteGaussian,
    Gaussian,
    Laplace,
    Nothing,
    Pure,
    Repeat,
    Selection,
)
from discreet.accounting.filter import FULL_TICKS, Gate, charge_of
from discreet.accounting.gaussian_dp import squared_mu_of_pure
from discreet.accounting.renyi_dp import pure_divergence
from discreet.errors import BudgetExceeded, LedgerDamaged, Mistake, Refusal
from discreet.ledger import Budget, Ledger, Scope, declarations, verify
from discreet.ledger import ledger as ledger_module
from discreet.ledger import state as state_module
from discreet.ledger.accounts import Caps, balances, gate_of
from discreet.ledger.declarations import cap_draft
from discreet.ledger.state import State, folded, misfits
from discreet.ledger.store import Entry
from discreet.numeric import greatest
from ledger.truth import Cap, Truth, added, loss, parts

TABLES = ("a", "b", "c")
ANALYSTS = ("ana", "bob")


class Judged:
    """Two ledgers on one file and the truth beside them. A call that breaks a law raises an AssertionError."""

    def __init__(self, folder):
        self.file = Path(folder) / "ledger.sqlite"
        self.ledgers = [Ledger(self.file), Ledger(self.file)]
        self.truth = Truth()
        self._stored = sqlite3.connect(self.file)

    def close(self):
        for ledger in self.ledgers:
            ledger.close()
        self._stored.close()

    def cap(self, which, cap):
        budget, scope = Budget(cap.epsilon, cap.delta, cap.kind), {"tables": cap.tables or (), "analyst": cap.analyst}
        before = self.truth.caps.get(cap.scope)
        fits, surely = self.truth.allows_cap(cap), self.truth.allows_cap(cap, slack=self.truth.slack)
        if before is not None:
            # Setting the same again is no mistake, and setting another is one.
            fits = surely = before._replace(first=None) == cap
        granted = self._judge(lambda: self.ledgers[which].cap(budget, **scope), fits=fits, surely_fits=surely)
        if granted and before is None:
            self.truth.set(cap)

    def raise_cap(self, which, cap):
        budget, scope = Budget(cap.epsilon, cap.delta, cap.kind), {"tables": cap.tables or (), "analyst": cap.analyst}
        there = cap.scope in self.truth.caps
        fits = there and self.truth.allows_cap(cap)
        surely = there and self.truth.allows_cap(cap, slack=self.truth.slack)
        if self._judge(lambda: self.ledgers[which].raise_cap(budget, **scope), fits=fits, surely_fits=surely):
            self.truth.set(cap)

    def spend(self, which, event, table, analyst):
        fits, surely = (self.truth.fits(event, table, analyst, slack=slack) for slack in (0, self.truth.slack))
        spend = lambda: self.ledgers[which].spend(event, "why", table=table, analyst=analyst)
        if self._judge(spend, fits=fits, surely_fits=surely):
            self._require_charge_above_loss(event)
            self.truth.pay(event, table, analyst)

    def reserve(self, which, event, table, analyst):
        slacks = (0, self.truth.slack_with(event))
        fits, surely = (self.truth.fits(event, table, analyst, slack=slack) for slack in slacks)
        reserve = lambda: self.ledgers[which].reserve(event, "why", table=table, analyst=analyst)
        if granted := self._judge(reserve, fits=fits, surely_fits=surely):
            # A hold is rounded up part by part, as its spends will be.
            self._require_charge_above_loss(event, roundings=parts(event).total())
            self.truth.reserve(granted.result, event, table, analyst)

    def spend_from(self, which, number, event):
        hold = self.truth.holds[number]
        fits = self.truth.fits_from(number, event)
        surely = self.truth.fits_from(number, event, slack=self.truth.slack) or self.truth.is_within(number, event)
        spend = lambda: self.ledgers[which].spend(event, "why", table=hold.table, analyst=hold.analyst, hold=number)
        if self._judge(spend, fits=fits, surely_fits=surely):
            self._require_charge_above_loss(event)
            self.truth.pay_from(number, event)

    def close_hold(self, which, number):
        self._judge(lambda: self.ledgers[which].close_hold(number), fits=True, surely_fits=True)
        self.truth.close(number)

    def mistake(self, call):
        self._judge(call, fits=False, surely_fits=False)

    def look(self, which):
        """What a ledger says of every account is the exact sum, rounded up by less than a tick for each charge."""
        for table in TABLES:
            for analyst in ANALYSTS:
                said = {
                    balance.scope: balance for balance in self.ledgers[which].balances(table=table, analyst=analyst)
                }
                true = {
                    Scope(cap.tables, analyst if cap.analyst == "*" else cap.analyst): cap
                    for cap in self.truth.caps_over(table, analyst)
                }
                assert said.keys() == true.keys()
                for scope, cap in true.items():
                    self._require_near(said[scope].spent_ticks, self.truth.spent(cap, analyst))
                    self._require_near(said[scope].total_ticks, self.truth.taken(cap, analyst))
                    assert cap.allows(self.truth.taken(cap, analyst)), "a cap was passed"
        holds = {number: (hold.table, hold.analyst) for number, hold in self.truth.holds.items()}
        assert self.ledgers[which].holds == holds

    def reopen(self, which):
        """What follows from the file is what the running ledger said."""
        said = self._said(which)
        self.ledgers[which].close()
        self.ledgers[which] = Ledger(self.file)
        assert self._said(which) == said

    def finish(self):
        self.look(0)
        self.reopen(1)
        self.look(1)
        assert verify(self.file, head=self.ledgers[0].head, prices=True).head == self.ledgers[1].head

    def _judge(self, call, *, fits, surely_fits):
        """What is granted; None for a refusal."""
        before = self._last()
        try:
            result = call()
        except (Refusal, Mistake) as error:
            refusal = error
        else:
            assert fits, "what was granted does not fit"
            return Granted(result)
        assert not surely_fits, f"what fits was refused: {refusal}"
        assert self._last() == before, "a refusal changed the ledger"
        return None

    def _last(self):
        """The last entry as it lies in the file, without asking a ledger: they should find out by themselves."""
        query = "SELECT sequence, hash, body FROM discreet_ledger ORDER BY sequence DESC LIMIT 1"
        return self._stored.execute(query).fetchone()

    def _require_charge_above_loss(self, event, *, roundings=1):
        for kind, amount in loads(self._last()[2])["charge"].items():
            for ticks, true in zip(amount, loss(event, kind), strict=True):
                assert min(true, FULL_TICKS * TICK) <= ticks * TICK <= true + roundings * TICK

    def _require_near(self, ticks, true):
        for have, exact in zip(ticks, true, strict=True):
            assert exact <= have * TICK <= exact + self.truth.slack or have >= FULL_TICKS, (
                "a balance is not the exact sum"
            )

    def _said(self, which):
        pairs = [(table, analyst) for table in TABLES for analyst in ANALYSTS]
        return [self.ledgers[which].balances(table=table, analyst=analyst) for table, analyst in pairs]


class Granted(NamedTuple):
    result: object


# Events. Some are always the same; the others are as large as what is left, or a few ticks off.

ALWAYS = (
    Nothing(),
    Compose(()),
    Repeat(Pure(5), 0),
    Laplace(3, 0),
    Gaussian(3, 0),
    Laplace(100, 1),
    Pure(Fraction(1, 10**15)),
    Pure(Fraction(1, 1009)),
    Selection(Fraction(1, 70)),
    AboveThreshold(Fraction(1, 110)),
    Coin(Fraction(1, 1000), 1),
    Coin(Fraction(1, 30), 0),
    Approximate(Fraction(1, 50), 0),
    Approximate(0, Fraction(1, 10**9)),
    Gaussian(300, 2),
    DiscreteGaussian(300, 2),
    Repeat(Pure(Fraction(1, 10**15)), 10**9),
    Repeat(Gaussian(10**6, 1), 10**7),
    Repeat(Pure(1), 10**30),
    Compose((Nothing(), Repeat(Compose((Pure(Fraction(1, 1009)), Selection(Fraction(1, 999)))), 3))),
    Compose((Gaussian(1000, 1), Repeat(Laplace(500, 1), 2))),
    Compose((Gaussian(1000, 1), DiscreteGaussian(1000, 1))),
)


class Near(NamedTuple):
    """An event of the size of what is left of one of the caps, or a part of it, and so many ticks more."""

    cap: int
    part: Fraction
    ticks: Fraction
    wrap: Callable


WRAPPINGS = (
    lambda event: event,
    lambda event: event,
    lambda event: Repeat(event, 1),
    lambda event: Repeat(event, 3),
    lambda event: Compose((Nothing(), Compose((event, Laplace(1, 0))))),
)
near = st.builds(
    Near,
    st.integers(0, 5),
    st.sampled_from([Fraction(1), Fraction(1), Fraction(1), Fraction(1, 2), Fraction(1, 3), Fraction(1, 10)]),
    st.sampled_from([Fraction(n, 2) for n in (0, 0, 1, -1, 2, 2, -2, 4, -4, 100, -100)]),
    st.sampled_from(WRAPPINGS),
)
recipes = st.one_of(near, near, near, st.sampled_from(ALWAYS))


def event_from(recipe, caps, rooms):
    """The event that a recipe means where these caps hold and so much is left of them."""
    if not isinstance(recipe, Near):
        return Nothing() if recipe == "part" else recipe
    if not caps:
        return Pure(1)
    cap = caps[recipe.cap % len(caps)]
    kinds = {cap.kind for cap in caps}
    return recipe.wrap(sized(cap.kind, rooms[recipe.cap % len(caps)], recipe, pure="pure" in kinds))


def sized(kind, room, recipe, *, pure):
    """An event whose loss is the part and the ticks of a room that a recipe says; pure, if only such can be priced.

    The room is measured at an order where it has a size: a hold for a coin is infinite at the orders that it closes,
    and a budget that a coin was paid from has nothing there.
    """
    finite = [place for place, left in enumerate(room) if isfinite(left)]
    if not finite:
        return Nothing()
    if kind == "pure":
        return Pure(max(Fraction(0), room[0] * recipe.part + recipe.ticks * TICK))
    per_gaussian = [Fraction(1)] if kind == "gaussian" else [order / 2 for order in ORDERS]
    place = max(finite, key=lambda place: room[place] / per_gaussian[place])
    amount = max(Fraction(0), room[place] * recipe.part + recipe.ticks * TICK)
    if not pure:
        return Gaussian(1, amount / per_gaussian[place])
    return Pure(greatest(lambda epsilon: pure_loss(epsilon, kind, place) <= amount)) if amount else Nothing()


def pure_loss(epsilon, kind, place):
    return squared_mu_of_pure(epsilon) if kind == "gaussian" else pure_divergence(epsilon, ORDERS[place])


# What may happen, as values: hypothesis makes lists of them, and shortens a list that breaks a law.

BUDGETS = (
    ("pure", Fraction(1), Fraction(0)),
    ("pure", Fraction(1, 3), Fraction(0)),
    ("pure", Fraction(7, 5), Fraction(0)),
    ("gaussian", Fraction(1), Fraction(1, 10**6)),
    ("gaussian", Fraction(3), Fraction(1, 10**9)),
    ("renyi", Fraction(1), Fraction(1, 10**6)),
    ("renyi", Fraction(2), Fraction(1, 10**6)),
)
AREAS = (None, ("a",), ("b",), ("c",), ("a", "b"), ("b", "c"))
MISTAKES = (
    lambda ledger: ledger.spend(Nothing(), "why", table="a", hold=10**6),
    lambda ledger: ledger.spend(Nothing(), "", table="a"),
    lambda ledger: ledger.spend(Nothing(), "why", table=""),
    lambda ledger: ledger.reserve(Nothing(), "why", table="a\x00"),
    lambda ledger: ledger.raise_cap(Budget(1), table="a table without a cap"),
    lambda ledger: ledger.cap(Budget(0), table="a table without a cap"),
    lambda ledger: ledger.cap(Budget(1), table="a", tables=("b",)),
)


class SetCap(NamedTuple):
    cap: Cap


class Raise(NamedTuple):
    cap: int
    budget: tuple


class Spend(NamedTuple):
    recipe: object
    table: str
    analyst: str


class Reserve(NamedTuple):
    recipe: object
    table: str
    analyst: str


class SpendFrom(NamedTuple):
    """`as_large_as` says what the recipe is about: what is left of the "hold", or of the "caps" without it."""

    hold: int
    recipe: object
    as_large_as: str


class Close(NamedTuple):
    hold: int


class Look(NamedTuple):
    pass


class Reopen(NamedTuple):
    pass


class Blunder(NamedTuple):
    mistake: int


places, tables, analysts = st.integers(0, 9), st.sampled_from(TABLES), st.sampled_from(ANALYSTS)


def histories(length, *, budgets=BUDGETS, holds=8):
    """Lists of so much that happens; with caps of these budgets, and more or fewer holds."""
    caps = st.builds(
        lambda area, analyst, budget: Cap(area, analyst, *budget),
        st.sampled_from(AREAS),
        st.sampled_from([None, "*", "ana"]),
        st.sampled_from(budgets),
    )
    spend_from = st.builds(
        SpendFrom,
        places,
        st.one_of(recipes, st.sampled_from(["all", "part"])),
        st.sampled_from(["hold", "hold", "caps"]),
    )
    action = st.one_of(
        *[st.builds(Spend, recipes, tables, analysts)] * 9,
        *[st.one_of(spend_from, spend_from, st.builds(Reserve, recipes, tables, analysts))] * holds,
        *[st.builds(SetCap, caps)] * 3,
        st.builds(Raise, places, st.sampled_from(budgets)),
        st.builds(Close, places),
        st.builds(Look),
        st.builds(Reopen),
        st.builds(Blunder, st.integers(0, len(MISTAKES) - 1)),
    )
    first = st.sampled_from(budgets).map(lambda budget: [(0, SetCap(Cap(None, None, *budget)))])
    more = st.lists(st.tuples(st.integers(0, 1), action), min_size=length, max_size=length)
    return st.builds(add, first, more)


def do(judged, which, action):
    """One thing happens, through one of the ledgers, and is judged."""
    truth = judged.truth
    match action:
        case SetCap(cap):
            judged.cap(which, cap)
        case Raise(place, budget):
            judged.raise_cap(which, Cap(*chosen(truth.caps, place), *budget))
        case Spend(recipe, table, analyst):
            judged.spend(which, event_from(recipe, *caps_and_rooms(truth, table, analyst)), table, analyst)
        case Reserve(recipe, table, analyst):
            judged.reserve(which, event_from(recipe, *caps_and_rooms(truth, table, analyst)), table, analyst)
        case SpendFrom() | Close() if not truth.holds:
            pass
        case SpendFrom(place, recipe, as_large_as):
            number = chosen(truth.holds, place)
            judged.spend_from(which, number, event_for_hold(truth, number, recipe, as_large_as))
        case Close(place):
            judged.close_hold(which, chosen(truth.holds, place))
        case Look():
            judged.look(which)
        case Reopen():
            judged.reopen(which)
        case Blunder(mistake):
            judged.mistake(lambda: MISTAKES[mistake](judged.ledgers[which]))


def chosen(things, place):
    return list(things)[place % len(things)]


def caps_and_rooms(truth, table, analyst, *, without=None):
    caps = truth.caps_over(table, analyst)
    return caps, [truth.room(cap, analyst, without=without) for cap in caps]


def event_for_hold(truth, number, recipe, as_large_as):
    hold = truth.holds[number]
    if recipe == "all":
        return hold.reserved
    if recipe == "part" and (set_aside := parts(hold.reserved)):
        return chosen(set_aside, len(hold.used))
    caps, rooms = caps_and_rooms(truth, hold.table, hold.analyst, without=number)
    if as_large_as == "hold":
        rooms = [hold.left(cap.kind) for cap in caps]
    return event_from(recipe, caps, rooms)


def live_through(history):
    """A new ledger, and all this."""
    with TemporaryDirectory(prefix="discreet-test-") as folder, closing(Judged(folder)) as judged:
        for which, action in history:
            do(judged, which, action)
        judged.finish()


COMMON = {"deadline": None, "suppress_health_check": list(HealthCheck), "report_multiple_bugs": False}


@settings(max_examples=20, **COMMON)
@given(histories(40))
def test_whatever_happens_the_ledger_keeps_the_laws_of_exact_arithmetic(history):
    live_through(history)


@pytest.mark.long
@settings(max_examples=400, **COMMON)
@given(histories(120))
def test_whatever_happens_for_long_the_ledger_keeps_the_laws_of_exact_arithmetic(history):
    live_through(history)


# The worst cases, one by one.


@pytest.mark.parametrize("as_large_as", ["hold", "caps"])
@pytest.mark.parametrize("part", [Fraction(1), Fraction(1, 3)])
@pytest.mark.parametrize("hits", [0, 1])
def test_what_is_paid_from_a_hold_for_a_coin_keeps_the_laws_at_the_orders_that_are_open(hits, part, as_large_as):
    """Such a hold is infinite at the orders that the coin closes."""
    near = Near(0, part, Fraction(0), lambda event: event)
    coin = Coin(Fraction(1, 1000), hits)
    cap = SetCap(Cap(None, None, "renyi", Fraction(1), Fraction(1, 10**6)))
    steps = [cap, Reserve(coin, "a", "ana"), SpendFrom(0, near, as_large_as), SpendFrom(0, coin, "hold"), Look()]
    live_through([(0, step) for step in [*steps, SpendFrom(0, near, "hold"), Close(0), Spend(near, "a", "ana")]])


KINDS = ("pure", "gaussian", "renyi")
each_kind = pytest.mark.parametrize("kind", KINDS)
BUDGET = {"pure": Budget(1), "gaussian": Budget(1, 1e-6), "renyi": Budget(1, 1e-6, "renyi")}
# So small that a few ten thousand of them fill the budget.
TINY = {
    "pure": (Laplace(20_000, 1), Pure(Fraction(1, 20_011)), Selection(Fraction(1, 30_011))),
    "gaussian": (Gaussian(400, 1), Pure(Fraction(1, 709)), Selection(Fraction(1, 503))),
    "renyi": (DiscreteGaussian(400, 1), Pure(Fraction(1, 709)), Selection(Fraction(1, 503))),
}


def folded_with(state, fields):
    return folded(state, Entry(state.sequence + 1, "", None, b""), fields)


def test_a_hundred_thousand_tiny_spends_fold_to_the_exact_sums_and_stop_at_the_exact_limits():
    state = State()
    for kind in KINDS:
        state = folded_with(state, cap_draft(state, Scope((kind,)), BUDGET[kind], "owner", list).fields)
    granted, when_refused = Counter(), {}
    for step in range(100_000):
        kind = KINDS[step % 3]
        event = TINY[kind][step // 3 % 3]
        charge = {kind: charge_of(kind, event)}
        if any(misfits(state, kind, "ana", charge)):
            when_refused.setdefault((kind, event), dict(granted))
        else:
            state = folded_with(state, {"is": "spend", "at": "", "table": kind, "analyst": "ana", "charge": charge})
            granted[kind, event] += 1
    for kind in KINDS:
        (balance,) = balances(state, kind, "ana")
        exact, spends = summed(granted, kind)
        for ticks, true in zip(balance.spent_ticks, exact, strict=True):
            assert true <= ticks * TICK < true + spends * TICK
        cap = Cap((kind,), None, kind, BUDGET[kind].epsilon, BUDGET[kind].delta)
        assert cap.allows(exact)
        for event in TINY[kind]:
            before, spends = summed(when_refused[kind, event], kind)
            assert not cap.allows(added([before, loss(event, kind)], kind), slack=(spends + 1) * TICK)


def summed(granted, kind):
    """The exact sum of what was granted under one gate, and how many spends that is."""
    mine = {event: times for (table, event), times in granted.items() if table == kind}
    return added([loss(Repeat(event, times), kind) for event, times in mine.items()], kind), sum(mine.values())


@pytest.mark.parametrize(("epsilon", "granted"), [(0.01, 100), (0.1, 10), (0.3, 3), (1e-3, 1000), (Fraction(1, 3), 2)])
def test_a_budget_of_one_grants_as_many_equal_spends_as_decimals_say(tmp_path, epsilon, granted):
    """A third is no decimal, and three of them, each rounded up, are more than 1."""
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        ledger.cap(Budget(epsilon=1), table="people")
        spend = lambda event: ledger.spend(event, "how many smoke?", table="people")
        for _ in range(granted):
            spend(Pure(epsilon))
        with pytest.raises(BudgetExceeded):
            spend(Pure(epsilon))
        assert (ledger.remaining(table="people").epsilon == 0) == (epsilon not in (0.3, Fraction(1, 3)))


def test_three_thirds_fit_as_one_event_and_not_as_three(tmp_path):
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        ledger.cap(Budget(epsilon=1), table="people")
        thirds = Repeat(Pure(Fraction(1, 3)), 3)
        with pytest.raises(BudgetExceeded):
            # What is set aside is paid part by part.
            ledger.reserve(thirds, "three thirds", table="people")
        ledger.spend(thirds, "three thirds", table="people")
        assert ledger.remaining(table="people").epsilon == 0


def filling(kind, ticks=0):
    """The event that fills an empty budget exactly, or is a few ticks larger."""
    limits = [most + ticks for most in gate_of(BUDGET[kind]).limit]
    match kind:
        case "pure":
            return Pure(limits[0] * TICK)
        case "gaussian":
            return Gaussian(1, limits[0] * TICK)
        case "renyi":
            # A Gaussian costs a·μ²/2 at order a.
            return Gaussian(1, max(2 * most * TICK / order for most, order in zip(limits, ORDERS, strict=True)))


def require_that_budgets_end_exactly(kind, folder):
    with Ledger(folder / "ledger.sqlite") as ledger:
        ledger.cap(BUDGET[kind], table="people")
        spend = lambda event: ledger.spend(event, "why", table="people")
        with pytest.raises(BudgetExceeded):
            spend(filling(kind, ticks=1))
        spend(filling(kind))
        for free in (Nothing(), Compose(()), Laplace(1, 0), Repeat(filling(kind), 0)):
            spend(free)
        with pytest.raises(BudgetExceeded):
            spend(Pure(Fraction(1, 10**15)))
        assert ledger.remaining(table="people").epsilon == 0


@each_kind
def test_a_budget_can_be_used_up_to_the_last_tick_and_then_only_what_is_free_is_granted(tmp_path, kind):
    require_that_budgets_end_exactly(kind, tmp_path)


# A cap of one's own stands for the one that each analyst has, over the same tables.

EACH_AND_OWN = {
    "pure": ("pure", Fraction(1), Fraction(0)),
    "gaussian": ("gaussian", Fraction(3), Fraction(1, 10**6)),
    "renyi": ("renyi", Fraction(3), Fraction(1, 10**6)),
    "too little": ("pure", Fraction(1, 3), Fraction(0)),
}


def live_with_both(folder, own, each):
    with closing(Judged(folder)) as judged:
        judged.cap(0, Cap(None, None, "pure", Fraction(100), Fraction(0)))
        judged.cap(0, Cap(("a",), "ana", *EACH_AND_OWN[own]))
        for _ in range(5):
            judged.spend(0, Pure(Fraction(1, 10)), "a", "ana")
        judged.cap(1, Cap(("a",), "*", *EACH_AND_OWN[each]))
        judged.look(0)
        for _ in range(30):
            judged.spend(0, Pure(Fraction(1, 10)), "a", "ana")
        judged.finish()


@pytest.mark.parametrize("own", KINDS)
@pytest.mark.parametrize("each", EACH_AND_OWN)
def test_a_cap_of_ones_own_is_untouched_by_the_cap_of_each(tmp_path, own, each):
    live_with_both(tmp_path, own, each)


@pytest.mark.parametrize("own", KINDS)
def test_a_ledger_in_which_both_count_breaks_the_laws(monkeypatch, tmp_path, own):
    monkeypatch.setattr(Caps, "limits", lambda *_: True)
    with pytest.raises((AssertionError, LedgerDamaged)):
        live_with_both(tmp_path, own, "too little")


def test_the_cap_of_each_can_be_raised_whatever_was_spent_under_a_cap_of_ones_own(tmp_path):
    with closing(Judged(tmp_path)) as judged:
        judged.cap(0, Cap(None, None, "pure", Fraction(100), Fraction(0)))
        judged.cap(0, Cap(("a",), "*", "pure", Fraction(1), Fraction(0)))
        judged.cap(0, Cap(("a",), "ana", "pure", Fraction(50), Fraction(0)))
        judged.spend(0, Pure(30), "a", "ana")
        judged.raise_cap(0, Cap(("a",), "*", "pure", Fraction(2), Fraction(0)))
        judged.finish()


# Power: a ledger with a mistake in it breaks these laws.


def holds_are_forgotten(change):
    change(State, "total", lambda self, account, gate, *, without=None: self.spent.get(account) or gate.nothing)


def rest(of):
    """What stays of a hold, by another rule than ours."""

    def rest_of(hold, charge):
        pairs = {kind: zip(amount, charge[kind], strict=True) for kind, amount in hold.left.items()}
        return hold._replace(left={kind: tuple(of(have, need) for have, need in pairs[kind]) for kind in pairs})

    return lambda change: change(state_module, "rest_of", rest_of)


def covering(covers):
    """Which spends a cap counts, by another rule than ours."""
    return lambda change: change(Scope, "covers", covers)


def fitting(fits):
    """When an amount fits, by another rule than ours."""
    return lambda change: change(
        Gate, "fits", lambda self, spent, amount: fits(list(zip(spent, amount, self.limit, strict=True)))
    )


def fitting_a_renyi_gate(fits):
    """The same, for a gate of several orders only."""
    right = lambda orders: any(before + more <= most for before, more, most in orders)
    return fitting(lambda orders: fits(orders) if len(orders) > 1 else right(orders))


def what_pays_from_a_hold_always_fits(change):
    wrong = lambda state, table, analyst, charge, hold=None: (
        () if hold is not None else misfits(state, table, analyst, charge)
    )
    change(ledger_module, "misfits", wrong)
    change(state_module, "misfits", wrong)


def right_tables(scope, table):
    return scope.tables is None or table in scope.tables


WRONG_ABOUT_HOLDS = {
    "holds are forgotten": holds_are_forgotten,
    "a hold can fall below nothing": rest(lambda have, need: have - need),
    "a hold gives back twice what is paid from it": rest(lambda have, need: max(0, have - 2 * need)),
    "a hold stays whole whatever is paid from it": rest(lambda have, need: have),
    "what pays from a hold always fits": what_pays_from_a_hold_always_fits,
}
WRONG_ABOUT_ORDERS = {
    "every order must fit": fitting_a_renyi_gate(
        lambda orders: all(before + more <= most for before, more, most in orders if most > 0)
    ),
    "what was spent and what is new fit at orders of their own": fitting_a_renyi_gate(
        lambda orders: (
            any(before <= most for before, _, most in orders) and any(more <= most for _, more, most in orders)
        )
    ),
}
WRONG = {
    "analysts share the cap of each": lambda change: change(Scope, "of", lambda self, analyst: self),
    "the cap of each binds nobody": covering(
        lambda self, table, analyst: right_tables(self, table) and self.analyst in (None, analyst)
    ),
    "the cap of one counts everybody": covering(lambda self, table, analyst: right_tables(self, table)),
    "a group is its first table": covering(
        lambda self, table, analyst: (
            (self.tables is None or table == self.tables[0]) and self.analyst in (None, "*", analyst)
        )
    ),
    "a new cap forgets what was spent": lambda change: change(declarations, "spent_before", lambda *_: {}),
    "charges are rounded down": lambda change: change(
        Gate,
        "charge",
        lambda self, event: tuple(max(0, ticks - 1) for ticks in charge_of(self.kind, event)),
    ),
}


def assert_wrong(change, histories):
    """Some history breaks a law, if this is changed in the ledger."""
    change()

    @settings(max_examples=300, phases=[Phase.generate], derandomize=True, **COMMON)
    @given(histories)
    def laws(history):
        live_through(history)

    with pytest.raises((AssertionError, LedgerDamaged)):
        laws()


WRONG_BY_A_TICK = {
    "limits are rounded up": fitting(
        lambda orders: any(before + more <= most + 1 for before, more, most in orders if most > 0)
    ),
    "what fits exactly is refused": fitting(
        lambda orders: any(before + more < most for before, more, most in orders if most > 0)
    ),
    "nothing is granted any more when all is spent": fitting(
        lambda orders: any(before < most and before + more <= most for before, more, most in orders)
    ),
}


@each_kind
@pytest.mark.parametrize("mistake", WRONG_BY_A_TICK)
def test_a_ledger_that_is_wrong_by_a_tick_does_not_end_budgets_exactly(monkeypatch, tmp_path, mistake, kind):
    WRONG_BY_A_TICK[mistake](monkeypatch.setattr)
    with pytest.raises((BudgetExceeded, pytest.fail.Exception)):
        require_that_budgets_end_exactly(kind, tmp_path)


@pytest.mark.parametrize("mistake", WRONG)
def test_a_wrong_ledger_breaks_the_laws(monkeypatch, mistake):
    assert_wrong(lambda: WRONG[mistake](monkeypatch.setattr), histories(30))


@pytest.mark.parametrize("mistake", WRONG_ABOUT_HOLDS)
def test_a_ledger_that_is_wrong_about_holds_breaks_the_laws(monkeypatch, mistake):
    assert_wrong(lambda: WRONG_ABOUT_HOLDS[mistake](monkeypatch.setattr), histories(30, holds=40))


@pytest.mark.parametrize("mistake", WRONG_ABOUT_ORDERS)
def test_a_ledger_that_is_wrong_about_orders_breaks_the_laws(monkeypatch, mistake):
    renyi = [budget for budget in BUDGETS if budget[0] == "renyi"]
    assert_wrong(lambda: WRONG_ABOUT_ORDERS[mistake](monkeypatch.setattr), histories(30, budgets=renyi))

"""What a ledger should say, in exact rational arithmetic and as simply as can be: no ticks, no log, no accounts kept.

It knows what was paid, by whom and about which table, and sums it up anew whenever it is asked.
"""

from collections import Counter
from fractions import Fraction
from functools import cache
from typing import NamedTuple

from discreet.accounting.concentrated_dp import divergence_limit
from discreet.accounting.event import Compose, Event, Repeat, total_loss
from discreet.accounting.filter import TICK, accounting_for, delta_shares
from discreet.accounting.gaussian_dp import gaussian_limit
from discreet.accounting.renyi_dp import ORDERS

KINDS = {"pure": 1, "gaussian": 1, "renyi": len(ORDERS)}


@cache
def loss(event, kind):
    """What an event costs in a currency, at each order; infinite where it has no price."""
    exact = total_loss(event, accounting_for(kind))
    return exact if isinstance(exact, tuple) else (exact,)


@cache
def limit(kind, epsilon, delta, first):
    """What a budget allows in a currency, at each order; delta is shared as by the `first` budget of the cap."""
    match kind:
        case "pure":
            return (epsilon,)
        case "gaussian":
            return (gaussian_limit(epsilon, delta),)
        case "renyi":
            shares = [delta * share / first[1] for share in delta_shares(*first)]
            return tuple(divergence_limit(a - 1, epsilon, share) for a, share in zip(ORDERS, shares, strict=True))


def parts(event):
    """The single events of which an event is made, and how often each happens."""
    match event:
        case Compose(events):
            return sum(map(parts, events), Counter())
        case Repeat(part, times):
            return Counter({one: times * often for one, often in parts(part).items()})
        case _:
            return Counter([event])


def added(amounts, kind):
    """The sum of amounts of a currency, order by order."""
    return tuple(map(sum, zip((0,) * KINDS[kind], *amounts, strict=True)))


class Cap(NamedTuple):
    """A limit in one currency; `tables` and `analyst` as they are said to the ledger, None for all."""

    tables: tuple[str, ...] | None
    analyst: str | None
    kind: str
    epsilon: Fraction
    delta: Fraction
    first: tuple[Fraction, Fraction] | None = None

    @property
    def limit(self):
        return limit(self.kind, self.epsilon, self.delta, self.first or (self.epsilon, self.delta))

    @property
    def scope(self):
        return self.tables, self.analyst

    def counts(self, table):
        return self.tables is None or table in self.tables

    def allows(self, amount, slack=Fraction(0)):
        return any(have + slack <= most for have, most in zip(amount, self.limit, strict=True))


class Hold(NamedTuple):
    """An event that a session has set aside, and those it has paid for since."""

    table: str
    analyst: str
    reserved: Event
    used: tuple[Event, ...] = ()

    def takes(self, kind, more=()):
        """What it takes from a budget: what was set aside, or what was used if that is more."""
        used = added([loss(event, kind) for event in (*self.used, *more)], kind)
        return tuple(map(max, loss(self.reserved, kind), used))

    def left(self, kind):
        """What was set aside and is not used."""
        used = added([loss(event, kind) for event in self.used], kind)
        return tuple(max(0, most - have) for most, have in zip(loss(self.reserved, kind), used, strict=True))


class Truth:
    """All that was done."""

    def __init__(self):
        self.caps = {}
        self.holds = {}
        self._paid = {}
        self.charges = 0

    @property
    def slack(self):
        """How much the ticks can be off: each charge is rounded up by less than one, and the limit down."""
        return (self.charges + 1) * TICK

    def slack_with(self, event):
        """The same if an event is set aside: that is charged part by part."""
        return (self.charges + parts(event).total() + 1) * TICK

    # Questions.

    def caps_over(self, table, analyst):
        """The caps that a spend must fit. A cap of one's own stands for the one that each analyst has."""
        return [
            cap
            for cap in self.caps.values()
            if cap.counts(table)
            and (cap.analyst in (None, analyst) or (cap.analyst == "*" and (cap.tables, analyst) not in self.caps))
        ]

    def has_budget(self, table):
        """Whether a table has a cap over all analysts together, without which nothing is granted."""
        return any(cap.counts(table) and cap.analyst is None for cap in self.caps.values())

    def spent(self, cap, analyst):
        """What was paid under a cap; by this analyst, if the cap is not over all of them."""
        return added(
            [
                amounts[cap.kind]
                for (table, who), amounts in self._all_paid().items()
                if cap.counts(table) and (cap.analyst is None or who == analyst)
            ],
            cap.kind,
        )

    def taken(self, cap, analyst, *, without=None):
        """What was paid or is set aside under a cap; one hold can be left out."""
        holds = [
            hold.takes(cap.kind)
            for number, hold in self.holds.items()
            if number != without and self._under(cap, analyst, hold)
        ]
        paid = [
            amounts[cap.kind]
            for (table, who), amounts in self._paid.items()
            if cap.counts(table) and (cap.analyst is None or who == analyst)
        ]
        return added([*holds, *paid], cap.kind)

    def room(self, cap, analyst, *, without=None):
        """What is left of a cap, at each order."""
        taken = self.taken(cap, analyst, without=without)
        return tuple(most - have for most, have in zip(cap.limit, taken, strict=True))

    def fits(self, event, table, analyst, *, slack=Fraction(0)):
        """Whether an event can be paid for, or set aside."""
        return self.has_budget(table) and all(
            cap.allows(added([self.taken(cap, analyst), loss(event, cap.kind)], cap.kind), slack)
            for cap in self.caps_over(table, analyst)
        )

    def fits_from(self, number, event, *, slack=Fraction(0)):
        """Whether an event can be paid for from a hold, or from the hold and what else is left."""
        hold = self.holds[number]
        return all(
            cap.allows(
                added([self.taken(cap, hold.analyst, without=number), hold.takes(cap.kind, [event])], cap.kind), slack
            )
            for cap in self.caps_over(hold.table, hold.analyst)
        )

    def is_within(self, number, event):
        """Whether a hold is large enough for an event, however each of its spends is rounded.

        It is so for what was set aside, paid in whole or in parts, and for anything that leaves a tick for each spend.
        """
        hold = self.holds[number]
        events = (*hold.used, event)
        if sum(map(parts, events), Counter()) <= parts(hold.reserved):
            return True
        return all(
            have + len(events) * TICK <= most
            for kind in {cap.kind for cap in self.caps_over(hold.table, hold.analyst)}
            for have, most in zip(
                added([loss(one, kind) for one in events], kind), loss(hold.reserved, kind), strict=True
            )
        )

    def allows_cap(self, cap, *, slack=Fraction(0)):
        """Whether a cap can be set, or raised to this: what was spent counts, and what is set aside."""
        analysts = {who for _, who in self._all_paid()} | {hold.analyst for hold in self.holds.values()} | {""}
        if cap.analyst == "*":
            analysts -= {who for tables, who in self.caps if tables == cap.tables}
        elif cap.analyst is not None:
            analysts = {cap.analyst}
        before = self.caps.get(cap.scope)
        if before is None and any(self._under(cap, hold.analyst, hold) for hold in self.holds.values()):
            return False
        if before and (before.kind != cap.kind or before.epsilon > cap.epsilon or before.delta > cap.delta):
            return False
        return all(self.raised(cap).allows(self.taken(cap, who), slack) for who in analysts)

    # What happens.

    def set(self, cap):
        self.caps[cap.scope] = self.raised(cap)

    def raised(self, cap):
        """A cap with the shares of delta with which it began."""
        before = self.caps.get(cap.scope)
        return cap if before is None else cap._replace(first=before.first or (before.epsilon, before.delta))

    def pay(self, event, table, analyst):
        self.charges += 1
        self._add(event, table, analyst)

    def _add(self, event, table, analyst):
        before = self._paid.get((table, analyst), {kind: added([], kind) for kind in KINDS})
        self._paid[table, analyst] = {kind: added([before[kind], loss(event, kind)], kind) for kind in KINDS}

    def reserve(self, number, event, table, analyst):
        self.charges += parts(event).total()
        self.holds[number] = Hold(table, analyst, event)

    def pay_from(self, number, event):
        self.charges += 1
        hold = self.holds[number]
        self.holds[number] = hold._replace(used=(*hold.used, event))

    def close(self, number):
        hold = self.holds.pop(number)
        for event in hold.used:
            self._add(event, hold.table, hold.analyst)

    def _under(self, cap, analyst, hold):
        """Whether a hold counts under a cap; under an analyst's account, if the cap is not over all of them."""
        if not cap.counts(hold.table):
            return False
        return cap.analyst is None or hold.analyst == (analyst if cap.analyst == "*" else cap.analyst)

    def _all_paid(self):
        closed = Truth()
        closed._paid, closed.holds = {**self._paid}, {**self.holds}
        for number in self.holds:
            closed.close(number)
        return closed._paid

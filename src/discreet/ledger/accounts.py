"""Budgets, caps and balances: how much may be spent about one person, who is counted, and what is left.

A `Budget` is a limit and the accounting (privacy filter) that holds it. A `Scope` says which spends a cap counts: some
tables or all; one analyst, each analyst, or all together. Every spend must fit all caps whose scope holds it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import inf, log
from statistics import NormalDist
from typing import Any, NamedTuple, Protocol, get_args

from discreet.accounting.event import Event, Gaussian, Laplace
from discreet.accounting.filter import (
    LARGEST_EPSILON,
    TICK,
    FilterKind,
    Gate,
    Ticks,
    gaussian_gate,
    pure_gate,
    renyi_gate,
)
from discreet.accounting.gaussian_dp import about_epsilon
from discreet.accounting.renyi_dp import ORDERS
from discreet.cache import memoize
from discreet.errors import BadParameter, did_you_mean
from discreet.numeric import SMALLEST_PARAMETER, positive, probability, rational, whole


@dataclass(frozen=True, repr=False)
class Budget:
    """A limit on everything that is ever released: the whole interaction is (epsilon, delta)-DP.

    The gate is the currency in which it is counted: "pure" where delta is 0, "gaussian" otherwise, or "renyi" if you
    say so (docs/accounting.md says when). As a report, what was spent or is left, epsilon may be 0.

    >>> Budget(epsilon=1, delta=1e-9)
    Budget(epsilon=1, delta=1e-09)
    >>> Budget(epsilon=0.5).gate
    'pure'
    """

    epsilon: Any
    delta: Any = 0
    gate: FilterKind | None = None

    def __post_init__(self) -> None:
        epsilon = rational("epsilon", self.epsilon)
        exact = epsilon if epsilon == 0 else positive("epsilon", self.epsilon, at_most=LARGEST_EPSILON)
        delta = probability("delta", self.delta, zero=True)
        gate = self.gate or ("gaussian" if delta else "pure")
        if gate not in get_args(FilterKind):
            raise BadParameter(
                f"gate is {gate!r}; it must be the name of a gate: {did_you_mean(str(gate), get_args(FilterKind))}"
            )
        if (gate == "pure") != (delta == 0):
            raise BadParameter(
                f"delta is {float(delta):g} with a {gate} gate; a pure gate has delta 0 and the others do not. "
                "Leave out the gate to have the right one."
            )
        object.__setattr__(self, "epsilon", exact)
        object.__setattr__(self, "delta", delta)
        object.__setattr__(self, "gate", gate)

    def __repr__(self) -> str:
        delta = f", delta={float(self.delta):g}" if self.delta else ""
        gate = ", gate='renyi'" if self.gate == "renyi" else ""
        return f"Budget(epsilon={float(self.epsilon):.6g}{delta}{gate})"

    def __str__(self) -> str:
        return f"epsilon {float(self.epsilon):.4g}" + (f" (delta {float(self.delta):g})" if self.delta else "")


@memoize(256)
def gate_of(budget: Budget) -> Gate:
    """The gate that keeps a budget.

    >>> gate_of(Budget(epsilon=1)).limit == (10**15,)
    True
    """
    positive("epsilon", budget.epsilon, next_step="A budget to spend from must be above 0, say 1.")
    match budget.gate:
        case "pure":
            return pure_gate(budget.epsilon)
        case "gaussian":
            return gaussian_gate(budget.epsilon, budget.delta)
        case _:
            return renyi_gate(budget.epsilon, budget.delta)


def budget_of(gate: Gate) -> Budget:
    """The budget that a gate keeps.

    >>> budget_of(gate_of(Budget(epsilon=1)))
    Budget(epsilon=1)
    """
    return Budget(gate.epsilon, gate.delta, gate.kind)


@memoize(1024)
def as_budget(gate: Gate, amount: Ticks, beside: Ticks | None = None) -> Budget:
    """An amount of a gate's currency as an epsilon at its delta: what one release of this size would be.

    In a Rényi gate amounts are compared at one order: the one at which a Gaussian has most room in `beside`, or the
    one with the most room in the gate itself.

    >>> as_budget(gate_of(Budget(epsilon=1)), (5 * 10**14,))
    Budget(epsilon=0.5)
    """
    order = _order(gate, beside or gate.limit)
    loss = max(0, amount[order]) * TICK
    # A Gaussian costs a·μ²/2 at order a.
    squared_mu = loss if gate.kind == "gaussian" else 2 * loss / ORDERS[order]
    epsilon = loss if gate.kind == "pure" else _about(squared_mu, gate.delta)
    # Conversions round up; an amount within the cap must not be reported as more than the cap.
    most = gate.epsilon if amount[order] <= gate.limit[order] else Fraction(LARGEST_EPSILON)
    return Budget(min(max(epsilon, SMALLEST_PARAMETER) if loss else Fraction(0), most), gate.delta, gate.kind)


def _about(squared_mu: Fraction, delta: Fraction) -> Fraction:
    return about_epsilon(squared_mu, delta) if squared_mu else Fraction(0)


def _order(gate: Gate, room: Ticks) -> int:
    if gate.kind != "renyi":
        return 0
    return max(range(len(ORDERS)), key=lambda place: room[place] / ORDERS[place])


# A cap that every analyst has on their own.
EACH = "*"


class Scope(NamedTuple):
    """The tables and the analyst whose spends are added up; None means all of them, together.

    >>> print(Scope(("people",), "ana"))
    analyst "ana", table "people"
    """

    tables: tuple[str, ...] | None = None
    analyst: str | None = None

    def covers(self, table: str, analyst: str) -> bool:
        """Whether a spend about this table by this analyst counts here."""
        return (self.tables is None or table in self.tables) and self.analyst in (None, EACH, analyst)

    def of(self, analyst: str) -> "Scope":
        """The account of this analyst: the scope itself, unless each analyst has one."""
        return self._replace(analyst=analyst) if self.analyst == EACH else self

    def __str__(self) -> str:
        who = {None: [], EACH: ["each analyst"]}.get(self.analyst, [f'analyst "{self.analyst}"'])
        if self.tables is None:
            return ", ".join(who) or "everything"
        names = ", ".join(f'"{name}"' for name in self.tables)
        return ", ".join([*who, f"table{'s' * (len(self.tables) > 1)} {names}"])


Accounts = tuple[tuple[Scope, Gate], ...]
# What an event costs in each currency that some cap over it counts in.
Charge = Mapping[str, Ticks]

# The most results of `Caps.over` that are cached.
_REMEMBERED = 10_000


class Caps(Mapping[Scope, Gate]):
    """The gate of each scope that has one. Never changed: a new cap makes a new collection."""

    __slots__ = ("_gates", "_over")

    def __init__(self, gates: Mapping[Scope, Gate] | None = None) -> None:
        self._gates = dict(gates or {})
        self._over: dict[tuple[str, str], Accounts] = {}

    def __getitem__(self, scope: Scope) -> Gate:
        return self._gates[scope]

    def __iter__(self) -> Iterator[Scope]:
        return iter(self._gates)

    def __len__(self) -> int:
        return len(self._gates)

    def with_cap(self, scope: Scope, gate: Gate) -> "Caps":
        """These caps with one added, or replaced."""
        return Caps({**self._gates, scope: gate})

    def limits(self, scope: Scope, analyst: str) -> bool:
        """Whether this cap limits this analyst: a cap of their own replaces the cap of each analyst."""
        mine = scope.of(analyst)
        return mine is scope or mine not in self._gates

    def over(self, table: str, analyst: str) -> Accounts:
        """Every account that a spend must fit."""
        found = self._over.get((table, analyst))
        if found is None:
            found = tuple(
                (scope.of(analyst), gate)
                for scope, gate in self._gates.items()
                if scope.covers(table, analyst) and self.limits(scope, analyst)
            )
            if len(self._over) >= _REMEMBERED:
                self._over.clear()
            self._over[table, analyst] = found
        return found


def any_covers(people: frozenset[str], accounts: Accounts) -> bool:
    """Whether one of these accounts counts all of these tables, and all analysts, together."""
    return any(covers(scope, people) for scope, _ in accounts)


def covers(scope: Scope, people: frozenset[str]) -> bool:
    """Whether a cap of this scope counts all of these tables, and all analysts, together."""
    return scope.analyst is None and (scope.tables is None or people <= set(scope.tables))


@dataclass(frozen=True)
class Balance:
    """One account: its cap, what was spent, what sessions have set aside, and what is left.

    Epsilons are at the cap's delta and do not add up to the cap (in the Gaussian currency squares do). The promise is
    the cap; the rest is for planning. `contributions` is the largest of the tables that the account counts.
    """

    scope: Scope
    gate: Gate
    spent_ticks: Ticks
    total_ticks: Ticks
    contributions: int = 1

    @property
    def cap(self) -> Budget:
        """The limit."""
        return budget_of(self.gate)

    @property
    def spent(self) -> Budget:
        """What was spent so far."""
        return as_budget(self.gate, self.spent_ticks, self.room)

    @property
    def held(self) -> Budget:
        """What sessions have set aside and not used."""
        held = tuple(both - spent for both, spent in zip(self.total_ticks, self.spent_ticks, strict=True))
        return as_budget(self.gate, held, self.room)

    @property
    def remaining(self) -> Budget:
        """What one more release could cost."""
        return as_budget(self.gate, self.room, self.room)

    @property
    def share_left(self) -> float:
        """The part of the cap that is left, in the currency in which it adds up: from 0 to 1."""
        shares = (left / most for left, most in zip(self.room, self.gate.limit, strict=True) if most > 0)
        return max(0.0, *shares)

    def counts_left(self, *, error: float, confidence: float = 0.95, contributions: int | None = None) -> int:
        """About how many more counts with this error fit, each paid for by itself."""
        rows = self.contributions if contributions is None else contributions
        event = count_event(self.gate, error=error, confidence=confidence, contributions=rows)
        amount = self.gate.charge(event)
        return max(0, *(left // cost for left, cost in zip(self.room, amount, strict=True) if cost))

    @property
    def room(self) -> Ticks:
        """What is left, in ticks, one number for each order."""
        return tuple(most - have for most, have in zip(self.gate.limit, self.total_ticks, strict=True))


def count_event(gate: Gate, *, error: float, confidence: float, contributions: int) -> Event:
    """A count with this half-width at this confidence, with the noise that is cheapest under the gate."""
    whole("contributions", contributions, least=1)
    half = positive("error", error, next_step="Give a half-width, say 100.")
    missed = 1 - float(probability("confidence", confidence, next_step="Give one, say 0.95."))
    if gate.kind == "pure":
        return Laplace(Fraction(float(half) / log(1 / missed)), Fraction(contributions))
    # |round(Y)| ≤ t exactly when |Y| < t + 1/2.
    sigma = (float(half) + 0.5) / NormalDist().inv_cdf(1 - missed / 2)
    return Gaussian(Fraction(sigma), Fraction(contributions**2))


class Accounted(Protocol):
    """What balances follow from: the caps, what was spent in each account, and what is set aside."""

    @property
    def caps(self) -> Caps:
        """The caps as they are."""
        ...

    @property
    def spent(self) -> Mapping[Scope, Ticks]:
        """What was spent in each account."""
        ...

    @property
    def tables(self) -> Mapping[str, Any]:
        """The tables, each with its `identity`."""
        ...

    def under(self, scope: Scope) -> set[Scope]:
        """The accounts that a cap limits."""
        ...

    def total(self, account: Scope, gate: Gate) -> Ticks:
        """What is spent or set aside in an account."""
        ...


def balances(state: Accounted, table: str | None = None, analyst: str | None = None) -> list[Balance]:
    """Every account, or those that a spend about this table, by this analyst, must fit.

    Where each analyst has an account, one is listed for each analyst who has spent, and one for a new analyst.
    """
    if table is not None and analyst is not None:
        return [_balance(state, account, gate) for account, gate in state.caps.over(table, analyst)]
    found = []
    for scope, gate in state.caps.items():
        if table is not None and scope.tables is not None and table not in scope.tables:
            continue
        if scope.analyst != EACH:
            if analyst is None or scope.analyst in (None, analyst):
                found.append(_balance(state, scope, gate))
        elif analyst is not None:
            found += [_balance(state, scope.of(analyst), gate)] if state.caps.limits(scope, analyst) else []
        else:
            found += [_balance(state, account, gate) for account in sorted(state.under(scope) - {scope.of("")})]
            found.append(Balance(scope, gate, gate.nothing, gate.nothing, _contributions(state, scope)))
    return found


def narrowest(accounts: Iterable[Balance]) -> Balance:
    """The account of a table itself, or the narrowest over it, of those that count all analysts together."""
    over = (one for one in accounts if one.scope.analyst is None)
    return min(over, key=lambda one: len(one.scope.tables or ()) or inf)


def _balance(state: Accounted, scope: Scope, gate: Gate) -> Balance:
    spent = state.spent.get(scope, gate.nothing)
    return Balance(scope, gate, spent, state.total(scope, gate), _contributions(state, scope))


def _contributions(state: Accounted, scope: Scope) -> int:
    counted = (one.identity for name, one in state.tables.items() if scope.tables is None or name in scope.tables)
    return max((identity.unit.contributions for identity in counted), default=1)


class Capped(Protocol):
    """What a charge follows from: the caps, and which tables share people."""

    @property
    def caps(self) -> Caps:
        """The caps as they are."""
        ...

    def people_of(self, table: str) -> frozenset[str]:
        """This table and all that share people with it."""
        ...


def charge_for(state: Capped, event: Event, table: str, analyst: str, *, by_parts: bool = False) -> Charge:
    """What an event costs in the currency of each cap over it. One cap must count all analysts and all shared people.

    `by_parts` rounds each part up on its own, as it will be when the parts are paid one by one.
    """
    accounts = state.caps.over(table, analyst)
    require_joint(state, table, accounts)
    # Most caps count in the same currency, and looking up a price takes longer than comparing names.
    charge: dict[str, Ticks] = {}
    for _, gate in accounts:
        if gate.kind not in charge:
            charge[gate.kind] = gate.charge_parts(event) if by_parts else gate.charge(event)
    return charge


def require_joint(state: Capped, table: str, accounts: Accounts) -> None:
    """Refuse to spend on tables that share people until one cap counts all of them, and all analysts, together."""
    people = state.people_of(table)
    if any_covers(people, accounts):
        return
    if len(people) == 1:
        raise BadParameter(
            f'table "{table}" has no budget for all analysts together. '
            f"The data owner sets one: discreet ledger cap LEDGER --epsilon 1 --delta 1e-9 --table {table}."
        )
    names = sorted(people)
    others = ", ".join(f'"{name}"' for name in names if name != table)
    raise BadParameter(
        f'table "{table}" shares people with {others}, and no budget in this ledger counts all of them together. '
        f"The data owner sets one, in the ledger of all of them: discreet ledger cap LEDGER --epsilon 1 --delta 1e-9 "
        f"{' '.join(f'--table {name}' for name in names)}."
    )

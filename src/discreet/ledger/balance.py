"""What is spent and what is left of a cap, as people read it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import inf, log
from statistics import NormalDist
from typing import Protocol

from discreet.ledger.budget import Budget, as_budget, budget_of
from discreet.ledger.caps import Caps
from discreet.ledger.scope import EACH, Scope
from discreet.parameter import positive, probability, whole
from discreet.privacy.event import Event, Gaussian, Laplace
from discreet.privacy.gate import Gate, Grains


@dataclass(frozen=True)
class Balance:
    """One account: its cap, what was spent, what sessions have set aside, and what is left.

    Epsilons are at the cap's delta and do not add up to the cap (in the Gaussian currency squares do). The promise is
    the cap; the rest is for planning.
    """

    scope: Scope
    gate: Gate
    spent_grains: Grains
    total_grains: Grains

    @property
    def cap(self) -> Budget:
        """The limit."""
        return budget_of(self.gate)

    @property
    def spent(self) -> Budget:
        """What was spent so far."""
        return as_budget(self.gate, self.spent_grains, self.room)

    @property
    def held(self) -> Budget:
        """What sessions have set aside and not used."""
        held = tuple(both - spent for both, spent in zip(self.total_grains, self.spent_grains, strict=True))
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

    def counts_left(self, *, error: float, confidence: float = 0.95, contributions: int = 1) -> int:
        """About how many more counts with this error fit: the noise that has this half-width, paid again and again."""
        event = count_event(self.gate, error=error, confidence=confidence, contributions=contributions)
        amount = self.gate.charge(event)
        return max(0, *(left // cost for left, cost in zip(self.room, amount, strict=True) if cost))

    @property
    def room(self) -> Grains:
        """What is left, in grains, one number for each order."""
        return tuple(most - have for most, have in zip(self.gate.limit, self.total_grains, strict=True))


def count_event(gate: Gate, *, error: float, confidence: float, contributions: int) -> Event:
    """A count with this half-width at this confidence, in the noise that the gate likes best."""
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
    def spent(self) -> Mapping[Scope, Grains]:
        """What was spent in each account."""
        ...

    def under(self, scope: Scope) -> set[Scope]:
        """The accounts that a cap limits."""
        ...

    def total(self, account: Scope, gate: Gate) -> Grains:
        """What is spent or set aside in an account."""
        ...


def balances(state: Accounted, table: str | None = None, analyst: str | None = None) -> list[Balance]:
    """Every account, or those that a spend about this table, by this analyst, must fit.

    Where each analyst has an account, there is one for everybody who has spent, and one as somebody new would find it.
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
            found += [_balance(state, scope.of(analyst), gate)] if state.caps.stands_for(scope, analyst) else []
        else:
            found += [_balance(state, account, gate) for account in sorted(state.under(scope) - {scope.of("")})]
            found.append(Balance(scope, gate, gate.nothing, gate.nothing))
    return found


def narrowest(accounts: Iterable[Balance]) -> Balance:
    """The account of a table itself, or the narrowest over it, of those that count all analysts together."""
    over = (one for one in accounts if one.scope.analyst is None)
    return min(over, key=lambda one: len(one.scope.tables or ()) or inf)


def _balance(state: Accounted, scope: Scope, gate: Gate) -> Balance:
    return Balance(scope, gate, state.spent.get(scope, gate.nothing), state.total(scope, gate))

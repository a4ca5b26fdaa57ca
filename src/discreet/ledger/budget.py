"""A budget: how much may be learned about one person, and which gate keeps count of it."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, get_args

from discreet.cache import memoize
from discreet.errors import BadParameter, did_you_mean
from discreet.parameter import SMALLEST_PARAMETER, positive, probability, rational
from discreet.privacy.gate import GRAIN, LARGEST_EPSILON, FilterKind, Gate, Grains, gaussian_gate, pure_gate, renyi_gate
from discreet.privacy.gaussian import about_epsilon
from discreet.privacy.renyi import ORDERS


@dataclass(frozen=True, repr=False)
class Budget:
    """A limit on everything that is ever told: the whole interaction is (epsilon, delta)-DP.

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
def as_budget(gate: Gate, amount: Grains, beside: Grains | None = None) -> Budget:
    """An amount of a gate's currency as an epsilon at its delta: what one release of this size would be.

    In a Rényi gate amounts are compared at one order: the one at which a Gaussian has most room in `beside`, or the
    one with the most room in the gate itself.

    >>> as_budget(gate_of(Budget(epsilon=1)), (5 * 10**14,))
    Budget(epsilon=0.5)
    """
    order = _order(gate, beside or gate.limit)
    loss = max(0, amount[order]) * GRAIN
    # A Gaussian costs a·μ²/2 at order a.
    squared_mu = loss if gate.kind == "gaussian" else 2 * loss / ORDERS[order]
    epsilon = loss if gate.kind == "pure" else _about(squared_mu, gate.delta)
    # Conversions round up; what is within the cap must not look as if it were more.
    most = gate.epsilon if amount[order] <= gate.limit[order] else Fraction(LARGEST_EPSILON)
    return Budget(min(max(epsilon, SMALLEST_PARAMETER) if loss else Fraction(0), most), gate.delta, gate.kind)


def _about(squared_mu: Fraction, delta: Fraction) -> Fraction:
    return about_epsilon(squared_mu, delta) if squared_mu else Fraction(0)


def _order(gate: Gate, room: Grains) -> int:
    if gate.kind != "renyi":
        return 0
    return max(range(len(ORDERS)), key=lambda place: room[place] / ORDERS[place])

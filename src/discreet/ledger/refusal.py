"""Saying no: what was needed, what is left, and what would fit."""

from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from math import ceil, inf

from discreet.errors import BudgetExceeded
from discreet.ledger.budget import as_budget
from discreet.ledger.scope import Scope
from discreet.ledger.state import Charge
from discreet.privacy.bound import least
from discreet.privacy.event import (
    Approximate,
    Compose,
    DiscreteGaussian,
    Event,
    Gaussian,
    Laplace,
    Nothing,
    Repeat,
)
from discreet.privacy.gate import Gate, Grains

# Significant bits of the factor by which the noise must grow: an error that is too large by less than a thousandth.
FACTOR_BITS = 10
# Noise of so many times the scale is no answer at all.
HOPELESS = 1000


def refusal(
    full: Iterable[tuple[Scope, Gate, Grains]], event: Event, charge: Charge, error: float | None
) -> BudgetExceeded:
    """The error to raise when these accounts cannot take the charge: it names the one that is furthest from it."""
    worst = max(full, key=lambda account: _factor(account[1], account[2], event))
    scope, gate, room = worst
    return BudgetExceeded(_sentence(gate, room, charge[gate.kind], str(scope), event, error))


@lru_cache(maxsize=256)
def _sentence(gate: Gate, room: Grains, amount: Grains, scope: str, event: Event, error: float | None) -> str:
    needed, left = as_budget(gate, amount, room), as_budget(gate, room, room)
    owner = "ask the data owner for more"
    said = (
        f"this needs epsilon {_rounded(needed.epsilon, up=True)} and {_rounded(left.epsilon, up=False)} "
        f"of {float(gate.epsilon):g} is left ({scope})."
    )
    factor = _factor(gate, room, event)
    if factor == inf:
        return f"{said}\n    What is already known is still answered; for anything new, {owner}."
    if error is None:
        return f"{said}\n    Ask with {float(factor):.3g} times the noise, or {owner}."
    return f"{said}\n    Ask with error >= {ceil(error * factor):,} instead of {error:,g}, or {owner}."


@lru_cache(maxsize=256)
def _factor(gate: Gate, room: Grains, event: Event) -> Fraction | float:
    """How many times as much noise would fit what is left of this account; infinite if hardly any would."""

    def fits(factor: Fraction) -> bool:
        if factor > HOPELESS:
            return True
        amount = gate.charge(louder(event, factor))
        return any(need <= have for need, have in zip(amount, room, strict=True))

    factor = least(fits, bits=FACTOR_BITS)
    return inf if factor > HOPELESS else factor


def louder(event: Event, factor: Fraction) -> Event:
    """The same with so many times the noise.

    >>> louder(Laplace(10, 1), Fraction(3))
    Laplace(scale=Fraction(30, 1), sensitivity=Fraction(1, 1))
    """
    match event:
        case Nothing():
            return event
        case Laplace(scale, sensitivity):
            return Laplace(scale * factor, sensitivity)
        case Gaussian(sigma, squared) | DiscreteGaussian(sigma, squared):
            return type(event)(sigma * factor, squared)
        case Approximate(epsilon, delta):
            return Approximate(epsilon / factor, min(delta, delta / factor))
        case Compose(parts):
            return Compose(tuple(louder(part, factor) for part in parts))
        case Repeat(part, times):
            return Repeat(louder(part, factor), times)
        case _:
            return type(event)(event.epsilon / factor)


def _rounded(epsilon: Fraction, *, up: bool) -> str:
    """Two significant digits; rounded so that what is needed never looks as if it were left."""
    if epsilon == 0:
        return "0"
    size = Fraction(10) ** (len(str(int(1 / epsilon))) + 1 if epsilon < 1 else 2)
    scaled = epsilon * size
    return f"{float((ceil(scaled) if up else int(scaled)) / size):g}"

"""Refusals: what a spend would need, what is left, and what would fit."""

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, floor, inf, log10

from discreet.accounting.event import (
    Approximate,
    Coin,
    Compose,
    DiscreteGaussian,
    Event,
    Gaussian,
    Laplace,
    Nothing,
    Repeat,
)
from discreet.accounting.filter import TICK, Gate, Ticks
from discreet.cache import memoize
from discreet.errors import BudgetExceeded
from discreet.ledger.accounts import Charge, Scope, as_budget
from discreet.numeric import least

# Significant bits of the factor by which the noise must grow: an error that is too large by less than a thousandth.
FACTOR_BITS = 10
# What rounding can add to a few spends: not shown.
NEGLIGIBLE_AMOUNT = 1000 * TICK
# With more than this many times the noise, an answer would say nothing.
MOST_NOISE_FACTOR = 1000


def refusal(
    full: Sequence[tuple[Scope, Gate, Ticks]], event: Event, charge: Charge, error: float | None
) -> BudgetExceeded:
    """The error to raise when these accounts cannot take the charge: it names the one that lacks most."""
    scope, gate, room = full[0] if len(full) == 1 else max(full, key=lambda one: _factor(one[1], one[2], event))
    return BudgetExceeded(_sentence(gate, room, charge[gate.kind], str(scope), event, error))


@memoize(256)
def _sentence(gate: Gate, room: Ticks, amount: Ticks, scope: str, event: Event, error: float | None) -> str:
    needed, left = as_budget(gate, amount, room), as_budget(gate, room, room)
    owner = "ask the data owner for more"
    need, have = _digits(needed.epsilon, 2, up=True), _digits(left.epsilon, 2, up=False)
    more = "a little more than " if need == have else ""
    said = f"this needs epsilon {more}{need} and {have} of {float(gate.epsilon):g} is left ({scope})."
    factor = _factor(gate, room, event)
    if factor == inf:
        return f"{said}\n    What is already known is still answered; for anything new, {owner}."
    if error is None:
        times = _digits(Fraction(factor), 3, up=True)
        return f"{said}\n    It would fit with {times} times the noise: ask for less accuracy, or {owner}."
    # The half-width of whole numbers is a half less than that of their noise, so the factor is a little larger.
    enough = ceil(error * factor + (factor - 1) / 2)
    return f"{said}\n    Ask with error >= {enough:,} instead of {error:,g}, or {owner}."


@memoize(256)
def _factor(gate: Gate, room: Ticks, event: Event) -> Fraction | float:
    """How many times as much noise would fit what is left of this account; infinite if hardly any would."""

    def fits(factor: Fraction) -> bool:
        if factor > MOST_NOISE_FACTOR:
            return True
        amount = gate.charge_parts(with_more_noise(event, factor))
        return any(need <= have for need, have in zip(amount, room, strict=True))

    factor = least(fits, bits=FACTOR_BITS)
    return inf if factor > MOST_NOISE_FACTOR else factor


def with_more_noise(event: Event, factor: Fraction) -> Event:
    """The same event with `factor` times the noise.

    >>> with_more_noise(Laplace(10, 1), Fraction(3))
    Laplace(scale=Fraction(30, 1), sensitivity=Fraction(1, 1))
    """
    match event:
        case Nothing():
            return event
        case Laplace(scale, sensitivity):
            return Laplace(scale * factor, sensitivity)
        case Gaussian(sigma, squared) | DiscreteGaussian(sigma, squared):
            return type(event)(sigma * factor, squared)
        case Coin(log_odds, hits):
            return Coin(log_odds / factor, hits)
        case Approximate(epsilon, delta):
            return Approximate(epsilon / factor, min(delta, delta / factor))
        case Compose(parts):
            return Compose(tuple(with_more_noise(part, factor) for part in parts))
        case Repeat(part, times):
            return Repeat(with_more_noise(part, factor), times)
        case _:
            return type(event)(event.epsilon / factor)


def _digits(value: Fraction, places: int, *, up: bool) -> str:
    """A number with few significant digits: what is needed is rounded up, what is left down. A few ticks do not count.

    >>> _digits(Fraction(1, 3), 2, up=True), _digits(Fraction(1, 2) + TICK, 2, up=True), _digits(TICK, 2, up=False)
    ('0.34', '0.5', '0')
    """
    if value <= NEGLIGIBLE_AMOUNT:
        return "0"
    size = Fraction(10) ** (places - 1 - floor(log10(value)))
    scaled = value * size
    whole = ceil(scaled - NEGLIGIBLE_AMOUNT * size) if up else floor(scaled + NEGLIGIBLE_AMOUNT * size)
    return f"{float(whole / size):,g}"

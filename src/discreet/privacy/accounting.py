"""Accountings: a currency for privacy losses, as a small tuple of functions, and composition.

Composition is written here, once, for all of them: no formula of a single event ever sees a `Compose` or a `Repeat`.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import reduce
from math import inf
from typing import Generic, NamedTuple, TypeVar

from discreet.privacy.event import (
    AboveThreshold,
    Approximate,
    Compose,
    Event,
    Laplace,
    Nothing,
    Pure,
    Repeat,
    Selection,
    Single,
)

_Loss = TypeVar("_Loss")

# An exact rational, or infinite where the currency cannot price the event.
Amount = Fraction | float


class Accounting(NamedTuple, Generic[_Loss]):
    """A currency: the loss of a single event, how losses add up, and what a total means as (epsilon, delta).

    `epsilon(loss, delta)` and `delta(loss, epsilon)` are upper bounds; the one is infinite, the other 1, where the
    currency has no price. `times(loss, n)` must equal `loss` added n times, exactly.
    """

    name: str
    single: Callable[[Single], _Loss]
    zero: _Loss
    add: Callable[[_Loss, _Loss], _Loss]
    times: Callable[[_Loss, int], _Loss]
    epsilon: Callable[[_Loss, Fraction], Amount]
    delta: Callable[[_Loss, Fraction], Amount]


def total_loss(event: Event, accounting: Accounting[_Loss]) -> _Loss:
    """The loss of an event, simple or composed, in one currency."""
    match event:
        case Compose(events):
            return reduce(accounting.add, (total_loss(part, accounting) for part in events), accounting.zero)
        case Repeat(part, times):
            return accounting.times(total_loss(part, accounting), times) if times else accounting.zero
        case _:
            return accounting.single(event)


def leaves(event: Event) -> Iterator[Single]:
    """The single events that an event is composed of, each once for every place where it occurs."""
    match event:
        case Compose(events):
            for part in events:
                yield from leaves(part)
        case Repeat(part, times):
            if times:
                yield from leaves(part)
        case _:
            yield event


def add_amounts(one: Amount, other: Amount) -> Amount:
    """The sum; infinite if either is."""
    return inf if inf in (one, other) else one + other


def multiply_amount(amount: Amount, times: int) -> Amount:
    """The amount times a whole number."""
    return inf if amount == inf else amount * times


def pure_epsilon(event: Single) -> Amount:
    """The smallest epsilon for which an event is known to be epsilon-DP; infinite if there is none.

    >>> pure_epsilon(Laplace(scale=Fraction(10), sensitivity=Fraction(1)))
    Fraction(1, 10)
    """
    match event:
        case Nothing():
            return Fraction(0)
        case Laplace(scale, sensitivity):
            return sensitivity / scale
        case Selection(epsilon) | AboveThreshold(epsilon) | Pure(epsilon) | Approximate(epsilon, 0):
            return epsilon
        case _ if getattr(event, "squared_sensitivity", None) == 0:
            return Fraction(0)
        case _:
            return inf

"""What a mechanism is: the one door between exact values and the world.

A mechanism is a value with four parts: what it did (`event`), how it does it (`release`), how good the result is
(`error`), and the exact probability of every output (`law`), from which `discreet.verify` recomputes its privacy
without sampling. An interactive one has a state and a step instead of a release.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from flint import arb

from discreet.privacy.event import Event
from discreet.source.exact import Exact

Out = TypeVar("Out")
State = TypeVar("State")


@dataclass(frozen=True, slots=True)
class Law:
    """The exact distribution of a discrete output: a rigorous interval (`arb`) for the probability of each outcome.

    `rest` bounds from above the probability of all outcomes that are not listed (0 where the list is complete).
    """

    probabilities: Mapping[Any, arb]
    rest: arb


@dataclass(frozen=True, slots=True)
class Mechanism(Generic[Out]):
    """A single-shot mechanism, calibrated and ready."""

    event: Event
    release: Callable[[Exact], Out]
    error: Callable[[float], float]
    law: Callable[[Sequence[int]], Law]


@dataclass(frozen=True, slots=True)
class Interactive(Generic[State, Out]):
    """A mechanism that answers a stream: `init()` draws its secrets, `step(state, exact)` answers one."""

    event: Event
    init: Callable[[], State]
    step: Callable[[State, Exact], tuple[State, Out]]
    error: Callable[..., float]
    law: Callable[[Sequence[Sequence[int]]], Law]

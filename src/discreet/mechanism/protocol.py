"""The interface of mechanisms: the only way from exact values to released ones.

A mechanism is a value with four parts: what it did (`event`), how it does it (`release`), how good the result is
(`error`), and the exact probability of every output (`law`), from which `discreet.verify` recomputes its privacy
without sampling. An interactive one has a state and a step instead of a release.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from discreet.accounting.event import Event
from discreet.source.source import Exact

if TYPE_CHECKING:
    from flint import arb

Out = TypeVar("Out")
MechanismState = TypeVar("MechanismState")

# Laws are computed with this many bits: ratios of probabilities are then known to some thirty decimal places.
LAW_BITS = 192


@dataclass(frozen=True, slots=True, repr=False)
class Law:
    """The exact distribution of a discrete output: a rigorous interval (`arb`) for the probability of each outcome.

    `rest` bounds from above the probability of all outcomes that are not listed (0 where the list is complete).
    """

    probabilities: "Mapping[Any, arb]"
    rest: "arb"

    def __repr__(self) -> str:
        shown = [f"{outcome}: {float(mass.mid()):.6g}" for outcome, mass in list(self.probabilities.items())[:8]]
        more = len(self.probabilities) - len(shown)
        return f"Law({', '.join(shown)}{f', and {more} more' if more else ''})"


@dataclass(frozen=True, slots=True)
class Mechanism(Generic[Out]):
    """A single-shot mechanism, calibrated and ready.

    `error(confidence, …)` is a half-width that holds with that probability. `law(values, beside=[…])` is the
    distribution of the output on these true integers; laws taken beside each other have the same outcomes, and where
    the outcomes are infinitely many, those over which the likelihood ratio is constant are one.
    """

    event: Event
    release: Callable[[Exact], Out]
    error: Callable[..., float]
    law: Callable[..., Law]


@dataclass(frozen=True, slots=True)
class Interactive(Generic[MechanismState, Out]):
    """A mechanism that answers a stream: `init()` draws its secrets, `step(state, exact)` answers one.

    `law(values)` is the distribution of the whole transcript when `values[t]` is the true value at time t.
    """

    event: Event
    init: Callable[[], MechanismState]
    step: Callable[[MechanismState, Exact], tuple[MechanismState, Out]]
    error: Callable[..., float]
    law: Callable[..., Law]

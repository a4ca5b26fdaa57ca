"""The audit: a lower bound on the epsilon of any mechanism, from draws alone."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.accounting.sensitivity import Sensitivity, scalar_sensitivity
from discreet.errors import BadParameter
from discreet.lab.attack.events import Draw, best_event, bounds, labellings_of
from discreet.mechanism.protocol import Interactive, Mechanism
from discreet.numeric import Number, probability, whole
from discreet.schema.unit import Unit
from discreet.source.source import Exact

# A value that one person moves by one, up or down.
ONE = scalar_sensitivity(0, 1, Unit(neighbors="replace_one"))
CONFIDENCE = 0.9999


@dataclass(frozen=True, slots=True)
class Audited:
    """The result of an audit: with probability `confidence`, no (e, `delta`)-DP with e below `bound` holds.

    `event` is what distinguished the two tables; it happened `hits` times of `scored` draws of the table where
    it is likely, and `misses` times of as many of the other.
    """

    bound: float
    delta: float
    confidence: float
    samples: int
    scored: int
    event: str
    hits: int
    misses: int

    def refutes(self, epsilon: Number) -> bool:
        """Whether a claim of this epsilon, at this delta, is refuted.

        A right claim is refuted with a probability of at most 1 − `confidence`.
        """
        return self.bound > float(epsilon)

    def __str__(self) -> str:
        return (
            f"epsilon is at least {self.bound:.3g} at delta {self.delta:g} ({100 * self.confidence:g} %): "
            f"{self.event}, {self.hits:,} against {self.misses:,} of {self.scored:,} draws"
        )


def audit(
    draw: Draw,
    one: Any,
    other: Any,
    *,
    samples: int = 1_000_000,
    delta: Number = 0,
    confidence: Number = CONFIDENCE,
) -> Audited:
    """A lower bound on the epsilon of `draw`, from `samples` draws of each of two neighbouring inputs.

    `draw(table, size)` gives `size` independent outcomes: an array with a row for each, or a list of anything that can
    be a key. On one half of the draws an event E is chosen that separates the inputs; on the other half it is scored:
    ε ≥ ln((p − δ)/q), with p a lower bound on Pr[E] on one input and q an upper one on the other (Clopper–Pearson),
    in both directions. The halves are independent, so the bound holds for any choice of the event.

    >>> from discreet import noise
    >>> found = audit(lambda value, size: value + noise.discrete_laplace(1, size=size), 0, 1, samples=20_000)
    >>> 0.8 < found.bound <= 1, found.refutes(0.5)
    (True, True)

    [CP34; DWWZK18, §4]; why it holds, and what it cannot see: docs/attack.md
    """
    number = whole("samples", samples, least=4, next_step="Give how many draws to take of each table, say 1_000_000.")
    spare = float(probability("delta", delta, zero=True))
    sure = probability("confidence", confidence, next_step="Give one, say 0.9999.")
    # Both directions are tried; the better one counts.
    failure = float((1 - sure) / 2)
    half = number // 2
    drawn = [_drawn(draw, table, half if first else number - half) for first in (True, False) for table in (one, other)]
    labellings = labellings_of(drawn)
    found = []
    for this, that in ((0, 1), (1, 0)):
        event = best_event(labellings, one=this, other=that, delta=spare, failure=failure)
        hits, misses, scored = event.hits(this + 2), event.hits(that + 2), number - half
        bound = bounds(np.array([hits]), scored, np.array([misses]), scored, spare, failure)[0]
        found.append(Audited(float(bound), spare, float(sure), number, scored, event.words, hits, misses))
    return max(found, key=lambda each: each.bound)


def draws_of(mechanism: Mechanism[Any] | Interactive[Any, Any], *, sensitivity: Sensitivity = ONE) -> Draw:
    """A draw function of a mechanism for an audit: one release after the other, on integers of this sensitivity.

    >>> from discreet.mechanism import noisy_max
    >>> len(draws_of(noisy_max(epsilon=1, sensitivity=1))([3, 1], 10))
    10
    """
    if isinstance(mechanism, Mechanism):
        release: Callable[[Exact], Any] = mechanism.release
        return lambda values, size: [_plain(release(_sealed(values, sensitivity))) for _ in range(size)]

    from discreet.mechanism.sparse_vector import run_stream

    def run(values: Sequence[int], size: int) -> list[Any]:
        stream = [_sealed([value], sensitivity) for value in values]
        return [run_stream(mechanism, stream) for _ in range(size)]

    return run


def fast_draws_of(mechanism: Mechanism[Any], *, sensitivity: Sensitivity = ONE) -> Draw:
    """The same for a mechanism that makes each integer noisy by itself: all draws are one long vector.

    >>> from discreet.mechanism import laplace
    >>> fast_draws_of(laplace(epsilon=1, sensitivity=1))([5, 7], 3).shape
    (3, 2)
    """

    def draw(values: Sequence[int], size: int) -> Any:
        noisy = mechanism.release(_sealed(np.tile(values, size), sensitivity))
        return np.asarray(noisy).reshape(size, len(values))

    return draw


def _sealed(values: Any, sensitivity: Sensitivity) -> Exact:
    return Exact(np.asarray(values, dtype=np.int64), sensitivity)


def _drawn(draw: Draw, table: Any, size: int) -> Any:
    outcomes = draw(table, size)
    if len(outcomes) != size:
        raise BadParameter(f"draw was asked for {size} outcomes and gave {len(outcomes)}. Return one for each.")
    return outcomes


def _plain(outcome: Any) -> Any:
    return tuple(outcome.tolist()) if isinstance(outcome, np.ndarray) and outcome.ndim else outcome

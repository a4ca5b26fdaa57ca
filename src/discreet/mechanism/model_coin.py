"""Model and coin: check a model's answer against the rows, and pay only if the check fails."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING

from discreet import noise
from discreet.accounting.event import Coin
from discreet.accounting.sensitivity import Sensitivity, read_sensitivity
from discreet.mechanism.calibration import opened, require_size
from discreet.mechanism.independent import require_few_outcomes
from discreet.mechanism.protocol import LAW_BITS, Law
from discreet.numeric import Number, lower_bound, positive, probability
from discreet.source.source import Exact

if TYPE_CHECKING:
    from flint import arb


@dataclass(frozen=True, slots=True)
class ModelCoin:
    """A coin for each question, heads if the model is likely to be wrong. It has no state and no secret.

    `opening` is paid once, before the first toss; `hit` after each toss that was heads, and it must be set aside before
    the toss. `toss(exact, expected)` returns whether it is a hit. `passes(off)` is the probability that an answer with
    error `off` passes. `law(values, expected)` is the distribution of all tosses together.
    """

    opening: Coin
    hit: Coin
    threshold: Fraction
    toss: Callable[[Exact, int], bool]
    passes: Callable[[int], float]
    law: Callable[..., Law]


def model_coin(
    *, steepness: Number, sensitivity: Sensitivity | Number, error: Number, confidence: Number = Fraction(99, 100)
) -> ModelCoin:
    """Toss a coin on whether a model's answer is wrong, so that an answer that is off by `error` seldom passes.

    Pr[hit] = 1/(1 + e^{κ(T − |v − e|)}), T = error − ln(c/(1 − c))/κ, so that an answer off by `error` or more passes
    with probability at most 1 − c. Only hits cost: of the Rényi divergence of order a at most
    (−aκΔ − ln(1 − a(1 − e^{−κΔ})))/(a − 1) each, about a(κΔ)²/2, if a(1 − e^{−κΔ}) < 1; passes are free, however many.

    where κ is `steepness`, c is `confidence`, Δ the largest move of one value (linf), v the exact value and e what the
    model expects.

    >>> check = model_coin(steepness=Fraction(22, 10_000), sensitivity=1, error=10_000)
    >>> check.hit, check.passes(10_000) <= 0.01, check.passes(0) > 1 - 1e-7
    (Coin(log_odds=Fraction(11, 5000), hits=1), True, True)

    Proof: model_coin.md
    """
    # The error of a model may move either way, even if all values move one way.
    calibrated = replace(read_sensitivity(sensitivity, "linf"), direction=0)
    slope = positive("steepness", steepness)
    chance = probability("confidence", confidence, next_step="Give one, say 0.99.")
    half_width = positive("error", error)
    threshold = half_width - _log_odds_above(chance) / slope
    moves = slope * calibrated.linf

    def heads(off: int) -> "arb":
        from discreet.numeric import ball

        return 1 / (1 + ball(slope * (threshold - off)).exp())

    def toss(exact: Exact, expected: int) -> bool:
        require_size(exact, 1, 1)
        off = abs(int(opened(exact, calibrated, "linf")[0]) - expected)
        return noise.coin(lambda: heads(off))

    def passes(off: int) -> float:
        from discreet.numeric import precision

        with precision(LAW_BITS):
            return float((1 - heads(abs(int(off)))).mid())

    def law(values: Sequence[int], expected: Sequence[int]) -> Law:
        from flint import arb

        from discreet.numeric import precision

        require_few_outcomes(2 ** len(values))
        with precision(LAW_BITS):
            chances = [heads(abs(value - model)) for value, model in zip(values, expected, strict=True)]
            found: dict[tuple[bool, ...], arb] = {}
            for bits in product((False, True), repeat=len(chances)):
                mass = arb(1)
                for hit, heads_up in zip(bits, chances, strict=True):
                    mass *= heads_up if hit else 1 - heads_up
                found[bits] = mass
            return Law(found, arb(0))

    return ModelCoin(Coin(moves, 0), Coin(moves, 1), threshold, toss, passes, law)


def _log_odds_above(chance: Fraction) -> Fraction:
    """ln(c/(1 − c)), not below it, so that what is promised holds."""
    from discreet.numeric import ball

    return -lower_bound(lambda: (ball(1 - chance) / ball(chance)).log())

"""The size of Laplace noise is exponential, so that the largest of d Laplace variables has the tail of Lemma 5."""

from collections.abc import Callable
from fractions import Fraction
from math import ceil, exp, log

import numpy as np
from flint import arb

from discreet import noise
from discreet.lab.lectures.chance import seldom_enough
from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.mechanism.laplace import laplace_half_width
from discreet.noise.law import laplace_tail

SCALES = (Fraction(1), Fraction(10), Fraction(1000))
NUMBER, FAILURE, TRIALS = 100, 0.05, 5_000
Tail = Callable[[int, Fraction], arb]


def worst_ratio(scale: Fraction, tail: Tail = laplace_tail) -> tuple[float, float]:
    """Pr[|X| ≥ t] over e^(−t/scale), smallest and largest over t = 1, 2, …, 20·scale. Pr[|X| ≥ t] is 2·Pr[X ≥ t]."""
    steps = range(1, ceil(20 * scale) + 1, max(1, int(scale) // 10))
    ratios = [2 * float(tail(t, scale).mid()) / exp(-t / float(scale)) for t in steps]
    return min(ratios), max(ratios)


def judge_one(scale: Fraction, found: tuple[float, float]) -> Finding:
    """On the integers the ratio is 2/(1 + e^(−1/scale)), for every t; it tends to 1 as the grid becomes fine."""
    claimed = 2 / (1 + exp(-1 / float(scale)))
    holds = abs(found[0] / claimed - 1) < 1e-9 and abs(found[1] / claimed - 1) < 1e-9
    return Finding(
        f"Pr[|X| ≥ t] over e^(−t/λ), discrete noise, λ = {scale}",
        f"{claimed:.6f} (1 for continuous noise)",
        f"{found[0]:.6f} to {found[1]:.6f}",
        holds,
    )


def beyond(scale: Fraction, bound: float) -> int:
    """How often the largest of a hundred drawn values is beyond the bound."""
    drawn = np.abs(np.asarray(noise.discrete_laplace(scale, size=TRIALS * NUMBER))).reshape(TRIALS, NUMBER)
    return int((drawn.max(axis=1) > bound).sum())


def judge_largest(bound: float, exact: float, many: int) -> Finding:
    """Lemma 5 (2) for Laplace noise: λ(ln d + ln(1/β)) is exceeded with probability at most β."""
    return Finding(
        f"the largest of {NUMBER} is beyond λ(ln d + ln 1/β) = {bound:.0f}, β = {FAILURE:g}",
        f"with probability at most {FAILURE:g}; the exact quantile is {exact:.0f}",
        f"{many} of {TRIALS:,} times",
        seldom_enough(many, TRIALS, FAILURE) and exact <= bound,
    )


def run() -> Outcome:
    """Exact tails at three scales, then draws."""
    scale = Fraction(100)
    bound = ceil(float(scale) * (log(NUMBER) + log(1 / FAILURE)))
    findings = [judge_one(each, worst_ratio(each)) for each in SCALES]
    findings.append(judge_largest(bound, laplace_half_width(scale, 1 - FAILURE, joint=NUMBER), beyond(scale, bound)))
    return Outcome(tuple(findings))


CLAIM = Claim(
    name="laplace-absolute-values",
    source="004 Lemma 5, remark",
    title="The size of Laplace noise is exponential",
    statement="If Y ~ Lap(μ, λ) then |Y − μ| ~ Exp(λ), so that Lemma 5 bounds the largest of d Laplace errors.",
    run=run,
)

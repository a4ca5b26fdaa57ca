"""Divergences between two exact laws, as intervals that provably contain them.

An outcome that neither law lists is covered by their `rest`; upper bounds count it against the mechanism.
"""

from fractions import Fraction
from math import inf
from typing import NamedTuple

from flint import arb

from discreet.errors import BadParameter
from discreet.mechanism.protocol import Law
from discreet.numeric import Number, ball, float_above, float_below, precision, probability, rational, whole

DIVERGENCE_BITS = 256
# Beyond this an epsilon has no meaning, and e^epsilon no double.
MOST_EPSILON = 700


class Interval(NamedTuple):
    """The true value is between these two, both included."""

    lower: float
    upper: float


class Span(NamedTuple):
    """The same in full precision; `None` is infinite."""

    lower: arb | None
    upper: arb | None

    def rounded(self) -> Interval:
        """Outwards, to doubles."""
        return Interval(
            inf if self.lower is None else float_below(_exact(self.lower.lower())) + 0.0,
            inf if self.upper is None else float_above(_exact(self.upper.upper())),
        )


def divergence(one: Law, other: Law, epsilon: Number) -> Interval:
    """The smallest δ for which `one` is (epsilon, δ)-close to `other`: the hockey-stick divergence Σ max(0, P − e^ε Q).

    >>> from discreet.mechanism import laplace
    >>> counts = laplace(epsilon=1, sensitivity=1)
    >>> here, there = counts.law([3], beside=[[4]]), counts.law([4], beside=[[3]])
    >>> divergence(here, there, 0.5).upper < divergence(here, there, 0).lower
    True
    """
    return hockey_stick(one, other, _read_epsilon(epsilon)).rounded()


def epsilon(one: Law, other: Law, delta: Number = 0) -> Interval:
    """The smallest ε ≥ 0 for which `one` is (ε, delta)-close to `other`; infinite if there is none.

    Privacy asks it both ways: take the larger of epsilon(P, Q) and epsilon(Q, P).

    >>> from discreet.mechanism import laplace
    >>> counts = laplace(epsilon=1, sensitivity=1)
    >>> epsilon(counts.law([3], beside=[[4]]), counts.law([4], beside=[[3]]))
    Interval(lower=0.9999999999999999, upper=1.0000000000000002)
    """
    allowed = probability("delta", delta, zero=True)
    if allowed == 0:
        return largest_loss(one, other).rounded()
    lower, upper = 0.0, float(MOST_EPSILON)
    if not _at_most(hockey_stick(one, other, Fraction(MOST_EPSILON)).upper, allowed):
        upper = inf
    # Two bisections in one: at `lower` the divergence is surely too large, at `upper` surely small enough.
    low, high = 0.0, float(MOST_EPSILON)
    for _ in range(64):
        middle = (low + high) / 2
        found = hockey_stick(one, other, Fraction(middle))
        if _at_most(found.upper, allowed):
            high = upper = middle
        elif found.lower is not None and found.lower > ball(allowed):
            low = lower = middle
        else:
            break
    start = hockey_stick(one, other, Fraction(0))
    return Interval(0.0, 0.0) if _at_most(start.upper, allowed) else Interval(lower, upper)


def renyi(one: Law, other: Law, order: int) -> Interval:
    """The Rényi divergence of a whole order a ≥ 2: ln(Σ P^a Q^(1−a))/(a − 1); infinite above if outcomes are missing.

    >>> from discreet.mechanism import discrete_gaussian
    >>> counts = discrete_gaussian(sigma=2, sensitivity=1)
    >>> round(renyi(counts.law([0], beside=[[1]]), counts.law([1], beside=[[0]]), 2).lower, 12)   # 2·1²/(2·2²)
    0.25
    """
    power = whole("order", order, least=2, most=1000)
    with precision(DIVERGENCE_BITS):
        total, complete = arb(0), one.rest == 0
        for outcome, chance in one.probabilities.items():
            against = _of(other, outcome)
            if against == 0 and chance > 0:
                return Interval(inf, inf)
            if against > 0:
                total += chance**power * against ** (1 - power)
            else:
                complete = False
        if not total > 0:
            return Interval(0.0, inf)
        value = total.log() / (power - 1)
        return Span(value, value if complete else None).rounded()


def hockey_stick(one: Law, other: Law, epsilon: Fraction) -> Span:
    """Σ max(0, P − e^ε Q), between a sum of lower ends and a sum of upper ends."""
    with precision(DIVERGENCE_BITS):
        factor = ball(epsilon).exp()
        lower, upper = arb(0), one.rest.upper()
        for outcome, chance in one.probabilities.items():
            excess = chance - factor * _of(other, outcome)
            lower += max(excess.lower(), arb(0))
            upper += max(excess.upper(), arb(0))
        # Bare end points, so that comparing two spans is never undecided.
        return Span(lower.lower(), upper.upper())


def largest_loss(one: Law, other: Law) -> Span:
    """max(0, ln P/Q) over all outcomes."""
    with precision(DIVERGENCE_BITS):
        lower, upper = arb(0), arb(0) if one.rest == 0 else None
        for outcome, chance in one.probabilities.items():
            against = _of(other, outcome)
            if chance == 0:
                continue
            if against == 0 and chance > 0:
                return Span(None, None)
            if chance > 0:
                lower = max(lower, (chance.lower() / against.upper()).log().lower())
            if chance > 0 and against > 0 and upper is not None:
                upper = max(upper, (chance / against).log().upper())
            else:
                upper = None
        return Span(lower, upper)


def _of(law: Law, outcome: object) -> arb:
    listed = law.probabilities.get(outcome)
    return law.rest.union(arb(0)) if listed is None else listed


def _at_most(value: arb | None, limit: Fraction) -> bool:
    with precision(DIVERGENCE_BITS):
        return value is not None and bool(value <= ball(limit))


def _read_epsilon(epsilon: Number) -> Fraction:
    exact = rational("epsilon", epsilon)
    if exact < 0:
        raise BadParameter(f"epsilon is {epsilon!r}; it must be at least 0. Give 0 for the total variation distance.")
    return exact


def _exact(end: arb) -> Fraction:
    mantissa, exponent = end.man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)

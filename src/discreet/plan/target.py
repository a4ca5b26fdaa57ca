"""What is asked for: an error that holds with some probability, and the variance that gives it."""

from dataclasses import dataclass
from fractions import Fraction

from discreet.known.known import quantile

# A target is met a hair early, so that rounding does not turn what is known into what is not.
HAIR = 1e-8
# No question is measured with more noise than so many times its sensitivity, whatever error is enough: that costs a
# squared mu of 2^-48, and numbers that say next to nothing are not joined to good ones.
MOST_NOISE = 2.0**24


@dataclass(frozen=True, slots=True)
class Target:
    """A half-width that must hold with this probability.

    >>> round(Target(196, 0.95).variance)
    10000
    """

    error: float
    confidence: float = 0.95
    joint: int = 1

    @property
    def variance(self) -> float:
        """The largest variance of a Gaussian error that is within the half-width so often."""
        return (self.error / quantile(self.confidence, self.joint)) ** 2 * (1 - HAIR)


def sigma_for(variance: float, gain: float = 1.0, *, bits: int = 24) -> Fraction | None:
    """The noise with which a piece of this gain is known to within a variance, as 2^j/k: rounded down by a hair.

    Its inverse square is a whole number over a power of four, so prices of many pieces add up in short numbers. None
    if it would be below 1: then rounding matters, and a number is measured by itself.
    """
    squared = variance * gain - 1 / 12
    if squared < 1:
        return None
    root: float = squared**-0.5
    shift = bits - int(root).bit_length() if root >= 1 else bits + _leading(root)
    return Fraction(2**shift, int(root * 2**shift) + 1)


def _leading(number: float) -> int:
    """How many binary zeros follow the point."""
    zeros = 0
    while number < 0.5:
        number, zeros = number * 2, zeros + 1
    return zeros

"""What is asked for: an error that holds with some probability, and the variance that gives it."""

from dataclasses import dataclass
from fractions import Fraction

from discreet.known.known import Known, quantile

# A target is met early by this part of it, so that rounding does not make a known answer unknown.
ROUNDING_SLACK = 1e-8
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
        return (self.error / quantile(self.confidence, self.joint)) ** 2 * (1 - ROUNDING_SLACK)


def mean_targets(
    known: Known, error: float, rows: float, spread: float, confidence: float, joint: int
) -> tuple[Target, Target]:
    """The targets of a total and of the number of its values, so that their mean is good enough.

    `error` is that of the mean of about so many `rows`; `spread` is how far a mean can be from the centre.
    """
    if known.jointly_gaussian:
        z = quantile(confidence, joint)
        room = (error * rows / z) ** 2
        aims = z * (0.8 * room) ** 0.5, z * (0.8 * room / spread**2) ** 0.5
        return Target(aims[0], confidence, joint), Target(aims[1], confidence, joint)
    # Each part has its own bar; together they give a little more than the sum of both over the rows.
    both = 1 - (1 - confidence) / 2
    return Target(0.45 * error * rows, both, joint), Target(0.45 * error * rows / spread, both, joint)


def sigma_for(variance: float, gain: float = 1.0, *, bits: int = 24) -> Fraction | None:
    """The noise with which a piece of this gain is known to within a variance, as 2^j/k: rounded down a little.

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

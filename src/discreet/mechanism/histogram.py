"""The histogram: all cells in one joint release."""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.mechanism.laplace import laplace
from discreet.mechanism.protocol import Mechanism
from discreet.parameter import Number, positive, whole
from discreet.privacy.sensitivity import histogram_sensitivity, scalar_sensitivity
from discreet.schema.unit import Unit


def histogram(*, epsilon: Number, cells: int, unit: Unit) -> Mechanism[NDArray[np.int64]]:
    """Count the rows of every cell, with noise that does not grow with the number of cells.

    Releases (n_1 + X_1, …, n_d + X_d), with X_i ~ Lap(s/e) independent and discrete. It is e-DP.

    where e is `epsilon`, d is `cells`, n_i the rows in cell i, and s is 1 for `add_remove` and 2 for `replace_one`,
    times the rows of a person: each row is in one cell, so it cannot move more than that.

    >>> histogram(epsilon=1, cells=1000, unit=Unit()).event
    Laplace(scale=Fraction(1, 1), sensitivity=Fraction(1, 1))
    >>> histogram(epsilon=1, cells=1000, unit=Unit(neighbors="replace_one")).event
    Laplace(scale=Fraction(2, 1), sensitivity=Fraction(2, 1))

    [DMNS06; 002 Ex. 1.5]; proof: histogram.md
    """
    return laplace(epsilon=epsilon, sensitivity=histogram_sensitivity(whole("cells", cells, least=1), unit))


def split_scale(*, epsilon: Number, cells: int, unit: Unit) -> Fraction:
    """The noise that the same histogram would need as d separate counts, each with a d-th of the budget: d s₁/e.

    Against the joint release this loses a factor d/2 for `replace_one` (002 Ex. 1.5) and d for `add_remove`.

    >>> unit = Unit(neighbors="replace_one")
    >>> split_scale(epsilon=1, cells=1000, unit=unit) / histogram(epsilon=1, cells=1000, unit=unit).event.scale
    Fraction(500, 1)
    """
    return whole("cells", cells, least=1) * scalar_sensitivity(0, 1, unit).l1 / positive("epsilon", epsilon)

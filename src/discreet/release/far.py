"""How far marginals are from what is expected of them, for a part of a budget."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from discreet.known.known import Known
from discreet.plan.request import Distances
from discreet.query.linear import Marginal
from discreet.source.effect import sensitivity_of
from discreet.types import Columns, Numbers


def distances_for(
    known: Known, scopes: Sequence[Columns], expected: Sequence[Numbers], units: float, why: str
) -> Distances:
    """The request for how far each of some marginals is from what is expected of it, for at most so many units."""
    sigma = Fraction(deviation_for(known, scopes, units)).limit_denominator(10**6) + Fraction(1, 10**6)
    whole = tuple(np.rint(each).astype(np.int64).ravel() for each in expected)
    return Distances(tuple(scopes), whole, sigma, why)


def deviation_for(known: Known, scopes: Sequence[Columns], units: float) -> float:
    """The noise that each of some distances has for so many units, in rows."""
    moves = sum(float(sensitivity_of(Marginal(scope), known.domain, known.lattice.unit).l1) ** 2 for scope in scopes)
    return float((moves / units) ** 0.5)

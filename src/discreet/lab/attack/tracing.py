"""Tracing (membership inference): was this person in the table? Many means together answer, though none does alone."""

from dataclasses import dataclass

import numpy as np

from discreet.types import Numbers


@dataclass(frozen=True, slots=True, eq=False)
class Traced:
    """The scores of people who were in the table and of people who were not."""

    inside: Numbers
    outside: Numbers

    @property
    def area(self) -> float:
        """The area under the ROC curve: how often one inside scores higher than one outside; a tie is a half.

        >>> Traced(np.array([2.0, 1.0]), np.array([1.0, 0.0])).area
        0.875
        """
        above = self.inside[:, None] > self.outside
        ties = self.inside[:, None] == self.outside
        return float(np.mean(above + ties / 2))

    @property
    def curve(self) -> list[tuple[float, float]]:
        """The ROC curve: false alarms and hits as the threshold falls."""
        levels = np.unique(np.concatenate([self.inside, self.outside]))[::-1]
        return [(0.0, 0.0)] + [
            (float(np.mean(self.outside >= level)), float(np.mean(self.inside >= level))) for level in levels
        ]


def trace(means: Numbers, population: Numbers, inside: Numbers, outside: Numbers) -> Traced:
    """Score each candidate by how much the table's deviations from the population agree with theirs.

    s(x) = Σ_j (x_j − p_j)(m_j − p_j)/v_j. With d means of n people, one inside scores higher than one outside by about
    √(d/n) standard deviations, so that d ≫ n means distinguish all of them.

    where m are the `means` of the table, p those of the `population`, v_j = p_j(1 − p_j), and x a row of `inside` (the
    members) or of `outside` (others of the same population), of zeros and ones.

    >>> from discreet.lab.random import truths
    >>> inside, outside = truths(0.5, 20, 2000), truths(0.5, 20, 2000)
    >>> trace(inside.mean(axis=0), np.full(2000, 0.5), inside, outside).area
    1.0

    [Hom08; DSSUV15, Thm. 1; 004 §1.1]
    """
    lean = means - population
    # The variance of a share close to 0 or 1 is bounded from below, so that it does not dominate.
    lean = np.where(np.isfinite(lean), lean, 0.0) / np.maximum(population * (1 - population), 1e-2)
    return Traced((inside - population) @ lean, (outside - population) @ lean)

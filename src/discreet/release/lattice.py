"""Pieces of the lattice, the budget split as is best for the noise of what is asked, and a model fitted to all."""

from discreet.errors import BadParameter, TooLarge
from discreet.model.ensemble import Tell
from discreet.model.protocol import Model
from discreet.plan.request import Measure, Procedure
from discreet.release.allocate import allocate, as_steps
from discreet.release.brief import Brief
from discreet.release.direct import counted_well
from discreet.release.fitting import fitted_to_all, too_large


def lattice(brief: Brief, tell: Tell | None = None) -> Procedure[Model]:
    """Measure every piece of what is asked, each as well as is best for the summed absolute error, and fit a model.

    The split is `allocate`'s: no other measurement of pieces with Gaussian noise has less noise for this budget
    (ResidualPlanner, where nothing is known). What is known already counts, and only what is lacking is paid. The
    number of rows, if it is not public, is counted first: an error of it is one of every marginal, which the split,
    made for the noise of single cells, does not see.

    Limits: the split is best for answers read off the lattice. A model fitted to it gains from leaving pieces out that
    are mostly noise, which `pairs` does and this does not. Only Gaussian noise; all cells together (`too_large`).
    """
    known, goal = brief.known, brief.goal
    if not known.measures_residuals:
        raise BadParameter(
            "method is 'lattice' and delta is 0; pieces are measured with Gaussian noise, which needs a delta above 0. "
            'Take method="direct", or a budget with a delta.'
        )
    refused = too_large(goal)
    if refused:
        raise TooLarge(refused)
    left = brief.units
    left -= yield from counted_well(known, goal, left)
    asked = goal if brief.asked is None else brief.asked
    steps = as_steps(known, allocate(asked, known, budget=left, norm="l1"), budget=left)
    if steps.steps:
        yield Measure(steps, "pieces of marginals, for a release")
    return fitted_to_all(known, goal, float(brief.units), tell)

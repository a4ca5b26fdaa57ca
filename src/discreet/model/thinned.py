"""Data thinning: whether what a model learned from noisy marginals is more than their noise.

A look with normal noise is split into two that are independent of each other given the table: noise is added to one,
and subtracted from the other, so that their covariance is 0 [NDGW24]. A model that is fitted to one of them is judged
by the other. This is post-processing of what was released, so it costs no budget.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from discreet.model.protocol import Model, NoisyMarginal
from discreet.model.scattered import normal

# The noise that is added to the looks to learn from, in deviations of theirs; the others get its inverse.
ADDED = 0.5
# The seed of the noise: no start of a member of an ensemble has it.
_SEED = 2**20


def thinned(looks: Iterable[NoisyMarginal]) -> tuple[list[NoisyMarginal], list[NoisyMarginal]]:
    """Looks to learn from, with a little more noise, and looks to judge by, with much more.

    With noise σ, the numbers of the first have y + c σ z and those of the second y − σ z/c, where z is from N(0, 1):
    the covariance of their noise is σ² − σ² = 0.
    """
    learn, judge = [], []
    for place, look in enumerate(looks):
        noise = normal(np.shape(look.values), seed=_SEED + place) * look.weight**-0.5
        learn.append(replace(look, values=look.values + ADDED * noise, weight=look.weight / (1 + ADDED**2)))
        judge.append(replace(look, values=look.values - noise / ADDED, weight=look.weight / (1 + ADDED**-2)))
    return learn, judge


def borne_out(model: Model, simple: Model, looks: Sequence[NoisyMarginal]) -> tuple[float, float]:
    """The part of a model's difference from a simpler one that held-out looks confirm, and its standard deviation.

    The part is about 1 if the model is right, and about 0 if it has learned the noise of the looks it was fitted to;
    above ½ the model is nearer to the table. Both are infinite if the models do not differ.

    where the part is d·(y − a)/d·d for the numbers y of the looks and a of the simple model, all over their deviations.
    """
    along, size = 0.0, 0.0
    for look in looks:
        plain = simple.marginal(look.columns)
        apart = look.residual(plain, model.domain) - look.residual(model.marginal(look.columns), model.domain)
        along += look.weight * float((apart * look.residual(plain, model.domain)).sum())
        size += look.weight * float((apart**2).sum())
    return (along / size, size**-0.5) if size else (np.inf, np.inf)

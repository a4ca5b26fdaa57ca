"""Whether what a model learnt from noisy looks is more than their noise.

A look with normal noise is split into two that are independent of each other given the table: noise is added to one,
and taken from the other, so that what they have in common cancels (data thinning [NDGW24]). A model that is fitted to
one of them is judged by the other. It is all made from what was released, so it costs nothing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from discreet.model.protocol import Look, Model
from discreet.model.scattered import normal

# The noise that is added to the looks to learn from, in deviations of theirs; the others get its inverse.
ADDED = 0.5
# The seed of the noise: no start of a member of an ensemble has it.
_SEED = 2**20


def thinned(looks: Iterable[Look]) -> tuple[list[Look], list[Look]]:
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


def borne_out(model: Model, simple: Model, looks: Sequence[Look]) -> tuple[float, float]:
    """What looks that neither model has seen say of how a model differs from a simpler one: a part, and its deviation.

    About 1 of the difference d is there if the model is right, and 0 if it is the noise of what it was fitted to; the
    model is nearer to the table if it is more than ½. Both are infinite if the models do not differ.

    where the part is d·(y − a)/d·d for the numbers y of the looks and a of the simple model, all over their deviations.
    """
    along, size = 0.0, 0.0
    for look in looks:
        plain = simple.marginal(look.columns)
        apart = look.residual(plain, model.domain) - look.residual(model.marginal(look.columns), model.domain)
        along += look.weight * float((apart * look.residual(plain, model.domain)).sum())
        size += look.weight * float((apart**2).sum())
    return (along / size, size**-0.5) if size else (np.inf, np.inf)

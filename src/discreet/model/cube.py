"""Many small looks at three columns each, evaluated by one matrix product."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from discreet.model.blocks import crossed
from discreet.types import Numbers, Reals

# Products are taken of all features, also of those that nobody measured together: up to so many for each number.
WASTE = 64
# The values and the weights of all products of three features: 64 MB each.
MOST_CUBED = 2**8


@dataclass(frozen=True, slots=True, eq=False)
class Cube:
    """What was measured of the products of three of these features, `places`.

    `values` and `weight` (1/variance, 0 where nothing was measured) have a row for each two features and a column for
    the third. They are symmetric: each number is there six times.
    """

    places: NDArray[np.int64]
    values: Reals
    weight: Reals

    def single(self) -> "Cube":
        """The same in single precision."""
        return replace(self, values=self.values.astype(np.float32), weight=self.weight.astype(np.float32))

    @property
    def once(self) -> NDArray[np.bool_]:
        """Marks each number in one of its six places."""
        first, second, third = np.ogrid[: len(self.places), : len(self.places), : len(self.places)]
        return np.asarray(((first < second) & (second < third)).reshape(self.values.shape))

    def means(self, means: Reals, weights: Reals) -> Reals:
        """The mean of each product, for the means of the features in each component."""
        chosen = means[self.places]
        return np.asarray(crossed(chosen * weights, chosen) @ chosen.T)

    def add(self, means: Reals, weights: Reals, total: float, slopes: Reals, along: Reals) -> float:
        """Add the slopes along the means of the features (over w) and along the weights; the loss."""
        chosen = means[self.places]
        residual = self.means(means, weights)
        residual *= total
        residual -= self.values
        pull = self.weight * residual
        loss = float(np.vdot(pull, residual)) / 12
        steep = (pull @ chosen).reshape(len(chosen), len(chosen), -1)
        steep *= chosen
        moved = steep.sum(axis=1)
        moved *= total / 2
        slopes[self.places] += moved
        along += np.einsum("fk,fk->k", chosen, moved) / 3
        return loss


def cube_of(looks: Sequence[tuple[Sequence[slice], Numbers, float]]) -> Cube | None:
    """Looks at three columns each: the features of the columns, the numbers, and 1/variance. None if it would waste."""
    if not looks:
        return None
    places = np.array(
        sorted({each for here, _, _ in looks for place in here for each in range(place.start, place.stop)})
    )
    size = len(places)
    if size > MOST_CUBED or size**3 > WASTE * sum(seen.size for _, seen, _ in looks):
        return None
    values, weight = np.zeros((size, size, size)), np.zeros((size, size, size))
    for here, seen, precision in looks:
        inside = [slice(*np.searchsorted(places, (place.start, place.stop)).tolist()) for place in here]
        for order in permutations(range(3)):
            at = tuple(inside[each] for each in order)
            values[at], weight[at] = seen.transpose(order), precision
    return Cube(places, values.reshape(size * size, size), weight.reshape(size * size, size))

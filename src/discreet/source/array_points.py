"""An array of numbers as points on a grid: clipped row by row to bounds that were given, and sealed."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.sensitivity import Sensitivity
from discreet.errors import BadParameter, BadQuery
from discreet.numeric import rational
from discreet.query.points import CHUNK, GRID_REACH, MOST_DIMENSIONS, Body, Boxes, Clusters, Grid, Norm, nearest_center
from discreet.schema.unit import Unit
from discreet.source.query_sensitivity import points_sensitivity
from discreet.source.source import Exact
from discreet.types import Floats

_STEP = "Give what you know without looking at the rows, say bounds=(0, 1) or bounds=([0, 17], [1, 90])."
_LARGEST = Fraction(10**100)


def grid_of_bounds(bounds: Any, features: int, norm: Norm = "linf") -> Grid:
    """The grid of a pair (lower, upper) of numbers, or of lists of one number for each feature; or of the ball in it.

    Distances keep the unit of the array: the longest side has 2·GRID_REACH + 1 grid points and the others have fewer.

    >>> grid_of_bounds((0, 1), 2).body
    Body(reach=(16384, 16384), norm='linf')
    >>> grid_of_bounds(([0, 0], [10, 1]), 2).body
    Body(reach=(16384, 1638), norm='linf')
    """
    if bounds is None or isinstance(bounds, str) or not hasattr(bounds, "__len__") or len(bounds) != 2:
        raise BadParameter(f"bounds is {bounds!r}; it must be a pair (lower, upper). {_STEP}")
    if features > MOST_DIMENSIONS:
        raise BadParameter(f"there are {features} features; points have at most {MOST_DIMENSIONS}. Choose some.")
    lower, upper = (_side(name, end, features) for name, end in zip(("lower", "upper"), bounds, strict=True))
    halves = [(above - below) / 2 for below, above in zip(lower, upper, strict=True)]
    for below, above, half in zip(lower, upper, halves, strict=True):
        if half <= 0:
            raise BadParameter(
                f"bounds has lower {float(below):g} and upper {float(above):g}; lower is below upper. {_STEP}"
            )
    if norm != "linf" and len(set(halves)) > 1:
        raise BadParameter(f'norm is "{norm}" and the sides of the bounds differ; a ball has one radius. {_STEP}')
    unit = max(halves) / GRID_REACH
    body = Body(tuple(round(half / unit) for half in halves), norm)
    middle = tuple(float((below + above) / 2) for below, above in zip(lower, upper, strict=True))
    return Grid(middle, (float(unit),) * features, body)


def _side(name: str, end: Any, features: int) -> tuple[Fraction, ...]:
    listed: Sequence[Any] = [end] * features if np.ndim(end) == 0 else list(end)
    if len(listed) != features:
        raise BadParameter(f"the {name} bounds have {len(listed)} numbers and there are {features} features. {_STEP}")
    numbers = tuple(rational(f"a {name} bound", value, next_step=_STEP) for value in listed)
    if any(abs(number) > _LARGEST for number in numbers):
        raise BadParameter(f"a {name} bound is beyond {float(_LARGEST):g}. {_STEP}")
    return numbers


class Points:
    """Rows of an array on a grid, sealed: a question about points is answered as by any source.

    >>> Points(np.array([[0.2, 0.9]]), grid_of_bounds((0, 1), 2), Unit())
    <Points: 2 coordinates; one row is added or removed>
    """

    def __init__(self, rows: Floats, grid: Grid, unit: Unit) -> None:
        if unit.key is not None:
            raise BadParameter("an array has no keys; every row of it is a person. Open a table for persons with rows.")
        self.body, self.unit = grid.body, unit
        self._rows, self._grid = rows, grid
        self._points: NDArray[np.int16] | None = None

    def sensitivity(self, question: Boxes | Clusters) -> Sensitivity:
        """By how much one person can move the answer."""
        return points_sensitivity(question, self.unit)

    def evaluate(self, question: Boxes | Clusters) -> Exact:
        """The true integers, sealed."""
        if question.body != self.body or question.columns:
            raise BadQuery("the question is about points in another body. Build it with that of these points.")
        sums = np.zeros(question.size, dtype=np.int64)
        for chunk in self._chunks():
            sums += question.measure(chunk)
        return Exact(sums, self.sensitivity(question))

    def labels(self, centers: tuple[tuple[int, ...], ...]) -> NDArray[np.int64]:
        """The nearest centre of each row, by the rule by which rows are counted. For the holder of the rows only."""
        return np.concatenate(
            [np.zeros(0, dtype=np.int64), *(nearest_center(chunk, centers) for chunk in self._chunks())]
        )

    def _chunks(self) -> Iterator[Floats]:
        if self._points is None:
            self._points = self._rounded()
        for begin in range(0, self._points.shape[1], CHUNK):
            yield self._points[:, begin : begin + CHUNK].astype(np.float64)

    def _rounded(self) -> NDArray[np.int16]:
        """All rows on the grid, by the column. Not before the first question: until then nothing is paid."""
        points = np.empty(self._rows.shape[::-1], dtype=np.int16)
        for begin in range(0, len(self._rows), CHUNK):
            points[:, begin : begin + CHUNK] = self._grid.rounded(self._rows[begin : begin + CHUNK])
        return points

    def __repr__(self) -> str:
        return f"<Points: {self.body.dimensions} coordinates; {self.unit.describe}>"

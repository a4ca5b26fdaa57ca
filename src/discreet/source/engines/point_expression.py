"""Questions about points, answered inside an engine: it finds the box or the nearest centre of every cell, and adds up.

All is integer arithmetic, as in query/points.py; an engine divides integers in its own way, so quotients are made of
what is not negative and rounded down.
"""

from functools import reduce
from operator import add, and_
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.query.points import Boxes, Clusters, Coordinate

# A row that is no point: it is not filtered, because engines filter floats by what a file says of them.
NOWHERE = -1

_LABEL, _SUM = "label", "s"


def in_engine(
    question: Boxes | Clusters, coordinates: tuple[Coordinate, ...], counted: Any, names: list[str], rows: str
) -> Any:
    """A query over counted cells (columns `names`, and `rows` of each): a label, and the sums that belong to it."""
    import ibis

    cells = [counted[name] for name in names]
    inside = reduce(and_, [(cell >= 0) & (cell < each.cells) for cell, each in zip(cells, coordinates, strict=True)])
    places = [
        cell.cast("int64") * _whole(each.step) + _whole(each.start)
        for cell, each in zip(cells, coordinates, strict=True)
    ]
    points = counted.select(
        **{f"z{axis}": place for axis, place in enumerate(places)}, inside=inside, many=counted[rows].cast("int64")
    )
    label = _box(question, points) if isinstance(question, Boxes) else _nearest(question, points)
    labelled = points.mutate(**{_LABEL: ibis.ifelse(points["inside"], label, _whole(NOWHERE))})
    sums = [labelled["many"]]
    if isinstance(question, Clusters):
        sums += [move * labelled["many"] for move in _moves(question, labelled)]
    named = {f"{_SUM}{place}": each for place, each in enumerate(sums)}
    ready = labelled.select(labelled[_LABEL], **named)
    return ready.group_by(_LABEL).aggregate(**{name: ready[name].sum().cast("int64") for name in named})


def collected(question: Boxes | Clusters, answer: Any) -> NDArray[np.int64]:
    """The answer to the question, from the rows that the engine gives."""
    width = 1 if isinstance(question, Boxes) else 1 + question.body.dimensions
    sums = np.zeros((question.size // width, width), dtype=np.int64)
    for batch in answer:
        labels = _numbers(batch.column(_LABEL))
        known = labels != NOWHERE
        for place in range(width):
            np.add.at(sums[:, place], labels[known], _numbers(batch.column(f"{_SUM}{place}"))[known])
    if isinstance(question, Clusters):
        sums[:, 0] *= question.weight
    return sums.ravel()


def _numbers(column: Any) -> NDArray[np.int64]:
    numbers: NDArray[np.int64] = column.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers


def _whole(number: int) -> Any:
    import ibis

    return ibis.literal(number, "int64")


def _quotient(above: Any, below: Any) -> Any:
    """Rounded down, of what is not negative. Doubles round no a/b with a + b ≤ 2^53 up to an integer: kmeans.md."""
    return (above.cast("float64") / below.cast("float64")).floor().cast("int64")


def _box(question: Boxes, points: Any) -> Any:
    place = _whole(0)
    for axis, (side, bins) in enumerate(zip(question.body.reach, question.bins, strict=True)):
        along = _quotient((points[f"z{axis}"] + _whole(side)) * _whole(bins), _whole(2 * side + 1))
        place = place * _whole(bins) + along
    return place


def _nearest(question: Clusters, points: Any) -> Any:
    """The first centre with the least |c|² − 2 z·c."""
    import ibis

    gaps = []
    for center in question.centers:
        products = [points[f"z{axis}"] * _whole(-2 * place) for axis, place in enumerate(center)]
        gaps.append(reduce(add, products, _whole(sum(place**2 for place in center))))
    label, best = _whole(0), gaps[0]
    for place, gap in enumerate(gaps[1:], start=1):
        label = ibis.ifelse(gap < best, _whole(place), label)
        best = ibis.least(gap, best)
    return label


def _moves(question: Clusters, points: Any) -> list[Any]:
    """What a point adds to the sums of its cluster."""
    import ibis

    axes = range(question.body.dimensions)
    if question.radius is None:
        return [points[f"z{axis}"] for axis in axes]
    moves = []
    for axis in axes:
        cases = [(points[_LABEL] == place, _whole(center[axis])) for place, center in enumerate(question.centers)]
        moves.append(points[f"z{axis}"] - ibis.cases(*cases, else_=_whole(0)))
    if question.norm == "l1":
        length = reduce(add, [move.abs() for move in moves])
    elif question.norm == "l2":
        squares = reduce(add, [move * move for move in moves])
        root = squares.cast("float64").sqrt().floor().cast("int64")
        length = root + ibis.ifelse(root * root < squares, _whole(1), _whole(0))
    else:
        length = ibis.greatest(*[move.abs() for move in moves]) if len(moves) > 1 else moves[0].abs()
    radius = _whole(question.radius)
    length = ibis.greatest(length, radius)
    return [_quotient(move.abs() * radius, length) * move.sign().cast("int64") for move in moves]

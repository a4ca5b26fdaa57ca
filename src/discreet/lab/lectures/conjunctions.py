"""Made-up people with yes/no columns, and all conjunctions of yeses about them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.lab.random import integers, truths, uniforms
from discreet.types import Ints


def histogram_of_classes(columns: int, rows: int, classes: int = 4) -> Ints:
    """The number of people in each of the 2^d cells: each person has a class, with a probability of yes per column.

    The first column is the highest bit of a cell.

    >>> histogram_of_classes(3, 100).sum()
    np.int64(100)
    """
    usual = np.where(truths(0.5, classes, columns), 0.85, 0.15)
    yes = uniforms(rows, columns) < usual[integers(classes, rows)]
    return np.bincount(yes @ (1 << np.arange(columns - 1, -1, -1)), minlength=2**columns).astype(np.int64)


def answers_to_conjunctions(histogram: NDArray[Any]) -> NDArray[Any]:
    """For every set S of columns, how much of a histogram has a yes in all of S: sums over the supersets of S.

    >>> answers_to_conjunctions(np.array([1, 2, 3, 4])).tolist()
    [10, 6, 7, 4]
    """
    out, step = np.array(histogram), 1
    while step < out.size:
        pairs = out.reshape(-1, 2, step)
        pairs[:, 0] += pairs[:, 1]
        step *= 2
    return out


def conjunction_effects(columns: int) -> Ints:
    """What a row of each cell adds to each conjunction: 1 if the cell has all the yeses that are asked for.

    >>> conjunction_effects(1).tolist()
    [[1, 1], [0, 1]]
    """
    cells = np.arange(2**columns, dtype=np.int64)
    asked = cells[:, None]
    return np.asarray((cells & asked) == asked, dtype=np.int64)

"""Rows, and a statistic that judges each of them by itself with a number from 0 to 1.

Numbers are rounded to a grid row by row, so that sums are exact integers and one row moves them by at most `GRID`.
What an analyst may see of a statistic (errors, warnings) is decided by the training rows alone.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BadData, BadParameter
from discreet.privacy.sensitivity import Sensitivity, scalar_sensitivity
from discreet.schema.unit import Unit
from discreet.source.exact import Exact

# So many steps from 0 to 1. Half a step is the most that rounding moves a mean.
GRID = 2**20
# Who is protected: one held row, exchanged for any other. The number of rows is public.
UNIT = Unit(neighbors="replace_one")

# On so many training rows a statistic is evaluated twice, and may differ on one: a tie that rounding decides.
_SLICE, _MAY_DIFFER, _NEAR = 64, 1, 1e-3

Statistic = Callable[..., Any]


@dataclass(frozen=True, slots=True, repr=False)
class Rows:
    """Arrays or frames of the same length, whose n-th rows belong together."""

    parts: tuple[Any, ...]
    size: int

    def __repr__(self) -> str:
        return f"<{self.size:,} rows in {len(self.parts)} part{'s' if len(self.parts) != 1 else ''}>"

    def cut(self, start: int, stop: int) -> "Rows":
        """Some of them, in order."""
        return Rows(tuple(_cut(part, start, stop) for part in self.parts), stop - start)


def read_rows(name: str, given: Any) -> Rows:
    """Rows from an array, a frame, or a tuple of such as (X, y).

    >>> read_rows("train", (np.zeros((5, 3)), [0, 1, 0, 1, 1]))
    <5 rows in 2 parts>
    """
    listed = given if isinstance(given, tuple) else (given,)
    parts = tuple(np.asarray(part) if isinstance(part, (list, range)) else part for part in listed)
    sizes = {_length(name, part) for part in parts}
    if len(sizes) != 1 or sizes == {0}:
        raise BadData(
            f"{name} has parts of {', '.join(map(str, sorted(sizes))) or 'no'} rows; all must have the same number, at "
            f"least 1. Give an array, a frame, or a tuple such as (X, y)."
        )
    return Rows(parts, sizes.pop())


def training_sum(statistic: Statistic, rows: Rows) -> int:
    """The sum over the training rows in steps of the grid; what is wrong with the statistic is said here.

    A statistic that looks at other rows than the one it judges is noticed if a slice by itself is judged otherwise.
    """
    if not callable(statistic):
        raise BadParameter(
            f"statistic is a {type(statistic).__name__}; it must be a function of the rows that gives one number from "
            "0 to 1 for each. Give, say, lambda X, y: model.predict(X) == y."
        )
    judged = _shaped(statistic(*rows.parts), rows.size)
    if judged is None:
        raise BadParameter(
            f"the statistic does not give {rows.size} numbers for {rows.size} training rows; it must give one for each "
            "row, not a mean. Give, say, lambda X, y: model.predict(X) == y."
        )
    if not bool(np.all((judged >= 0) & (judged <= 1))):
        raise BadParameter(
            "the statistic is below 0, above 1 or nan for some training row; every number must be from 0 to 1. "
            "Scale it by bounds that you know without looking, and clip it."
        )
    _require_by_row(statistic, rows, judged)
    return int(_stepped(judged).sum())


def held_sums(statistic: Statistic, rows: Rows) -> tuple[Exact, Exact]:
    """The sum over the held rows and its negative, sealed. Nothing that these rows do makes an error or a warning.

    A row for which the statistic fails counts 0, and only that row: where a call fails, the rows are halved until it
    does not, which for a statistic that judges row by row is the same as calling it for each.
    """
    moves = sum_sensitivity()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        total = int(_stepped(_judged(statistic, rows)).sum())
    return Exact(np.array([total]), moves), Exact(np.array([-total]), moves)


def sum_sensitivity() -> Sensitivity:
    """How far one row, exchanged for any other, moves a sum of steps."""
    return scalar_sensitivity(0, GRID, UNIT)


def _judged(statistic: Statistic, rows: Rows) -> NDArray[np.float64]:
    try:
        judged = _shaped(statistic(*rows.parts), rows.size)
    # Whatever it raises may depend on a row.
    except Exception:
        judged = None
    if judged is not None:
        return np.clip(np.nan_to_num(judged, nan=0.0), 0.0, 1.0)
    if rows.size == 1:
        return np.zeros(1)
    half = rows.size // 2
    return np.concatenate(
        [_judged(statistic, rows.cut(0, half)), _judged(statistic, rows.cut(half, rows.size))], dtype=np.float64
    )


def _stepped(judged: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.rint(judged * GRID).astype(np.int64)


def _shaped(judged: Any, size: int) -> NDArray[np.float64] | None:
    """One number for each row, or None."""
    try:
        numbers = np.asarray(judged, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    if numbers.shape == (size, 1):
        numbers = numbers[:, 0]
    return numbers if numbers.shape == (size,) else None


def _require_by_row(statistic: Statistic, rows: Rows, judged: NDArray[np.float64]) -> None:
    few = min(_SLICE, rows.size // 2)
    if few < 2:
        return
    alone = _shaped(statistic(*rows.cut(rows.size - few, rows.size).parts), few)
    if alone is None or int((~(np.abs(alone - judged[-few:]) <= _NEAR)).sum()) > _MAY_DIFFER:
        raise BadParameter(
            f"the statistic judges the last {few} training rows otherwise when it sees only them; it must judge each "
            "row by itself, or no bound holds. Compute means, ranks and scales on other rows beforehand."
        )


def _length(name: str, part: Any) -> int:
    shape = getattr(part, "shape", None)
    if shape is None or len(shape) == 0:
        raise BadData(
            f"{name} has a part of type {type(part).__name__}; it must have rows. Give an array, a frame, or a tuple "
            "such as (X, y)."
        )
    return int(shape[0])


def _cut(part: Any, start: int, stop: int) -> Any:
    return part.iloc[start:stop] if hasattr(part, "iloc") else part[start:stop]


def agreement(predictions: Sequence[Any] | NDArray[Any], labels: Any) -> NDArray[np.float64]:
    """1 where a prediction is the label, 0 where it is not.

    >>> agreement([1, 0, 2], np.array([1, 1, 2])).tolist()
    [1.0, 0.0, 1.0]
    """
    return np.asarray(np.asarray(predictions) == np.asarray(labels), dtype=np.float64)

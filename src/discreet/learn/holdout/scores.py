"""Scores of held rows: a statistic gives each row by itself a number from 0 to 1. Proof: holdout.md, Lemma 1

A row is scored so that no other row can change its number: by exact arithmetic (`opaque.py`), or in a call of its own.
Numbers are rounded to a grid row by row, so sums are exact integers and one row moves them by at most `GRID`. Errors
and warnings that an analyst sees come from training rows alone. An exception that a signal raises (Ctrl-C, a timer)
stops the question; one that a statistic raises at a held row does not.
"""

import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.sensitivity import Sensitivity, scalar_sensitivity
from discreet.errors import BadData, BadParameter
from discreet.learn.holdout.opaque import Opaque, judged_blind
from discreet.schema.unit import Unit
from discreet.source.source import Exact

Handler = Any


class Interrupts:
    """While it is entered, remembers exceptions that signal handlers raise in the middle of other code.

    Signals are handled in the main thread alone, so in other threads it does nothing. A handler that raises nothing
    just runs.
    """

    def __init__(self) -> None:
        self._raised: list[BaseException] = []
        self._replaced: dict[signal.Signals | int, Handler] = {}

    def pass_on(self) -> None:
        """Raise again what a signal handler raised, because the interrupted code may have swallowed it."""
        if self._raised:
            raise self._raised[0]

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in signal.valid_signals():
                handler = signal.getsignal(number)
                if callable(handler):
                    self._replaced[number] = handler
                    signal.signal(number, self._handle)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for number, handler in self._replaced.items():
            signal.signal(number, handler)
        if kind is None:
            self.pass_on()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        try:
            self._replaced[number](number, frame)
        except BaseException as raised:
            self._raised.append(raised)
            raise


# The number of steps from 0 to 1. Rounding moves a mean by at most half a step.
GRID = 2**20
# The privacy unit: one held row, replaced by any other. The number of rows is public.
UNIT = Unit(neighbors="replace_one")

# A copy of rows begins at a multiple of this, a page, because its alignment in memory may change a last bit.
_ALIGNED = 4096
# A statistic is evaluated twice on this many training rows. It may differ by more than the tolerance on one of them,
# because rounding may decide a tie.
_SLICE, _MAY_DIFFER, _TOLERANCE = 64, 1, 1e-3

Statistic = Callable[..., Any]


@dataclass(frozen=True, slots=True, repr=False)
class RowParts:
    """Arrays or frames of the same length, whose n-th rows belong together."""

    parts: tuple[Any, ...]
    size: int

    def __repr__(self) -> str:
        return f"<{self.size:,} rows in {len(self.parts)} part{'s' if len(self.parts) != 1 else ''}>"

    def cut(self, start: int, stop: int) -> "RowParts":
        """Some of them, in order."""
        return RowParts(tuple(_cut(part, start, stop) for part in self.parts), stop - start)


def read_rows(name: str, given: Any) -> RowParts:
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
    return RowParts(parts, sizes.pop())


def training_sum(statistic: Statistic, rows: RowParts, rows_per_call: int = 1) -> int:
    """The sum over the training rows in steps of the grid; raises if the statistic breaks a rule on them.

    A statistic that uses other rows than the one it scores, or cannot score one row alone, is detected if the last
    rows, when they are given like held rows, have other scores.
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
            "Scale it by bounds that do not come from the rows, and clip it."
        )
    _require_by_row(statistic, rows, judged, rows_per_call)
    return int(_stepped(judged).sum())


def held_sums(statistic: Statistic, rows: RowParts, rows_per_call: int = 1) -> tuple[Exact, Exact]:
    """The sum over the held rows and its negative, sealed. No held row can cause an error or a warning.

    A row for which the statistic fails, with an exception of any kind, counts 0, and only that row. An exception that a
    signal raises (Ctrl-C) is no failure of a row, and is passed on.
    """
    moves = sum_sensitivity()
    with Interrupts() as interrupts:
        total = int(_stepped(_judged(statistic, rows, rows_per_call, interrupts)).sum())
    return Exact(np.array([total]), moves), Exact(np.array([-total]), moves)


def sum_sensitivity() -> Sensitivity:
    """The sensitivity of a sum of steps to one row, replaced by any other."""
    return scalar_sensitivity(0, GRID, UNIT)


def _judged(statistic: Statistic, rows: RowParts, rows_per_call: int, interrupts: Interrupts) -> NDArray[np.float64]:
    """The score of each row, from 0 to 1. The order and the shapes of all calls follow from public numbers."""
    with _silence():
        judged = judged_blind(statistic, rows.parts)
    interrupts.pass_on()
    if judged is None:
        copied = tuple(map(_copier, rows.parts))
        starts = range(0, rows.size, rows_per_call)
        blocks = [
            _block(statistic, copied, start, min(rows_per_call, rows.size - start), interrupts) for start in starts
        ]
        judged = np.concatenate(blocks, dtype=np.float64)
    return np.clip(np.nan_to_num(judged, nan=0.0), 0.0, 1.0)


def _block(
    statistic: Statistic, copied: tuple["Copier", ...], start: int, size: int, interrupts: Interrupts
) -> NDArray[np.float64]:
    """The scores of the rows of one call. If it fails, each row is scored at its place among copies of itself."""
    judged = _called(statistic, copied, list(range(start, start + size)), interrupts)
    if judged is not None:
        return judged
    alone = np.zeros(size)
    for place in range(size if size > 1 else 0):
        again = _called(statistic, copied, [start + place] * size, interrupts)
        alone[place] = 0.0 if again is None else again[place]
    return alone


def _called(
    statistic: Statistic, copied: tuple["Copier", ...], places: list[int], interrupts: Interrupts
) -> NDArray[np.float64] | None:
    try:
        with _silence():
            judged = _shaped(statistic(*[copy(places) for copy in copied]), len(places))
    # Any exception may depend on a row, SystemExit and KeyboardInterrupt too.
    except BaseException:
        judged = None
    interrupts.pass_on()
    return judged


@contextmanager
def _silence() -> Iterator[None]:
    """No warnings; and settings of warnings and floating point that a call changes are restored before the next row."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


Copier = Callable[[list[int]], Any]


def _copier(part: Any) -> Copier:
    """A function that copies rows at some places: a statistic cannot write to held rows or find their base array.

    Rows of an array are copied to the same address each time.
    """
    if type(part) is not np.ndarray or part.dtype.hasobject:
        return lambda places: _taken(part, places)
    held: dict[int, NDArray[Any]] = {}

    def copy(places: list[int]) -> Any:
        many = len(places)
        if many not in held:
            held[many] = _aligned((many, *part.shape[1:]), part.dtype)
        # Places are consecutive or all the same.
        alike = places[0] == places[-1] and many > 1
        held[many][...] = part[places[0]] if alike else part[places[0] : places[-1] + 1]
        return held[many][...]

    return copy


def _aligned(shape: tuple[int, ...], kind: np.dtype[Any]) -> NDArray[Any]:
    size = int(np.prod(shape)) * kind.itemsize
    room = np.zeros(size + _ALIGNED, dtype=np.uint8)
    skip = -room.ctypes.data % _ALIGNED
    return room[skip : skip + size].view(kind).reshape(shape)


def _taken(part: Any, places: list[int]) -> Any:
    if not hasattr(part, "iloc"):
        return part[places]
    first, last = places[0], places[-1]
    # Copying a slice takes half the time of indexing.
    return part.iloc[first : last + 1].copy() if last - first == len(places) - 1 else part.iloc[places]


def _stepped(judged: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.rint(judged * GRID).astype(np.int64)


def _shaped(judged: Any, size: int) -> NDArray[np.float64] | None:
    """One number for each row, or None."""
    try:
        # A copy, because a statistic may return the same array each time and overwrite it.
        numbers = np.array(judged, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    if numbers.shape == (size, 1):
        numbers = numbers[:, 0]
    return numbers if numbers.shape == (size,) else None


def _require_by_row(statistic: Statistic, rows: RowParts, judged: NDArray[np.float64], rows_per_call: int) -> None:
    few = min(_SLICE, rows.size // 2)
    if few < 2:
        return
    last = rows.cut(rows.size - few, rows.size)
    with Interrupts() as interrupts:
        alone = _judged(statistic, last, rows_per_call, interrupts)
    if int((~(np.abs(alone - judged[-few:]) <= _TOLERANCE)).sum()) > _MAY_DIFFER:
        calls = "one at a time" if rows_per_call == 1 else f"{rows_per_call:,} at a time"
        raise BadParameter(
            f"the statistic scores the last {few} training rows differently when it is given only them, {calls}; it "
            "must score each row by itself, or no bound holds. Compute means, ranks and scales on other rows "
            "beforehand, and let it take one row as it takes many."
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


def agreement(predictions: Sequence[Any] | NDArray[Any] | Opaque, labels: Any) -> Any:
    """1 where a prediction is the label, 0 where it is not.

    >>> agreement([1, 0, 2], np.array([1, 1, 2])).tolist()
    [1.0, 0.0, 1.0]
    """
    one, other = (each if isinstance(each, Opaque) else np.asarray(each) for each in (predictions, labels))
    same: Any = one == other
    return same.astype(np.float64)

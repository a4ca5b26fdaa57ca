"""Held rows that a statistic may compute with but not see: all rows in one call, and still each by itself.

A program that is given opaque arrays can only combine the numbers of one row with each other and with public numbers,
by operations that IEEE 754 or integer arithmetic define exactly. It learns no value, so its course does not depend on
the rows; and its result for a row depends on that row alone, not on its place. Proof: holdout.md, Lemma 1
"""

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

# Correctly rounded, or exact: each number in a loop has the result that it has alone. Not `exp`, `power` or `dot`,
# whose last bit depends on the place, and not `maximum`, which may take either of two zeros.
_COMPARISONS = (np.equal, np.not_equal)
_EXACT = (
    *(np.add, np.subtract, np.multiply, np.divide, np.negative, np.positive, np.absolute, np.square, np.sqrt),
    *(np.less, np.less_equal, np.greater, np.greater_equal, *_COMPARISONS),
    *(np.logical_and, np.logical_or, np.logical_xor, np.logical_not),
    *(np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.invert),
    *(np.isnan, np.isfinite, np.isinf, np.rint, np.floor, np.ceil, np.trunc),
)


class Opaque(NDArrayOperatorsMixin):
    """An array whose first axis is rows that belong to people; shape and type are public, and nothing else.

    >>> rows = Opaque(np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> rows[:, 0] + rows @ np.array([1.0, 1.0]) > 5
    <2 opaque rows of bool>
    >>> bool(rows[:, 0].any())
    Traceback (most recent call last):
    TypeError: held rows can be computed with, row by row, and not be looked at
    """

    __slots__ = ("_values",)

    def __init__(self, values: NDArray[Any]) -> None:
        if values.ndim == 0 or not _is_plain(values.dtype):
            _refuse()
        self._values = values

    def __repr__(self) -> str:
        return f"<{len(self)} opaque rows of {self.dtype}>"

    def __len__(self) -> int:
        return len(self._values)

    @property
    def shape(self) -> tuple[int, ...]:
        """The numbers of rows and of columns."""
        return self._values.shape

    @property
    def ndim(self) -> int:
        """The number of axes, that of the rows included."""
        return self._values.ndim

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the numbers."""
        return self._values.dtype

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> "Opaque":
        if method != "__call__" or options:
            _refuse()
        if ufunc is np.matmul:
            return _product(*inputs)
        if ufunc in (np.maximum, np.minimum):
            return _larger(*inputs) if ufunc is np.maximum else _smaller(*inputs)
        if ufunc not in _EXACT:
            _refuse()
        return _each_row(ufunc, *inputs, any_type=ufunc in _COMPARISONS)

    def __array_function__(self, function: Any, types: Any, given: Any, named: Any) -> "Opaque":
        if function not in _FUNCTIONS:
            _refuse()
        made: Opaque = _FUNCTIONS[function](*given, **named)
        return made

    def __getitem__(self, key: Any) -> "Opaque":
        """All rows, and of each the numbers at a public place: x[:, 3], x[:, 1:4], x[:, [0, 2]], x[:, None]."""
        rows, place = key if isinstance(key, tuple) and len(key) == 2 else (key, None)
        if not isinstance(rows, slice) or rows != slice(None):
            _refuse()
        if not isinstance(key, tuple):
            return self
        if isinstance(place, (list, np.ndarray)):
            place = np.asarray(place)
            if place.ndim != 1 or place.dtype.kind not in "biu":
                _refuse()
        elif place is not None and (not isinstance(place, (int, np.integer, slice)) or isinstance(place, bool)):
            _refuse()
        return Opaque(self._values[:, place])

    def __pow__(self, power: Any) -> "Opaque":
        if isinstance(power, int) and power == 2:
            return _each_row(np.square, self)
        _refuse()

    def astype(self, kind: Any) -> "Opaque":
        """The same numbers as another type that holds them all, or as floats; not floats as integers."""
        if not np.can_cast(self.dtype, kind, "same_kind" if np.dtype(kind).kind == "f" else "safe"):
            _refuse()
        with np.errstate(all="ignore"):
            return Opaque(self._values.astype(kind))

    def clip(self, low: Any = None, high: Any = None) -> "Opaque":
        """Each number, moved into a range."""
        above = self if low is None else _larger(self, low)
        return above if high is None else _smaller(above, high)

    def sum(self, axis: Any = None) -> "Opaque":
        """Of each row, added up from the first number to the last."""
        return self._along(axis, np.add, np.zeros(0, dtype=self.dtype).sum().dtype)

    def mean(self, axis: Any = None) -> "Opaque":
        """Of each row."""
        return _each_row(np.divide, self.sum(axis), self.shape[-1])

    def any(self, axis: Any = None) -> "Opaque":
        """Whether some number of a row is not 0."""
        return self._along(axis, np.logical_or, np.dtype(bool))

    def all(self, axis: Any = None) -> "Opaque":
        """Whether no number of a row is 0."""
        return self._along(axis, np.logical_and, np.dtype(bool))

    def _along(self, axis: Any, step: np.ufunc, kind: np.dtype[Any]) -> "Opaque":
        if self.ndim != 2 or axis not in (1, -1) or self.shape[1] == 0:
            _refuse()
        made = Opaque(self._values[:, 0].astype(kind))
        for place in range(1, self.shape[1]):
            made = _each_row(step, made, Opaque(self._values[:, place]))
        return made

    def _unseen(self, *_: Any, **__: Any) -> NoReturn:
        _refuse()

    __bool__ = __int__ = __float__ = __index__ = __complex__ = __array__ = _unseen
    __iter__ = __contains__ = __reduce__ = __reduce_ex__ = __copy__ = __deepcopy__ = __setitem__ = _unseen


def judged_blind(statistic: Callable[..., Any], parts: tuple[Any, ...]) -> NDArray[np.float64] | None:
    """The scores that a statistic gives opaque rows; None if it does anything else than exact arithmetic.

    Whether it is None depends on the statistic and on shapes and types, not on a value.
    """
    if not all(type(part) is np.ndarray for part in parts):
        return None
    try:
        found = statistic(*map(Opaque, parts))
        return _numbers(found, len(parts[0]))
    except BaseException:
        return None


def _numbers(found: Any, size: int) -> NDArray[np.float64] | None:
    if type(found) is not Opaque or found.shape not in ((size,), (size, 1)) or found.dtype.kind not in "biuf":
        return None
    return found._values.reshape(size).astype(np.float64)


def _refuse() -> NoReturn:
    raise TypeError("held rows can be computed with, row by row, and not be looked at")


def _is_plain(kind: np.dtype[Any]) -> bool:
    return kind.kind in "biuUS" or (kind.kind == "f" and kind.itemsize in (4, 8))


def _each_row(operation: Callable[..., Any], *inputs: Any, any_type: bool = False) -> Opaque:
    """Elementwise, over operands that all have the same rows along the first axis, or none."""
    shapes = {(len(one), one.ndim) for one in inputs if type(one) is Opaque}
    if len(shapes) != 1:
        _refuse()
    size, axes = shapes.pop()
    operands = [one._values if type(one) is Opaque else _public(one, axes) for one in inputs]
    if not any_type and any(np.asarray(one).dtype.kind in "US" for one in operands):
        _refuse()
    # A floating-point error would reveal a value, so none is raised.
    with np.errstate(all="ignore"):
        made = np.asarray(operation(*operands))
    if made.ndim != axes or len(made) != size:
        _refuse()
    return Opaque(made)


def _public(given: Any, axes: int) -> Any:
    """A number, or an array that is the same for every row: it has no axis for the rows."""
    if type(given) in (bool, int, float, str):
        return given
    if not (isinstance(given, np.generic) or type(given) is np.ndarray):
        _refuse()
    if given.ndim >= axes or not _is_plain(given.dtype):
        _refuse()
    return given


def _product(rows: Any, weights: Any) -> Opaque:
    """rows @ weights, added up from the first column to the last: the same order for every row, unlike in BLAS."""
    if type(rows) is not Opaque or type(weights) is not np.ndarray or rows.ndim != 2 or weights.ndim not in (1, 2):
        _refuse()
    if len(weights) != rows.shape[1] or not len(weights):
        _refuse()
    columns = np.ascontiguousarray(rows._values.T)
    made: Opaque | None = None
    for column, weight in zip(columns, weights, strict=True):
        part = Opaque(column if weights.ndim == 1 else column[:, None])
        term = _each_row(np.multiply, part, weight)
        made = term if made is None else _each_row(np.add, made, term)
    assert made is not None, "there is a column"
    return made


def _where(condition: Any, one: Any, other: Any) -> Opaque:
    return _each_row(np.where, condition, one, other)


def _larger(one: Any, other: Any) -> Opaque:
    return _each_row(lambda a, b: np.where((a >= b) | np.isnan(a), a, b), one, other)


def _smaller(one: Any, other: Any) -> Opaque:
    return _each_row(lambda a, b: np.where((a <= b) | np.isnan(a), a, b), one, other)


_FUNCTIONS: dict[Any, Callable[..., Opaque]] = {
    np.where: _where,
    np.clip: Opaque.clip,
    np.sum: Opaque.sum,
    np.mean: Opaque.mean,
    np.any: Opaque.any,
    np.all: Opaque.all,
}

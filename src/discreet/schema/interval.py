"""Columns of numbers and dates: one cell for each integer, or one for each bin."""

from bisect import bisect_right
from dataclasses import dataclass, field
from datetime import date, datetime
from fractions import Fraction
from math import floor, isinf
from typing import Any

from discreet.errors import BadSchema
from discreet.schema.cell import ABOVE, BELOW, MISSING, Cells, check_size, in_given_order
from discreet.schema.value import Readable, plain, read_value


@dataclass(frozen=True)
class Integers(Cells):
    """One cell for each integer from `lower` to `upper`. A fraction is rounded down: cell n holds [n, n + 1).

    Numbers beyond the ends go to the ends. Missing values have a cell of their own, and what is not a number counts
    as missing.

    >>> age = Integers(17, 90)
    >>> age.code(17), age.code(17.9), age.code(120), age.code(None), age.size
    (0, 0, 73, 74, 75)
    """

    lower: int
    upper: int
    outside: Readable = "clip"
    missing: Readable = "missing"
    ordered = True

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            value = plain(getattr(self, name))
            if isinstance(value, bool) or not isinstance(value, int) or not -(2**63) <= value < 2**63:
                raise BadSchema(
                    f"{name} is {value!r}; it must be an integer of 64 bits. For fractions or dates use Bins."
                )
            object.__setattr__(self, name, value)
        if self.lower > self.upper:
            raise BadSchema(f"lower is {self.lower} and upper is {self.upper}; lower is at most upper. Exchange them.")
        check_size(self.inside)
        self.check_rules(clips=True)

    @property
    def inside(self) -> int:  # type: ignore[override]
        """How many cells are declared."""
        return self.upper - self.lower + 1

    def locate(self, value: object) -> int:
        """The declared cell of a raw value, or BELOW, ABOVE or MISSING."""
        kind, number = read_value(value)
        if kind != "number":
            return MISSING
        if number < self.lower:
            return BELOW
        return ABOVE if number >= self.upper + 1 else floor(number) - self.lower

    def _label(self, cell: int) -> str:
        return str(self.lower + cell)


@dataclass(frozen=True)
class Bins(Cells):
    """Intervals between `starts`: [s0, s1), [s1, s2), …, [s_last, upper].

    The edges are all integers, or all dates, or numbers with at least one float or Decimal. Between integers or
    dates a fraction (or a time of day) is rounded down first, so <= 64 and < 65 are the same question. Values beyond
    the ends go to the ends, missing ones have a cell of their own, and what is of another kind counts as missing.

    >>> age = Bins([17, 25, 65], upper=90)
    >>> age.labels
    ('17 to 24', '25 to 64', '65 to 90', 'missing')
    >>> age.code(64), age.code(65), age.code(91)
    (1, 2, 2)
    """

    # Two columns are the same if they have the same edges, whether written 0.1 or Decimal("0.1").
    starts: tuple[Readable, ...] = field(compare=False)
    upper: Readable = field(compare=False)
    outside: Readable = "clip"
    missing: Readable = "missing"
    # 0 == 0.0 in Python, but bins between integers round down and bins between decimals do not.
    whole: bool = field(init=False, repr=False)
    ordered = True

    def __post_init__(self) -> None:
        starts, upper = tuple(plain(start) for start in in_given_order("starts", self.starts)), plain(self.upper)
        if not starts:
            raise BadSchema("starts is empty; there is at least one bin. Give the first value of each.")
        readings = [read_value(edge) for edge in (*starts, upper)]
        for edge, (kind, number) in zip((*starts, upper), readings, strict=True):
            mixed = kind not in ("number", "date") or isinf(number) or kind != readings[0][0]
            if mixed or isinstance(edge, datetime):
                raise BadSchema(
                    f"the bins have an edge {edge!r}; edges are all finite numbers or all dates. "
                    "Give numbers, or datetime.date values without a time of day."
                )
        edges = [number for _, number in readings]
        for before, after, name in zip(edges, edges[1:], (*starts[1:], None), strict=False):
            if before > after or (before == after and name is not None):
                shown = f"upper is {upper!r}" if name is None else f"starts has {name!r}"
                raise BadSchema(f"{shown}, which is not above the edge before it; edges ascend. Sort them.")
        check_size(len(starts))
        object.__setattr__(self, "starts", starts)
        object.__setattr__(self, "upper", upper)
        object.__setattr__(self, "edges", tuple(edges[:-1]))
        object.__setattr__(self, "top", edges[-1])
        object.__setattr__(self, "kind", readings[0][0])
        object.__setattr__(self, "whole", all(isinstance(edge, (int, date)) for edge in (*starts, upper)))
        self.check_rules(clips=True)

    edges: tuple[int | Fraction, ...] = field(init=False, repr=False)
    top: int | Fraction = field(init=False, repr=False)
    kind: str = field(init=False, repr=False)

    @property
    def inside(self) -> int:  # type: ignore[override]
        """How many cells are declared."""
        return len(self.starts)

    def locate(self, value: object) -> int:
        """The declared cell of a raw value, or BELOW, ABOVE or MISSING."""
        kind, number = read_value(value)
        if kind != self.kind:
            return MISSING
        if self.whole and not isinf(number):
            number = floor(number)
        if number < self.edges[0]:
            return BELOW
        return ABOVE if number > self.top else bisect_right(self.edges, number) - 1

    def _label(self, cell: int) -> str:
        start, last = self.starts[cell], cell == self.inside - 1
        if not self.whole:
            return f"[{start}, {self.upper}]" if last else f"[{start}, {self.starts[cell + 1]})"
        end: Any = self.top if last else self.edges[cell + 1] - 1
        shown = date.fromordinal(end) if self.kind == "date" else end
        return str(start) if end == self.edges[cell] else f"{start} to {shown}"

"""What the columns share: extra cells, and the fate of a value that is in no declared cell.

Columns of numbers and dates: one cell for each integer, or one for each bin.

What a value may be: a column is a finite list of cells, and a rule for every value that fits none.

Data never decides whether an error is raised, so each column says beforehand where a value goes that is outside its
cells, and where a missing one goes (None, NaN, NaT, NA):

    outside   "drop"     the row does not belong to the table at all: no query counts it
              "clip"     numbers and dates go to the nearest end
              "other"    an extra cell, after the declared ones
              a value    the cell of that value
    missing   "drop", a value: the same; "missing": an extra cell, the last; "outside": treat it as outside

An extra cell satisfies no comparison. How raw values are compared is said in `value.py`.
"""

from bisect import bisect_right
from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from datetime import date, datetime
from fractions import Fraction
from functools import cached_property
from math import floor, isinf
from typing import Any

from discreet.errors import BadSchema
from discreet.values import Readable, Reading, plain, read_value

# Cells are counted in 32-bit integers, one for each row and column.
MOST_COLUMN_CELLS = 2**31 - 1

# Where a value is if it is in no declared cell; `fates` has one entry for each, at -1 - place.
BELOW, ABOVE, OUTSIDE, MISSING = -1, -2, -3, -4


class Cells:
    """A finite list of cells: `inside` declared ones, then the extra ones."""

    outside: Any
    missing: Any
    inside: int

    def locate(self, value: object) -> int:
        """The declared cell of a raw value, or BELOW, ABOVE, OUTSIDE or MISSING."""
        raise NotImplementedError

    def label(self, cell: int) -> str:
        """The text of one cell, for people."""
        return self._label(cell) if cell < self.inside else self.extra[cell - self.inside]

    def _label(self, cell: int) -> str:
        raise NotImplementedError

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The texts of all cells, for people."""
        return tuple(self.label(cell) for cell in range(self.size))

    @cached_property
    def cells_by_label(self) -> dict[str, int]:
        """The first cell that has each text."""
        return {label: cell for cell, label in reversed(list(enumerate(self.labels)))}

    @cached_property
    def extra(self) -> tuple[str, ...]:
        """The cells after the declared ones: "other", "missing", both or none."""
        # Where "other" is itself one of the values, the rule means that value and needs no further cell.
        other = self.outside == "other" and self.locate("other") < 0
        missing = self.missing == "missing" and self.locate("missing") < 0
        return ("other",) * other + ("missing",) * missing

    @cached_property
    def size(self) -> int:
        """How many cells there are, the extra ones included."""
        return self.inside + len(self.extra)

    @cached_property
    def fates(self) -> tuple[int | None, int | None, int | None, int | None]:
        """The cell of a value that is BELOW, ABOVE, OUTSIDE or MISSING; None drops the row."""
        low, high = (0, self.inside - 1) if self.outside == "clip" else (self._cell(self.outside),) * 2
        missing = low if self.missing == "outside" else self._cell(self.missing)
        return low, high, low, missing

    def _cell(self, rule: object) -> int | None:
        if isinstance(rule, str) and rule in self.extra:
            return self.inside + self.extra.index(rule)
        return None if rule == "drop" else self.locate(rule)

    @property
    def drops(self) -> bool:
        """Whether some value makes its row belong to no cell at all."""
        return None in self.fates

    def code(self, value: object) -> int | None:
        """The cell of a raw value, or None if its row is dropped. Never raises."""
        place = self.locate(value)
        return place if place >= 0 else self.fates[-1 - place]

    def check_rules(self, *, clips: bool) -> None:
        """Refuse rules that the column cannot follow."""
        allowed = {"outside": ["drop", "clip", "other"] if clips else ["drop", "other"]}
        allowed["missing"] = ["drop", "missing"] + ["outside"] * (self.outside != "clip")
        for name, words in allowed.items():
            rule = getattr(self, name)
            a_word, a_value = isinstance(rule, str) and rule in words, self.locate(rule) >= 0
            if not a_word and not a_value:
                listed = ", ".join(f'"{word}"' for word in words)
                raise BadSchema(f"{name} is {rule!r}; it must be {listed} or one of the column's values.")
            if a_word and a_value and rule in ("drop", "outside"):
                raise BadSchema(
                    f"{name} is {rule!r}, which is a rule and also one of the values. "
                    "Rename the value, or choose another rule."
                )


def in_given_order(name: str, values: Any) -> tuple[Any, ...]:
    """The values of a list, in its order."""
    # A set has an order that changes from run to run, and the letters of a text are not what was meant.
    if isinstance(values, (str, bytes, Set, dict)) or not isinstance(values, Iterable):
        raise BadSchema(
            f"{name} is a {type(values).__name__}; it must be a list or a tuple, whose order is the order of the cells."
        )
    return tuple(values)


def check_size(cells: int) -> None:
    """Refuse a column of more cells than rows are coded for."""
    if cells > MOST_COLUMN_CELLS - 2:
        raise BadSchema(f"the column has {cells} cells; the limit is {MOST_COLUMN_CELLS - 2}. Declare wider Bins.")


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
            raise BadSchema(
                f"lower is {self.lower} and upper is {self.upper}; lower must be at most upper. Exchange them."
            )
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
            raise BadSchema("starts is empty; there must be at least one bin. Give the first value of each.")
        readings = [read_value(edge) for edge in (*starts, upper)]
        for edge, (kind, number) in zip((*starts, upper), readings, strict=True):
            mixed = kind not in ("number", "date") or isinf(number) or kind != readings[0][0]
            if mixed or isinstance(edge, datetime):
                raise BadSchema(
                    f"the bins have an edge {edge!r}; edges must be all finite numbers or all dates. "
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


__all__ = ["Bins", "Boolean", "Categories", "Column", "Integers"]


@dataclass(frozen=True)
class Categories(Cells):
    """One cell for each listed value: booleans, numbers, texts or dates.

    Values that are not listed go to an extra cell "other", and missing ones with them, unless you say otherwise. That
    is the safest rule: no row is lost, so the counts of every column add up to one total, and no row is counted as
    something that it is not. `ordered` says that the order of the list means something, so that < and > can be asked.

    >>> sex = Categories(["Female", "Male"])
    >>> sex.code("Male"), sex.code("male"), sex.code(None), sex.labels
    (1, 2, 2, ('Female', 'Male', 'other'))
    >>> Categories(["Female", "Male"], outside="drop").code(None) is None
    True
    """

    values: tuple[Readable, ...] = field(compare=False)
    ordered: bool = False
    outside: Readable = field(default="other", compare=False)
    missing: Readable = field(default="outside", compare=False)
    # Python says True == 1; a column of booleans is not a column of numbers, so columns compare by what was read.
    readings: tuple[Reading, ...] = field(init=False, repr=False)
    inside: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        values = tuple(plain(value) for value in in_given_order("values", self.values))
        if not values:
            raise BadSchema("values is empty; a column has at least one value. List those that may occur.")
        readings = tuple(map(read_value, values))
        for value, reading in zip(values, readings, strict=True):
            infinite = reading[0] == "number" and isinf(reading[1])
            if infinite or reading[0] in ("missing", "unreadable") or isinstance(value, datetime):
                raise BadSchema(
                    f"values has {value!r}; a category is a boolean, a finite number, a text or a day. "
                    'For missing values say missing="missing".'
                )
        codes = {reading: cell for cell, reading in reversed(list(enumerate(readings)))}
        for cell, reading in enumerate(readings):
            if codes[reading] != cell:
                raise BadSchema(f"values has {values[cell]!r} twice; each value has one cell. Remove one.")
        check_size(len(values))
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "inside", len(values))
        if all(kind == "boolean" for kind, _ in readings):
            # Databases and files without booleans write 0 and 1.
            codes |= {("number", int(truth)): cell for (_, truth), cell in codes.items()}
        object.__setattr__(self, "_codes", codes)
        self.check_rules(clips=False)
        object.__setattr__(self, "readings", (*readings, read_value(self.outside), read_value(self.missing)))

    def locate(self, value: object) -> int:
        """The declared cell of a raw value, or OUTSIDE or MISSING."""
        reading = read_value(value)
        if reading[0] == "missing":
            return MISSING
        codes: dict[Reading, int] = self.__dict__["_codes"]
        return codes.get(reading, OUTSIDE)

    def _label(self, cell: int) -> str:
        # Among numbers and texts, 1 and "1" must have different labels.
        value = self.values[cell]
        return repr(value) if len(self.kinds) > 1 and isinstance(value, str) else str(value)

    @cached_property
    def kinds(self) -> frozenset[str]:
        """What kinds of values there are: "text", "number", "boolean", "date"."""
        return frozenset(kind for kind, _ in self.readings[: self.inside])


def Boolean(*, outside: Readable = False, missing: Readable = "outside") -> Categories:  # noqa: N802, a kind of column
    """A column of two cells, False and True; the numbers 0 and 1 are read as them.

    A value that is not true is False, and so is a missing one: True holds the rows that are known to be true. So there
    are two cells and no row is lost. With `missing="missing"`, rows without a value have a cell of their own.

    >>> Boolean().code(True), Boolean().code(None), Boolean(missing="missing").labels
    (1, 0, ('False', 'True', 'missing'))
    """
    return Categories((False, True), outside=outside, missing=missing)


Column = Categories | Integers | Bins

"""What a value may be: a column is a finite list of cells, and a rule for every value that fits none.

Data never decides whether an error is raised, so each column says beforehand where a value goes that is outside its
cells, and where a missing one goes (None, NaN, NaT, NA):

    outside   "drop"     the row does not belong to the table at all: no query sees it
              "clip"     numbers and dates go to the nearest end
              "other"    an extra cell, after the declared ones
              a value    the cell of that value
    missing   "drop", a value: the same; "missing": an extra cell, the last; "outside": treat it as outside

An extra cell satisfies no comparison. How raw values are compared is said in `value.py`.
"""

from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from math import isinf

from discreet.errors import BadSchema
from discreet.schema.cell import MISSING, OUTSIDE, Cells, check_size, in_given_order
from discreet.schema.interval import Bins, Integers
from discreet.schema.value import Readable, Reading, plain, read_value

__all__ = ["Bins", "Boolean", "Categories", "Column", "Integers"]


@dataclass(frozen=True)
class Categories(Cells):
    """One cell for each listed value: booleans, numbers, texts or dates.

    Values that are not listed go to an extra cell "other", and missing ones with them, unless you say otherwise. That
    is the safest rule: no row is lost, so the counts of every column add up to one total, and no row is passed off as
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
        # Among numbers and texts, 1 and "1" need to look different.
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

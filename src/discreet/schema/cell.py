"""What the columns share: extra cells, and the fate of a value that is in no declared cell."""

from collections.abc import Iterable, Set
from functools import cached_property
from typing import Any

from discreet.errors import BadSchema

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

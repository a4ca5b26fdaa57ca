"""The rows of an answer before HAVING, ORDER BY and LIMIT: what these look at, all of it released."""

from dataclasses import dataclass
from functools import reduce
from operator import eq, ge, gt, le, lt, ne
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BadQuery
from discreet.query.cells import mask_of
from discreet.query.predicate import And, Compare, Everyone, IsIn, IsMissing, Not, Or, Predicate
from discreet.schema.domain import Domain

_COMPARE = {"==": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}


@dataclass(frozen=True, slots=True)
class Output:
    """All rows of a table before any are chosen: the cell of each group column and the released numbers."""

    domain: Domain
    rows: int
    cells: dict[str, NDArray[np.intp]]
    numbers: dict[str, list[Any]]

    def keys(self, name: str, *, descending: bool) -> list[tuple[bool, Any]]:
        """What the rows are sorted by: first whether there is no value, so that these come last either way."""
        sign = -1 if descending else 1
        if name in self.numbers:
            return [(value is None, 0 if value is None else sign * value) for value in self.numbers[name]]
        inside = self.domain[name].inside
        return [(cell >= inside, cell if cell >= inside else sign * cell) for cell in self.cells[name].tolist()]

    def holds(self, having: Predicate) -> NDArray[np.bool_]:
        """Whether each row satisfies a predicate on the output."""
        match having:
            case Everyone():
                return np.ones(self.rows, dtype=np.bool_)
            case And(parts) | Or(parts):
                join = np.logical_and if isinstance(having, And) else np.logical_or
                return reduce(join, map(self.holds, parts))
            case Not(part):
                return ~self.holds(part)
            case Compare() | IsIn() | IsMissing() if having.column in self.cells:
                return mask_of(having, self.domain)[self.cells[having.column]]
            case Compare(name, operator, against) if name in self.numbers:
                compare = _COMPARE[operator]
                truths = [value is not None and compare(value, against) for value in self.numbers[name]]
                return np.array(truths, dtype=np.bool_)
            case IsIn(name, among) if name in self.numbers:
                return np.array([value in among for value in self.numbers[name]], dtype=np.bool_)
        raise BadQuery(f"{having!r} is about no column of the output. Name an aggregate or a group column.")

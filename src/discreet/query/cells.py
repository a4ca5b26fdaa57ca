"""Which cells a predicate means: reading it against a domain.

An atom becomes a mask over the cells of its column. It is exact or refused: a comparison that cuts through a bin has no
answer in the table's cells, so the message names the nearest edges that have one.
"""

from bisect import bisect_right
from math import ceil, floor
from typing import Any

import numpy as np

from discreet.errors import BadQuery, TooLarge, did_you_mean
from discreet.query.predicate import Atom, Compare, IsIn, IsMissing
from discreet.schema.column import Bins, Categories, Column, Integers
from discreet.schema.domain import Domain
from discreet.schema.value import read_value
from discreet.types import Bools

# A query keeps one weight for each cell of a column that it names.
MOST_COLUMN_WEIGHTS = 2**22


def mask_of(atom: Atom, domain: Domain) -> Bools:
    """The cells of the atom's column that satisfy it; the extra cells satisfy no comparison but = with their label.

    >>> from discreet.query.predicate import col
    >>> mask_of(col("age") >= 65, Domain({"age": Bins([17, 25, 65], upper=90)}))
    array([False, False,  True, False])
    """
    name, column = atom.column, column_of(domain, atom.column)
    mask = np.zeros(column.size, dtype=np.bool_)
    match atom:
        case IsMissing():
            if "missing" not in column.extra:
                raise BadQuery(
                    f'column "{name}" keeps no cell for missing values (missing={column.missing!r}). '
                    'Leave this condition out; the owner can declare it with missing="missing".'
                )
            mask[-1] = True
        case IsIn(_, values):
            for value in values:
                mask[_cell(name, column, value)] = True
        case Compare(_, "==", value):
            mask[_cell(name, column, value)] = True
        case Compare(_, "!=", value):
            mask[: column.inside] = True
            mask[_cell(name, column, value)] = False
        case Compare(_, operator, value):
            edge = _edge(name, column, operator, value)
            mask[slice(0, edge) if operator in ("<", "<=") else slice(edge, column.inside)] = True
    return mask


def column_of(domain: Domain, name: str) -> Column:
    """The column, if a query can hold a weight for each of its cells."""
    column = domain[name]
    if column.size > MOST_COLUMN_WEIGHTS:
        raise TooLarge(
            f'column "{name}" has {column.size} cells; a query has at most {MOST_COLUMN_WEIGHTS} weights on a column. '
            "Ask about another column; the owner can declare this one with Bins."
        )
    return column


def _cell(name: str, column: Column, value: Any) -> int:
    """The one cell that a value or a label means: answers show "25 to 64" and "other", so these can be asked for."""
    if not isinstance(value, str) or column.locate(value) >= 0:
        return _equal(name, column, value)
    if value in column.extra:
        return column.inside + column.extra.index(value)
    if not isinstance(column, Bins):
        return _equal(name, column, value)
    cell = column.cells_by_label.get(value)
    if cell is None:
        raise BadQuery(f'column "{name}" has no bin {_shown(value)}; {did_you_mean(value, column.labels)}')
    return cell


def _equal(name: str, column: Column, value: Any) -> int:
    """The one cell that holds this value and no other."""
    number, cell = _comparable(name, column, value), column.locate(value)
    if cell >= 0 and isinstance(column, Bins) and _ends(column, cell) != (number, number):
        raise BadQuery(
            f'column "{name}" keeps {column.label(cell)} together, so {_shown(value)} alone cannot be asked. '
            f"Ask for the whole bin ('{column.label(cell)}')."
        )
    if cell >= 0 and (not isinstance(column, Integers) or number == column.lower + cell):
        return cell
    if isinstance(column, Categories):
        rule = did_you_mean(str(value), map(str, column.values))
    else:
        rule = f"it runs from {column.label(0)} to {column.label(column.inside - 1)}."
    raise BadQuery(f'column "{name}" has no value {_shown(value)}; {rule}')


def _edge(name: str, column: Column, operator: str, value: Any) -> int:
    """How many declared cells lie before the cut, which is before `value` for < and >=, after it for <= and >."""
    after = operator in ("<=", ">")
    if isinstance(column, Categories):
        if not column.ordered:
            raise BadQuery(
                f'column "{name}" has categories without an order, so {operator} cannot be asked. Use == or '
                "isin(); the owner can declare it with ordered=True."
            )
        return _equal(name, column, value) + after
    number = _comparable(name, column, value)
    if isinstance(column, Integers) or column.whole:
        # Among integers, after 64 and before 65 is the same cut.
        number, after = (floor(number) + 1 if after else ceil(number)), False
    if isinstance(column, Integers):
        return int(min(max(number - column.lower, 0), column.inside))
    return _bin_edge(name, column, number, after, value)


def _bin_edge(name: str, column: Bins, number: Any, after: bool, value: Any) -> int:
    cell = bisect_right(column.edges, number)
    if cell == 0 or (cell == 1 and number == column.edges[0] and not after):
        return 0
    if number > column.top or (number == column.top and after):
        return column.inside
    if number == column.edges[cell - 1] and not after:
        return cell - 1
    low, high = column.starts[cell - 1], column.starts[cell] if cell < column.inside else column.upper
    raise BadQuery(
        f'column "{name}" is kept in bins, and {_shown(value)} cuts through {column.label(cell - 1)}. '
        f"Ask at one of the nearest edges, {low} or {high}."
    )


def _ends(column: Bins, cell: int) -> tuple[Any, Any]:
    if cell == column.inside - 1:
        return column.edges[cell], column.top
    return column.edges[cell], column.edges[cell + 1] - (1 if column.whole else 0)


def _comparable(name: str, column: Column, value: Any) -> Any:
    kind, number = read_value(value)
    # Categories may be of any kind; integers and bins are of one.
    wanted = kind if isinstance(column, Categories) else getattr(column, "kind", "number")
    if kind != wanted:
        raise BadQuery(
            f'column "{name}" holds {wanted}s; it was compared with the {kind} {_shown(value)}. '
            f"Compare it with a {wanted}."
        )
    return number


def _shown(value: Any) -> str:
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else f"{text[:60]}…"

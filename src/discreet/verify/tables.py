"""All tables of a small domain, and all pairs of neighbours among them."""

from collections.abc import Iterator
from itertools import product

from discreet.parameter import whole
from discreet.schema.unit import Unit

# How many rows each cell has. Rows have no order, so this is the table.
Table = tuple[int, ...]


def tables(cells: int, rows: int) -> list[Table]:
    """Every table over so many cells with at most so many rows.

    >>> tables(2, 2)
    [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (2, 0)]
    """
    whole("cells", cells, least=1)
    whole("rows", rows, least=0)
    return [counts for counts in product(range(rows + 1), repeat=cells) if sum(counts) <= rows]


def are_neighbors(one: Table, other: Table, unit: Unit, *, droppable: bool = False) -> bool:
    """Whether one person can make the difference. A `droppable` row may be exchanged for one that no cell counts.

    >>> are_neighbors((1, 0), (0, 1), Unit()), are_neighbors((1, 0), (0, 1), Unit(neighbors="replace_one"))
    (False, True)
    """
    gained = sum(max(b - a, 0) for a, b in zip(one, other, strict=True))
    lost = sum(max(a - b, 0) for a, b in zip(one, other, strict=True))
    if one == other:
        return False
    if unit.neighbors == "add_remove":
        return min(gained, lost) == 0 and max(gained, lost) <= unit.contributions
    if unit.key is None:
        return max(gained, lost) == 1 if droppable else gained == lost == 1
    # A person may be exchanged for one with fewer rows, or with none.
    return max(gained, lost) <= unit.contributions


def neighboring_tables(cells: int, rows: int, unit: Unit, *, droppable: bool = False) -> Iterator[tuple[Table, Table]]:
    """Every pair of neighbours among `tables(cells, rows)`, once.

    >>> len(list(neighboring_tables(2, 2, Unit())))
    6
    """
    every = tables(cells, rows)
    for place, one in enumerate(every):
        for other in every[place + 1 :]:
            if are_neighbors(one, other, unit, droppable=droppable):
                yield one, other


def neighboring_rows(categories: int, rows: int) -> Iterator[tuple[Table, Table]]:
    """Every pair of lists of so many categories, one for each row, that differ in one row: for the local model.

    >>> list(neighboring_rows(2, 1))
    [((0,), (1,))]
    """
    for one in product(range(categories), repeat=rows):
        for place in range(rows):
            for value in range(one[place] + 1, categories):
                yield one, (*one[:place], value, *one[place + 1 :])

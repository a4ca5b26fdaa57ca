"""What a release is of: a table, and a list of queries."""

from collections.abc import Sequence

from discreet.errors import BadParameter, BadQuery
from discreet.query.linear import Linear
from discreet.query.workload import Workload
from discreet.source.table import Table


def require_table(table: Table) -> None:
    """Raise if it is something else."""
    if not isinstance(table, Table):
        raise BadParameter(f"table is a {type(table).__name__}; it must be a Table. Open one: dp.open('people.yaml').")


def listed(queries: "Sequence[Linear] | Workload[Linear]") -> list[Linear]:
    """The queries as a list.

    >>> listed(["age >= 65"])
    Traceback (most recent call last):
    discreet.errors.BadQuery: queries lists str; it must list queries, at least one. Give ...
    """
    several = isinstance(queries, Sequence | Workload) and not isinstance(queries, str)
    found = [each for each in queries if isinstance(each, Linear)] if several else []
    if not found or any(not isinstance(each, Linear) for each in queries):
        kinds = sorted({type(each).__name__ for each in queries}) if several else []
        what = f"lists {', '.join(kinds)}" if kinds else "is empty" if several else f"is a {type(queries).__name__}"
        raise BadQuery(
            f"queries {what}; it must list queries, at least one. Give [dp.query.count(table.domain, "
            'dp.col("age") >= 65)], or a workload: dp.monotone_conjunctions(table.domain).'
        )
    return found

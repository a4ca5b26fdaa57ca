"""Whether a statement makes sense for a table: what could fail after paying is refused before.

SQL, JSON and Python all come through `check`. A statement that passes can be laid out from any released numbers: names,
types and operators of HAVING, ORDER BY and LIMIT are looked at one by one, and then tried on numbers of every kind.
"""

from collections.abc import Iterator
from typing import Any, get_args

import numpy as np

from discreet.errors import BadQuery, DiscreetError, TooLarge, did_you_mean
from discreet.query.normal import readable, shortened
from discreet.query.output import Output
from discreet.query.predicate import And, Compare, Everyone, IsIn, IsMissing, Not, Operator, Or, Predicate
from discreet.query.statement import Aggregate, AggregateKind, Group, Select
from discreet.schema.domain import Domain

# What follows an aggregate's name in the name of the column of its errors.
ERROR_SUFFIX = "_error"
# A released number may be any of these; None is one that is not there.
_NUMBERS = (None, 0.0, -1.5, 7.0, 1e300, float("inf"))
# No name of an output column is longer.
LONGEST_OUTPUT_NAME = 1000
# No answer has more rows. Where several columns or questions are asked at once, there are no more numbers together.
MOST_ANSWER_ROWS, MOST_ANSWER_NUMBERS = 2**20, 2**18
_OPERATORS = get_args(Operator)


def check_statement(select: Select, domain: Domain) -> None:
    """Raise BadQuery unless the statement can be answered and laid out, whatever is released for it.

    >>> from discreet.query.statement import Order
    >>> from discreet.schema.column import Boolean
    >>> people = Domain({"smoker": Boolean()})
    >>> check_statement(Select("people", (Aggregate("count", None, "n"),), order=(Order("m"),)), people)
    Traceback (most recent call last):
    discreet.errors.BadQuery: ORDER BY names "m", which is no column of the output; did you mean "n"?
    """
    numbers = _numbers(select)
    _check_groups(select, domain)
    _check_names(select)
    for order in select.order:
        _require(order.name, numbers, select.group, "ORDER BY")
        if not isinstance(order.descending, bool):
            raise BadQuery(f"descending is {shortened(order.descending)}; it must be true or false.")
    for atom in _atoms(select.having):
        _check_atom(atom, numbers, select.group)
    limit = select.limit
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or not 0 <= limit <= 2**63):
        raise BadQuery(f"limit is {shortened(limit)}; it must be a whole number of at least 0. Write LIMIT 10.")
    _try(select, domain, numbers)


def require_numbers(numbers: int, most: int) -> None:
    """Refuse an answer, or a batch of answers, with more numbers than one reply may have.

    >>> require_numbers(2**21, MOST_ANSWER_ROWS)
    Traceback (most recent call last):
    discreet.errors.TooLarge: the answer would have 2,097,152 numbers; the limit is 1,048,576. Ask for fewer at once.
    """
    if numbers > most:
        raise TooLarge(f"the answer would have {numbers:,} numbers; the limit is {most:,}. Ask for fewer at once.")


def _numbers(select: Select) -> list[str]:
    """The names of the aggregates; there must be at least one."""
    found = []
    for item in select.items:
        match item:
            case Group(str(), str(name)) if name:
                continue
            case Aggregate("count", None, str(name)) | Aggregate("count" | "sum" | "avg", str(), str(name)) if name:
                found.append(name)
            case Aggregate():
                kinds = " or ".join(get_args(AggregateKind))
                raise BadQuery(
                    f"{shortened(item)} cannot be asked; an aggregate is a {kinds}, with a column and a name."
                )
            case _:
                raise BadQuery(f"{shortened(item)} cannot be selected; give a Group or an Aggregate, each with a name.")
    if not found:
        raise BadQuery("the statement asks for no number. Add a count, a sum or an average.")
    return found


def _check_groups(select: Select, domain: Domain) -> None:
    cells = 1
    for name in select.group:
        cells *= domain[name].size
    if len(set(select.group)) < len(select.group):
        raise BadQuery(f"GROUP BY names a column twice: {', '.join(select.group)}. Name it once.")
    if cells > MOST_ANSWER_ROWS:
        raise TooLarge(f"GROUP BY makes {cells:,} groups; the limit is {MOST_ANSWER_ROWS:,}. Group by fewer columns.")
    # Each group column may be shown once besides.
    shown = len(select.aggregates) + max(0, len(select.items) - len(select.aggregates) - len(select.group))
    if shown > 1 and cells * shown > MOST_ANSWER_NUMBERS:
        raise TooLarge(
            f"{cells:,} groups with {shown} columns have {cells * shown:,} numbers; the limit is "
            f"{MOST_ANSWER_NUMBERS:,}. Select fewer columns at once, or group by fewer."
        )
    for item in select.items:
        if isinstance(item, Group) and item.column not in select.group:
            raise BadQuery(f'column "{item.column[:60]}" is selected and is no group column. Add it to GROUP BY.')


def _check_names(select: Select) -> None:
    """Every output column has a name of its own, also among the errors' names and where case is ignored."""
    seen: dict[str, tuple[str, bool]] = {}
    for item in select.items:
        if len(readable(item.name, "an output column's name")) > LONGEST_OUTPUT_NAME:
            raise BadQuery(
                f"an output column's name has {len(item.name):,} letters; the limit is {LONGEST_OUTPUT_NAME:,}."
            )
        own = isinstance(item, Group) and item.column == item.name
        if not own and item.name in select.group:
            raise BadQuery(f'an output column is named "{item.name[:60]}" as a group column is. Name it with AS.')
        for name in [item.name, item.name + ERROR_SUFFIX] if isinstance(item, Aggregate) else [item.name]:
            other, also_own = seen.setdefault(name.casefold(), ("", own))
            # A table may have two columns whose names differ only in case: both can be shown.
            if other == name or (other and not (own and also_own)):
                raise BadQuery(
                    f'two output columns are named "{other[:60]}" and "{name[:60]}"; the error of a number is named '
                    f'like it, with "{ERROR_SUFFIX}". Name one of them otherwise with AS.'
                )
            seen[name.casefold()] = name, own


def _require(name: Any, numbers: list[str], group: tuple[str, ...], clause: str) -> None:
    if name not in numbers and name not in group:
        known = [*numbers, *group]
        raise BadQuery(
            f'{clause} names "{str(name)[:60]}", which is no column of the output; {did_you_mean(str(name), known)}'
        )


def _atoms(having: Predicate) -> Iterator[Compare | IsIn | IsMissing]:
    match having:
        case Everyone():
            return
        case And(parts) | Or(parts) if parts:
            for part in parts:
                yield from _atoms(part)
        case Not(part):
            yield from _atoms(part)
        case Compare() | IsIn() | IsMissing():
            yield having
        case _:
            raise BadQuery(f"{shortened(having)} is no condition on the output. Compare an aggregate with a number.")


def _check_atom(atom: Compare | IsIn | IsMissing, numbers: list[str], group: tuple[str, ...]) -> None:
    _require(atom.column, numbers, group, "HAVING")
    if isinstance(atom, Compare) and atom.operator not in _OPERATORS:
        raise BadQuery(f"{shortened(atom.operator)} is no comparison; {did_you_mean(str(atom.operator), _OPERATORS)}")
    if atom.column in group:
        return
    if isinstance(atom, IsMissing):
        raise BadQuery(f'"{atom.column}" is a released number and is never missing. Compare it with a number.')
    for kind, _ in [atom.reading] if isinstance(atom, Compare) else atom.readings:
        if kind != "number":
            raise BadQuery(f'"{atom.column}" is a released number; it was compared with a {kind}. Give a number.')


def _try(select: Select, domain: Domain, numbers: list[str]) -> None:
    """Choose and sort rows of made-up numbers: whatever is wrong is wrong with these too."""
    rows = len(_NUMBERS)
    cells = {name: np.zeros(rows, dtype=np.intp) for name in select.group}
    output = Output(domain, rows, cells, {name: list(_NUMBERS) for name in numbers})
    try:
        output.holds(select.having)
        for order in select.order:
            sorted(output.keys(order.name, descending=order.descending))
    except DiscreetError:
        raise
    except Exception as error:
        raise BadQuery(
            f"HAVING or ORDER BY cannot be computed ({type(error).__name__}). Compare names of the output with numbers."
        ) from None

"""A workload as residuals: the energy of its queries in each, by which the residual's noise enters their variance.

The variance of an answer is Σ over its residuals of energy/precision (estimate/lattice.md, Theorem 1); here the
energies of many answers are summed, in one row for each marginal or query. Proofs: allocate.md
"""

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np

from discreet.cache import memoize
from discreet.errors import BadParameter, BadQuery, TooLarge
from discreet.estimate.residual_lattice import inside, subsets
from discreet.estimate.separable import energies_of, family_of
from discreet.estimate.transform import read
from discreet.query.linear import Linear
from discreet.query.product import column_of
from discreet.query.residual import Axis, axes_of, axis_of
from discreet.query.workload import Workload
from discreet.release.task import Goal, ResidualWorkload
from discreet.schema.column import Column
from discreet.schema.domain import Domain
from discreet.source.table import Table
from discreet.types import Columns, Ints, Numbers


def require_table(table: Table) -> None:
    """Raise if it is not a Table."""
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


# Questions that are listed, numbers in a table of energies, and cells of a column whose every two cells are compared.
MOST_LISTED_QUESTIONS, MOST_ENERGIES, MOST_COMPARED = 2**17, 2**24, 1_500
# Numbers of one chunk of work.
_AT_ONCE = 2**21


def asked_marginals(goal: Goal) -> ResidualWorkload:
    """The cells of all marginals of a goal, a row for each marginal.

    A residual that is constant on a column spreads evenly over its n cells: the squares of n means of 1/n sum to 1/n.

    >>> from discreet.release.task import goal_of
    >>> from discreet.schema.column import Boolean
    >>> people = Domain({"old": Boolean(), "ill": Boolean()})
    >>> asked = asked_marginals(goal_of([["old", "ill"]], people))
    >>> asked.split(asked.demand(asked.weights))
    {(): array(0.25), ('ill',): array([0.5]), ('old',): array([0.5]), ('ill', 'old'): array([[1.]])}
    """
    tables = [
        (scope, weight, np.array([float(goal.cells(scope))]), _outer([traces(axis) for axis in axes])[None])
        for scope, weight in goal.weights
        for axes in [axes_of(goal.domain, scope)]
    ]
    return _gather(goal.domain, tables)


def asked_questions(
    questions: "Sequence[Linear] | Workload[Linear]",
    domain: Domain,
    *,
    weights: "Sequence[float] | None" = None,
    apart: bool = False,
) -> ResidualWorkload:
    """A list of questions, each with a weight (equal, if none are given; they are scaled to add up to 1).

    Questions on the same columns share a row; with `apart` each has a row of its own, as the `l1` norm needs.
    """
    if isinstance(questions, Workload) and questions.size > MOST_LISTED_QUESTIONS:
        raise TooLarge(
            f"the workload has {questions.size} questions; up to {MOST_LISTED_QUESTIONS} are listed. Ask for "
            "marginals, or for all ranges, prefixes or subsets of one column by name (asked_ranges, asked_prefixes, "
            "asked_subsets)."
        )
    asked = listed(questions)
    worth = np.ones(len(asked)) if weights is None else np.array(weights, dtype=np.float64)
    if worth.shape != (len(asked),) or not np.all(worth >= 0) or not 0 < worth.sum() < np.inf:
        raise BadParameter(
            f"weights has {worth.size} numbers for {len(asked)} questions; there must be one for each, none below 0 "
            "and at least one above. Leave weights out for equal ones."
        )
    worth = worth / worth.sum()
    scopes: dict[Columns, list[int]] = {}
    for place, question in enumerate(asked):
        scopes.setdefault(question.scope, []).append(place)
    tables = [
        table
        for scope, members in sorted(scopes.items())
        for table in _tables(scope, [asked[place] for place in members], worth[members], domain, apart)
    ]
    return _gather(domain, tables)


def asked_ranges(domain: Domain, column: str) -> ResidualWorkload:
    """All ranges of the declared cells of a column, with equal weights, as one row: nothing is listed."""
    cells = np.arange(_compared(domain, column).inside)
    both = np.minimum.outer(cells, cells) + 1.0, len(cells) - np.maximum.outer(cells, cells)
    return _asked_of_column(domain, column, both[0] * both[1], len(cells) * (len(cells) + 1) / 2)


def asked_prefixes(domain: Domain, column: str) -> ResidualWorkload:
    """All prefixes of the declared cells of a column, with equal weights, as one row: nothing is listed."""
    cells = np.arange(_compared(domain, column).inside)
    return _asked_of_column(domain, column, len(cells) - np.maximum.outer(cells, cells) + 0.0, float(len(cells)))


def asked_subsets(domain: Domain, column: str) -> ResidualWorkload:
    """All subsets of the cells of a column, with equal weights, as one row: a quarter of them has two given cells.

    Counted as one answer, the mean of all 2^n.
    """
    cells = _compared(domain, column).size
    return _asked_of_column(domain, column, (1 + np.eye(cells)) / 4, 1.0)


@memoize(4096)
def traces(axis: Axis) -> Numbers:
    """The energies of the indicators of all cells of a column, added up: for its constants and each of its parts.

    1/n, and (n‖column of M‖² − ‖M 1‖²/n)/gain: without padding, the dimension of the part.

    where n is the number of cells and M the measuring matrix of the part.

    >>> from discreet.query.residual import axis_of_size
    >>> traces(axis_of_size(5, ordered=False)).tolist(), traces(axis_of_size(8, ordered=True)).tolist()
    ([0.2, 4.0], [0.125, 1.0, 2.0, 4.0])
    """
    found = [1 / axis.cells]
    whole = np.ones(axis.cells, dtype=np.int64)
    for part in range(1, axis.parts):
        edge = float((axis.apply(part, whole, 0).astype(np.float64) ** 2).sum()) / axis.cells
        found.append((axis.cells * axis.squared_norm(part) - edge) / axis.gain(part))
    return np.array(found)


def _compared(domain: Domain, name: str) -> Column:
    """The column, if a table of every two of its cells can be held."""
    column = column_of(domain, name)
    if column.size > MOST_COMPARED:
        raise TooLarge(
            f'column "{name}" has {column.size} cells; the limit for ranges, prefixes and subsets is {MOST_COMPARED}. '
            "Ask for its marginal, or for a column with fewer cells."
        )
    return column


def _asked_of_column(domain: Domain, column: str, overlaps: Numbers, answers: float) -> ResidualWorkload:
    """Questions on one column by Σ over them of weight(x)·weight(y), for every two cells x and y that they name."""
    axis, named = axis_of(domain[column]), len(overlaps)
    table = np.zeros((axis.cells, axis.cells))
    table[:named, :named] = overlaps
    energies = [float(table.mean())]
    # f − f̄ for every question at once: the mean is taken off along both axes.
    centred = table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean()
    for part in range(1, axis.parts):
        measured = axis.apply(part, axis.apply(part, centred, 0), 1)
        energies.append(float(np.trace(measured)) / axis.gain(part))
    return _gather(domain, [((column,), 1 / answers, np.array([answers]), np.array([energies]))])


EnergyTable = tuple[Columns, "float | Numbers", Numbers, Numbers]


def _tables(
    scope: Columns, questions: list[Linear], worth: Numbers, domain: Domain, apart: bool
) -> Iterator[EnergyTable]:
    """The energies of questions on the same columns, for a row of all or a row of each; few at a time."""
    width = prod(axis.parts for axis in axes_of(domain, scope))
    widest = max([width, *(domain[name].size for name in scope)])
    several = max(1, _AT_ONCE // widest)
    whole = np.zeros(width)
    for start in range(0, len(questions), several):
        chunk, weights = questions[start : start + several], worth[start : start + several]
        energies = _energies(scope, chunk, domain)
        if apart:
            yield scope, weights, np.ones(len(chunk)), energies
        else:
            whole += weights @ energies
    if not apart:
        # The weights are in the energies, and scaled so that the row has the weight and the number of its questions.
        share = float(worth.sum())
        if share > 0:
            count = float(len(questions))
            yield scope, share / count, np.array([count]), whole[None] * count / share


def _energies(scope: Columns, questions: Sequence[Linear], domain: Domain) -> Numbers:
    """The energies of each question (rows) in each residual of its columns."""
    axes = axes_of(domain, scope)
    # A question without products weighs nothing.
    found = np.zeros((len(questions), prod(axis.parts for axis in axes)))
    simple = [place for place, question in enumerate(questions) if _is_one_product(question)]
    if simple:
        products = [questions[place].products[0] for place in simple]
        rows = np.array([[float(each.coefficient) ** 2] for each in products])
        factors = [{factor.columns[0]: factor for factor in each.factors} for each in products]
        for name, axis in zip(scope, axes, strict=True):
            weights = np.array([by_name[name].weights for by_name in factors], dtype=np.float64)
            each_part = read(axis, weights).energies
            rows = (rows[:, :, None] * each_part[:, None, :]).reshape(len(rows), -1)
        found[simple] = rows
    for place, question in enumerate(questions):
        if question.products and not _is_one_product(question):
            family = family_of(question, domain)
            if family is None:
                raise TooLarge(
                    f"{question!r} is a sum of too many products for the lattice. Ask for simpler questions."
                )
            found[place] = energies_of(family).ravel()
    return found


def _is_one_product(question: Linear) -> bool:
    """Whether it is a product of weights of one column each: then many are read at once."""
    return len(question.products) == 1 and all(len(each.columns) == 1 for each in question.products[0].factors)


def _gather(domain: Domain, tables: Sequence[EnergyTable]) -> ResidualWorkload:
    """Rows of energies of all residuals of some columns, as one table of all residuals."""
    if sum(energies.size for *_, energies in tables) > MOST_ENERGIES:
        raise TooLarge(
            f"the questions have more than {MOST_ENERGIES} energies; their variances cannot be held one by one. "
            "Ask for fewer columns at a time, or for the l2 norm."
        )
    blocks = {chosen for scope in {scope for scope, *_ in tables} for chosen in subsets(scope)}
    starts, size = {}, 0
    for columns in sorted(blocks, key=lambda each: (len(each), each)):
        starts[columns] = size
        size += prod(_shape(axes_of(domain, columns)))
    rows, places, energies, first = [], [], [], 0
    for scope, _, _, table in tables:
        here = _places(domain, scope, starts)
        row, column = np.nonzero(table)
        rows.append(row + first)
        places.append(here[column])
        energies.append(table[row, column])
        first += len(table)
    weights = [np.broadcast_to(np.asarray(weight, dtype=np.float64), len(table)) for _, weight, _, table in tables]
    return ResidualWorkload(
        domain,
        starts,
        size,
        np.concatenate(weights),
        np.concatenate([answers for _, _, answers, _ in tables]),
        np.concatenate(rows).astype(np.int64),
        np.concatenate(places),
        np.concatenate(energies),
    )


def _places(domain: Domain, scope: Columns, starts: dict[Columns, int]) -> Ints:
    """The place of each residual of some columns, constants included, among all residuals."""
    block, within = _layout(tuple([axis.parts for axis in axes_of(domain, scope)]))
    found: Ints = np.array([starts[chosen] for chosen in subsets(scope)])[block] + within
    return found


@memoize(4096)
def _layout(parts: tuple[int, ...]) -> tuple[Ints, Ints]:
    """For each residual of columns with these numbers of parts, constants included: its block, and its place there."""
    names = tuple(str(place) for place in range(len(parts)))
    block, within = np.empty(parts, dtype=np.int64), np.empty(parts, dtype=np.int64)
    for number, chosen in enumerate(subsets(names)):
        shape = tuple(parts[int(name)] - 1 for name in chosen)
        block[inside(names, chosen)] = number
        within[inside(names, chosen)] = np.arange(prod(shape)).reshape(shape)
    return block.ravel(), within.ravel()


def _shape(axes: Sequence[Axis]) -> tuple[int, ...]:
    return tuple(axis.parts - 1 for axis in axes)


def _outer(vectors: Sequence[Numbers]) -> Numbers:
    """Products of an entry of each vector, flat, the last varying fastest."""
    found = np.ones(1)
    for vector in vectors:
        found = np.multiply.outer(found, vector).ravel()
    return found

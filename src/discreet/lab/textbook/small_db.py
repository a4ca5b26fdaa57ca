"""SmallDB as users call it: a synthetic table of a few rows that answers a list of queries like the true one.

The queries are counts, or the cells of a workload's marginals one by one. The exponential mechanism chooses the table,
so that good ones are likely.
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import product as every
from math import ceil, comb, hypot, inf, log, prod, sqrt
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.errors import BadParameter, TooLarge
from discreet.estimate.estimator import Estimator
from discreet.lab.textbook.batch import Plain, pay_and_release, public_total
from discreet.ledger import Ledger
from discreet.ledger.ledger import ANYONE
from discreet.mechanism.smalldb import MOST_MULTISETS
from discreet.model.interface import Model, total_of
from discreet.model.mixture.ensemble import Tell
from discreet.model.rows import Rows
from discreet.numeric import Number, positive, probability, whole
from discreet.plan.plan import Procedure, SmallTable
from discreet.query.linear import Linear
from discreet.query.product import Factor, Product
from discreet.query.workload import Workload
from discreet.release.budget_allocation import measure_row_count
from discreet.release.error.interactions import INTERACTION, guessed, sampled, scatter
from discreet.release.forecast import FORECAST, impossible
from discreet.release.methods.residual_workload import listed, require_table
from discreet.release.small_table import MOST_ASKED_IMBALANCES, MOST_HELD_WEIGHTS, choosing, require_held
from discreet.release.task import Brief, Forecast, Goal
from discreet.schema.domain import Domain
from discreet.source.table import Table


def number_of_cells(goal: Goal) -> int:
    """The number of counts."""
    return sum(goal.cells(scope) for scope in goal.scopes)


def cells_of_goal(goal: Goal) -> tuple[Linear, ...]:
    """A count for each cell of each marginal, marginal after marginal, the last column varying fastest.

    >>> from discreet.release.task import goal_of
    >>> from discreet.schema.column import Boolean
    >>> from discreet.schema.domain import Domain
    >>> people = Domain({"old": Boolean(), "ill": Boolean()})
    >>> [count.table(people).tolist() for count in cells_of_goal(goal_of([["old"]], people))]
    [[1, 0], [0, 1]]
    """
    ones = {
        name: [Factor((name,), row) for row in np.eye(goal.domain[name].size, dtype=np.int64)]
        for name in sorted({name for scope in goal.scopes for name in scope})
    }
    return tuple(
        Linear([Product(factors)]) for scope in goal.scopes for factors in every(*(ones[name] for name in scope))
    )


Notes = Literal["001", "003"]


def small_db(
    table: Table,
    queries: "Sequence[Linear] | Workload[Linear]",
    *,
    epsilon: Number,
    rows: int | None = None,
    alpha: Number | None = None,
    total: int | None = None,
    ledger: Ledger | None = None,
    analyst: str = ANYONE,
    key: str | None = None,
) -> Rows:
    """Choose, of all tables of m rows, one that answers every query nearly as the true table does: epsilon-DP.

    Each multiset y of m rows is chosen with probability ∝ exp(−e n·max_q |q(D)/n − q(y)/m|/2), exactly, if the queries
    are counts and each row is a person. Give m as `rows`, or the error `alpha` of a fraction for which the sampling
    lemma says that m rows are enough (`sample_size`). Every row of the answer represents n/m rows, where n is the
    number of rows if it is public, or the `total` that you give, say a released count; otherwise one row.

    It needs time exponential in m: a request that would take more than some minutes is refused, with the number of
    tables and the time, before anything is paid or read.

    >>> import discreet as dp
    >>> people = dp.open({"old": [False, True, True] * 20}, domain=dp.Domain({"old": dp.Boolean()}))
    >>> rows = small_db(people, [dp.query.count(people.domain, dp.col("old") == True)], epsilon=20, rows=3, total=60)
    >>> rows.total, sorted(rows.codes["old"].tolist())
    (60.0, [0, 1, 1])

    [BLR08; 001 Alg. 5; 003 Thm. 5]; proof: mechanism/smalldb.md
    """
    asked = _read_queries(queries, table)
    few = _read_rows(rows, alpha, len(asked))
    known = None if total is None else whole("total", total, least=1)
    choose, imbalances = choosing(asked, table.domain, table.unit, epsilon=epsilon, rows=few)

    def release() -> Plain:
        # A public number costs nothing, but it is read from the table all the same.
        many = public_total(table) if known is None else known
        return {"cells": list(choose.release(table.evaluate(imbalances))), "total": many}

    why = f"a table of {few} rows for {len(asked)} queries (SmallDB)"
    plain = pay_and_release(ledger, choose.event, why, release, table=table, asked=asked, analyst=analyst, key=key)
    return rows_of(table.domain, plain["cells"], scale=1.0 if plain["total"] is None else plain["total"] / few)


def rows_of(domain: Domain, cells: "Sequence[int] | NDArray[np.int64]", *, scale: float) -> Rows:
    """The rows that were chosen, from their cells: the columns sorted, the last one varying fastest."""
    names = sorted(domain)
    codes = np.unravel_index(np.asarray(cells, dtype=np.int64), [domain[name].size for name in names])
    return Rows(domain, dict(zip(names, codes, strict=True)), scale=scale)


def sample_size(queries: int, alpha: Number, *, notes: Notes = "001") -> int:
    """The number of rows of a sample that answers this many queries within `alpha` of the truth, as fractions.

    The lectures' two constants: ln k/a² (001; with k > 2 such a sample exists) and 8 ln k/a² (003, Lemma 3). BLR's
    range is the second one at a/2, 32 ln k/a².

    where k is `queries` and a is `alpha`.

    >>> sample_size(1000, 0.1), sample_size(1000, 0.1, notes="003"), sample_size(1000, 0.05, notes="003")
    (691, 5527, 22105)
    """
    if notes not in ("001", "003"):
        raise BadParameter(f'notes is {notes!r}; it must be "001" or "003". Leave it out for the smaller number.')
    factor = 1 if notes == "001" else 8
    wanted = float(probability("alpha", alpha, next_step="Give the error of a fraction, say 0.1."))
    return max(1, ceil(factor * log(whole("queries", queries, least=1)) / wanted**2))


def promised_error(*, queries: int, cells: int, rows: int, epsilon: Number, beta: Number) -> float:
    """The error of a fraction that BLR's theorem promises for all counts together, with probability 1 − beta.

    It is (256 ln k ln N/(e n))^(1/3) + 8 ln(1/β)/(e n), for tables of 32 ln k/a² rows, a being that error.

    where k is `queries`, N is `cells`, n is `rows`, e is `epsilon` and β is `beta`.

    >>> round(promised_error(queries=3, cells=3, rows=10**4, epsilon=1, beta=0.05), 3)
    0.316

    [003, Thm. 5]; proof: mechanism/smalldb.md
    """
    loss = float(positive("epsilon", epsilon)) * whole("rows", rows, least=1)
    logs = log(whole("queries", queries, least=1)) * log(whole("cells", cells, least=1))
    return float((256 * logs / loss) ** (1 / 3)) - 8 * log(probability("beta", beta)) / loss


def sampled_rows(counts: "Sequence[int] | NDArray[np.int64]", number: int) -> NDArray[np.int64]:
    """The cells of `number` rows, drawn with replacement from a *public* histogram: what the sampling lemma is about.

    >>> sampled_rows([0, 5, 0], 2).tolist()
    [1, 1]
    """
    exact = np.asarray(counts)
    if exact.ndim != 1 or exact.dtype.kind not in "iu" or not (exact >= 0).all() or not exact.sum() > 0:
        raise BadParameter("counts must be a list of whole numbers of at least 0, not all 0. Give a histogram.")
    edges = np.cumsum(exact.astype(np.int64))
    drawn = noise.uniform_below(int(edges[-1]), size=whole("number", number))
    return np.searchsorted(edges, drawn, side="right").astype(np.int64)


def _read_rows(rows: int | None, alpha: Number | None, queries: int) -> int:
    match rows, alpha:
        case (given, None) if given is not None:
            return whole("rows", given, least=1)
        case (None, given) if given is not None:
            return sample_size(queries, given)
    raise BadParameter(
        f"rows is {rows!r} and alpha is {alpha!r}; the size must be given in one way. Give rows=8, or alpha=0.3."
    )


def _read_queries(queries: "Sequence[Linear] | Workload[Linear]", table: Table) -> list[Linear]:
    """The queries as a list, if their matrix can be held."""
    require_table(table)
    # A workload that is too long is not listed.
    few = queries if isinstance(queries, Workload) else listed(queries)
    require_held(few.size if isinstance(few, Workload) else len(few), table.domain)
    return listed(few)


# The number of rows, where it is not public, gets this part of the budget.
FIRST = Fraction(1, 20)
# The most tables times questions that are enumerated: some seconds.
MOST_WORK = 2**31
# Seconds to evaluate a count of a small table (bench/release_calibrate.py).
SECONDS_A_TABLE = 1.2e-9


def too_many_tables(goal: Goal) -> str:
    """Why no table, not even of one row, can be chosen for a goal; empty if one can."""
    counts, cells = number_of_cells(goal), goal.domain.size
    if _possible(goal, 1):
        return ""
    return (
        f"SmallDB evaluates {counts} counts of every table, and there are {cells} tables of one row; the limits are "
        f"{MOST_HELD_WEIGHTS} counts times cells and {MOST_ASKED_IMBALANCES // 2} counts. "
        "Ask for fewer columns, or for another method."
    )


def best_size(goal: Goal, known: Estimator, rows: float, epsilon: float) -> tuple[int, float]:
    """The number of rows of the table with the least promised error, among those that can be enumerated; and the error.

    With probability 1/2 or so no count is off by more than √(ln(2k)/2m) + 2c ln(M)/(e n), as a fraction of the rows:
    some table of m rows is that close by the sampling lemma, and the exponential mechanism finds one nearly as good.

    where k is the number of counts, m that of the rows chosen and M that of all such tables, c is how many rows a
    person has, e is `epsilon` and n is `rows`.
    """
    counts, many = number_of_cells(goal), max(rows, 1.0)
    best, least, few = 1, inf, 1
    while _possible(goal, few):
        tables = log(comb(goal.domain.size + few - 1, few))
        error = sqrt(log(2 * counts) / (2 * few)) + 2 * known.lattice.unit.contributions * tables / (epsilon * many)
        if error < least:
            best, least = few, error
        few += 1
    return best, least


def small(brief: Brief, tell: Tell | None = None) -> Procedure[Model]:
    """Choose one table of a few rows by the exponential mechanism; each of its rows represents many.

    The questions are the cells of the goal's marginals. The number of rows, if it is not public, is counted with a
    twentieth of the budget; the rest is for one choice among all tables of as many rows as promise the least error
    (`best_size`). What is known beforehand is not used.

    Limits: exponential in the rows of the small table, and a table of m rows is off by about 1/√m for any budget; so it
    is for a few columns of few values, and rarely best even there. It is here because the theory of releases begins
    with it. No more than 100 units of squared mu are spent on the choice.

    [BLR08]; proof: mechanism/smalldb.md
    """
    known, goal = brief.known, brief.goal
    refused = too_many_tables(goal)
    if refused:
        raise TooLarge(refused)
    left = brief.units
    left -= yield from measure_row_count(known, left * FIRST)
    rows = max(total_of(known.lattice)[0], 1.0)
    epsilon = known.selection_for(left)
    few, _ = best_size(goal, known, rows, float(epsilon))
    cells = yield SmallTable(cells_of_goal(goal), few, epsilon, f"a table of {few} rows, for a release")
    if tell is not None:
        tell(1.0)
    return rows_of(goal.domain, cells, scale=rows / few)


def small_db_forecast(brief: Brief, rows: float) -> Forecast:
    """The forecast of "small_db": a table of a few rows."""
    goal, known, many = brief.goal, brief.known, max(rows, 1.0)
    refused = too_many_tables(goal)
    if refused:
        return impossible("small_db", refused)
    left = float(brief.units * (1 - FIRST))
    epsilon = float(known.selection_for(Fraction(left)))
    few, _ = best_size(goal, known, many, epsilon)
    tables = comb(goal.domain.size + few - 1, few)
    error, whole, supposed = 0.0, 0.0, guessed(goal.domain)
    for scope, weight in sampled(goal):
        # The sampling error of so few rows, and the loss of the choice against the best table.
        choice = goal.cells(scope) ** 0.5 * log(tables) / (epsilon * many)
        error += weight * hypot(scatter(supposed.spread(scope), few), choice)
        whole += weight
    counts = number_of_cells(goal)
    seconds = FORECAST.base_seconds + SECONDS_A_TABLE * counts * tables
    return Forecast(
        "small_db",
        min(error / whole, INTERACTION.largest_error),
        seconds,
        FORECAST.base_memory + 16.0 * counts * goal.domain.size,
    )


def _possible(goal: Goal, few: int) -> bool:
    """Whether all tables of `few` rows can be enumerated; cells that no question distinguishes are of one kind."""
    counts, cells = number_of_cells(goal), goal.domain.size
    kinds = prod(goal.domain[name].size for name in {name for scope in goal.scopes for name in scope})
    return (
        counts * cells <= MOST_HELD_WEIGHTS
        and counts * (few + 1) <= MOST_ASKED_IMBALANCES
        and counts * comb(kinds + few - 1, few) <= MOST_WORK
        and comb(cells + few - 1, few) < MOST_MULTISETS
    )

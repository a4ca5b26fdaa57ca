"""SmallDB as a procedure: a table of a few rows, chosen so that good ones are likely."""

from fractions import Fraction
from math import comb, hypot, inf, log, prod, sqrt

from discreet.errors import TooLarge
from discreet.known.known import Known
from discreet.mechanism.multisets import MOST_MULTISETS
from discreet.model.ensemble import Tell
from discreet.model.looks import total_of
from discreet.model.protocol import Model
from discreet.plan.request import Procedure, SmallTable
from discreet.release.brief import Brief, Forecast
from discreet.release.cells import cells_of_goal, number_of_cells
from discreet.release.counting import counted
from discreet.release.forecast import BASE_MEMORY, BASE_SECONDS, impossible
from discreet.release.goal import Goal
from discreet.release.layers import WORST, guessed, sampled, scatter
from discreet.release.small_table import MOST_EFFECTS, MOST_IMBALANCES
from discreet.release.smalldb import rows_of

# The number of rows, where it is not public, gets this part of the budget.
FIRST = Fraction(1, 20)
# Tables times questions that are looked at: some seconds.
MOST_WORK = 2**31
# Seconds to look at a count of a small table (bench/release_calibrate.py).
SECONDS_A_TABLE = 1.2e-9


def too_many_tables(goal: Goal) -> str:
    """Why no table can be chosen for a goal, however few rows it has; empty if one can."""
    counts, cells = number_of_cells(goal), goal.domain.size
    if _possible(goal, 1):
        return ""
    return (
        f"SmallDB looks at {counts} counts of every table, and there are {cells} tables of one row; the limits are "
        f"{MOST_EFFECTS} counts times cells and {MOST_IMBALANCES // 2} counts. Open the table with fewer columns, or "
        "ask for less."
    )


def best_size(goal: Goal, known: Known, rows: float, epsilon: float) -> tuple[int, float]:
    """How many rows the table should have, of those that can be walked through, and the error that is promised.

    With probability 1/2 or so no count is off by more than √(ln(2k)/2m) + 2c ln(M)/(e n), as a fraction of the rows:
    some table of m rows is that near by the sampling lemma, and the exponential mechanism finds one nearly as good.

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
    """Choose one table of a few rows by the exponential mechanism; each of its rows stands for many.

    The questions are the cells of the goal's marginals. The number of rows, if it is not public, is counted with a
    twentieth of the budget; the rest is for one choice among all tables of as many rows as promise the least error
    (`best_size`). What is known beforehand is not used.

    Limits: exponential in the rows of the small table, and a table of m rows is off by about 1/√m however large the
    budget; so it is for a few columns of few values, and rarely best even there. It is here because it is what the
    theory of releases begins with. A choice that is dearer than 100 units of squared mu is not made better.

    [BLR08]; proof: mechanism/smalldb.md
    """
    known, goal = brief.known, brief.goal
    refused = too_many_tables(goal)
    if refused:
        raise TooLarge(refused)
    left = brief.units
    left -= yield from counted(known, left * FIRST)
    rows = max(total_of(known.lattice)[0], 1.0)
    epsilon = known.selection_for(left)
    few, _ = best_size(goal, known, rows, float(epsilon))
    cells = yield SmallTable(cells_of_goal(goal), few, epsilon, f"a table of {few} rows, for a release")
    if tell is not None:
        tell(1.0)
    return rows_of(goal.domain, cells, scale=rows / few)


def small_db_forecast(brief: Brief, rows: float) -> Forecast:
    """SmallDB, which is called "small_db": a table of a few rows."""
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
        # As far as a sample of so few rows, and as the choice is from the best.
        choice = goal.cells(scope) ** 0.5 * log(tables) / (epsilon * many)
        error += weight * hypot(scatter(supposed.spread(scope), few), choice)
        whole += weight
    counts = number_of_cells(goal)
    seconds = BASE_SECONDS + SECONDS_A_TABLE * counts * tables
    return Forecast("small_db", min(error / whole, WORST), seconds, BASE_MEMORY + 16.0 * counts * goal.domain.size)


def _possible(goal: Goal, few: int) -> bool:
    """Whether all tables of so many rows can be looked at; rows that no question tells apart are looked at once."""
    counts, cells = number_of_cells(goal), goal.domain.size
    kinds = prod(goal.domain[name].size for name in {name for scope in goal.scopes for name in scope})
    return (
        counts * cells <= MOST_EFFECTS
        and counts * (few + 1) <= MOST_IMBALANCES
        and counts * comb(kinds + few - 1, few) <= MOST_WORK
        and comb(cells + few - 1, few) < MOST_MULTISETS
    )

"""The demonstration: a census table, plain SQL, one budget, exact noise, and what a person in it has to fear."""

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table as Grid

from discreet.data import ADULT, load_adult
from discreet.errors import BudgetExceeded
from discreet.ledger import Budget, Ledger
from discreet.meaning import explain
from discreet.mechanism.gaussian import gaussian
from discreet.mechanism.laplace import laplace
from discreet.privacy.calibrate import calibrate
from discreet.privacy.event import Gaussian, Repeat
from discreet.privacy.sensitivity import Sensitivity
from discreet.query.linear import Linear, Marginal
from discreet.query.sql import parse
from discreet.source.effect import sensitivity_of
from discreet.source.table import Table

EPSILON, DELTA, CONFIDENCE = 1, 1e-9, 0.95
MANY = 1_000

# Each asks for one count or for one table of counts.
COUNT = "SELECT COUNT(*) FROM adult WHERE "
QUESTIONS = [
    COUNT + "age >= 65 AND sex = 'Female'",
    COUNT + "education IN ('Masters', 'Doctorate') AND income = '>50K'",
    COUNT + "hours_per_week > 60 OR age > 80",
    COUNT + "NOT (sex = 'Male' OR income = '>50K')",
    COUNT + "occupation IS NULL",
    COUNT + "age BETWEEN 25 AND 34 AND workclass = 'Private'",
    COUNT + "native_country <> 'United-States'",
    "SELECT education, COUNT(*) FROM adult GROUP BY education",
]


def run() -> None:
    """Ask, pay, answer, and say what it means."""
    console = Console(highlight=False)
    table = load_adult()
    console.print("\n[bold]Adult[/bold]: 48,842 people of a census survey of 1994, a table that anyone may look at.")
    console.print(
        f"Whom we protect: {table.unit.describe}. Budget for all questions together: epsilon {EPSILON:g}, "
        f"delta {DELTA:g}.\n"
    )
    with TemporaryDirectory() as folder, Ledger(Path(folder) / "budget.sqlite") as ledger:
        ledger.cap(Budget(epsilon=EPSILON, delta=DELTA), table=table.name)
        grid, groups = _ask_all(table, ledger)
        console.print(grid)
        console.print("[dim]left: of the budget. truth: only a demonstration can show it.[/dim]")
        console.print(_one_more(table, ledger))
    console.print("The last question has sixteen answers for the price of one:\n")
    console.print(groups)
    console.print(_price(MANY))
    console.print("\n[bold]What that means to a person in the table[/bold]")
    for title, sentence in explain(epsilon=EPSILON, delta=DELTA, rows=48_842).sentences[:3]:
        console.print(f"  [cyan]{title}[/cyan]  {sentence}")
    console.print("\nMore: [bold]discreet explain --epsilon 1[/bold], and the pages in docs/.\n")


def _ask_all(table: Table, ledger: Ledger) -> tuple[Grid, Grid]:
    grid, groups = Grid(f"{COUNT}…", "answer", f"± {CONFIDENCE:.0%}", "truth", "left"), Grid.grid()
    for sql in QUESTIONS:
        question = _question(table, sql)
        moves = sensitivity_of(question, table.domain, table.unit)
        mechanism = gaussian(sensitivity=moves, sigma=_sigma(moves, len(QUESTIONS)))
        error = mechanism.error(CONFIDENCE)
        # Pay before reading: what does not fit is refused while the rows are untouched.
        receipt = ledger.spend(mechanism.event, sql, table=table.name, error=error)
        released = mechanism.release(table.evaluate(question))
        ledger.record(receipt, released.tobytes())
        truth, left = _truth(sql), f"{ledger.balances()[0].share_left:.0%}"
        if len(released) == 1:
            grid.add_row(
                sql.removeprefix(COUNT),
                _shown(int(released[0]), truth[0], error),
                f"{error:,.0f}",
                f"{truth[0]:,}",
                left,
            )
        else:
            grid.add_row(sql, "below", f"{error:,.0f}", "", left)
            groups = _bars(table.domain["education"].labels, released, truth, error)
    for column in grid.columns[1:]:
        column.justify = "right"
    return grid, groups


def _one_more(table: Table, ledger: Ledger) -> str:
    """What the ledger says when the budget is gone, and what it kept."""
    answered = sum(spend.released is not None for spend in ledger.history())
    kept = f"[dim]The ledger has {answered} spends, each paid before a row was read, and each with its answer.[/dim]\n"
    try:
        ledger.spend(Gaussian(Fraction(100), Fraction(1)), "one more", table=table.name, error=196)
    except BudgetExceeded as refused:
        return f"One more question? [yellow]{' '.join(str(refused).split())}[/yellow]\n{kept}"
    return kept


def _question(table: Table, sql: str) -> Linear | Marginal:
    (question,) = parse(sql, table.domain, table=table.name).questions(table.domain)
    assert isinstance(question, (Linear, Marginal)), "no averages here"
    return question


def _shown(answer: int, truth: int, error: float) -> str:
    return f"[{'green' if abs(answer - truth) <= error else 'yellow'}]{answer:,}[/]"


def _bars(labels: Sequence[str], released: NDArray[np.int64], truth: Sequence[int], error: float) -> Grid:
    grid = Grid.grid(padding=(0, 1))
    longest = max(int(released.max()), 1)
    for label, answer, true in zip(labels, released.tolist(), truth, strict=True):
        bar = "█" * round(24 * max(answer, 0) / longest)
        grid.add_row(f"  {label}", f"[cyan]{bar}[/cyan] {_shown(answer, true, error)} ± {error:,.0f}  (truth {true:,})")
    return grid


def _truth(sql: str) -> list[int]:
    """What only a demonstration can show: the same SQL on the rows themselves, in the order of the cells."""
    import duckdb

    with duckdb.connect() as connection:
        rows = connection.execute(sql.replace("FROM adult", f"FROM '{ADULT.with_suffix('.parquet')}'")).fetchall()
    if len(rows) == 1:
        return [rows[0][0]]
    found = dict(rows)
    return [found[level] for level in load_adult().domain["education"].labels]


def _sigma(moves: Sensitivity, questions: int) -> Fraction:
    """The noise with which so many questions use up the budget."""
    return calibrate(lambda s: Repeat(Gaussian(s, moves.l2_squared), questions), epsilon=EPSILON, delta=DELTA)


def _price(questions: int) -> str:
    one = Sensitivity(l1=Fraction(1), l2_squared=Fraction(1), linf=Fraction(1))
    plain = laplace(epsilon=Fraction(EPSILON, questions), sensitivity=one).error(CONFIDENCE)
    ours = gaussian(sigma=_sigma(one, questions), sensitivity=one).error(CONFIDENCE)
    return (
        f"\n[bold]{questions:,} questions[/bold] on the same budget: ± {ours:,.0f} each; "
        f"adding up epsilons would give ± {plain:,.0f}."
    )

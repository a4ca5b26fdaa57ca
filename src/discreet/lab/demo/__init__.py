"""The demonstration: a census table, ten thousand questions, one budget, and what it means to a person in the table."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.markup import escape

from discreet.curator import Curator
from discreet.data import load_adult
from discreet.errors import BadParameter, BudgetExceeded
from discreet.lab.demo.demo_outcome import Reply, ask_all
from discreet.lab.demo.demo_output import show_examples, show_groups, show_meaning, show_summary
from discreet.lab.demo.demo_page import report as page_of
from discreet.lab.demo.meter import Meter
from discreet.lab.demo.questions import Condition, Question, questions
from discreet.lab.demo.spending import gaussian_spending, laplace_spending
from discreet.lab.demo.truth import Truth
from discreet.ledger import Budget

BUDGET, CONFIDENCE = Budget(epsilon=1, delta=1e-9), 0.95
MANY, REPORT = 10_000, Path("out/demo.html")

# Asked when the stream is over: a table that everybody can picture.
TABLE = Question((Condition("sex", "=", ("Female",)),), ("occupation",), 250)
# Where examples are taken from, closer at the beginning: that is where most is paid.
PLACES = (1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000)


def run(number: int = MANY, *, report: Path | None = REPORT) -> None:
    """Ask a number of questions, show their outcomes, and write the report (nowhere, if None)."""
    if report is not None:
        _make_room(report)
    console, table = Console(highlight=False), load_adult()
    truth = Truth(table.domain)
    console.print(f"\n[bold]Adult[/bold]: {truth.rows:,} people of a census survey of 1994, which is public.")
    console.print(f"Neighbours: {table.unit.describe}. Budget for all questions together: {BUDGET}.\n")
    stream = questions(number)
    with TemporaryDirectory() as folder, Curator(table, budget=BUDGET, ledger=Path(folder) / "budget.sqlite") as desk:
        with Meter(console, number) as meter:
            outcome = ask_all(desk, stream, truth, budget=BUDGET, confidence=CONFIDENCE, watch=meter.watch)
        groups = ask_all(desk, [TABLE], truth, budget=BUDGET, confidence=CONFIDENCE).replies[0]
        kept = _ledger_text(desk)
    baselines = [spending(stream, BUDGET, confidence=CONFIDENCE) for spending in (gaussian_spending, laplace_spending)]
    show_summary(console, outcome, baselines)
    show_examples(console, examples(outcome.replies))
    console.print(kept)
    show_groups(console, groups)
    show_meaning(console, outcome, truth.rows)
    if report is not None:
        report.write_text(page_of(outcome, baselines, examples(outcome.replies), groups, truth.rows), encoding="utf-8")
        console.print(f"\nThe report, with pictures: [bold]{report.resolve()}[/bold]")
    console.print()


def _make_room(report: Path) -> None:
    """Fail before the questions and not after them, if the report cannot be written."""
    try:
        report.parent.mkdir(parents=True, exist_ok=True)
        report.open("a").close()
    except OSError as error:
        raise BadParameter(f"the report cannot be written to {report} ({error.strerror}). Give another path.") from None


def _ledger_text(desk: Curator) -> str:
    """What the ledger holds, and how it refuses a question that costs too much."""
    spends = desk.history()
    recorded = "each" if all(spend.released is not None for spend in spends) else "most"
    kept = f"\nThe ledger has {len(spends):,} spends, each paid before a row was read, and {recorded} with its answer."
    try:
        desk.ask("SELECT COUNT(*) FROM adult", error=1, confidence=CONFIDENCE)
    except BudgetExceeded as refused:
        return f"{kept}\nThe number of people, but ± 1? [yellow]{escape(' '.join(str(refused).split()))}[/yellow]"
    return kept


def examples(replies: Sequence[Reply]) -> list[tuple[int, Reply]]:
    """Some counts from all over the stream, with their places in it."""
    counts = [(place, reply) for place, reply in enumerate(replies, 1) if reply.answer and not reply.question.groups]
    chosen = {min(counts, key=lambda count: abs(count[0] - wanted))[0] for wanted in PLACES} if counts else set[int]()
    return [(place, reply) for place, reply in counts if place in chosen]

"""What the terminal shows of an outcome."""

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table as Grid

from discreet.lab.demo.demo_outcome import Outcome, Reply
from discreet.lab.demo.spending import Spending
from discreet.meaning import explain

COUNT = "SELECT COUNT(*) FROM adult WHERE "


def show_summary(console: Console, outcome: Outcome, baselines: Sequence[Spending]) -> None:
    """In a few lines: the free questions, the budget that is left, the baselines' cost, and whether the errors held."""
    number, ours = len(outcome.replies), outcome.spending
    speed = number / max(outcome.seconds, 1e-9)
    console.print(f"[bold]{number:,} questions[/bold] in {outcome.seconds:.1f} seconds, {speed:,.0f} a second.\n")
    grid = Grid.grid(padding=(0, 2))
    free = f"{outcome.free.mean():.1%}"
    grid.add_row("  answered for free", f"[cyan]{free}[/cyan]", "they followed from earlier answers")
    spent = f"ε {ours.epsilon(number):.2g} of {float(ours.budget.epsilon):g} is spent"
    grid.add_row("  budget left", f"[green]{1 - ours.used[-1]:.1%}[/green]", spent)
    if outcome.refused:
        grid.add_row("  refused", f"[yellow]{outcome.refused:,}[/yellow]", "the budget was not enough for them")
    for each in baselines:
        enough = f"the budget is gone after {each.answered:,} questions" if each.answered < number else ""
        grid.add_row(f"  one {each.name} answer each", f"ε {each.epsilon(number):.3g}", enough)
    held = f"of {outcome.every_miss.size:,} numbers; {outcome.confidence:.0%} is expected"
    grid.add_row("  within their error", f"[green]{outcome.held:.1%}[/green]", held)
    console.print(grid)
    console.print()


def show_examples(console: Console, examples: Iterable[tuple[int, Reply]]) -> None:
    """Some questions as they came, with the truth."""
    grid = Grid("no.", f"{COUNT}…", "answer", "±", "truth", "left", "price")
    for place, reply in examples:
        price = "[cyan]free[/cyan]" if reply.free else "paid"
        where, left = escape(reply.question.sql.removeprefix(COUNT)), f"{1 - reply.used:.0%}"
        shown = (_shown(reply, 0), f"{reply.errors[0]:,.0f}", f"{reply.truth[0]:,}")
        grid.add_row(f"{place:,}", where, *shown, left, price)
    for column in (grid.columns[0], *grid.columns[2:]):
        column.justify, column.no_wrap = "right", True
    console.print(grid)
    console.print("[dim]left: of the budget. truth: only a demonstration can show it.[/dim]")


def show_groups(console: Console, reply: Reply) -> None:
    """A table of counts as bars."""
    if reply.answer is None:
        return
    price = "It was free" if reply.free else "It was paid for once"
    console.print(f"\n[bold]{escape(reply.question.sql)}[/bold]\n{price}; all its rows cost as much as one count.\n")
    grid, longest = Grid.grid(padding=(0, 1)), max(float(reply.values.max()), 1.0)
    names = zip(*(reply.answer.columns[name] for name in reply.question.groups), strict=True)
    for place, name in enumerate(names):
        bar = "█" * round(24 * max(float(reply.values[place]), 0) / longest)
        count = f"{_shown(reply, place)} ± {reply.errors[place]:,.0f}  [dim](truth {reply.truth[place]:,})[/dim]"
        grid.add_row(f"  {' · '.join(map(str, name))}", f"[cyan]{bar}[/cyan] {count}")
    console.print(grid)


def show_meaning(console: Console, outcome: Outcome, rows: int) -> None:
    """What the budget means to a person."""
    console.print("\n[bold]What that means to a person in the table[/bold]")
    meaning = explain(epsilon=outcome.budget.epsilon, delta=outcome.budget.delta, rows=rows)
    grid = Grid.grid(padding=(0, 2))
    for title, sentence in meaning.sentences[:3]:
        grid.add_row(f"  [cyan]{title}[/cyan]", sentence)
    console.print(grid)
    console.print("\nMore: [bold]discreet explain --epsilon 1[/bold], and the pages in docs/.")


def _shown(reply: Reply, place: int) -> str:
    held = reply.misses[place] <= 1
    return f"[{'green' if held else 'yellow'}]{reply.values[place]:,.0f}[/]"

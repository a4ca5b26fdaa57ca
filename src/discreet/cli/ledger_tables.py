"""A ledger on a terminal: accounts, history, and what an audit found."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from discreet.accounting.event import Event, event_from_plain
from discreet.cli.output import printable
from discreet.ledger import EACH, Audit, Balance, Budget, Head, Ledger, Scope
from discreet.ledger.accounts import as_budget, balances, narrowest

# How much of somebody's text is shown.
_LONGEST = 500


def print_accounts(accounts: Collection[Balance], *, error: float, contributions: int | None = None) -> None:
    """Say of each account what it may spend, has spent, has set aside and has left."""
    console = Console(highlight=False)
    if not accounts:
        console.print("No cap is set for that. To set one: discreet ledger cap")
        return
    _print_table(console, accounts, error, contributions)
    console.print(
        Text(
            "Epsilon, at the delta of the cap. The promise is the cap; what is spent and what is left are for planning "
            "and need not add up to it.",
            style="dim",
        )
    )


def _print_table(console: Console, accounts: Collection[Balance], error: float, contributions: int | None) -> None:
    """One row for each account, in as many columns as say something."""
    bar = 10 if console.width >= 100 else 5
    ordered = sorted(accounts, key=lambda one: (one.scope.tables or (), *_rank(one.scope)))
    columns: dict[str, list[Text]] = {
        "table": [_tables(one.scope) for one in ordered],
        "analyst": [_analyst(one.scope) for one in ordered],
        "cap": [_epsilon(one.cap) for one in ordered],
        "delta": [Text(f"{float(one.cap.delta):g}") for one in ordered],
        "spent": [_epsilon(one.spent) for one in ordered],
        "set aside": [_epsilon(one.held) for one in ordered],
        "left": [_epsilon(one.remaining) for one in ordered],
        "": [_bar(one.share_left, bar) for one in ordered],
        f"counts at ±{error:,g}": [
            Text(f"≈ {one.counts_left(error=error, contributions=contributions):,}") for one in ordered
        ],
    }
    if not any(one.total_ticks != one.spent_ticks for one in ordered):
        del columns["set aside"]
    shown = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in columns:
        words = name in ("table", "analyst")
        shown.add_column(name, justify="left" if words else "right", no_wrap=not (words or " " in name))
    for row in zip(*columns.values(), strict=True):
        shown.add_row(*row)
    console.print(shown)


def _rank(scope: Scope) -> tuple[int, str]:
    """Sort key: all analysts together, then single ones by name, then the rule for new ones."""
    return {None: 0, EACH: 2}.get(scope.analyst, 1), scope.analyst or ""


def _tables(scope: Scope) -> Text:
    return Text("all", "dim") if scope.tables is None else Text(", ".join(map(printable, scope.tables)))


def _analyst(scope: Scope) -> Text:
    return (
        Text({None: "all", EACH: "each new"}[scope.analyst], "dim")
        if scope.analyst in (None, EACH)
        else Text(printable(scope.analyst or ""))
    )


def _epsilon(budget: Budget) -> Text:
    return Text(f"{float(budget.epsilon):.3g}")


def _bar(share: float, width: int) -> Text:
    full = round(share * width)
    colour = "green" if share > 0.5 else "yellow" if share > 0.1 else "red"
    return Text.assemble(("█" * full, colour), ("░" * (width - full), "dim"), f" {share:4.0%}")


def print_history(spends: Collection[Mapping[str, Any]], ledger: Ledger) -> None:
    """Say of each spend who asked what and why, what it would cost alone, and whether an answer was kept."""
    console = Console(highlight=False)
    if not spends:
        console.print("Nothing was spent on that.")
        return
    shown = Table.grid(padding=(0, 2, 1, 0))
    shown.add_column(justify="right")
    for spend in spends:
        analyst, table, why = (printable(spend[name], longest=_LONGEST) for name in ("analyst", "table", "why"))
        price = _price(ledger, spend["table"], spend["analyst"], event_from_plain(spend["event"]))
        shown.add_row(
            Text(str(spend["sequence"]), "dim"),
            Text.assemble(
                f"{spend['at'][:19].replace('T', ' ')} UTC  ",
                (analyst, "bold"),
                " on ",
                (table, "bold"),
                f", epsilon {price}",
                "" if spend["answered"] else (", no answer kept", "yellow"),
                f"\n{why}",
            ),
        )
    console.print(shown)


def _price(ledger: Ledger, table: str, analyst: str, event: Event) -> Text:
    """What an event alone would cost of the table's own cap, or of the narrowest that is over it."""
    gate = narrowest(ledger.balances(table=table, analyst=analyst)).gate
    return _epsilon(as_budget(gate, gate.charge(event)))


def print_audit(audit: Audit, kept: Head | None) -> None:
    """Say what an audit found; the head itself is for the caller to print."""
    console = Console(highlight=False)
    lost = audit.spends - audit.answered
    console.print(f"This ledger holds: {audit.entries:,} entries, every hash and every cap checked.")
    console.print(
        f"Spends: {audit.spends:,}, {audit.answered:,} of them answered"
        + (f", {lost:,} without an answer (being computed, or lost in a crash)." if lost else ".")
    )
    if kept is not None:
        console.print(f"The head that was kept, of entry {kept.sequence:,}, is among them.")
    accounts = balances(audit.state)
    together = [one for one in accounts if one.scope.analyst is None]
    if together:
        _print_table(console, together, 200, None)
    single = sum(one.scope.analyst not in (None, EACH) for one in accounts)
    if single:
        console.print(f"And {single:,} accounts of single analysts: discreet ledger budget")
    console.print("Keep the next line elsewhere; it proves that nothing before it was changed.")


@contextmanager
def entry_progress(what: str, about: int | None) -> Iterator[Callable[[int], None] | None]:
    """Show the progress of a long task, on a terminal only. `about` is the expected total, if it is known."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (BarColumn(), TextColumn("{task.completed:,.0f} " + what), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as shown:
        task = shown.add_task(what, total=about)

        def seen(count: int) -> None:
            if count % 500 == 0:
                shown.update(task, completed=count)

        yield seen

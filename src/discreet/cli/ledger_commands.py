"""`discreet ledger …`: what may be spent, what was, and that the ledger was not changed."""

import json
import sys
from collections import deque
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.output import printable, write_new
from discreet.errors import BadParameter

if TYPE_CHECKING:
    from discreet.ledger import Head, Ledger, Scope

app = typer.Typer(
    name="ledger",
    help="Ledgers: what may be spent, what was spent, and that nothing was forgotten.",
    no_args_is_help=True,
)


class ExportForm(StrEnum):
    """What an export is written for."""

    JSON = "json"
    DP_ACCOUNTING = "dp-accounting"


class Reader(StrEnum):
    """Which accountant of dp-accounting is to read an export."""

    PLD = "pld"
    RDP = "rdp"


LedgerArgument = Annotated[
    str, typer.Argument(help="The path of a ledger, or postgresql://host/database.", show_default=False)
]
OneTable = Annotated[str | None, typer.Option("--table", help="Only what is about this table.")]
OneAnalyst = Annotated[str | None, typer.Option("--analyst", help="Only what is about this analyst.")]
Tables = Annotated[
    list[str] | None,
    typer.Option("--table", help="The table; several, if they share people, by repeating it. Without it: all."),
]
CappedAnalyst = Annotated[
    str | None, typer.Option(help="One analyst, or '*' for each on their own. Without it: all together.")
]
GateOption = Annotated[str | None, typer.Option(help="pure, gaussian or renyi; without it the one that fits delta.")]


@app.command("verify")
def verify_ledger(
    address: LedgerArgument,
    head: Annotated[str | None, typer.Option(help="A head that you kept: its line, or the file with it.")] = None,
    prices: Annotated[bool, typer.Option("--prices", help="Price every event again, too.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the head and nothing else.")] = False,
) -> None:
    """Read every entry again: the chain of hashes, the caps, the answers; print the head to keep elsewhere."""
    from discreet.cli.ledger_tables import entry_progress, print_audit
    from discreet.ledger import verify

    kept = _kept_head(address, head)
    with entry_progress("entries checked", None if kept is None else kept.sequence) as seen:
        audit = verify(address, head=kept, prices=prices, progress=seen)
    if not quiet:
        print_audit(audit, kept)
    print(audit.head)


@app.command("export")
def export_ledger(
    address: LedgerArgument,
    form: Annotated[
        ExportForm, typer.Option("--as", help="Exact JSON lines, or events for Google's dp-accounting.")
    ] = (ExportForm.JSON),
    accountant: Annotated[Reader, typer.Option(help="With --as dp-accounting: which of its accountants reads it.")] = (
        Reader.PLD
    ),
    output: Annotated[Path | None, typer.Option(help="Where to write it; otherwise it is printed.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the output.")] = False,
) -> None:
    """Write what was spent as JSON lines, for other programs: one line for each spend, and for each cap."""
    from discreet.ledger.export import dp_event_lines, event_lines

    with _ledger(address) as ledger:
        lines = (
            event_lines(ledger.entries)
            if form is ExportForm.JSON
            else dp_event_lines(ledger.entries, accountant=accountant.value)
        )
        written = (f"{line}\n" for line in lines)
        if output is None:
            sys.stdout.writelines(written)
        else:
            write_new(written, output, force=force)


@app.command("budget")
def show_budget(
    address: LedgerArgument,
    table: OneTable = None,
    analyst: OneAnalyst = None,
    error: Annotated[float, typer.Option(help="How many more counts with this error would fit?")] = 200,
) -> None:
    """Show what each account may spend, has spent and has left."""
    from discreet.cli.ledger_tables import print_accounts

    with _ledger(address) as ledger:
        print_accounts(ledger.balances(table=table, analyst=analyst), error=error)


@app.command("history")
def show_history(
    address: LedgerArgument,
    table: OneTable = None,
    analyst: OneAnalyst = None,
    last: Annotated[int, typer.Option(min=1, help="How many of the newest to show.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON lines, as in an export.")] = False,
) -> None:
    """Show who asked what of which table and why, what it cost, and whether an answer was kept."""
    from discreet.cli.ledger_tables import print_history
    from discreet.ledger.export import event_fields

    with _ledger(address) as ledger:
        asked = (
            spend
            for spend in event_fields(ledger.entries)
            if spend["is"] == "spend" and table in (None, spend["table"]) and analyst in (None, spend["analyst"])
        )
        newest = deque(asked, maxlen=last)
        if as_json:
            sys.stdout.writelines(json.dumps(spend) + "\n" for spend in newest)
        else:
            print_history(newest, ledger)


@app.command("cap")
def set_cap(
    address: LedgerArgument,
    epsilon: Annotated[float, typer.Option(help="How much may ever be learned about one person.")],
    delta: Annotated[float, typer.Option(help="The probability that more is; 0, or much less than 1/rows.")] = 0.0,
    gate: GateOption = None,
    table: Tables = None,
    analyst: CappedAnalyst = None,
) -> None:
    """Set a cap: no spend that it covers will ever pass it. A ledger that is not there yet is begun."""
    from discreet.ledger import Budget, Ledger
    from discreet.ledger.declarations import scope_of

    budget = Budget(epsilon, delta, gate)  # type: ignore[arg-type]
    with Ledger(address) as ledger:
        begun = ledger.head.sequence == 1
        scope = scope_of(None, tuple(table or ()), analyst)
        before = ledger.head
        ledger.cap(budget, tables=scope.tables or (), analyst=analyst, by=user())
        same = ledger.head == before
    if begun:
        print(f"Began a new ledger{'' if '://' in address else f' in {printable(address)}'}.")
    print(f"{'It was so before' if same else 'Set'}: {_sentence(scope)} {budget}.")


@app.command("raise")
def raise_cap(
    address: LedgerArgument,
    epsilon: Annotated[float, typer.Option(help="The new limit.")],
    delta: Annotated[float | None, typer.Option(help="The new delta; without it the one that the cap has.")] = None,
    gate: GateOption = None,
    table: Tables = None,
    analyst: CappedAnalyst = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Raise a cap. Caps are never lowered: what was released cannot be taken back. The ledger keeps who raised it."""
    from discreet.ledger import Budget
    from discreet.ledger.declarations import scope_of

    with _ledger(address) as ledger:
        scope = scope_of(None, tuple(table or ()), analyst)
        before = ledger.caps.get(scope)
        if before is None:
            raise BadParameter(f"there is no cap to raise ({scope}). `discreet ledger budget` shows those that are.")
        budget = Budget(epsilon, before.delta if delta is None else delta, gate or before.gate)  # type: ignore[arg-type]
        if not yes:
            change = f"{printable(str(scope))}: from {before} to {budget}"
            typer.confirm(f"Raise the cap of {change}?", abort=True, err=True)
        ledger.raise_cap(budget, tables=scope.tables or (), analyst=analyst, by=user())
    print(f"Raised: {_sentence(scope)} {budget}; it was {before}.")


@app.command("sessions")
def show_sessions(
    address: LedgerArgument,
    close: Annotated[int | None, typer.Option(help="Give back what this session has set aside.")] = None,
) -> None:
    """Show the sessions that have set budget aside; close one that a crash has left behind."""
    with _ledger(address) as ledger:
        if close is not None:
            if close not in ledger.holds:
                raise BadParameter(f"session {close} is not open. `discreet ledger sessions` shows those that are.")
            paid = close in ledger.stakes
            ledger.close_hold(close)
            outcome = "is paid, because it may have been used" if paid else "is given back"
            print(f"Closed session {close}: what it had set aside {outcome}; what it has spent stays spent.")
            return
        for number, (table, analyst) in ledger.holds.items():
            print(f"{number:>6}  {printable(analyst)} on {printable(table)}")
        if not ledger.holds:
            print("No session has set anything aside.")


def _ledger(address: str) -> "Ledger":
    """A ledger to read in. Nothing is left behind: if no head lies beside it, none is begun."""
    from discreet.ledger import Ledger

    return Ledger(address, create=False)


def _kept_head(address: str, head: str | None) -> "Head | None":
    """The head to compare with: the one given, or the one that lies beside the ledger."""
    from discreet.ledger import Head
    from discreet.ledger.log import Witness

    if head is None:
        return None if "://" in address else Witness(f"{address}.head").read()
    if head.startswith("discreet-head"):
        return Head.parse(head)
    kept = Witness(head).read()
    if kept is None:
        raise BadParameter(f'there is no head in "{head}"; give a line "discreet-head …", or the file with it.')
    return kept


def user() -> str:
    """The user who runs this, by the system's records and not by the environment."""
    import os
    from getpass import getuser

    try:
        from pwd import getpwuid
    except ImportError:
        return getuser()
    try:
        return getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"user {os.getuid()}"


def _sentence(scope: "Scope") -> str:
    together = "" if scope.analyst else ", all analysts together,"
    return f"{printable(str(scope))}{together} may spend"

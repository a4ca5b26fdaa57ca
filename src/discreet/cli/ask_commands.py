"""`discreet ask`, `plan`, `known`, `budget` and `history`: the curator from a shell."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.ledger_address import ledger_of
from discreet.cli.output import print_known, printable, waiting, worst, write_csv, write_json
from discreet.errors import BadParameter

if TYPE_CHECKING:
    from discreet.curator import Curator
    from discreet.ledger import Budget, Ledger
    from discreet.schema import Schema
    from discreet.source import Table


class AnswerForm(StrEnum):
    """How an answer is written."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"


SchemaFile = Annotated[Path, typer.Argument(metavar="SCHEMA", help="The schema file of the table.", show_default=False)]
QuestionArgument = Annotated[
    str,
    typer.Argument(help="SQL, or a condition as after WHERE; - reads it from the standard input.", show_default=False),
]
At = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        metavar="ADDRESS",
        help="The path of the ledger, or postgresql://host/database. Without it SCHEMA.ledger.sqlite, beside the "
        "schema file: people.ledger.sqlite for people.yaml; of tables that share people, shared.ledger.sqlite.",
    ),
]
Error = Annotated[float | None, typer.Option(help="The half-width that the answer may have, in its own unit.")]
Confidence = Annotated[float, typer.Option(help="How often the error must hold.")]
Price = Annotated[float | None, typer.Option(help="Instead of an error: what the answer may cost.")]
Joint = Annotated[bool, typer.Option("--joint", help="All errors of a GROUP BY hold together, not each by itself.")]
Analyst = Annotated[str | None, typer.Option(help="Who asks, for the ledger and for caps of single analysts.")]
Cap = Annotated[
    float | None, typer.Option("--budget", help="The epsilon that may ever be spent on the table; needed once.")
]
CapDelta = Annotated[
    float | None, typer.Option("--delta", help="With --budget: the probability that more leaks, say 1e-9.")
]
AsForm = Annotated[AnswerForm, typer.Option("--format", help="How to write it.")]


def ask(
    schema: SchemaFile,
    question: QuestionArgument,
    error: Error = None,
    confidence: Confidence = 0.95,
    epsilon: Price = None,
    joint: Joint = False,
    nonnegative: Annotated[bool, typer.Option("--nonnegative", help="Lift what is below zero to zero.")] = False,
    analyst: Analyst = None,
    key: Annotated[str | None, typer.Option(help="Makes it safe to repeat: the same key is paid once.")] = None,
    ledger: At = None,
    budget: Cap = None,
    delta: CapDelta = None,
    form: AsForm = AnswerForm.TABLE,
) -> None:
    """Ask a question: say how good the answer must be (--error) or what it may cost (--epsilon).

    What follows from earlier answers is free. With neither --error nor --epsilon nothing is paid at all.
    """
    with waiting("Asking"), open_curator(schema, ledger, _budget(budget, delta), analyst) as desk:
        answer = desk.ask(
            _text(question),
            error=error,
            confidence=confidence,
            epsilon=epsilon,
            joint=joint,
            nonnegative=nonnegative,
            key=key,
        )
    if error is not None and worst(answer.error) > error * (1 + 1e-6):
        print(f"Groups that are smaller than the average have wider errors than {error:g}.", file=sys.stderr)
    if form is AnswerForm.TABLE:
        print(answer)
    elif form is AnswerForm.CSV:
        write_csv(answer.columns)
    else:
        write_json(
            {
                "value": answer.value,
                "error": answer.error,
                "confidence": answer.confidence,
                "origin": answer.origin,
                "columns": answer.columns,
                "remaining": answer.remaining,
            }
        )


def plan_question(
    schema: SchemaFile,
    question: QuestionArgument,
    error: Error = None,
    confidence: Confidence = 0.95,
    epsilon: Price = None,
    joint: Joint = False,
    analyst: Analyst = None,
    ledger: At = None,
    budget: Cap = None,
    delta: CapDelta = None,
    form: AsForm = AnswerForm.TABLE,
) -> None:
    """Say what a question would cost, and with what error: reads no row, pays nothing, sets no cap."""
    given = _budget(budget, delta)
    with waiting("Planning"), open_curator(schema, ledger, given, analyst, planning=True) as desk:
        promise = desk.plan(_text(question), error=error, confidence=confidence, epsilon=epsilon, joint=joint)
        left = desk.remaining
    if form is AnswerForm.TABLE:
        print(promise)
        if not promise.free:
            print(f"Left: {left}.")
        return
    facts = {"question": promise.question, "error": promise.error, "confidence": promise.confidence}
    facts |= {"origin": promise.origin, "fits": promise.fits}
    if form is AnswerForm.CSV:
        numbers = {"price": float(promise.price.epsilon), "left": float(left.epsilon), "delta": float(left.delta)}
        write_csv({name: [value] for name, value in (facts | numbers).items()})
    else:
        write_json(facts | {"price": promise.price, "remaining": left})


def list_known(
    schema: SchemaFile,
    confidence: Confidence = 0.95,
    ledger: At = None,
    form: AsForm = AnswerForm.TABLE,
) -> None:
    """List what can be answered for free now: every count of these columns, and with what error a single cell."""
    with waiting("Looking"), open_curator(schema, ledger, None, None) as desk:
        found = desk.known(confidence=confidence)
    columns: dict[str, list[Any]] = {
        "columns": [", ".join(one.columns) or "the number of rows" for one in found],
        "cells": [one.cells for one in found],
        "error": [float(one.error) for one in found],
    }
    if form is AnswerForm.CSV:
        write_csv(columns)
    elif form is AnswerForm.JSON:
        write_json(columns | {"columns": [one.columns for one in found], "confidence": confidence})
    else:
        print_known(columns, confidence)


def budget_of_table(
    schema: SchemaFile,
    ledger: At = None,
    analyst: Annotated[str | None, typer.Option(help="Only the accounts that this analyst must fit.")] = None,
    error: Annotated[float, typer.Option(help="How many more counts with this error would fit?")] = 200,
) -> None:
    """Show what may be spent on the table, what was spent and what is left, for its owner."""
    from discreet.cli.ledger_tables import print_accounts

    declared = _schema(schema)
    with _ledger(schema, ledger, declared) as book:
        accounts = book.balances(table=declared.table, analyst=analyst)
        print_accounts(accounts, error=error, contributions=declared.unit.contributions)


def history_of_table(
    schema: SchemaFile,
    ledger: At = None,
    analyst: Annotated[str | None, typer.Option(help="Only what this analyst asked.")] = None,
    last: Annotated[int, typer.Option(min=1, help="How many of the newest to show.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON lines, as in an export of the ledger.")] = False,
) -> None:
    """Show what was paid for on the table: who asked what, when, and what it cost. Free answers leave no trace."""
    from discreet.cli.ledger_commands import show_history

    declared = _schema(schema)
    with _ledger(schema, ledger, declared):
        pass
    show_history(ledger_of(schema, ledger), table=declared.table, analyst=analyst, last=last, as_json=as_json)


def _text(question: str) -> str:
    return sys.stdin.read() if question == "-" else question


def _schema(schema: Path) -> "Schema":
    from discreet.schema.yaml.schema_file import read_with_people

    return read_with_people(schema)


def _budget(epsilon: float | None, delta: float | None) -> "Budget | None":
    from discreet.ledger import Budget

    if epsilon is None:
        if delta is not None:
            raise BadParameter(f"delta is {delta:g}, and there is no --budget that it belongs to. Add --budget 1.")
        return None
    return Budget(epsilon, delta or 0)


def _ledger(schema: Path, ledger: str | None, declared: "Schema") -> "Ledger":
    """A ledger to read; a missing one is not created."""
    from discreet.ledger import Ledger

    address = ledger_of(schema, ledger)
    if not _exists(address):
        raise _no_budget(address, declared)
    return Ledger(address, create=False)


def _exists(address: str) -> bool:
    return "://" in address or Path(address).exists()


def _no_budget(address: str, declared: "Schema") -> BadParameter:
    tables = " ".join(f"--table {printable(name)}" for name in (declared.table, *declared.shares_people_with))
    return BadParameter(
        f'nothing may be spent on table "{printable(declared.table)}" yet: it has no budget in {printable(address)}. '
        f"Ask with --budget 1 --delta 1e-9 once, or: discreet ledger cap {printable(address)} --epsilon 1 "
        f"--delta 1e-9 {tables}"
    )


@contextmanager
def open_curator(
    schema: Path, ledger: str | None, given: "Budget | None", analyst: str | None, *, planning: bool = False
) -> Iterator["Curator"]:
    """A curator on the table. The source is opened before a ledger is created; a plan creates none."""
    from discreet.curator import Curator
    from discreet.ledger import Ledger
    from discreet.ledger.ledger import ANYONE
    from discreet.source.table import open as open_table

    table, address = open_table(schema), ledger_of(schema, ledger)
    with ExitStack() as opened:
        book = None
        if _exists(address) or (given is not None and not planning):
            book = opened.enter_context(Ledger(address, create=given is not None and not planning))
        if book is None or not _is_capped(book, table):
            if given is None:
                raise _no_budget(address, table.schema)
            if planning:
                book = opened.enter_context(_temporary_ledger())
        elif planning and given is not None:
            _require_cap(book, table, given)
            given = None
        assert book is not None, "there is a ledger, or one was begun"
        yield Curator(table, budget=given, ledger=book, analyst=ANYONE if analyst is None else analyst)


def _is_capped(book: "Ledger", table: "Table") -> bool:
    """Whether something may be spent on the table: whether a cap counts all analysts together."""
    return any(scope.analyst is None and table.name in (scope.tables or (table.name,)) for scope in book.caps)


@contextmanager
def _temporary_ledger() -> Iterator["Ledger"]:
    """A temporary ledger, for a plan on a table that has no budget yet."""
    from tempfile import TemporaryDirectory

    from discreet.ledger import Ledger

    with TemporaryDirectory() as folder, Ledger(Path(folder) / "thought.sqlite") as book:
        yield book


def _require_cap(book: "Ledger", table: "Table", given: "Budget") -> None:
    """A plan sets no cap, so a budget given with it must be the one that is set."""
    if given not in (cap for scope, cap in book.caps.items() if scope.tables and table.name in scope.tables):
        raise BadParameter(
            f'table "{printable(table.name)}" has another budget already, and a plan sets none. Plan without --budget, '
            "or raise it: discreet ledger raise"
        )

"""`discreet release`: a synthetic table and all marginals at once, from a shell."""

import csv
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.ask_commands import Analyst, At, SchemaFile, open_curator
from discreet.cli.output import printable, waiting
from discreet.errors import BadParameter

if TYPE_CHECKING:
    from discreet.curator import Curator
    from discreet.curator.release import Release
    from discreet.ledger import Budget
    from discreet.query import Marginal, Workload

# Columns of each marginal, by default.
_COLUMNS_AT_ONCE = 3
_UNITS = {"": 1, "B": 1} | {
    f"{letter}{unit}": base**power
    for power, letter in enumerate("KMGT", start=1)
    for unit, base in (("", 1000), ("B", 1000), ("IB", 1024))
}


class RowsForm(StrEnum):
    """How the rows are written."""

    PARQUET = "parquet"
    CSV = "csv"


def release(
    schema: SchemaFile,
    epsilon: Annotated[float, typer.Option(help="What the release may cost.", show_default=False)],
    delta: Annotated[
        float | None, typer.Option(help="The probability that more leaks, say 1e-9. Without it, that of the table.")
    ] = None,
    marginals: Annotated[
        int | None, typer.Option(min=1, help="Be accurate for all marginals of this many columns; 3 by default.")
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(metavar="A,B", help="Instead: be accurate for the marginal of these columns; may be repeated."),
    ] = None,
    method: Annotated[str, typer.Option(help="How to make it; auto takes the one with the best forecast.")] = "auto",
    rows: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="How many synthetic rows; by default as many as the table has. With --plan: about how many it has.",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where to write it; SCHEMA-release if not said.")
    ] = None,
    form: Annotated[RowsForm, typer.Option("--format", help="How to write the rows.")] = RowsForm.PARQUET,
    plan: Annotated[
        bool, typer.Option("--plan", help="Only show what each method is expected to do: free, and reads no row.")
    ] = False,
    seconds: Annotated[float | None, typer.Option(help="The most processor time it may take, in seconds.")] = None,
    memory: Annotated[str | None, typer.Option(metavar="SIZE", help="The most memory it may need, say 2GB.")] = None,
    analyst: Analyst = None,
    key: Annotated[str | None, typer.Option(help="Makes it safe to repeat: the same key is paid once.")] = None,
    ledger: At = None,
    budget: Annotated[
        float | None, typer.Option("--budget", help="The epsilon that may ever be spent on the table; needed once.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over an earlier release.")] = False,
) -> None:
    """Make a release: synthetic rows and every marginal, with errors, a privacy statement and a page to read.

    --epsilon and --delta are for this release; --budget caps the table, once, at the same delta. See --plan first.
    """
    from discreet.ledger import Budget

    if marginals is not None and columns:
        raise BadParameter(
            "--marginals and --columns are both given; a release is made for one of them. Leave one out."
        )
    most = None if memory is None else bytes_of(memory)
    folder = Path(f"{schema.stem}-release") if output is None else output
    if not plan:
        _require_free(folder, form, force=force)
    cap = None if budget is None else Budget(budget, delta or 0)
    with open_curator(schema, ledger, cap, analyst, planning=plan) as desk:
        asked = Budget(epsilon, desk.remaining.delta if delta is None else delta)
        wanted = _workload(desk, marginals, columns)
        if plan:
            with waiting("Planning"):
                said = desk.plan(wanted, budget=asked, rows=rows, seconds=seconds, memory=most)
            print(f"{said}\nLeft: {desk.remaining}. Nothing was spent.")
            _advise(asked)
            return
        with release_progress("Releasing") as tell:
            made = desk.release(wanted, budget=asked, method=method, seconds=seconds, memory=most, key=key, tell=tell)
    with waiting("Writing"):
        number = _write(made, folder, rows, form, force=force)
    _print_release(made, folder, number, schema)


def bytes_of(size: str) -> int:
    """A size of memory, in bytes.

    >>> bytes_of("2GB"), bytes_of("1.5 MiB"), bytes_of("4096")
    (2000000000, 1572864, 4096)
    """
    read = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", size)
    unit = None if read is None else _UNITS.get(read[2].upper())
    if read is None or unit is None or float(read[1]) <= 0:
        raise BadParameter(
            f'memory is "{printable(size, longest=60)}"; it is a size above 0 with a unit. Write 2GB, or 800MB.'
        )
    return int(float(read[1]) * unit)


@contextmanager
def release_progress(what: str) -> Iterator[Callable[[float], None] | None]:
    """Show progress from 0 to 1, on a terminal only."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    shown = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*shown, console=Console(stderr=True), transient=True) as bar:
        # Until progress is reported, the bar only moves.
        task = bar.add_task(what, total=None)
        yield lambda share: bar.update(task, total=1.0, completed=min(max(share, 0.0), 1.0))


def _workload(
    desk: "Curator", marginals: int | None, columns: list[str] | None
) -> "Workload[Marginal] | list[list[str]]":
    from discreet.query import marginals as all_marginals

    if columns:
        # As in a CSV file, a name with a comma is quoted.
        return [[name.strip() for name in next(csv.reader([each], skipinitialspace=True), [])] for each in columns]
    domain = desk.table.domain
    return all_marginals(domain, min(_COLUMNS_AT_ONCE, len(domain)) if marginals is None else marginals)


def _advise(asked: "Budget") -> None:
    if not asked.delta:
        print(
            "With delta 0 only Laplace noise may be used; with a delta, say 1e-9, errors are much smaller.",
            file=sys.stderr,
        )


def _require_free(folder: Path, form: RowsForm, *, force: bool) -> None:
    """Refuse what could not be written, before anything is paid."""
    if form is RowsForm.PARQUET:
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            raise BadParameter(
                "--format parquet needs the package pyarrow, which is not installed. Say --format csv."
            ) from None
    if folder.exists() and not folder.is_dir():
        raise BadParameter(f'"{folder}" is a file; a release is written into a folder. Choose another --output.')
    if folder.is_dir() and any(folder.iterdir()) and not force:
        raise BadParameter(f'"{folder}" has files already and is not overwritten. Say --force, or another --output.')
    above = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    if not os.access(above, os.W_OK | os.X_OK):
        raise BadParameter(f'"{folder}" cannot be written. Choose another --output.')


def _write(made: "Release", folder: Path, rows: int | None, form: RowsForm, *, force: bool) -> int:
    """Write the release and its rows; how many rows there are."""
    try:
        made.save(folder, force=force)
        synthetic = made.rows(rows)
        for other in RowsForm:
            # Rows of an earlier release must not lie beside the card of this one.
            (folder / f"rows.{other}").unlink(missing_ok=True)
        write = synthetic.write_csv if form is RowsForm.CSV else synthetic.write_parquet
        write(folder / f"rows.{form}")
    except OSError as error:
        raise BadParameter(
            f'"{folder}" cannot be written: {error.strerror}. What was paid for is in the ledger; make the release '
            "again with the same --key, if it had one, and another --output."
        ) from None
    return len(synthetic)


def _print_release(made: "Release", folder: Path, number: int, schema: Path) -> None:
    where = printable(str(folder))
    print(made.card.short)
    files = ", ".join(sorted(printable(each.name) for each in folder.iterdir()))
    print(f"\nWritten to {where}: {files}; {number:,} rows.")
    print("Next:")
    steps = (
        (f"open {where}/card.html", "what is promised, the errors, pictures"),
        (f'python: dp.Release.load("{where}")', "answers, marginals, more rows: all free"),
        (f"discreet known {printable(str(schema))}", "what can be asked of the table for free now"),
    )
    wide = max(len(command) for command, _ in steps)
    for command, why in steps:
        print(f"  {command:{wide}}  {why}")
    _advise(made.card.budget)

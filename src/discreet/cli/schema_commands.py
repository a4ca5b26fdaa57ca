"""`discreet schema …`: drafting and checking schema files."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.output import printable, write_new

if TYPE_CHECKING:
    from discreet.schema import Column, Schema

app = typer.Typer(name="schema", help="Schema files: what a row may be, and whom we protect.", no_args_is_help=True)


@app.command("draft")
def draft_schema(
    file: Annotated[Path, typer.Argument(help="CSV, Parquet or DuckDB; or metadata of SmartNoise, Lomas or mbi.")],
    output: Annotated[Path | None, typer.Option(help="Where to write it; otherwise it is printed.")] = None,
    codebook: Annotated[
        Path | None, typer.Option(help="A public file with values and bounds: YAML, JSON or CSV.")
    ] = None,
    public_data: Annotated[bool, typer.Option("--public-data", help="The rows are public: use their values.")] = False,
    table: Annotated[str | None, typer.Option(help="Which table, where there are several; or its name.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the output.")] = False,
) -> None:
    """Write a schema with blanks for you to fill in, from the names and types of the columns alone."""
    from os.path import relpath

    from discreet.schema.yaml.codebook import read_codebook
    from discreet.schema.yaml.draft import draft_text, with_codebook
    from discreet.source.inspect import inspect_file

    found = inspect_file(file, table=table, public=public_data)
    book = {} if codebook is None else read_codebook(codebook, found.columns)
    columns = with_codebook(found.columns, book)
    remarks = [
        *([f"Values and bounds are from the code book {codebook.name}."] if codebook else []),
        *(f'Left out: column "{name}" of type {kind}, which has no cells.' for name, kind in found.skipped.items()),
        *(f'In the code book and not in the table: "{name}".' for name in book if name not in columns),
    ]
    source = None if found.source is None else relpath(found.source, output.parent if output else Path())
    text = draft_text(found.table, columns, origin=found.origin, source=source, unit=found.unit, remarks=remarks)
    if output is None:
        sys.stdout.write(text)
        return
    write_new([text], output, force=force)
    blanks = sum(bool(sketch.gaps) for sketch in columns.values())
    print(f"Wrote {output}: {len(columns)} columns, {blanks} of them with blanks. Complete it, then run:")
    print(f"  discreet schema check {output}")


@app.command("check")
def check_schema(
    file: Annotated[Path, typer.Argument(help="A schema file, or metadata of SmartNoise, Lomas or mbi.")],
    table: Annotated[str | None, typer.Option(help="Which table, where there are several.")] = None,
    no_source: Annotated[bool, typer.Option("--no-source", help="Do not open the rows.")] = False,
) -> None:
    """Read a schema and show what it means; open its source and see that the columns are there."""
    from rich.console import Console
    from rich.text import Text

    from discreet.schema import read_schema

    schema = read_schema(file, table=table)
    console = Console(highlight=False)
    console.print(_schema_table(schema))
    console.print(Text.assemble("Version    ", schema.version))
    if schema.shares_people_with:
        console.print(Text(f"People     shared with {', '.join(schema.shares_people_with)}: one budget for all"))
    console.print(Text.assemble("Protected  ", (schema.unit.describe, "bold")))
    console.print(f"Possible   {schema.domain.size:,} different rows")
    if schema.source is None or no_source:
        console.print(Text(f"Source     {schema.source or 'none'}" + ", not opened" * (schema.source is not None)))
        return
    from discreet.source.table import open as open_table

    open_table(file)
    console.print(Text(f"Source     {schema.source}, opened: every column is there"))


@app.command("confirm")
def confirm_schema(
    file: Annotated[Path, typer.Argument(help="The schema file of a table whose source looks different.")],
    ledger: Annotated[
        str | None, typer.Option("--ledger", metavar="ADDRESS", help="Its ledger, if it is not the usual one.")
    ] = None,
) -> None:
    """Say that the rows are the same, although the file or the database looks different: it was copied, or touched.

    If any row has changed, declare a new version in the schema instead. No row is compared.
    """
    from discreet.cli.ledger_address import ledger_of
    from discreet.cli.ledger_commands import user
    from discreet.ledger import Ledger
    from discreet.source.table import open as open_table

    table = open_table(file)
    with Ledger(ledger_of(file, ledger), create=False) as book:
        before = book.tables.get(table.name)
        book.bind(table.identity, by=user(), confirm=True)
    name, version = printable(table.name), printable(table.schema.version)
    if before is not None and before.version == table.schema.version:
        print(f'Confirmed: table "{name}" still is version "{version}". Start a server that has it open again.')
    else:
        print(f'Declared: table "{name}" is version "{version}" from now on.')


def _schema_table(schema: "Schema") -> object:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from discreet.schema.yaml.writer import scalar

    shown = Table(title=Text(f"Table {schema.table}"), title_justify="left", box=box.SIMPLE_HEAD, title_style="bold")
    for header in ("column", "kind", "cells", "outside", "missing"):
        shown.add_column(header, justify="right" if header == "cells" else "left")
    for name, column in schema.domain.columns:
        rules = (Text(scalar(column.outside)), Text(scalar(column.missing)))
        shown.add_row(Text(name), Text(_kind(column)), f"{column.size:,}", *rules)
    return shown


def _kind(column: "Column") -> str:
    """What a column is, in a few words."""
    from discreet.schema import Bins, Categories, Integers

    match column:
        case Categories() if set(column.values) == {False, True} and type(column.values[0]) is bool:
            return "boolean"
        case Categories():
            return f"{column.inside:,} value{'s' * (column.inside > 1)}" + (", ordered" if column.ordered else "")
        case Integers():
            return f"integers {column.lower} to {column.upper}"
        case Bins():
            edges = "dates" if column.kind == "date" else "integers" if column.whole else "numbers"
            bins = "1 bin" if column.inside == 1 else f"{column.inside:,} bins"
            return f"{bins} of {edges} {column.starts[0]} to {column.upper}"

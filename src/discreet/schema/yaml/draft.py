"""Drafts: a schema file with blanks, for the owner to complete. A pure function of what is known of the columns."""

from collections.abc import Mapping, Sequence
from typing import Literal

from discreet.schema.unit import Unit
from discreet.schema.yaml.partial_column import PartialColumn
from discreet.schema.yaml.writer import entry, quoted, unit_lines
from discreet.schema.yaml.yaml_tree import BLANK

DraftOrigin = Literal["names", "types", "values", "metadata"]

_ORIGIN = {
    "names": """\
Written from the names of the columns alone: a CSV file does not say their types, and no row was read.""",
    "types": """\
Written from the names and types of the columns alone: no row was read.""",
    "values": """\
WRITTEN FROM THE ROWS, because --public-data was said: the bounds and values below are those of the table itself. If
its rows are private, delete this file and draft again without --public-data.""",
    "metadata": """\
Converted from the metadata of another tool.""",
}

_RULE = """\
Everything in a schema is public. Write what you know of the subject, from a code book, a form or common sense, never
what you see in the rows: the highest age in the table is somebody's age."""

_UNIT = """\
Whom we protect. `row`: each row is another person. Or the name of the column that says whose row it is, and then the
most rows that one person may have (further ones are dropped)."""

_COLUMNS = """\
What may be asked about. Remove the other columns, also the one that says whose row it is.
  {type: integer, lower: 0, upper: 120}             a cell for each integer
  {type: integer, bins: [0, 18, 65], upper: 120}    a cell for each bin: 0 to 17, 18 to 64, 65 to 120
  {type: number, bins: [0, 0.5], upper: 1}          the same for decimals; for dates: [2000-01-01, 2020-01-01]
  {values: [Female, Male]}                          a cell for each value; with `ordered: true`, < and > can be asked
  {type: boolean}
Where a value goes that does not fit: `outside: drop`, clip, other or a value; `missing: drop`, missing or a value."""


def draft_text(
    table: str,
    columns: Mapping[str, PartialColumn],
    *,
    origin: DraftOrigin,
    source: str | None = None,
    unit: Unit | None = None,
    remarks: Sequence[str] = (),
) -> str:
    """The text of a schema file with `___` for everything that is not known.

    >>> text = draft_text("people", {"age": PartialColumn("integer"), "sex": PartialColumn("text")}, origin="types")
    >>> print(*text.splitlines()[-3:], sep="\\n")
    columns:
      age: {type: integer, lower: ___, upper: ___}
      sex: {type: text, values: [___]}
    """
    blanks = unit is None or any(sketch.gaps for sketch in columns.values())
    step = f"A draft. Fill in every {BLANK}" if blanks else "A draft without blanks. Read it through"
    lines = [
        *_comment(f"{step}, then run: discreet schema check\n\n{_ORIGIN[origin]}\n\n{_RULE}"),
        *_comment("\n".join(["", *remarks]) if remarks else ""),
        "",
        f"table: {quoted(table)}",
        "# source: people.parquet" if source is None else f"source: {quoted(source)}",
        "",
        *_comment(_UNIT),
        *_unit(unit),
        "",
        *_comment(_COLUMNS),
        "columns:",
        *(_column(name, sketch) for name, sketch in columns.items()),
    ]
    return "\n".join(lines) + "\n"


def with_codebook(columns: Mapping[str, PartialColumn], book: Mapping[str, PartialColumn]) -> dict[str, PartialColumn]:
    """The columns with what a code book says of them, which goes before what is known from elsewhere.

    >>> drafted, book = PartialColumn("integer", lower=3), PartialColumn(lower=0, upper=120)
    >>> with_codebook({"age": drafted}, {"age": book})["age"].lower
    0
    """
    said = {name: book.get(name, PartialColumn()) for name in columns}
    return {name: PartialColumn(sketch.kind).filled(said[name]).filled(sketch) for name, sketch in columns.items()}


def _comment(text: str) -> list[str]:
    # A name in a remark may have a line break of some kind, and a comment must not end there.
    lines = [line if line.isprintable() else ascii(line) for line in text.split("\n")]
    return [f"# {line}".rstrip() for line in lines] if text else []


def _unit(unit: Unit | None) -> list[str]:
    if unit is not None:
        return unit_lines(unit)
    return [f"privacy_unit: {BLANK}", "# contributions: 1", "neighbors: add_remove"]


def _column(name: str, sketch: PartialColumn) -> str:
    line = entry(name, sketch)
    if sketch.kind == "integer" and isinstance(sketch.lower, int) and isinstance(sketch.upper, int):
        cells = sketch.upper - sketch.lower + 1
        if sketch.bins is None and sketch.values is None and cells > 1_000:
            return f"{line}    # {cells:,} cells; bins would be fewer"
    return line

"""Output of the commands: safe texts on a terminal, answers as tables, CSV and JSON, and files that are not overwritten
by accident.
"""

import csv
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from typing import Any

from discreet.errors import BadParameter


def printable(text: str, *, longest: int | None = None) -> str:
    """A text from outside, made safe for a terminal.

    Characters that are not seen (escape sequences, line ends, changes of direction) are written out.

    >>> print(printable("how many?\\x1b[2J"))
    how many?\\x1b[2J
    >>> printable("a long story", longest=6)
    'a lon…'
    """
    if longest is not None and len(text) > longest:
        text = text[: longest - 1] + "…"
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)


def write_new(lines: Iterable[str], output: Path, *, force: bool) -> None:
    """Write a text to a new file; with `force` an existing one is overwritten."""
    try:
        with output.open("w" if force else "x", encoding="utf-8") as file:
            try:
                file.writelines(lines)
            except BaseException:
                # Half of a text must not be taken for all of it.
                if not force:
                    output.unlink(missing_ok=True)
                raise
    except FileExistsError:
        raise BadParameter(
            f'"{output}" exists and is not overwritten. Say --force, or give another --output.'
        ) from None
    except OSError as error:
        raise BadParameter(f'"{output}" cannot be written: {error.strerror}. Choose another --output.') from None


# Seconds after which a spinner is shown.
_PATIENCE = 0.7


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show on a terminal, and nowhere else, that something goes on if it takes long."""
    from threading import Event, Thread

    if not sys.stderr.isatty():
        yield
        return
    done = Event()

    def show() -> None:
        if not done.wait(_PATIENCE):
            from rich.console import Console

            with Console(stderr=True).status(f"{what} …"):
                done.wait()

    shown = Thread(target=show, daemon=True)
    shown.start()
    try:
        yield
    finally:
        done.set()
        shown.join()


def write_csv(columns: Mapping[str, Sequence[Any]]) -> None:
    """The columns, with a line of names; what is missing or unknown is empty."""
    rows = csv.writer(sys.stdout, lineterminator="\n")
    rows.writerow(columns)
    rows.writerows(
        ["" if _plain(value) is None else value for value in row] for row in zip(*columns.values(), strict=True)
    )


def write_json(fields: Mapping[str, Any]) -> None:
    """One line of JSON: what is unknown is null, because infinity is no JSON."""
    print(json.dumps({name: _plain(value) for name, value in fields.items()}, ensure_ascii=False))


def _plain(value: Any) -> Any:
    """A value as JSON knows them."""
    from discreet.ledger import Budget

    match value:
        case Budget():
            return {"epsilon": float(value.epsilon), "delta": float(value.delta)}
        case Mapping():
            return {name: _plain(each) for name, each in value.items()}
        case float():
            return value if isfinite(value) else None
        case None | bool() | int() | str():
            return value
        case Sequence():
            return [_plain(each) for each in value]
    return _plain(value.tolist()) if hasattr(value, "tolist") else str(value)


def print_known(columns: Mapping[str, Sequence[Any]], confidence: float) -> None:
    """Print the marginals that are known in full, with the error of a cell."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from discreet.answer import error_text

    console = Console(highlight=False)
    if not columns["columns"]:
        console.print("Nothing is known of all cells of any column yet. Ask with --error, say: GROUP BY a column.")
        return
    shown = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name, side in (("columns", "left"), ("cells", "right"), (f"a cell, {100 * confidence:g} %", "right")):
        shown.add_column(name, justify=side)  # type: ignore[arg-type]
    for names, cells, error in zip(*columns.values(), strict=True):
        shown.add_row(Text(printable(names)), f"{cells:,}", f"± {error_text(error)}")
    console.print(shown)
    console.print(Text("Every count of these columns, and of fewer of them, is free.", style="dim"))


def worst(error: Any) -> float:
    """The largest of all errors: of one number, of a column of them, or of several columns."""
    return max(map(worst, error), default=0.0) if hasattr(error, "__len__") else float(error)

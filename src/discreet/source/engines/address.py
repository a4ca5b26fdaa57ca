"""Where rows are, as an owner writes it: a path, or scheme://place?table=name. Reading it touches nothing."""

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode

from discreet.errors import BadSchema, did_you_mean

# The format of a file, by its ending.
FILE_FORMATS = {
    **dict.fromkeys([".csv", ".tsv", ".txt"], "csv"),
    **dict.fromkeys([".parquet", ".pq"], "parquet"),
    **dict.fromkeys([".duckdb", ".ddb", ".db"], "duckdb"),
}
SCHEMES = {"duckdb": "duckdb", "postgres": "postgres", "postgresql": "postgres", "spark": "spark", "sc": "spark"}


@dataclass(frozen=True)
class Address:
    """An engine, the place where it finds the rows (which may hold a password, so it is not shown), and a table."""

    engine: str
    place: str = field(repr=False)
    table: str | None = None
    path: str | None = None


def read_address(text: str, *, folder: Path | None = None) -> Address:
    """The parts of an address. A relative path starts from `folder`; ${NAME} is taken from the environment.

    >>> read_address("duckdb://people.duckdb?table=visits", folder=Path("/data")).place
    '/data/people.duckdb'
    >>> read_address("people.parqet")
    Traceback (most recent call last):
    discreet.errors.BadSchema: the source "people.parqet" ends in ".parqet"; did you mean ".parquet"? …
    """
    if not isinstance(text, str) or not text.strip():
        raise BadSchema(f"the source is {text!r}; it must be a path or an address, say people.parquet.")
    scheme, separator, rest = text.partition("://")
    if not separator:
        return _file(text, folder)
    if scheme not in SCHEMES:
        raise BadSchema(
            f'the source starts with "{scheme}://"; {did_you_mean(scheme, SCHEMES)} Give a file, or an address that '
            "starts with duckdb://, postgres://, spark:// or sc:// (Spark Connect)."
        )
    place, _, query = _filled(rest).partition("?")
    options = dict(parse_qsl(query, keep_blank_values=True))
    table, path = options.pop("table", None), options.pop("path", None)
    match SCHEMES[scheme]:
        case "duckdb":
            _no_more(options, scheme, ["table"])
            return Address("duckdb", str(_within(folder, place)), table)
        case "postgres":
            if not all(re.fullmatch(r"\w+", name) for name in options):
                raise BadSchema(
                    "the Postgres address has an option that is no word. In a password write %3F for ?, or take it "
                    "from the environment: postgres://ana:${PASSWORD}@host/database."
                )
            return Address("postgres", f"postgresql://{place}" + (f"?{urlencode(options)}" if options else ""), table)
        case _:
            _no_more(options, scheme, ["table", "path"])
            if table is not None and path is not None:
                raise BadSchema("the source names a table and a path; give one of ?table=… and ?path=….")
            remote = scheme == "sc" or re.match(r"[\w.-]+:\d+$", place)
            return Address("spark", f"{scheme}://{place}" if remote else place, table, path)


def _file(text: str, folder: Path | None) -> Address:
    path = _within(folder, text)
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in (".gz", ".zst"):
        suffixes.pop()
    ending = suffixes[-1] if suffixes else ""
    if ending not in FILE_FORMATS:
        raise BadSchema(
            f'the source "{text}" ends in "{ending}"; {did_you_mean(ending, FILE_FORMATS)} Give a CSV, Parquet or '
            "DuckDB file, or an address such as postgres://host/database?table=people."
        )
    return Address(FILE_FORMATS[ending], str(path))


def _within(folder: Path | None, text: str) -> Path:
    path = Path(text).expanduser()
    return path if folder is None else folder / path


def _no_more(options: dict[str, str], scheme: str, known: list[str]) -> None:
    for name in options:
        raise BadSchema(f'a {scheme}:// source has no option "{name}"; {did_you_mean(name, known)}')


def _filled(text: str) -> str:
    """The text with what the environment holds. Before the @, where the password is, any character may be in it."""

    def value(match: re.Match[str]) -> str:
        name = match.group(1)
        if name not in os.environ:
            raise BadSchema(f"the source uses ${{{name}}}, which is not in the environment. Set it and try again.")
        return quote(os.environ[name], safe=":") if match.end() <= text.rfind("@") else os.environ[name]

    return re.sub(r"\$\{(\w+)\}", value, text)

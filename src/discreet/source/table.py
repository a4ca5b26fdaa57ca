"""A table under protection: what is public about it, and where the rows are."""

from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import partial
from os import PathLike, fspath
from pathlib import Path
from typing import Any
from uuid import uuid4

from discreet.errors import BadData, BadSchema, SourceUnavailable
from discreet.schema.domain import Domain
from discreet.schema.schema import SCHEMA_ENDINGS, Schema
from discreet.schema.unit import Identity, Unit
from discreet.source.frame import Frame
from discreet.source.query_sensitivity import AnyQuery
from discreet.source.source import Exact, Source


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """A schema and a source."""

    schema: Schema
    source: Source

    @property
    def name(self) -> str:
        """What SQL calls it."""
        return self.schema.table

    @property
    def domain(self) -> Domain:
        """What a row may be."""
        return self.schema.domain

    @property
    def unit(self) -> Unit:
        """The unit of privacy."""
        return self.schema.unit

    @property
    def identity(self) -> Identity:
        """The identity that a ledger checks. Reads no row; without a fingerprint while the source is unavailable."""
        said, seen = self.schema, None
        with suppress(SourceUnavailable):
            seen = self.fingerprint()
        return Identity(said.table, said.unit, said.version, said.shares_people_with, seen)

    def evaluate(self, question: AnyQuery) -> Exact:
        """The true integers, sealed; only a mechanism opens them."""
        return self.source.evaluate(question)

    def fingerprint(self) -> str | None:
        """A fingerprint of the state of the rows, changed by edits and never made of contents; None if there is none.

        For the owner: nobody else may see it, nor a hash of it without a secret.
        """
        return self.source.fingerprint()

    def touch(self) -> None:
        """Raise `SourceUnavailable` or `SourceChanged` if the rows cannot be read now. To be called before paying."""
        self.source.touch()

    def snapshot(self) -> AbstractContextManager[None]:
        """All that is evaluated within is read from one state of the table, also while others change it."""
        return self.source.snapshot()

    def __repr__(self) -> str:
        return f"<Table: {', '.join(self.domain)}; {self.unit.describe}>"


def open(
    data: Any,
    *,
    schema: Schema | str | PathLike[str] | None = None,
    domain: Domain | None = None,
    unit: Unit | None = None,
    in_memory: bool = False,
) -> Table:
    """Put a table under protection.

    `data` is a schema file that names its source (`people.yaml`); or a path or an address of the rows (CSV, Parquet,
    DuckDB, postgres://, spark://, see docs/sources.md); or the rows: a pandas, polars or Spark DataFrame, a pyarrow or
    Ibis Table, a dict of lists, a list of dicts, a numpy structured array. Say what the rows may be with `schema` (a
    Schema, or the path of its file), or with a `domain` and a `unit`; without a unit, each row is a person.

    Rows in memory are coded by the domain now and the original is not kept. Rows elsewhere stay there, unless you say
    `in_memory`: then they are read once, now, as one small integer for each row and column. Questions about new columns
    take less than a millisecond then, and changes of the original are not seen.

    >>> from discreet.schema.column import Integers
    >>> open({"age": [31, 64]}, domain=Domain({"age": Integers(0, 99)}))
    <Table: age; one row is added or removed>
    """
    if isinstance(data, (str, PathLike)):
        text, folder = fspath(data), Path()
        if schema is None and domain is None:
            schema, folder = _read_schema(text), Path(text).parent
            text = _source_of(schema, text)
        declared = _declared(schema, domain, unit)
        source = _source_at(text, folder, declared)
        return Table(declared, _kept_in_memory(source) if in_memory else source)
    declared = _declared(schema, domain, unit)
    return Table(declared, _source_of_rows(data, declared))


def _kept_in_memory(source: Any) -> Source:
    fingerprint = source.fingerprint()
    return Frame.of_codes(source.coded_rows(), domain=source.domain, unit=source.unit, fingerprint=fingerprint)


def _declared(schema: Any, domain: Any, unit: Any) -> Schema:
    if schema is None and domain is None:
        raise BadSchema("open() was given rows and no schema. Say what they may be, with schema=… or domain=….")
    if schema is None:
        return Schema("data", domain, Unit() if unit is None else unit)
    if domain is not None or unit is not None:
        raise BadSchema("open() was given a schema, and a domain or a unit as well. A schema has both: give it alone.")
    if isinstance(schema, (str, PathLike)):
        return _read_schema(fspath(schema))
    if not isinstance(schema, Schema):
        raise BadSchema(f"schema is a {type(schema).__name__}; it must be a Schema or the path of a schema file.")
    return schema


def _read_schema(path: str) -> Schema:
    from discreet.schema.yaml.schema_file import read_with_people

    return read_with_people(Path(path))


def _source_of(schema: Schema, path: str) -> str:
    if Path(path).suffix.lower() not in SCHEMA_ENDINGS:
        raise BadSchema(f'open("{path}") needs a schema. Give it with schema=…, or open the schema file itself.')
    if schema.source is None:
        raise BadSchema(
            f'the schema "{path}" names no source. Add a line "source: people.parquet", or give the rows: '
            f'open(rows, schema="{path}").'
        )
    return schema.source


def _source_at(text: str, folder: Path, schema: Schema) -> Source:
    from discreet.source.engines.address import read_address
    from discreet.source.engines.connect import connect_table, engine_errors_as, local_files
    from discreet.source.engines.engine import Engine
    from discreet.source.engines.expression import code_text
    from discreet.source.engines.files import open_csv

    address = read_address(text, folder=folder)
    domain, unit = schema.domain, schema.unit
    if address.engine == "csv":
        rows = open_csv(address.place, [*domain, *([] if unit.key is None else [unit.key])])
        with engine_errors_as(
            f'"{text}" cannot be read: some line has another number of fields than the header, is not in UTF-8, or is '
            "longer than 2 MB."
        ):
            return Engine(rows, domain=domain, unit=unit, coder=code_text, copy=True, place=address.place)
    copy = address.engine in ("parquet", "duckdb") and unit.key is not None
    reopen = partial(connect_table, address, schema.table)
    with engine_errors_as("the rows cannot be read: the file is damaged, or the server has stopped."):
        place = address.place if address.engine in ("parquet", "duckdb") else local_files(address)
        return Engine(reopen(), domain=domain, unit=unit, copy=copy, reopen=None if copy else reopen, place=place)


def _source_of_rows(data: Any, schema: Schema) -> Source:
    module = type(data).__module__
    if module.startswith(("ibis.", "pyspark.")):
        from discreet.source.engines.connect import engine_errors_as
        from discreet.source.engines.engine import Engine

        with engine_errors_as("the rows cannot be read: the table is gone, or the server has stopped."):
            return Engine(_ibis_table(data), domain=schema.domain, unit=schema.unit)
    return Frame(data, domain=schema.domain, unit=schema.unit)


def _ibis_table(data: Any) -> Any:
    import ibis

    if type(data).__module__.startswith("ibis."):
        if not isinstance(data, ibis.Table):
            raise BadData(f"a table cannot be read from an Ibis {type(data).__name__}. Give an Ibis Table.")
        # Tables in memory become known to the engine when something is first asked of them.
        data.limit(0).count().execute()
        return data
    connection = ibis.pyspark.connect(data.sparkSession)
    name = f"discreet_{uuid4().hex}"
    data.createOrReplaceTempView(name)
    return connection.table(name)

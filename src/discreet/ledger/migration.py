"""The tables of a ledger, and the steps from each version of them to the next.

A step is a list of statements for each database, and is never changed once it was released. Two tables, one of which
has one number in it, do not need a migration library.
"""

import sqlalchemy as sa

from discreet.errors import BadParameter, LedgerDamaged, LedgerFailed

_METADATA = sa.MetaData()

ENTRY = sa.Table(
    "discreet_ledger",
    _METADATA,
    sa.Column("sequence", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("released", sa.LargeBinary),
    sa.Column("key", sa.Text),
    sa.Column("records", sa.BigInteger),
    sa.Column("hash", sa.LargeBinary, nullable=False),
)

VERSION = sa.Table("discreet_ledger_version", _METADATA, sa.Column("version", sa.Integer, nullable=False))

_REFUSE = "RAISE EXCEPTION 'the ledger is append-only'"

MIGRATIONS: tuple[dict[str, tuple[str, ...]], ...] = (
    {
        "sqlite": (
            "CREATE TABLE discreet_ledger (sequence INTEGER PRIMARY KEY CHECK (sequence > 0), body TEXT NOT NULL, "
            "released BLOB, key TEXT, records INTEGER, hash BLOB NOT NULL CHECK (length(hash) = 32))",
            "CREATE UNIQUE INDEX discreet_ledger_key ON discreet_ledger (key) WHERE key IS NOT NULL",
            "CREATE UNIQUE INDEX discreet_ledger_records ON discreet_ledger (records) WHERE records IS NOT NULL",
            "CREATE TRIGGER discreet_ledger_update BEFORE UPDATE ON discreet_ledger "
            "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END",
            # REPLACE deletes what stands in its way without asking the trigger of deletions.
            "CREATE TRIGGER discreet_ledger_insert BEFORE INSERT ON discreet_ledger "
            "WHEN EXISTS (SELECT 1 FROM discreet_ledger WHERE sequence = NEW.sequence) "
            "OR EXISTS (SELECT 1 FROM discreet_ledger WHERE key = NEW.key) "
            "OR EXISTS (SELECT 1 FROM discreet_ledger WHERE records = NEW.records) "
            "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END",
            "CREATE TRIGGER discreet_ledger_delete BEFORE DELETE ON discreet_ledger "
            "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END",
        ),
        "postgresql": (
            "CREATE TABLE discreet_ledger (sequence BIGINT PRIMARY KEY CHECK (sequence > 0), body TEXT NOT NULL, "
            "released BYTEA, key TEXT, records BIGINT, hash BYTEA NOT NULL CHECK (length(hash) = 32))",
            "CREATE UNIQUE INDEX discreet_ledger_key ON discreet_ledger (key) WHERE key IS NOT NULL",
            "CREATE UNIQUE INDEX discreet_ledger_records ON discreet_ledger (records) WHERE records IS NOT NULL",
            f"CREATE FUNCTION discreet_ledger_refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {_REFUSE}; END $$",
            "CREATE TRIGGER discreet_ledger_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON discreet_ledger "
            "FOR EACH STATEMENT EXECUTE FUNCTION discreet_ledger_refuse()",
        ),
    },
)


def migrate(connection: sa.Connection, *, create: bool, where: str) -> None:
    """Bring the tables to the version of this program, in one transaction; all processes may do it at once."""
    version = _version(connection)
    if version == len(MIGRATIONS):
        return
    if version > len(MIGRATIONS):
        raise LedgerFailed(
            f'the ledger in "{where}" has format {version} and this program knows {len(MIGRATIONS)}. Upgrade discreet.'
        )
    if version == 0:
        _require_new(connection, where)
    if not create and version == 0:
        raise BadParameter(f'there is no ledger in "{where}". Check the address.')
    kind = connection.dialect.name
    # The driver is in autocommit mode, so that the transaction is ours to begin: as a writer, from the first moment.
    connection.exec_driver_sql("BEGIN IMMEDIATE" if kind == "sqlite" else "BEGIN")
    try:
        if kind != "sqlite":
            # Any number will do, if it is always the same one.
            connection.exec_driver_sql("SELECT pg_advisory_xact_lock(4735120236)")
        version = _version(connection)
        if version == 0:
            connection.exec_driver_sql(
                str(sa.schema.CreateTable(VERSION, if_not_exists=True).compile(connection.engine))
            )
            connection.execute(sa.insert(VERSION).values(version=0))
        for step in MIGRATIONS[version:]:
            for statement in step[kind]:
                connection.exec_driver_sql(statement)
        connection.execute(sa.update(VERSION).values(version=len(MIGRATIONS)))
        connection.exec_driver_sql("COMMIT")
    except BaseException:
        connection.invalidate()
        raise


def gone(what: str, where: str) -> LedgerDamaged:
    """The error for a database that is there and has lost a table of the ledger."""
    return LedgerDamaged(
        f'{what} is gone from "{where}", or was changed. Nothing is served from it. '
        "Bring back the database as it was, or start a new ledger with what is certainly left."
    )


def _require_new(connection: sa.Connection, where: str) -> None:
    """Both tables are made in one transaction: whoever finds entries first, and then no version, finds damage."""
    if sa.inspect(connection).has_table(ENTRY.name) and _version(connection) == 0:
        raise gone("the version of the ledger", where)


def _version(connection: sa.Connection) -> int:
    if not sa.inspect(connection).has_table(VERSION.name):
        return 0
    return int(connection.execute(sa.select(VERSION.c.version)).scalar() or 0)

"""Where a ledger lies in these tests: in a file, or in a database of its own on a real Postgres server.

A test that takes the fixture `address` or `new_address` (conftest.py) runs once for each of them.
"""

from contextlib import contextmanager
from uuid import uuid4

import pytest
import sqlalchemy as sa

from support.needs import needs_postgres

PLACES = ("sqlite", pytest.param("postgres", marks=needs_postgres))


def new_file(folder):
    """The address of a ledger that is not there yet, in a folder."""
    return str(folder / f"{uuid4().hex}.sqlite")


@contextmanager
def new_database():
    """The address of a new, empty database on the server of the tests; it is dropped in the end."""
    from support.engines import postgres_address

    with database_on(postgres_address()) as address:
        yield address


@contextmanager
def database_on(server):
    """The address of a new, empty database on this server; it is dropped in the end, whoever still uses it."""
    name = f"ledger_{uuid4().hex}"
    tell(server, f"CREATE DATABASE {name}")
    try:
        yield sa.make_url(server).set(database=name).render_as_string(hide_password=False)
    finally:
        tell(server, f"DROP DATABASE {name} WITH (FORCE)")


def tell(server, statement):
    """Have a server do something, on a connection of its own: what it returns, if it returns rows."""
    import psycopg

    with psycopg.connect(server, autocommit=True) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []

"""A table whose columns go in pairs, and a ledger in which a good model of it was built: made once, and then copied."""

import zipfile

import pytest

from curator.people import GOLDEN
from support.model_sessions import open_ledger, paired_rows, table_of


@pytest.fixture(scope="session")
def table():
    return table_of(paired_rows())


@pytest.fixture(scope="session")
def opened(table, tmp_path_factory):
    return open_ledger(table, tmp_path_factory.mktemp("opened"))


@pytest.fixture
def golden(tmp_path):
    """What an older version wrote, and what it said of it."""
    with zipfile.ZipFile(GOLDEN) as found:
        found.extractall(tmp_path)
    return tmp_path

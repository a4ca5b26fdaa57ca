"""Fixtures for tests that hold wherever the ledger lies."""

from contextlib import ExitStack

import pytest

from ledger.service import Diary
from support.ledger_places import PLACES, new_database, new_file


@pytest.fixture(params=PLACES)
def new_address(request, tmp_path):
    """A function that gives the address of a ledger that is not there yet, another one each time."""
    with ExitStack() as databases:
        match request.param:
            case "sqlite":
                yield lambda: new_file(tmp_path)
            case "postgres":
                yield lambda: databases.enter_context(new_database())


@pytest.fixture
def address(new_address):
    """The address of a ledger that is not there yet."""
    return new_address()


@pytest.fixture
def diary(tmp_path):
    """What the services of a test did."""
    return Diary(tmp_path / "diary")

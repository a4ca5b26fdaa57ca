"""Servers that many tests share."""

import pytest

from support.live_server import Inside, Live, settings


@pytest.fixture(scope="module")
def inside(tmp_path_factory):
    """The application within this process."""
    with Inside(tmp_path_factory.mktemp("inside")) as found:
        yield found


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    """A real server with two workers."""
    with Live(settings(tmp_path_factory.mktemp("team"), workers=2)) as found:
        yield found

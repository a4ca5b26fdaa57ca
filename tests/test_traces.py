"""How far one call reaches: a reader who follows it opens no more files than stated here."""

import pytest

from support.trace import CALLS, traced

pytestmark = pytest.mark.slow

# The files of discreet in which a function is called. Before the redesign: 89, 25, 110, 105 and 50.
LIMITS = {"ask": 45, "known": 20, "release": 60, "post": 55, "kmeans": 35}


@pytest.mark.parametrize("name", LIMITS)
def test_a_call_touches_few_files(name):
    found = traced(name)
    assert len(found["files"]) <= LIMITS[name], "\n".join(found["files"])
    # A tracer that sees nothing would find every path short.
    assert found["functions"] > len(found["files"]) >= len(found["packages"]) >= 5
    assert found["types"] >= 5


def test_every_call_that_can_be_traced_has_a_limit():
    assert set(LIMITS) == set(CALLS)

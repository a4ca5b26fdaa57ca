"""How far one call reaches: a reader who follows it opens no more files than stated here."""

import pytest
from support.trace import CALLS, traced

# The files of discreet in which a function is called: today, and after the moves (docs/decisions).
LIMITS = {"ask": 45, "known": 20, "release": 60, "post": 55, "kmeans": 35}
TODAY = {"ask": 89, "known": 25, "release": 110, "post": 120, "kmeans": 50}
# Switched on when the modules are moved; until then only TODAY holds.
MOVED = False


@pytest.mark.parametrize("name", LIMITS)
def test_a_call_touches_few_files(name):
    found = traced(name)
    limit = LIMITS[name] if MOVED else TODAY[name]
    assert len(found["files"]) <= limit, "\n".join(found["files"])
    assert found["functions"] > 10
    assert found["types"] > 5
    assert {file.split("/")[0] for file in found["files"]} == {
        package if package in {each.split("/")[0] for each in found["files"]} else f"{package}.py"
        for package in found["packages"]
    }


def test_every_call_that_can_be_traced_has_a_limit():
    assert set(LIMITS) == set(CALLS) == set(TODAY)

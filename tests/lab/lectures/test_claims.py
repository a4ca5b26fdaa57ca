"""Every claim is named, placed and stated; every claim holds."""

import re

import pytest

from discreet.lab.lectures import Claim, claims
from discreet.lab.lectures.run import try_claim

# Near half a second each, or more. The claims of the other notes are run by test_claims_001_003_004.py.
SLOW = {
    "adaptive-composition",
    "differencing",
    "false-discovery",
    "k-means-figure",
    "laplace-advanced",
    "limits",
    "privacy-loss",
    "private-weights-accuracy",
    "private-weights-privacy",
    "reconstruction",
    "rows-for-adaptive-questions",
    "smoking-and-cancer",
}
EVERY = claims()
OURS = [claim.name for claim in EVERY if claim.source.startswith(("000", "002"))]


@pytest.mark.parametrize("claim", EVERY, ids=lambda claim: claim.name)
def test_a_claim_says_what_it_is_and_where_it_stands(claim):
    assert isinstance(claim, Claim)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", claim.name)
    assert re.match(r"00[0-4] \S", claim.source)
    assert 5 <= len(claim.title) <= 90
    assert 20 <= len(claim.statement) <= 400
    assert claim.run.__doc__


def test_names_are_given_once_and_files_are_in_the_order_of_the_notes():
    assert len({claim.name for claim in EVERY}) == len(EVERY)
    assert len({claim.title for claim in EVERY}) == len(EVERY)
    notes = [claim.source[:3] for claim in EVERY]
    assert notes == sorted(notes)
    assert set(notes) == {"000", "001", "002", "003", "004"}
    assert len(EVERY) >= 80


def test_what_is_slow_is_still_there():
    assert set(OURS) >= SLOW


def test_the_known_mistakes_of_the_notes_are_corrected():
    corrected = " ".join(claim.statement + claim.title for claim in EVERY if claim.correction)
    for mistake in ("permute-and-flip", "√(p(1−p)/(2p−1))·√n", "minus sign", "(ε, δ)", "gives 2ε"):
        assert mistake in corrected


def check(name):
    result = try_claim(name)
    assert not result.failure
    assert [finding for finding in result.findings if not finding.holds] == []
    assert result.holds


@pytest.mark.parametrize("name", [name for name in OURS if name not in SLOW])
def test_a_quick_claim_holds(name):
    check(name)


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(SLOW))
def test_a_slow_claim_holds(name):
    check(name)

"""What was written before the redesign opens for ever: it verifies, answers as before to the bit, and goes on.

`v1` was written by `make.py` with the code of 988c215. What is compared is in `observe.py`, what is asked in `work.py`.
"""

import json
import sqlite3
from collections import Counter
from math import nextafter
from pathlib import Path
from shutil import copytree

import pytest

import discreet as dp
from discreet.ledger import verify
from golden.observe import arithmetic, differences, observed, repeated, spent
from golden.work import FAILED, HALF, KEYED, MORE, REOPENED, Place, plain

HERE = Path(__file__).parent / "v1"
EXPECTED = json.loads((HERE / "expected.json").read_text())
# Where another library rounds otherwise, the last digits are not compared.
EXACT = arithmetic() == EXPECTED["arithmetic"]
LEDGERS = sorted(EXPECTED["ledgers"])
RELEASES = sorted(EXPECTED["releases"])


@pytest.fixture
def folder(tmp_path):
    """A copy: whoever opens a ledger may write to it."""
    copytree(HERE, tmp_path / "v1", ignore=lambda *_: ["releases"])
    return tmp_path / "v1"


def same(found, expected):
    """Nothing differs, in any bit."""
    found = json.loads(json.dumps(found))
    assert not differences(found, expected, exact=EXACT)


@pytest.mark.parametrize("name", LEDGERS)
def test_a_ledger_verifies_and_says_what_it_said(name, folder):
    expected = {key: said for key, said in EXPECTED["ledgers"][name].items() if key != "told"}
    same(observed(name, folder, folder / f"{name}.sqlite"), expected)


@pytest.mark.parametrize("name", LEDGERS)
def test_a_repeated_key_gives_the_same_answer_and_costs_nothing(name, folder):
    with Place(folder, folder / f"{name}.sqlite") as at:
        before, charged = spent(at.ledger), len(paid(at.ledger))
        same(repeated(name, at), EXPECTED["ledgers"][name]["told"])
        assert spent(at.ledger) == before
        assert len(paid(at.ledger)) == charged
    verify(folder / f"{name}.sqlite", prices=True)


def paid(ledger):
    return [spend for spend in ledger.history() if not isinstance(spend.event, dp.accounting.event.Nothing)]


@pytest.mark.parametrize("name", LEDGERS)
def test_it_goes_on_to_spend_under_the_same_caps(name, folder):
    with Place(folder, folder / f"{name}.sqlite") as at:
        before, head = spent(at.ledger), at.ledger.head
        answer = plain(MORE[name](at))
        now = spent(at.ledger)
        assert now != before
        assert at.ledger.head.sequence > head.sequence
        assert plain(MORE[name](at)) == answer, "its own keys are repeated too"
        assert spent(at.ledger) == now
    audit = verify(folder / f"{name}.sqlite", head=head, prices=True)
    assert audit.head.ledger == head.ledger
    with Place(folder, folder / f"{name}.sqlite") as again:
        assert plain(MORE[name](again)) == answer, "after a restart"
        assert spent(again.ledger) == now


@pytest.mark.parametrize(("name", "what"), [(name, what) for name in REOPENED for what in REOPENED[name]])
def test_a_session_is_opened_again_on_what_its_ledger_remembers(name, what, folder):
    with Place(folder, folder / f"{name}.sqlite") as at:
        before = spent(at.ledger)
        same(REOPENED[name][what](at), EXPECTED["reopened"][name][what])
        assert spent(at.ledger) != before
    verify(folder / f"{name}.sqlite", prices=True)


@pytest.mark.parametrize(("name", "what"), [(name, what) for name in FAILED for what in FAILED[name]])
def test_what_failed_after_its_payment_is_answered_for_nothing_under_its_key(name, what, folder):
    with Place(folder, folder / f"{name}.sqlite") as at:
        before = spent(at.ledger)
        first = plain(FAILED[name][what](at))
        assert plain(FAILED[name][what](at)) == first
        assert spent(at.ledger) == before
    verify(folder / f"{name}.sqlite", prices=True)


@pytest.mark.parametrize(("name", "what"), [(name, what) for name in HALF for what in HALF[name]])
def test_a_release_that_was_interrupted_goes_on_under_its_key(name, what, folder):
    with Place(folder, folder / f"{name}.sqlite") as at:
        charged = len(paid(at.ledger))
        first = plain(HALF[name][what](at))
        later = len(paid(at.ledger))
        assert later > charged
        assert plain(HALF[name][what](at)) == first
        assert len(paid(at.ledger)) == later
    verify(folder / f"{name}.sqlite", prices=True)


@pytest.mark.parametrize("name", RELEASES)
def test_a_release_opens_and_says_what_it_said(name, tmp_path):
    made = dp.Release.load(HERE / "releases" / name)
    same(plain(made), EXPECTED["releases"][name])
    assert len(made.rows(30)) == 30
    made.save(tmp_path / "again")
    again = json.loads(json.dumps(plain(dp.Release.load(tmp_path / "again"))))
    # A table of all cells is normalised anew when it is written again.
    assert not differences(again, EXPECTED["releases"][name], exact=False)


# --- What is in the files ---------------------------------------------------------------------------------------------

# Everything that the code of 988c215 could store.
ENTRIES = {"open", "cap", "raise", "table", "spend", "record", "hold", "stake", "close", "answer"}
SPENDS = {"spend/closes", "spend/attempt", "spend/paid", "spend/hold", "spend/key", "cap/spent"}
EVENTS = {
    *("Nothing", "Laplace", "Gaussian", "DiscreteGaussian", "Selection", "AboveThreshold", "Coin", "Pure"),
    *("Approximate", "Compose", "Repeat"),
}
RECORDS = {
    *("curator 1", "answers 1", "release 1", "kmeans 1", "holdout 1", "weights 1", "source failed 1"),
    *("curator/steps", "curator/heard", "curator/session", "curator/hit", "curator/release", "curator/total"),
    *("step/pieces", "step/whole/scale", "step/direct/sigma", "step/direct/scale"),
    *("session/tree", "session/mixture", "session/None"),
    *("weights/projection", "weights/linear", "weights/exponential", "weights/update"),
    *("holdout/nats", "holdout/value"),
    *("release/measured", "release/cells"),
}
MODELS = {"mixture", "tree", "dense", "rows", "blend"}
METHODS = {"mixture", "adaptive", "lattice", "direct", "mwem", "small_db"}


def test_everything_that_could_be_stored_is_in_a_golden_file():
    found = Counter()
    for name in LEDGERS:
        with sqlite3.connect(f"file:{HERE / name}.sqlite?immutable=1", uri=True) as connection:
            for body, released in connection.execute("SELECT body, released FROM discreet_ledger"):
                found.update(kinds_of(json.loads(body), released))
    assert not (ENTRIES | SPENDS | EVENTS | RECORDS) - set(found)


def kinds_of(fields, released):
    """Which kinds of things an entry has."""
    yield fields["is"]
    yield from (f"{fields['is']}/{name}" for name in ("closes", "attempt", "paid", "hold", "key") if name in fields)
    if fields.get("spent"):
        yield "cap/spent"
    if "event" in fields:
        yield from events_in(fields["event"])
    if released is None or not released.startswith(b"discreet "):
        return
    kind, _, rest = released.partition(b"\n")
    kind = kind.decode().removeprefix("discreet ")
    yield kind
    if kind in ("holdout 1", "weights 1", "release 1"):
        said = json.loads(rest)
        yield from (f"{kind[:-2]}/{name}" for name in said)
        if "opened" in said and kind == "weights 1":
            yield f"weights/{said['opened']['rule']}"
    if kind == "curator 1":
        header = json.loads(rest.partition(b"\n")[0])
        yield f"curator/{header.get('is', 'steps' if header['steps'] else 'total')}"
        if "session" in header:
            model = header["session"]["model"]
            yield f"session/{model and model[0]}"
        for step in header["steps"]:
            yield "/".join(["step", *(name for name in step if name not in ("price", "of"))])


def events_in(plain_event):
    ((name, content),) = plain_event.items()
    yield name
    parts = {"Compose": content, "Repeat": [content["event"]] if name == "Repeat" else []}.get(name, [])
    for part in parts:
        yield from events_in(part)


def test_there_is_a_release_of_every_method_and_every_kind_of_model():
    kept = [json.loads(path.read_text()) for path in HERE.glob("releases/*/release.json")]
    assert {one["model"]["is"] for one in kept} == MODELS
    assert {one["forecast"]["method"] for one in kept} == METHODS
    assert {one["pure"] for one in kept} == {True, False}
    for part in ("blocks", "told", "wholes"):
        assert any(one["known"][part] for one in kept)
    assert any(one["own"] for one in kept)


def test_there_are_all_kinds_of_columns_units_and_budgets():
    for name in LEDGERS:
        assert KEYED[name].keys() == EXPECTED["ledgers"][name]["told"].keys()
    books = [EXPECTED["ledgers"][name]["books"] for name in LEDGERS]
    assert {budgets[0][2] for one in books for _, budgets, _ in one["accounts"]} == {"pure", "gaussian", "renyi"}
    assert any(one["holds"] for one in books)
    assert any(one["stakes"] for one in books)
    assert {scope[1] for one in books for scope, _, _ in one["accounts"]} >= {None, "*", "ana", "cleo"}


def test_a_bit_that_differs_is_seen():
    one = {"a": [1, (0.1).hex()], "b": "x"}
    near = {"a": [1, nextafter(0.1, 1).hex()], "b": "x"}
    assert not differences(one, one, exact=True)
    assert len(differences(near, one, exact=True)) == 1
    assert not differences(near, one, exact=False)
    for wrong in ({"a": [1], "b": "x"}, {"a": [2, (0.1).hex()], "b": "x"}, {"a": [1, (0.2).hex()], "b": "x"}):
        assert len(differences(wrong, one, exact=False)) == 1

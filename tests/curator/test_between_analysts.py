"""What one analyst can see of another: the numbers that were paid for, and nothing of who asked what, when or why."""

import json
from base64 import b85decode

import numpy as np
import pytest

from curator.people import DOMAIN, desk_of
from discreet.curator import Release
from discreet.ledger import Budget
from discreet.query.workload import marginals
from support.release_replay import quick_fits  # noqa: F401

# What ana asks, and what none of ben's files may say.
ASKED = "age >= 7 AND city = 'Oslo' AND secret_column = 'zebra'"


def everything_in(folder):
    """All bytes of a release, records and arrays decoded."""
    found = b"".join(file.read_bytes() for file in sorted(folder.iterdir()))
    said = json.loads((folder / "release.json").read_text())
    for name in ("records", "own"):
        found += b"".join(b85decode(text) for text in said.get(name, []))
    with np.load(folder / "known.npz") as arrays:
        found += " ".join(arrays).encode()
    return found.replace(b"secret_column: {", b"").replace(b'"secret_column"', b"")


@pytest.mark.parametrize("method", ["direct", "mixture", "adaptive", "lattice", "mwem"])
def test_a_release_has_nothing_of_what_others_asked(tmp_path, method):
    desk = desk_of(tmp_path)
    ana = desk.seen_by("ana-the-other")
    ana.ask(ASKED, error=80, key="key-of-ana")
    ana.ask("SELECT age, secret_column, COUNT(*) FROM people GROUP BY age, secret_column", error=90)
    ana.ask("SELECT AVG(age) FROM people WHERE secret_column = 'okapi'", error=2)
    quiet = desk.release([["sex"], ["sex", "city"]], Budget(0.3, 1e-9), method=method, analyst="ben")
    quiet.save(tmp_path / "made")
    files = everything_in(tmp_path / "made")
    for word in (b"ana-the-other", b"key-of-ana", b"okapi'", b"age >= 7", b"secret_column'"):
        assert word not in files
    said = json.loads((tmp_path / "made" / "release.json").read_text())
    assert "records" not in said
    named = {name for columns in said["known"]["blocks"] for name in columns}
    assert named <= {"sex", "city"}
    for record in said["own"]:
        header = json.loads(b85decode(record).split(b"\n")[1])
        assert {name for step in header["steps"] for name in step["of"]} <= {"sex", "city"}
    # The schema of the table is public and names all columns; nothing else does.
    assert b"secret_column" not in (tmp_path / "made" / "release.json").read_bytes()
    assert quiet.card.earlier == 1
    desk.close()


def test_how_often_others_asked_does_not_show(tmp_path):
    """What is known of the columns is merged: not how many questions it comes from."""
    desk = desk_of(tmp_path)
    for error in (200, 150, 120):
        desk.ask("SELECT sex, COUNT(*) FROM people GROUP BY sex", error=error, analyst="ana")
    made = desk.release([["sex"]], Budget(0.3, 1e-9), method="lattice", analyst="ben")
    assert [columns for columns, _, _ in made.fitted.blocks] == [(), ("sex",)]
    # It has records of its own requests, not of the three questions before.
    assert len(made.fitted.own) < 3
    assert "other answers were released before" in " ".join(str(made.card).split())
    assert "3 spends" not in str(made.card)
    desk.close()


@pytest.mark.parametrize("budget", [Budget(5, 1e-9), Budget(5)])
def test_a_release_says_the_same_after_it_was_saved(tmp_path, budget):
    desk = desk_of(tmp_path, budget)
    desk.ask("SELECT city, COUNT(*) FROM people GROUP BY city", error=100, analyst="ana")
    desk.ask("SELECT sex, COUNT(*) FROM people GROUP BY sex", error=100, analyst="ana")
    given = Budget(0.5, budget.delta)
    made = desk.release(marginals(DOMAIN.project(["sex", "city"]), 2), given, method="direct", analyst="ben")
    made.save(tmp_path / "made")
    again = Release.load(tmp_path / "made")
    again.save(tmp_path / "twice")
    twice = Release.load(tmp_path / "twice")
    for other in (again, twice):
        assert other.card == made.card
        assert (other.marginal(["city", "sex"]) == made.marginal(["city", "sex"])).all()
        for question in ("sex = 'Male'", "city = 'Oslo'", "SELECT sex, city, COUNT(*) FROM people GROUP BY sex, city"):
            one, two = made.answer(question), other.answer(question)
            assert np.array_equal(one.value, two.value)
            assert np.array_equal(one.error, two.error)
            assert one.origin == two.origin
    desk.close()


def test_what_was_known_of_its_columns_makes_a_release_better_still(tmp_path):
    """Merged numbers of others are used: an answer is bounded by them although the release measured little."""
    desk = desk_of(tmp_path)
    desk.ask("SELECT sex, COUNT(*) FROM people GROUP BY sex", error=20, analyst="ana")
    made = desk.release([["sex"]], Budget(0.01, 1e-9), method="lattice", analyst="ben")
    made.save(tmp_path / "made")
    assert Release.load(tmp_path / "made").answer("sex = 'Male'").error < 60
    desk.close()


def test_a_release_of_the_old_form_opens_and_says_the_same(golden):
    said = json.loads((golden / "said.json").read_text())["release"]
    old = Release.load(golden / "release-direct")
    assert old.marginal(["sex"]).tolist() == said["sex"]
    assert old.marginal(["city", "sex"]).tolist() == said["both"]
    assert {",".join(columns): error for columns, error in old.errors.items()} == said["errors"]
    assert old.total == said["total"]
    for question, told in said["questions"].items():
        answer = old.answer(question)
        assert (answer.value, answer.origin) == (told["value"], told["origin"])
        assert answer.error == pytest.approx(told["error"], rel=1e-12)
    assert len(old.rows(10)) == 10
    assert old.card.earlier > 1


def test_an_old_release_that_is_saved_again_has_no_questions(golden):
    old = Release.load(golden / "release-direct")
    assert b"records" in (golden / "release-direct" / "release.json").read_bytes()
    old.save(golden / "again")
    said = json.loads((golden / "again" / "release.json").read_text())
    assert said["form"] == "discreet release 2"
    assert said["own"] == []
    again = Release.load(golden / "again")
    assert again.answer("sex = 'Male' AND city = 'Oslo'").origin == "bounded"
    assert again.card == old.card

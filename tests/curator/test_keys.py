"""A key: paid once, answered always the same, bound to one request about one table."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from curator.people import DOMAIN, desk_of
from discreet.accounting.event import Laplace
from discreet.curator import Curator, question
from discreet.errors import BadParameter, KeyReused, LedgerFailed, TableChanged
from discreet.ledger import Budget, Ledger, verify
from discreet.query.aggregates import count
from discreet.query.linear import Ratio
from discreet.query.predicate import col
from discreet.schema import Domain, Integers
from discreet.schema.unit import Identity
from discreet.source.table import open as open_table

GROUPED = "SELECT city, COUNT(*) AS n, AVG(age) FROM people GROUP BY city HAVING n > 0 ORDER BY n DESC LIMIT 2"
QUESTIONS = {
    "one number": ("age >= 5 AND sex = 'Male'", {"error": 90}),
    "a mean of several rounds": ("SELECT AVG(age) FROM people WHERE city = 'Rome'", {"error": 1}),
    "groups that are chosen": (GROUPED, {"error": 150}),
    "for a price": ("city = 'Bern'", {"epsilon": 0.05}),
    "nothing below zero": ("age >= 9 AND sex = 'Male' AND city = 'Oslo'", {"error": 90, "nonnegative": True}),
}


def same(one, other):
    assert np.array_equal(one.value, other.value)
    assert np.array_equal(one.error, other.error)
    assert {**one.columns} == {**other.columns}
    for name in ("confidence", "origin", "cost", "remaining", "price"):
        assert getattr(one, name) == getattr(other, name)
    assert str(one) == str(other)


def learn_more(desk):
    """Know everything of the table better than before."""
    for columns in ("sex", "city", "age", "sex, city"):
        desk.ask(f"SELECT {columns}, COUNT(*) FROM people GROUP BY {columns}", error=60, analyst="cleo")
    desk.ask("SELECT AVG(age) FROM people WHERE city = 'Rome'", error=0.8, analyst="cleo")


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_repeated_key_has_the_same_answer_although_more_is_known(tmp_path, name):
    question, wish = QUESTIONS[name]
    desk = desk_of(tmp_path)
    first = desk.ask(question, **wish, key="k")
    assert first.price > 0
    learn_more(desk)
    before = desk.ledger.head
    same(first, desk.ask(question, **wish, key="k"))
    same(first, desk.look(desk.prepare(question, **wish, key="k"), wait=False))
    desk.close()
    again = desk_of(tmp_path)
    same(first, again.ask(question, **wish, key="k"))
    assert again.ledger.head == before
    better = again.ask(question, **wish)
    assert np.max(better.error) <= np.max(first.error) * (1 + 1e-9)
    assert not np.array_equal(better.value, first.value)
    again.close()
    verify(tmp_path / "budget.sqlite")


def test_so_have_many_questions(tmp_path):
    questions = ["age >= 5", "SELECT AVG(age) FROM people", GROUPED]
    desk = desk_of(tmp_path)
    first = desk.ask_many(questions, error=80, key="k")
    learn_more(desk)
    before = desk.ledger.head
    for one, other in zip(first, desk.ask_many(questions, error=80, key="k"), strict=True):
        same(one, other)
    assert desk.ledger.head == before
    with pytest.raises(KeyReused):
        desk.ask_many(questions[:2], error=80, key="k")
    desk.close()


def test_a_release_under_its_key_has_the_same_card(tmp_path):
    desk = desk_of(tmp_path)
    first = desk.release([["sex"], ["city"]], Budget(0.3, 1e-9), method="lattice", key="k")
    learn_more(desk)
    again = desk.release([["sex"], ["city"]], Budget(0.3, 1e-9), method="lattice", key="k")
    assert again.card == first.card
    assert (again.marginal(["sex"]) == first.marginal(["sex"])).all()
    for change in ({"method": "direct"}, {"budget": Budget(0.2, 1e-9)}, {"workload": [["sex"]]}, {"memory": 1e9}):
        asked = {"workload": [["sex"], ["city"]], "budget": Budget(0.3, 1e-9), "method": "lattice", **change}
        spent = desk.spent
        with pytest.raises(KeyReused):
            desk.release(**asked, key="k")
        assert desk.spent == spent
    desk.close()


@pytest.mark.parametrize(
    ("question", "wish"),
    [
        ("age >= 6", {"error": 90}),
        ("age >= 5", {"error": 91}),
        ("age >= 5", {"error": 90, "confidence": 0.9}),
        ("age >= 5", {"error": 90, "nonnegative": True}),
        ("SELECT COUNT(*) AS n FROM people WHERE age >= 5", {"error": 90}),
        ("SELECT COUNT(*) FROM people WHERE age >= 5 LIMIT 1", {"error": 90}),
        ("SELECT COUNT(*) FROM people WHERE age >= 5 HAVING COUNT(*) > 7", {"error": 90}),
    ],
)
def test_a_key_is_bound_to_the_whole_request(tmp_path, question, wish):
    desk = desk_of(tmp_path)
    first = desk.ask("age >= 5", error=90, key="k")
    same(first, desk.ask("SELECT  COUNT(*) FROM people WHERE  age>=5", error=90, key="k"))
    before = desk.ledger.head
    prepared = desk.prepare(question, **wish, key="k")
    for asked in (lambda: desk.ask(question, **wish, key="k"), lambda: desk.look(prepared, wait=False)):
        with pytest.raises(KeyReused, match='key "k" came before with another request'):
            asked()
    with pytest.raises(KeyReused):
        desk.ask_many(["age >= 5"], error=90, key="k")
    assert desk.ledger.head == before
    desk.close()


def test_a_key_is_of_one_table(tmp_path):
    with Ledger(tmp_path / "shared.sqlite") as ledger:
        ledger.cap(Budget(5, 1e-9))
        desks = []
        for name in ("one", "two"):
            (tmp_path / f"{name}.csv").write_text("age\n" + "3\n7\n" * 200)
            columns = "columns: {age: {type: integer, lower: 0, upper: 9}}\n"
            text = f"table: {name}\nsource: {name}.csv\nprivacy_unit: row\n{columns}"
            (tmp_path / f"{name}.yaml").write_text(text)
            desks.append(Curator(open_table(tmp_path / f"{name}.yaml"), ledger=ledger))
        one, two = desks
        one.ask("age >= 5", error=50, key="k")
        before = ledger.head
        with pytest.raises(KeyReused, match="with another table"):
            two.ask("age >= 5", error=50, key="k")
        with pytest.raises(KeyReused, match="with another table"):
            ledger.spend(Laplace(scale=4, sensitivity=1), "why", table="three", key="k", body=b"any")
        assert ledger.head == before
        # Keys of different analysts never meet.
        two.ask("age >= 5", error=50, key="k", analyst="ben")


def test_a_free_answer_leaves_no_trace_and_its_key_stays_unused(tmp_path):
    desk = desk_of(tmp_path)
    desk.ask("age >= 5", error=60)
    before = desk.ledger.head
    assert desk.ask("age >= 5", error=90, key="k").origin == "known"
    assert [answer.origin for answer in desk.ask_many(["age >= 5"], error=90, key="k")] == ["known"]
    assert desk.ledger.head == before
    assert desk.ask("city = 'Rome'", error=90, key="k").price > 0
    desk.close()


def test_repeats_at_the_same_time_are_paid_once_and_say_the_same(tmp_path):
    desk = desk_of(tmp_path)
    with ThreadPoolExecutor(6) as many:
        found = list(many.map(lambda _: desk.ask(GROUPED, error=150, key="k"), range(6)))
    for each in found[1:]:
        same(found[0], each)
    assert len([spend for spend in desk.history() if spend.key == "k"]) == 1
    desk.close()


def test_a_crash_before_the_answer_is_kept_costs_nothing_more(tmp_path, monkeypatch):
    """What was measured is known; the repeat is answered from it, and from then on always the same."""
    desk = desk_of(tmp_path)

    def fails(*_, **__):
        raise LedgerFailed("the disk is full.")

    with monkeypatch.context() as broken:
        broken.setattr(Ledger, "keep", fails)
        with pytest.raises(LedgerFailed):
            desk.ask("age >= 5", error=90, key="k")
    spent = desk.spent
    first = desk.ask("age >= 5", error=90, key="k")
    assert desk.spent == spent
    learn_more(desk)
    same(first, desk.ask("age >= 5", error=90, key="k"))
    with pytest.raises(KeyReused):
        desk.ask("age >= 6", error=90, key="k")
    desk.close()


def test_the_first_answer_that_is_kept_is_the_answer(tmp_path):
    with Ledger(tmp_path / "budget.sqlite") as ledger:
        asked = {"table": "people", "analyst": "ana", "body": b"how many?"}
        assert not ledger.used("k", analyst="ana")
        assert ledger.kept("k", **asked) is None
        assert ledger.keep(b"12", "k", **asked) == b"12"
        assert ledger.keep(b"13", "k", **asked) == b"12"
        assert ledger.kept("k", **asked) == b"12"
        assert ledger.used("k", analyst="ana")
        with pytest.raises(KeyReused):
            ledger.kept("k", **{**asked, "body": b"how few?"})
        with pytest.raises(KeyReused):
            ledger.keep(b"14", "k", **{**asked, "table": "visits"})
    assert verify(tmp_path / "budget.sqlite").spends == 0


def test_an_answer_about_a_version_that_is_over_is_not_kept_for_the_next_one(tmp_path):
    """A hit of a model pays without the key, so nothing else would tell that the answer is an old one."""
    with Ledger(tmp_path / "budget.sqlite") as ledger:
        ledger.bind(Identity("people", version="1"))
        ledger.bind(Identity("people", version="2"))
        asked = {"analyst": "ana", "body": b"how many?"}
        with pytest.raises(TableChanged):
            ledger.keep(b"12", "k", table=Identity("people", version="1"), **asked)
        assert ledger.kept("k", table="people", **asked) is None
        assert ledger.keep(b"13", "k", table=Identity("people", version="2"), **asked) == b"13"


def test_a_version_that_is_declared_while_an_answer_is_made_takes_its_place(tmp_path, monkeypatch):
    desk = desk_of(tmp_path)
    keep = Ledger.keep

    def late(self, *given, **named):
        self.bind(replace(desk.table.identity, version="2"))
        return keep(self, *given, **named)

    monkeypatch.setattr(Ledger, "keep", late)
    with pytest.raises(TableChanged, match="It was charged"):
        desk.ask("age >= 5", error=90, key="k")
    desk.close()


def test_keys_of_an_older_ledger_are_still_paid_once(golden):
    said = json.loads((golden / "said.json").read_text())
    desk = Curator(open_table(golden / "people.yaml"), ledger=golden / "old.sqlite")
    spent, ana = desk.spent, desk.seen_by("ana")
    first = ana.ask("age >= 4 AND city = 'Oslo'", error=60, key="k-ask")
    ana.ask_many(["age >= 3", "sex = 'Male'"], error=70, key="k-many")
    ana.ask("SELECT AVG(age) FROM people WHERE sex = 'Female'", error=0.5, key="k-mean")
    made = desk.release([["sex"], ["sex", "city"]], Budget(0.5, 1e-9), method="direct", analyst="ben", key="k-release")
    assert desk.spent == spent
    assert made.marginal(["sex"]).tolist() == pytest.approx(said["release"]["sex"])
    same(first, ana.ask("age >= 4 AND city = 'Oslo'", error=60, key="k-ask"))
    with pytest.raises(KeyReused):
        ana.ask("age >= 5 AND city = 'Oslo'", error=60, key="k-ask")
    desk.close()
    assert Path(golden / "old.sqlite").exists()


@pytest.mark.parametrize("key", ["k, round 2", "k, question 12", "a release, request 3"])
def test_a_key_that_could_be_that_of_a_part_of_another_request_is_refused(tmp_path, key):
    """Otherwise a request under "k" would meet it after its first payment, and end in a refusal that was charged."""
    with Curator(
        open_table({"age": [1, 2]}, domain=Domain({"age": Integers(0, 9)})),
        budget=Budget(1, 1e-9),
        ledger=tmp_path / "l.sqlite",
    ) as desk:
        for ask in (
            lambda: desk.ask("age >= 5", error=50, key=key),
            lambda: desk.ask_many(["age >= 5", "age >= 6"], error=50, key=key),
            lambda: desk.release([["age"]], Budget(0.1, 1e-10), key=key),
        ):
            with pytest.raises(BadParameter, match="Use another key"):
                ask()
        assert not desk.history()


def test_a_quotient_and_a_total_are_not_a_total_and_a_quotient(tmp_path):
    """Both batches are of the same three queries in the same order."""
    one, two, three = (count(DOMAIN, col("city") == city) for city in ("Bern", "Oslo", "Rome"))
    desk = desk_of(tmp_path)
    desk.ask_many([Ratio(one, two), three], error=40, key="k")
    with pytest.raises(KeyReused):
        desk.ask_many([one, Ratio(two, three)], error=40, key="k")
    desk.close()


def test_a_look_under_a_new_key_does_not_write_down_what_is_asked(tmp_path, monkeypatch):
    """A server looks on the thread that serves everybody, and a question may have a hundred thousand weights."""
    desk = desk_of(tmp_path)
    written = []
    real = question.query_to_plain
    monkeypatch.setattr(question, "query_to_plain", lambda query: written.append(query) or real(query))
    found = desk.look(desk.prepare("age >= 5", error=90, key="k"), wait=False)
    assert not written
    desk.pay(found)
    assert written
    with pytest.raises(BadParameter, match="key ends with"):
        desk.prepare("age >= 5", error=90, key="k, round 2")
    desk.close()

"""An error over HTTP has the next step of its reader: nothing of Python, and nothing that only the owner can do."""

import pytest

from discreet.curator import Curator
from discreet.errors import LedgerDamaged, LedgerFailed
from support.live_server import names_python

RELEASES = [
    {"workload": {"questions": []}, "epsilon": 1},
    {"workload": {"questions": ["age >= 18"]}, "epsilon": 1},
    {"workload": {"questions": [[]]}, "epsilon": 1},
    {"workload": {"weights": []}, "epsilon": 1},
    {"workload": {"marginals": True}, "epsilon": 1},
    {"workload": {"marginals": 2.5}, "epsilon": 1},
    {"workload": {"marginals": 9}, "epsilon": 1},
    {"workload": {"marginals": 1, "of": "age"}, "epsilon": 1},
    {"workload": {"prefixes": "city"}, "epsilon": 1},
    {"workload": {"subsets": "nobody"}, "epsilon": 1},
    {"workload": {"marginals": 1}, "epsilon": 1, "delta": 0},
    {"workload": {"marginals": 1}, "epsilon": 1, "delta": 0.5},
    {"workload": {"marginals": 1}, "epsilon": 0},
    {"workload": {"marginals": 1}, "epsilon": 900},
    {"workload": {"marginals": 1}, "epsilon": 1, "method": "magic"},
    {"workload": {"marginals": 1}, "epsilon": 1, "memory": 0},
    {"workload": {"marginals": 4}, "epsilon": 1, "seconds": 1e-9},
]  # fmt: skip
QUESTIONS = [
    "sex < 'Male'",
    "sex IS NULL",
    "SELECT AVG(city) FROM people",
    "SELECT SUM(age) FROM people",
    {"where": {"column": "sex", "missing": True}},
    {"where": {"column": "sex", "is": ">", "value": "Male"}},
    {"where": {"column": "hours", "is": "==", "value": {"number": "sNaN"}}},
    {"where": {"column": "hours", "is": "==", "value": {"number": "1e999999"}}},
    {"select": [{"avg": "age"}]},
    {"columns": ["age"], "weight": [[1, [[["sex"], [7], [0, 1, 0, 0, 0, 0, 0]]]]]},
    {"numerator": {"products": [[1, []]]}, "denominator": {"products": []}},
    {"products": [[1, [[["sex"], [7], [0, 1, 0, 0, 0, 0, 0]]]]]},
]


def said(reply):
    """The sentence of a refusal, which names nothing of Python."""
    assert 400 <= reply.status_code < 600, reply.text
    detail = reply.json()["detail"]
    assert not names_python(detail), detail
    return detail


@pytest.mark.parametrize("question", QUESTIONS, ids=str)
def test_a_mistake_in_a_question_is_said_without_python(inside, question):
    for path, form in (("ask", {"question": question}), ("plan", {"question": question}), ("ask-many", None)):
        given = {"questions": [question], "error": 100} if form is None else form | {"error": 100}
        said(inside.call("POST", f"/tables/people/{path}", json=given))


@pytest.mark.parametrize("form", RELEASES, ids=str)
def test_a_mistake_in_a_release_is_said_without_python(inside, form):
    replies = [inside.call("POST", f"/tables/people/{path}", json=form) for path in ("releases", "releases/plan")]
    assert replies[0].status_code >= 400
    for reply in replies:
        # A plan may be made for more than is left, and for a method that is not chosen.
        if reply.status_code >= 400:
            said(reply)


def test_an_owner_who_would_lower_a_cap_is_told_so_without_python(inside):
    cap = {"epsilon": 3, "delta": 1e-9, "analyst": "ana"}
    assert inside.call("PUT", "/tables/people/caps", "owner", json=cap).status_code < 300
    assert "epsilon 3 (delta 1e-09)" in said(
        inside.call("PUT", "/tables/people/caps", "owner", json=cap | {"epsilon": 1})
    )


def test_an_analyst_with_nothing_left_is_sent_to_the_owner(inside):
    cap = {"epsilon": 0.001, "delta": 1e-9, "analyst": "analyst"}
    assert inside.call("PUT", "/tables/people/caps", "owner", json=cap).status_code < 300
    assert "ask the data owner for more" in said(inside.ask("hours >= 40", error=1))
    assert "more than is left" in said(
        inside.call("POST", "/tables/people/releases", json={"workload": {"marginals": 1}, "epsilon": 1})
    )


@pytest.mark.parametrize("kind", [LedgerFailed, LedgerDamaged])
def test_only_the_owner_learns_where_the_ledger_is_and_how_to_mend_it(inside, monkeypatch, kind):
    def fails(*_, **__):
        raise kind('the ledger in "/secret/place" failed: the disk is full. Make room; then ask again.')

    monkeypatch.setattr(Curator, "prepare", fails)
    reply = inside.ask("hours >= 40", error=1)
    assert reply.status_code == 503
    assert reply.json()["error"] == kind.__name__
    assert "secret" not in said(reply)
    assert "ell the data owner" in said(reply)
    assert "secret" in said(inside.ask("hours >= 40", "owner", error=1))
    assert "/secret/place" in inside.log.getvalue()


@pytest.mark.parametrize(
    "sentence",
    [
        "Write dp.Budget(epsilon=0.5, delta=1e-9).",
        "Set one: ledger.cap(…).",
        "See desk.known().",
        "Use == or isin(); the owner can declare it with ordered=True.",
        "nothing equals a missing value. Use .is_missing().",
        "epsilon is Fraction(0, 1).",
        "Give an int.",
    ],
)
def test_python_would_be_found(sentence):
    assert names_python(sentence)

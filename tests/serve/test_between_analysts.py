"""Between analysts, over HTTP: each sees their own; and a repeated key gets the same bytes."""

import io
import json
import time
import zipfile

import pytest

from discreet.ledger import Budget
from support.live_server import Inside, people

QUESTION = "hours >= 17 AND city = 'Chur' AND sex = 'Male'"


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A server with two tables and two analysts, ana and ben."""
    folder = tmp_path_factory.mktemp("between")
    first = people(folder)
    second = people(folder / "other")
    second.write_text(second.read_text().replace("table: people", "table: others"))
    with Inside(folder, schemas=(str(first), str(second))) as found:
        found.tokens |= {name: found.desks.tokens.create(name, "analyst") for name in ("ana", "ben")}
        yield found


def release(inside, role):
    """The number of a small release that somebody has made."""
    form = {"workload": {"questions": [["sex"]]}, "epsilon": 0.001, "method": "direct"}
    reply = inside.call("POST", "/tables/people/releases", role, json=form, headers={"idempotency-key": "1"})
    number = reply.json()["id"]
    until = time.monotonic() + 60
    while inside.call("GET", f"/tables/people/releases/{number}", role).json()["state"] != "done":
        assert time.monotonic() < until
        time.sleep(0.05)
    return number


def test_a_release_is_seen_by_whoever_made_it_and_by_owners_and_auditors(shared):
    shared.ask(QUESTION, role="ana", error=120)
    number = release(shared, "ben")
    for role in ("ben", "owner", "auditor"):
        listed = shared.call("GET", "/tables/people/releases", role).json()
        assert number in {job["id"] for job in listed}
        assert shared.call("GET", f"/tables/people/releases/{number}", role).status_code == 200
    assert shared.call("GET", "/tables/people/releases", "ana").json() == []
    nowhere = shared.call("GET", "/tables/people/releases/0123", "ana")
    for part in ("", "/card", "/folder", "/rows?rows=3", "/marginal?columns=sex"):
        reply = shared.call("GET", f"/tables/people/releases/{number}{part}", "ana")
        assert reply.status_code == nowhere.status_code == 404
        assert reply.json()["detail"].replace(number, "0123") == nowhere.json()["detail"]


def test_a_folder_has_no_question_of_others(shared):
    shared.ask(QUESTION, role="ana", error=120)
    number = release(shared, "ben")
    found = zipfile.ZipFile(io.BytesIO(shared.call("GET", f"/tables/people/releases/{number}/folder", "ben").content))
    said = json.loads(found.read("release.json"))
    assert "records" not in said
    assert {name for columns in said["known"]["blocks"] for name in columns} <= {"sex"}
    assert b"hours" not in found.read("release.json") + found.read("card.json") + found.read("card.html")


@pytest.mark.parametrize("question", [QUESTION, {"where": {"column": "hours", "is": ">=", "value": 33}}])
def test_a_repeated_key_gets_the_same_bytes(shared, question):
    key = {"idempotency-key": f"key of {len(str(question))}"}
    first = shared.ask(question, role="ana", error=90, headers=key)
    assert first.json()["price"] > 0
    shared.ask(question, role="ben", error=20)
    shared.call("PUT", "/tables/people/caps", "owner", json={"epsilon": 3, "delta": 1e-9, "analyst": "ana"})
    before = shared.entries
    again = shared.ask(question, role="ana", error=90, headers=key)
    assert (again.status_code, again.content) == (200, first.content)
    assert shared.entries == before
    assert shared.ask(question, role="ana", error=90).content != first.content


def test_many_questions_get_the_same_bytes(shared):
    form = {"questions": ["hours >= 5", "SELECT AVG(hours) FROM people WHERE sex = 'Male'"], "error": 80}
    key = {"idempotency-key": "many"}
    first = shared.call("POST", "/tables/people/ask-many", "ana", json=form, headers=key)
    shared.ask("hours >= 5", role="ben", error=20)
    again = shared.call("POST", "/tables/people/ask-many", "ana", json=form, headers=key)
    assert (again.status_code, again.content) == (200, first.content)


def test_one_key_on_two_tables_is_a_409(shared):
    key = {"idempotency-key": "of one table"}
    form = {"question": "sex = 'Female' AND city = 'Genf' AND hours >= 41", "error": 60}
    assert shared.call("POST", "/tables/people/ask", "ana", json=form, headers=key).json()["price"] > 0
    before = shared.entries
    reply = shared.call("POST", "/tables/others/ask", "ana", json=form, headers=key)
    assert (reply.status_code, reply.json()["error"]) == (409, "KeyReused")
    assert "another table" in reply.json()["detail"]
    assert shared.entries == before


def test_a_release_of_all_that_is_left_can_be_repeated(tmp_path):
    with Inside(tmp_path) as inside:
        form = {"workload": {"questions": [["sex"]]}, "method": "direct"}
        key = {"idempotency-key": "all"}
        first = inside.call("POST", "/tables/people/releases", json=form, headers=key).json()
        while inside.call("GET", f"/tables/people/releases/{first['id']}").json()["state"] != "done":
            time.sleep(0.05)
        again = inside.call("POST", "/tables/people/releases", json=form, headers=key)
        assert (again.status_code, again.json()["id"]) == (202, first["id"])


@pytest.mark.parametrize("page", ["ask", "budget", "release"])
def test_the_page_says_what_is_shared(shared, page):
    cookie = {"cookie": f"discreet={shared.tokens['ana']}"}
    text = shared.web.get(f"/t/people/{page}", headers=cookie).text
    assert 'id="shared"' in text
    assert {"ask": "Answers are shared", "budget": "only your own", "release": "These are yours"}[page] in text


@pytest.mark.parametrize("said", [False, True])
def test_a_release_of_all_that_is_left_is_made_however_crooked_that_is(tmp_path, said):
    form = {"workload": {"questions": [["sex", "city"]]}, "method": "direct"}
    # Exactly, what is left here is less than the float next to it.
    with Inside(tmp_path, budget=Budget(epsilon=5, delta=1e-9)) as inside:
        inside.ask("age >= 30", error=80)
        left = inside.call("GET", "/tables/people").json()["remaining"]["epsilon"]
        more = inside.call("POST", "/tables/people/releases", json=form | {"epsilon": left * 1.001})
        assert (more.status_code, more.json()["error"]) == (402, "BudgetExceeded")
        job = inside.call("POST", "/tables/people/releases", json=form | ({"epsilon": left} if said else {})).json()
        while (found := inside.call("GET", f"/tables/people/releases/{job['id']}").json())["state"] != "done":
            assert found["state"] != "failed", found
            time.sleep(0.05)

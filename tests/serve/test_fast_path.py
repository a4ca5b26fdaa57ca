"""Questions reach their handler without the framework, and nobody sees another difference than the time it takes."""

import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from discreet.curator import Curator
from discreet.serve import app as application
from discreet.serve.routes import asking
from support.live_server import Inside

ASK = "/tables/people/ask"
KNOWN = {"question": "SELECT sex, city, COUNT(*) FROM people GROUP BY sex, city", "error": 30}
ONE = {"question": "SELECT COUNT(*) FROM people WHERE sex = 'Male' AND city IN ('Bern', 'Chur')", "error": 60}


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """A server that was asked something, so that something is known."""
    with Inside(tmp_path_factory.mktemp("told")) as found:
        assert found.call("POST", ASK, json=KNOWN).json()["origin"] == "measured"
        yield found


def seen(reply):
    """All that a client sees; every request has its own number, and is answered at its own time."""
    headers = {name: value for name, value in reply.headers.items() if name != "x-request-id"}
    return reply.status_code, reply.content, headers


def test_a_question_does_not_pass_the_framework(told, monkeypatch):
    async def unreachable(*_):
        raise AssertionError("the routes were asked")

    monkeypatch.setattr(told.app._app.app, "middleware_stack", unreachable)
    for form in (KNOWN, ONE, {**ONE, "nonnegative": True}, {**ONE, "confidence": 0.5, "joint": True}):
        before = told.entries
        reply = told.call("POST", ASK, json=form, headers={"idempotency-key": "a key"})
        assert (reply.status_code, reply.json()["origin"], told.entries) == (200, "known", before)
    line = told.log.getvalue().splitlines()[-1]
    assert '"route": "/v1/tables/{table}/ask"' in line
    assert told.call("POST", ASK, json={"question": "aeg >= 31", "error": 60}).status_code == 400
    assert told.call("POST", "/tables/people/plan", json=ONE).status_code == 500


REQUESTS = {
    "known": {"json": ONE},
    "known groups": {"json": KNOWN},
    "the name of the token": {"json": {**ONE, "analyst": "analyst"}},
    "another's name": {"json": {**ONE, "analyst": "ben"}},
    "an auditor": {"json": ONE, "role": "auditor"},
    "a key that cannot be": {"json": ONE, "headers": {"idempotency-key": "k" * 300}},
    "a condition as JSON": {
        "json": {"question": {"where": {"column": "sex", "is": "=", "value": "Male"}}, "error": 500}
    },
    "nothing said": {"json": {"question": ONE["question"]}},
    "nothing known": {"json": {"question": "hours >= 31"}},
    "no column": {"json": {"question": "aeg >= 3", "error": 60}},
    "no SQL": {"json": {"question": "SELECT (", "error": 60}},
    "a wrong error": {"json": {**ONE, "error": -1}},
    "too dear": {"json": {"question": "hours >= 31 AND age >= 30 AND city = 'Bern'", "error": 1e-6}},
    "a field too many": {"json": {**ONE, "sort": True}},
    "text for a number": {"json": {**ONE, "error": "60"}},
    "no JSON": {"content": b"{", "headers": {"content-type": "application/json"}},
    "nothing at all": {"content": b""},
}


@pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS)
@pytest.mark.parametrize("path", [ASK, "/tables/peple/ask", "/tables/people%2Fx/ask"])
def test_with_and_without_the_framework_the_reply_is_the_same_and_uncharged(told, monkeypatch, path, request_):
    before = told.entries
    short = seen(told.call("POST", path, **request_))
    monkeypatch.setattr(application, "_ASK", re.compile("never"))
    assert seen(told.call("POST", path, **request_)) == short
    assert told.entries == before


@pytest.mark.parametrize(
    "question", ["hours >= 17 AND sex = 'Male'", {"where": {"column": "hours", "is": ">=", "value": 18}}]
)
def test_a_paid_question_is_parsed_once_and_looked_up_once(told, monkeypatch, question):
    counted = Counter()
    for name in ("prepare", "_free_answer", "pay"):
        real = getattr(Curator, name)

        def count(*given, name=name, real=real, **named):
            counted[name] += 1
            return real(*given, **named)

        monkeypatch.setattr(Curator, name, count)
    before = told.entries
    assert told.ask(question, error=150).json()["origin"] != "known"
    assert counted == {"prepare": 1, "_free_answer": 1, "pay": 1}
    assert told.entries > before


def test_another_handler_is_seen(told, monkeypatch):
    """Power: one that forgets who may ask."""
    reply = seen(told.call("POST", ASK, **REQUESTS["an auditor"]))
    monkeypatch.setattr(asking, "who_of", lambda request, *roles: request.state.who)
    assert seen(told.call("POST", ASK, **REQUESTS["an auditor"])) != reply


def test_a_crowd_that_waits_to_pay_holds_up_nobody_who_only_looks(tmp_path):
    """More than there are threads for everybody; what is known is told too, also if it takes longer to look."""
    with Inside(tmp_path, quantum=0.01) as inside, ThreadPoolExecutor(61) as crowd:
        inside.call("POST", ASK, json=KNOWN)
        source = inside.desks.curators["people"].table.source
        reading, begun, may_end = source.evaluate, Event(), Event()

        def evaluate(question):
            begun.set()
            assert may_end.wait(60)
            return reading(question)

        source.evaluate = evaluate
        paying = [crowd.submit(inside.ask, f"hours >= {1 + place % 59}", error=40) for place in range(60)]
        try:
            assert begun.wait(20)
            looks = [
                ("POST", "/tables/people/plan", {"question": "hours >= 3 AND age >= 30", "error": 40}, 200),
                ("GET", "/tables/people/budget", None, 200),
                ("POST", ASK, REQUESTS["a condition as JSON"]["json"], 200),
                ("POST", ASK, REQUESTS["no column"]["json"], 400),
            ]
            for method, path, form, status in looks:
                assert crowd.submit(inside.call, method, path, json=form).result(20).status_code == status
            assert not any(each.done() for each in paying)
        finally:
            may_end.set()
        assert {each.result(60).status_code for each in paying} == {200}

"""What the server says tells nothing of the rows: no canary, no number of rows, no time."""

import asyncio
import json
import re
from concurrent.futures import ThreadPoolExecutor
from math import erf, sqrt
from time import monotonic, sleep

import numpy as np
import pytest

from discreet.curator.executor import left_of
from discreet.serve import middleware
from discreet.serve.routes import asking
from support.live_server import CANARIES, SCHEMA, Inside, Live, people, settings


def area(one, other):
    """The probability that a time of the one kind is longer than one of the other: 1/2 if they are alike."""
    both = np.concatenate([one, other])
    ranks = np.searchsorted(np.sort(both), both, side="left") + np.searchsorted(np.sort(both), both, side="right")
    above = (ranks[: len(one)].sum() / 2 - len(one) * len(one) / 2) / (len(one) * len(other))
    return max(above, 1 - above)


def test_the_area_sees_what_differs():
    steady = np.arange(1000.0)
    assert area(steady, steady) == 0.5
    assert area(steady, steady + 100) == pytest.approx(0.595, abs=0.002)
    assert area(steady, steady + 2000) == 1.0


def everything(inside):
    """Everything that somebody could read, of a session in which much is asked."""
    ask = {"question": "SELECT city, SUM(hours), COUNT(*) FROM people GROUP BY city", "error": 300}
    replies = [
        inside.call("POST", "/tables/people/ask", json=ask),
        inside.ask("SELECT COUNT(*) FROM people WHERE city = 'Bern'", error=100),
        inside.ask("SELECT COUNT(*) FROM people WHERE city = 'Brn'", error=100),
        inside.ask("SELECT MAX(salary) FROM people", error=100),
        inside.ask("age >= 65 AND hours >= 3", error=1e-6),
    ]
    job = inside.call("POST", "/tables/people/releases", json={"workload": {"marginals": 2}, "epsilon": 1.0}).json()
    place = f"/tables/people/releases/{job['id']}"
    until = monotonic() + 60
    while inside.call("GET", place).json()["state"] != "done" and monotonic() < until:
        pass
    ends = ("", "/card", "/card?form=html", "/folder", "/rows?form=csv", "/rows", "/marginal?columns=city,sex")
    replies += [inside.call("GET", place + end) for end in ends]
    paths = ("", "/people", "/people/known", "/people/budget", "/people/history?released=true", "/people/releases")
    replies += [inside.call("GET", f"/tables{path}") for path in paths]
    paths = ("/metrics", "/ledger/head", "/ledger/holds", "/tokens", "/health", "/me")
    replies += [inside.call("GET", path, "owner") for path in paths]
    replies.append(inside.call("GET", "/tables/people/history/export?form=jsonl", "owner"))
    return replies


def test_the_log_has_a_line_for_each_request_and_no_question(tmp_path):
    with Inside(tmp_path) as inside:
        inside.ask("SELECT COUNT(*) FROM people WHERE city = 'Bern'", error=100)
        inside.call("GET", "/tables/people/history?text=Bern")
        lines = [json.loads(line) for line in inside.log.getvalue().splitlines()]
        assert [line["route"] for line in lines] == ["/v1/tables/{table}/ask", "/v1/tables/{table}/history"]
        assert {line["who"] for line in lines} == {"analyst"}
        assert "Bern" not in inside.log.getvalue()


def test_the_metrics_count_and_do_not_tell_the_number_of_rows(tmp_path):
    with Inside(tmp_path) as inside:
        inside.ask("age >= 18", error=100)
        inside.ask("age >= 18", error=100)
        text = inside.call("GET", "/metrics", "auditor").text
        assert 'discreet_answers_total{origin="known",table="people"} 1.0' in text
        assert 'discreet_answers_total{origin="measured",table="people"} 1.0' in text
        assert 'discreet_budget_share_left{table="people"}' in text
        assert not re.search(r"\b4000\b", text)
        assert not re.search(r"\b3999\b", text)


@pytest.mark.slow
def test_neighbours_look_alike_and_canaries_never_sing(tmp_path):
    """The same session on two tables that differ in one person: only numbers of answers differ, and nothing planted in
    the rows is ever seen again."""
    seen = []
    for number, without in enumerate((None, 17)):
        folder = tmp_path / str(number)
        with Inside(folder, schemas=(str(people(folder, without=without)),)) as inside:
            replies = everything(inside)
            charged = [
                (line["event"], line["why"], line["price"])
                for line in inside.call("GET", "/tables/people/history", "owner").json()["spends"]
            ]
            require_silence(replies, inside.log.getvalue())
        statuses = [(reply.status_code, reply.headers["content-type"]) for reply in replies]
        assert sum(status == 200 for status, _ in statuses) >= 18
        shapes = [_shape(reply.json()) for reply in replies[:5]]
        seen.append((statuses, shapes, charged[-4:]))
        # They are in the data, so that a test could find them.
        planted = (folder / "people.parquet").read_bytes()
        assert all(canary.encode() in planted for canary in CANARIES[:2])
    for one, other in zip(*seen, strict=True):
        assert one == other


def require_silence(replies, log):
    """No canary in bodies, headers, metrics and logs."""
    said = b"".join(reply.content for reply in replies) + log.encode()
    said += json.dumps([list(reply.headers.items()) for reply in replies]).encode()
    assert len(said) > 10_000
    for canary in CANARIES:
        assert canary.encode() not in said


def _shape(plain):
    match plain:
        case dict():
            return {name: _shape(value) for name, value in plain.items() if name != "text"}
        case list():
            return [_shape(value) for value in plain]
        case bool() | str():
            return plain
    # Of what noise makes empty there is no mean: that follows from released numbers.
    return "a number, or none"


def test_a_quantum_has_passed_or_two_or_four():
    for passed, whole in ((0.0, 0.05), (0.049, 0.05), (0.051, 0.1), (0.11, 0.2), (0.9, 1.6)):
        left = left_of(monotonic() - passed, 0.05)
        assert left == pytest.approx(whole - passed, abs=5e-3)
    assert left_of(monotonic() - 3, 0.0) == 0.0


def test_replies_leave_after_whole_quanta(monkeypatch):
    slept = []

    async def sleep_at_once(seconds):
        slept.append(seconds)

    monkeypatch.setattr(middleware, "sleep", sleep_at_once)
    # In a thread of its own: where a browser was started, this one has a loop that runs.
    with ThreadPoolExecutor(1) as apart:
        for passed, left in ((1, 99), (30, 70), (120, 80), (570, 30)):
            apart.submit(asyncio.run, middleware.until_quantum(monotonic() - passed, 100)).result(20)
            assert left - 20 < slept.pop() <= left


def test_what_may_read_rows_waits_for_the_quantum_and_nothing_else_does(tmp_path, monkeypatch):
    waited = []

    async def noted(begun, quantum):
        waited.append(quantum)
        await middleware.until_quantum(begun, quantum)

    monkeypatch.setattr(asking, "until_quantum", noted)
    with Inside(tmp_path, quantum=0.01) as inside:
        for question, error, status, waits in (
            ("hours >= 31", 60, 200, True),
            ("hours >= 31", 60, 200, False),
            ("hours >= 31 AND age >= 30", 1e-6, 402, True),
            ("aeg >= 31", 60, 400, False),
        ):
            waited.clear()
            assert inside.ask(question, error=error).status_code == status
            assert waited == [0.01] * waits
        many = {"questions": ["hours >= 17 AND age >= 45"], "error": 60}
        assert inside.call("POST", "/tables/people/ask-many", json=many).status_code == 200
        assert waited == [0.01]


@pytest.mark.parametrize(("quantum", "shows"), [(0.0, True), (0.3, False)])
def test_a_slow_reading_shows_only_without_a_quantum(tmp_path, quantum, shows):
    """A source that takes longer for one question than for another, on purpose."""
    with Inside(tmp_path, quantum=quantum) as inside:
        source = inside.desks.curators["people"].table.source
        reading, slow, kinds = source.evaluate, [], ([], [])

        def evaluate(question):
            sleep(0.05 if slow else 0.0)
            return reading(question)

        source.evaluate = evaluate
        for number in range(12):
            slow[:] = [1] if number % 2 else []
            begun = monotonic()
            reply = inside.ask(f"hours >= {number} AND city = 'Bern' AND age >= 18", error=60 - number)
            kinds[number % 2].append(monotonic() - begun)
            assert reply.json()["origin"] != "known"
        # A busy machine only ever delays a reply, so the quickest of each kind are compared.
        assert (min(kinds[1]) - min(kinds[0]) > 0.03) is shows


@pytest.mark.server
@pytest.mark.long
def test_latency_tells_nothing(tmp_path):
    """2,000 paid requests of each kind on a real server: all rows or none, and a neighbouring table."""
    number, questions = 2000, ("hours < 70 AND sex IN ('Female', 'Male')", "hours >= 75 AND sex IN ('Female', 'Male')")
    one, other = tmp_path / "one", tmp_path / "other"
    with (
        Live(settings(one, schemas=_longer(one), quantum=0.02, budget=_large())) as live,
        Live(settings(other, schemas=_longer(other, without=17), quantum=0.02, budget=_large())) as beside,
        live.web() as here,
        beside.web() as there,
    ):
        found, rng = {}, np.random.default_rng(1)
        kinds = [(web, question) for web in (here, there) for question in questions]
        for _ in range(number):
            # In a new order each time: who comes after a request to the same server finds it warm.
            for place in rng.permutation(len(kinds)):
                web, question = kinds[place]
                found.setdefault((web is here, question), []).append(timed(web, question))
    times = {kind: np.array(each[50:]) for kind, each in found.items()}
    for question in questions:
        assert area(times[True, question], times[False, question]) < 0.55
    assert area(times[True, questions[0]], times[True, questions[1]]) < 0.55


def timed(web, question):
    """The time of a paid answer: whoever names a price pays it."""
    begun = monotonic()
    reply = web.post("/tables/people/ask", json={"question": question, "epsilon": 0.05})
    took = monotonic() - begun
    assert reply.status_code == 200, reply.text
    assert reply.json()["origin"] != "known"
    return took


def _longer(folder, **options):
    """The schema of people who could work longer than any of them does."""
    schema = people(folder, **options)
    schema.write_text(SCHEMA.replace("upper: 60", "upper: 99"))
    return (str(schema),)


def _large():
    from discreet.ledger import Budget

    return Budget(epsilon=1000, delta=1e-9)


def test_the_normal_law_is_where_the_bound_comes_from():
    """With 2,000 of each kind an area of 0.55 is more than five standard deviations from 1/2."""
    deviation = sqrt((2 * 2000 + 1) / (12 * 2000 * 2000))
    assert 1 - erf(0.05 / deviation / sqrt(2)) < 1e-7

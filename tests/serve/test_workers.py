"""Several workers, one truth; and a server that is killed in the middle of it goes on."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from threading import Event
from time import monotonic, sleep

import pytest

import discreet as dp
from discreet.accounting import Gaussian
from discreet.curator.release_run import held_for
from discreet.ledger import Budget, Ledger, verify
from discreet.serve.jobs import Job, Jobs, now, number_of
from support.ledger_places import needs_postgres, new_database
from support.live_server import Live, settings

pytestmark = pytest.mark.server


def workers_of(live):
    """The processes of the workers."""
    import psutil

    children = psutil.Process(live.process.pid).children()
    return [child for child in children if "resource_tracker" not in " ".join(child.cmdline())]


def test_what_one_worker_has_paid_for_all_workers_know(team):
    """Each request on a connection of its own, so that both workers are met."""
    token = team.token("ana")
    paid, values = 0, set()
    for _ in range(30):
        with team.web(token) as web:
            reply = web.post("/tables/people/ask", json={"question": "age >= 30 AND sex = 'Male'", "error": 50}).json()
        paid += reply["origin"] != "known"
        values.add(reply["value"])
    assert paid == 1
    assert len(values) == 1
    assert len(workers_of(team)) == 2


def test_workers_that_spend_at_once_keep_one_cap(team):
    """A crowd asks for something new until its cap is reached: it is never passed."""
    token = team.token("crowd")
    with team.web() as web:
        web.put("/tables/people/caps", json={"epsilon": 1.0, "delta": 1e-9, "analyst": "crowd"}).raise_for_status()

    def ask(number):
        with team.web(token) as web:
            form = {"question": f"hours = {number % 60} AND age >= 30 AND city = 'Bern'", "error": 12 - number / 40}
            return web.post("/tables/people/ask", json=form).status_code

    with ThreadPoolExecutor(8) as crowd:
        assert {200, 402} == set(crowd.map(ask, range(160)))
    audit = verify(team.settings.ledger, prices=True)
    assert audit.spends == audit.answered
    balances = Ledger(team.settings.ledger).balances(table="people", analyst="crowd")
    assert {float(balance.cap.epsilon) for balance in balances} == {1.0, 20.0}
    for balance in balances:
        assert balance.spent.epsilon <= balance.cap.epsilon


@needs_postgres
def test_two_servers_on_one_postgres_answer_from_one_truth(tmp_path):
    """As on two machines: each has its own copy of the rows, and nothing in common but the ledger; one has TLS."""
    certificate, key = certified(tmp_path)
    with (
        new_database() as ledger,
        Live(settings(tmp_path / "one", ledger=ledger)) as one,
        Live(settings(tmp_path / "other", ledger=ledger, certificate=certificate, key=key)) as other,
    ):
        token = one.token("ana")
        assert other.address.startswith("https://127.0.0.1:")
        with (
            dp.connect(one.address, token) as here,
            dp.connect(other.address, token, certificate=str(certificate)) as there,
        ):
            paid = here.ask("age >= 30 AND sex = 'Male'", error=50)
            known = there.ask("age >= 30 AND sex = 'Male'", error=50)
            assert (paid.origin, known.origin) == ("measured", "known")
            assert (paid.value, paid.remaining) == (known.value, known.remaining)
            assert [spend.why for spend in there.history()] == ["age >= 30 AND sex = 'Male'"]
        with pytest.raises(dp.ServerFailed, match="cannot be reached"):
            dp.connect(other.address, token, patience=0.1)


def test_a_worker_that_dies_is_replaced(team):
    victim = workers_of(team)[0]
    victim.send_signal(signal.SIGKILL)
    victim.wait(10)
    until = monotonic() + 60
    while len(workers_of(team)) < 2 and monotonic() < until:
        sleep(0.1)
    assert len(workers_of(team)) == 2
    with dp.connect(team.address, team.token("ben")) as desk:
        assert desk.ask("hours >= 7", error=200).error <= 200 * (1 + 1e-8)


def test_workers_end_when_their_supervisor_is_killed(team):
    """The last of the tests that use this server."""
    found = workers_of(team)
    os.kill(team.process.pid, signal.SIGKILL)
    team.process.wait()
    until = monotonic() + 20
    while any(each.is_running() and each.status() != "zombie" for each in found) and monotonic() < until:
        sleep(0.1)
    assert not any(each.is_running() and each.status() != "zombie" for each in found)


@pytest.mark.parametrize(("workers", "kills"), [(1, 2), pytest.param(2, 6, marks=pytest.mark.long)])
def test_a_server_that_is_killed_under_load_loses_nothing(tmp_path, workers, kills):
    """kill -9 of all of it, again and again, while clients ask: they go on, and what was told is still told."""
    chosen = settings(tmp_path, workers=workers, budget=Budget(epsilon=50, delta=1e-9))
    with Live(chosen) as live:
        token, told, done = live.token("ana"), {}, Event()
        # The next starts are on the same port, so that the clients find it again.
        live.settings = replace(chosen, port=int(live.address.rsplit(":", 1)[1]))

        def ask(part):
            found = 0
            with dp.connect(live.address, token, patience=60) as desk:
                while not done.is_set():
                    question = (
                        f"hours = {(7 * part + found) % 60} AND city = 'Chur' AND age >= {(18, 30, 45)[part % 3]}"
                    )
                    with suppress(dp.AnswerLost):
                        answer = desk.ask(question, error=25)
                        told[question] = (answer.value, answer.error)
                    found += 1
            return found

        with ThreadPoolExecutor(4) as crowd:
            asking = [crowd.submit(ask, part) for part in range(4)]
            for _ in range(kills):
                before, until = len(told), monotonic() + 40
                while len(told) < before + 8 and monotonic() < until:
                    sleep(0.05)
                live.kill()
                live.process.stdout.close()
                live.start()
            sleep(1)
            done.set()
            assert all(each.result(120) > 0 for each in asking)
        assert len(told) >= 8 * kills
        with dp.connect(live.address, token) as desk:
            for question, (_, error) in told.items():
                again = desk.ask(question)
                assert again.origin == "known"
                assert again.error <= error * (1 + 1e-6)
        with live.web() as web:
            assert web.post("/ledger/verify").json()["holds"]
    audit = verify(chosen.ledger, prices=True)
    # What was in flight when it was killed may be paid for and lost; nothing else.
    assert audit.spends - audit.answered <= kills * workers


def test_a_release_whose_maker_was_killed_is_made_from_the_ledger(tmp_path):
    """Begun and paid for here as a worker would that dies before it writes anything; the next start goes on."""
    chosen = settings(tmp_path)
    table = dp.open(chosen.schemas[0])
    job = Job(
        id=number_of("people", "ana", None),
        table="people",
        analyst="ana",
        made=now(),
        workload={"marginals": 1},
        epsilon=1.0,
        delta=1e-9,
        method="direct",
        state="running",
        describe="all 1-way marginals of 4 columns",
    )
    with dp.Curator(table, budget=chosen.budget, ledger=chosen.ledger) as desk:
        jobs = Jobs(chosen.releases, lambda _, analyst: desk.seen_by(analyst))
        (chosen.releases / job.id).mkdir(parents=True)
        jobs._write(job)
        made = jobs._run_release(job)
        spends = len(desk.history())
        # It had set budget aside, and could not give it back.
        why = held_for(job.describe, f"release {job.id}")
        hold = desk.ledger.reserve(Gaussian(1, 1), why, table=desk.table.identity, analyst="ana")
        other = desk.ledger.reserve(Gaussian(5, 1), "somebody else's", table=desk.table.identity, analyst="ana")
        assert set(desk.ledger.holds) == {hold, other}
    with Live(chosen) as live, live.web() as web:
        until = monotonic() + 60
        while (now_is := web.get(f"/tables/people/releases/{job.id}").json())["state"] != "done":
            assert now_is["state"] in ("waiting", "running"), now_is
            assert monotonic() < until
            sleep(0.1)
        shown = web.get(f"/tables/people/releases/{job.id}/marginal", params={"columns": "city"}).json()
        assert shown["values"] == pytest.approx(made.marginal(("city",)).tolist())
        assert web.get("/tables/people/history").json()["total"] == spends
        assert [each["hold"] for each in web.get("/ledger/holds").json()] == [other]
        assert web.delete(f"/ledger/holds/{other}").json() == {"closed": other}
        assert web.get("/ledger/holds").json() == []


def test_a_failed_release_says_why_and_the_next_is_made(inside):
    """Two releases that fit one by one and not together: the second is refused when its turn comes."""
    form = {"workload": {"marginals": 2}, "epsilon": 19.0}
    left = inside.desks.desk("people", "analyst").remaining
    assert left.epsilon > 19
    turn = Event()
    inside.desks.jobs._maker.submit(turn.wait)
    begun = [inside.call("POST", "/tables/people/releases", json=form) for _ in range(2)]
    turn.set()
    assert [reply.status_code for reply in begun] == [202, 202]
    until = monotonic() + 100
    states = []
    for reply in begun:
        place = f"/tables/people/releases/{reply.json()['id']}"
        while (found := inside.call("GET", place).json())["state"] in ("waiting", "running"):
            assert monotonic() < until
            sleep(0.05)
        states.append(found)
    assert [state["state"] for state in states] == ["done", "failed"]
    assert states[1]["problem"]["error"] == "BudgetExceeded"
    assert "more than is left" in states[1]["problem"]["detail"]
    early = inside.call("GET", f"/tables/people/releases/{states[1]['id']}/rows")
    assert early.status_code == 400


def test_a_release_is_found_under_its_own_table_and_no_other(inside):
    jobs, place = inside.desks.jobs, "/tables/people/releases"
    facts = {"made": now(), "workload": {}, "epsilon": 1.0, "delta": 1e-9, "state": "failed"}
    job = Job(id="0123", table="others", analyst="analyst", **facts)
    (inside.settings.releases / job.id).mkdir(parents=True)
    jobs._write(job)
    assert jobs.find("0123") == job
    assert inside.call("GET", f"{place}/0123").status_code == 404
    assert "0123" not in [each["id"] for each in inside.call("GET", place).json()]
    jobs._write(replace(job, table="people"))
    assert inside.call("GET", f"{place}/0123").status_code == 200


def test_a_release_begun_twice_under_one_key_is_one_job(inside):
    form, headers = {"workload": {"marginals": 1, "of": ["sex"]}, "epsilon": 0.01}, {"idempotency-key": "one"}
    first, second = (
        inside.call("POST", "/tables/people/releases", json=form, headers=headers).json()["id"] for _ in range(2)
    )
    assert first == second
    other = inside.call("POST", "/tables/people/releases", json={**form, "epsilon": 0.02}, headers=headers)
    assert other.status_code == 409


def certified(folder):
    """A certificate for this machine that it has signed itself, and the key."""
    from datetime import UTC, datetime, timedelta
    from ipaddress import ip_address

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, now_is = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    names = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    made = made.not_valid_before(now_is - timedelta(days=1)).not_valid_after(now_is + timedelta(days=1))
    made = made.add_extension(names, critical=False).add_extension(x509.BasicConstraints(True, None), critical=True)
    (folder / "cert.pem").write_bytes(made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    form = serialization.PrivateFormat.PKCS8
    (folder / "key.pem").write_bytes(key.private_bytes(serialization.Encoding.PEM, form, plain))
    return folder / "cert.pem", folder / "key.pem"

"""The server under load: known answers beside a bare FastAPI endpoint that returns the same JSON, in one run.

python bench/server.py            prints the tables and writes bench/results/server.md

wrk with 64 connections on loopback and 2 workers, without the quantum and without a limit of the rate; both servers
live at once and take turns, so that a busy moment of the machine hits both. Then paid answers are mixed in; afterwards
nothing is overspent and the ledger verifies. Last, with the quantum: whether the time of a paid answer tells which
rows it is of (all or none), or whether one person is in the table.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import monotonic

import httpx
import numpy as np
import psutil

from discreet.ledger import Budget, Ledger, verify
from discreet.serve.registry import Settings
from machine import describe

CONNECTIONS, WORKERS = 64, 2
# Each is asked for so many seconds, so many times in turn.
SECONDS, TURNS = 5, 5
# Of each kind of which latencies are compared.
REQUESTS = 2000

SERVE = """
import sys
from pathlib import Path
from discreet.ledger import Budget
from discreet.serve.registry import Settings
from discreet.serve.workers import start_server
start_server(eval(sys.argv[1], {"Settings": Settings, "Budget": Budget, "Path": Path, "PosixPath": Path}))
"""

# Reads the same question and gives the same reply, by the idiom of FastAPI's first example; nothing else.
BARE = """
import json, socket, sys
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from uvicorn.supervisors import Multiprocess


class Question(BaseModel):
    question: str
    error: float


REPLY = json.loads(open(__file__.replace("bare.py", "reply.json")).read())
app = FastAPI()


@app.post("/ask")
async def ask(form: Question):
    return REPLY


@app.post("/nothing")
async def nothing():
    return REPLY


if __name__ == "__main__":
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen(1024)
    listening.set_inheritable(True)
    print(listening.getsockname()[1], flush=True)
    config = uvicorn.Config("bare:app", workers=int(sys.argv[1]), log_config=None, access_log=False)
    Multiprocess(config, sockets=[listening]).run()
"""

# True of all rows, and of none; to whoever does not see the rows the two look alike.
EVERYBODY, NOBODY = "work < 70 AND ill IN (TRUE, FALSE)", "rest >= 70 AND ill IN (TRUE, FALSE)"

# wrk's own language; the questions take turns.
SCRIPT = """
local questions = {{ {questions} }}
local place = 0
wrk.method = "POST"
wrk.headers["content-type"] = "application/json"
wrk.headers["authorization"] = "Bearer {token}"
request = function()
  place = place % #questions + 1
  return wrk.format(nil, nil, nil, questions[place])
end
done = function(summary, latency, requests)
  io.write(string.format("requests %d seconds %f p50 %f p99 %f errors %d\\n", summary.requests, summary.duration / 1e6,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3, summary.errors.status))
end
"""


@contextmanager
def served(settings, log):
    command = [sys.executable, "-c", SERVE, repr(settings)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True)
    try:
        said = ""
        while "Stop with" not in said:
            said += process.stdout.readline()
        address, token = re.search(r"at (http://\S+)", said)[1], re.search(r"^  (discreet_\S+)$", said, flags=re.M)[1]
        with httpx.Client(base_url=address, headers={"authorization": f"Bearer {token}"}, timeout=60) as web:
            web.get("/v1/health")
            yield web, address, token, process.pid
    finally:
        os.killpg(process.pid, signal.SIGINT)
        process.wait()


@contextmanager
def bare(folder, reply):
    (folder / "bare.py").write_text(BARE)
    (folder / "reply.json").write_text(json.dumps(reply))
    command = [sys.executable, "bare.py", str(WORKERS)]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}", process.pid
    finally:
        os.killpg(process.pid, signal.SIGINT)
        process.wait()


def questions():
    """Conditions on two columns of which everything is known: some hundred different ones."""
    educations = ("Bachelors", "HS-grad", "Masters", "Some-college", "11th", "Doctorate", "Assoc-voc", "9th")
    return [
        f"SELECT COUNT(*) FROM adult WHERE sex = '{sex}' AND education IN ('{one}', '{other}')"
        for sex in ("Female", "Male")
        for one in educations
        for other in educations
    ]


def paid(number):
    """Questions that nothing that was asked before answers, so many."""
    return [
        f"age >= {17 + k % 70} AND hours_per_week >= {k // 70 % 90} AND education = 'Masters'" for k in range(number)
    ]


def cpu(process):
    """Seconds of the processor of a server so far, with its workers."""
    family = [psutil.Process(process), *psutil.Process(process).children(recursive=True)]
    return sum(sum(each.cpu_times()[:2]) for each in family)


def load(folder, address, process, forms, token="", seconds=SECONDS):
    """What wrk says: requests in a second, latencies in milliseconds, and microseconds of the processor for each."""
    script = folder / "load.lua"
    listed = ", ".join(json.dumps(json.dumps(form)) for form in forms)
    script.write_text(SCRIPT.format(questions=listed, token=token))
    before = cpu(process)
    command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "-s", script, address]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.search(r"requests (\d+) seconds ([\d.]+) p50 ([\d.]+) p99 ([\d.]+) errors (\d+)", said)
    number = int(found[1])
    return {
        "rate": number / float(found[2]),
        "p50": float(found[3]),
        "p99": float(found[4]),
        "errors": int(found[5]),
        "cpu": 1e6 * (cpu(process) - before) / number,
    }


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(map(str, row)) + " |" for row in rows), ""])


def summary(name, turns):
    figures = {key: median(turn[key] for turn in turns) for key in turns[0]}
    rates = [turn["rate"] for turn in turns]
    spread = f"{figures['rate']:,.0f} ({min(rates):,.0f}–{max(rates):,.0f})"
    shown = (f"{figures['p50']:.1f}", f"{figures['p99']:.1f}", f"{figures['cpu']:.0f}")
    return [name, spread, *shown, sum(turn["errors"] for turn in turns)]


def under_load(folder, seconds, turns):
    budget = Budget(epsilon=30, delta=1e-9)
    settings = Settings(
        schemas=("adult",), ledger=str(folder / "load.sqlite"), releases=folder / "releases", budget=budget,
        port=0, workers=WORKERS, quantum=0.0, rate=0.0,
    )  # fmt: skip
    log = (folder / "log").open("w")
    with served(settings, log) as (web, address, token, process):
        ask = "/v1/tables/adult/ask"
        groups = "SELECT sex, education, COUNT(*) FROM adult GROUP BY sex, education"
        reply = web.post(ask, json={"question": groups, "error": 60})
        assert reply.status_code == 200, reply.text
        known = [{"question": question, "error": 500} for question in questions()]
        one = web.post(ask, json=known[0]).json()
        assert one["origin"] == "known"
        with bare(folder, one) as (plain, bare_process):
            for _ in range(20):
                httpx.post(f"{plain}/ask", json=known[0])
            load(folder, address + ask, process, known, token, 2)
            ours, theirs, nothing, same = [], [], [], []
            for _ in range(turns):
                theirs.append(load(folder, f"{plain}/ask", bare_process, known, seconds=seconds))
                ours.append(load(folder, address + ask, process, known, token, seconds))
                nothing.append(load(folder, f"{plain}/nothing", bare_process, known, seconds=seconds))
                same.append(load(folder, address + ask, process, known[:1], token, seconds))
        mixed_forms = []
        for place, question in enumerate(paid(600)):
            mixed_forms += [{"question": question, "error": 60 * 0.98**place}, *known[:99]]
        mixed = [load(folder, address + ask, process, mixed_forms, token, 3 * seconds)]
        holds = web.post("/v1/ledger/verify").json()
        assert holds["holds"], holds
    audit = verify(settings.ledger, prices=True)
    (balance,) = Ledger(settings.ledger).balances(table="adult")
    assert balance.spent.epsilon <= budget.epsilon
    ratio = [our["rate"] / their["rate"] for our, their in zip(ours, theirs, strict=True)]
    other = [our["rate"] / their["rate"] for our, their in zip(ours, nothing, strict=True)]
    head = ("", "requests a second", "p50, ms", "p99, ms", "CPU µs a request", "not 200")
    rows = [
        summary("bare FastAPI, reads the question", theirs),
        summary("bare FastAPI, reads nothing", nothing),
        summary(f"known answers, {len(known)} questions in turn", ours),
        summary("known answers, one question", same),
        summary("1 in 100 not known, paid for while there is budget", mixed),
    ]
    told = [
        f"Known answers are **{median(ratio):.2f}** ({min(ratio):.2f}–{max(ratio):.2f}) of the bare endpoint that",
        f"reads the same question, and {median(other):.2f} of one that reads nothing: medians of {turns} turns of",
        f"{seconds} s each,",
        f"{CONNECTIONS} connections, {WORKERS} workers, the load of wrk on the same two processors.",
        f"With paid answers mixed in: {audit.spends:,} spends by two workers, ε {float(balance.spent.epsilon):.3g} of",
        f"{float(budget.epsilon):g}, {audit.spends - audit.answered} of them without an answer; the ledger verifies,",
        'with every price computed again. ("Not 200" are refusals when the budget was gone.)',
    ]
    return "\n".join([table(head, rows), *told, ""])


def area(one, other):
    """The probability that a time of the one kind is longer than one of the other: 1/2 if they are alike."""
    both = np.concatenate([one, other])
    ranks = (np.searchsorted(np.sort(both), both, "left") + np.searchsorted(np.sort(both), both, "right")) / 2
    above = (ranks[: len(one)].sum() - len(one) ** 2 / 2) / (len(one) * len(other))
    return max(above, 1 - above)


def timed(web, question):
    begun = monotonic()
    # Whoever names a price pays it, whatever is known.
    reply = web.post("/v1/tables/people/ask", json={"question": question, "epsilon": 0.05})
    took = monotonic() - begun
    assert reply.status_code == 200, reply.text
    assert reply.json()["origin"] != "known", "only what is paid for is timed"
    return took


def people(folder, rows, without=None):
    import polars as pl

    folder.mkdir()
    digits = np.array([(place * 2654435761) % 2**32 for place in range(3 * rows)]).reshape(3, rows)
    frame = pl.DataFrame({"work": digits[0] // 11 % 60, "rest": digits[1] // 3 % 60, "ill": digits[2] // 5 % 2 == 1})
    if without is not None:
        frame = frame.with_row_index().filter(pl.col("index") != without).drop("index")
    frame.write_parquet(folder / "people.parquet")
    (folder / "people.yaml").write_text(
        "table: people\nsource: people.parquet\nprivacy_unit: row\ncolumns:\n"
        "  work: {type: integer, lower: 0, upper: 99}\n  rest: {type: integer, lower: 0, upper: 99}\n"
        "  ill: {type: boolean}\n"
    )
    return str(folder / "people.yaml")


def clocks(folder, number):
    """Times of paid questions on two neighbouring tables, all or none of the rows each; kinds take turns."""
    rows, rng = [], np.random.default_rng(1)
    for quantum in (0.02, 0.0):
        found = {}
        chosen = {}
        for name, without in (("all", None), ("one less", 17)):
            place = folder / f"{name} {quantum}".replace(" ", "-")
            schema = people(place, 20_000, without)
            chosen[name] = Settings(
                schemas=(schema,), ledger=str(place / "l.sqlite"), releases=place, budget=Budget(1000, 1e-9), port=0,
                quantum=quantum, rate=0.0,
            )  # fmt: skip
        log = (folder / "log").open("a")
        with served(chosen["all"], log) as (one, *_), served(chosen["one less"], log) as (other, *_):
            for place in range(-20, number):
                # By turns, so that a busy moment hits all; in a new order each time, because whoever comes after a
                # request to the same server finds it warm.
                kinds = {"all rows": (one, EVERYBODY), "no rows": (one, NOBODY)}
                kinds |= {"neighbour, all rows": (other, EVERYBODY), "neighbour, no rows": (other, NOBODY)}
                for kind in rng.permutation(list(kinds)).tolist():
                    took = timed(*kinds[kind])
                    if place >= 0:
                        found.setdefault(kind, []).append(took)
        times = {kind: np.array(each) for kind, each in found.items()}
        pairs = (("all rows", "no rows"), ("all rows", "neighbour, all rows"), ("no rows", "neighbour, no rows"))
        for left, right in pairs:
            told = area(times[left], times[right])
            middle = [f"{1e3 * float(np.median(times[kind])):.2f}" for kind in (left, right)]
            rows.append([f"{1e3 * quantum:g} ms" if quantum else "none", left, right, *middle, f"**{told:.3f}**"])
    head = ("quantum", "one kind", "the other", "median, ms", "median, ms", "area under the curve")
    told = f"{number:,} paid requests of each kind, in random order. An area of 0.5 is a clock that tells nothing; 0.55"
    return "\n".join([table(head, rows), told, "is more than five standard deviations from it.", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    chosen = parser.parse_args()
    if shutil.which("wrk") is None:
        sys.exit("This needs wrk: apt install wrk")
    seconds, turns, number = (1, 2, 100) if chosen.quick else (SECONDS, TURNS, REQUESTS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text = f"# The server\n\n{describe()}\n\n## Under load\n\n{under_load(folder, seconds, turns)}\n"
        print(text, flush=True)
        text += f"## By the clock\n\n{clocks(folder, number)}"
        print(text)
    if not chosen.quick:
        (Path(__file__).parent / "results" / "server.md").write_text(text)


if __name__ == "__main__":
    main()

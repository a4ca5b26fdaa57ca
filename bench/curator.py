"""How fast the curator is: known answers, paid answers, 10⁵ questions on end, a GROUP BY of 10,000 cells.

python bench/curator.py               prints the tables, writes bench/results/curator.md and curator.png
python bench/curator.py --questions N with fewer questions on end

Everything runs in one process with one thread of BLAS on the bundled Adult table. The peer is OpenDP: a count with
discrete Laplace noise on the same rows in memory, which reads the rows each time and keeps no budget; its price per
question is that of a direct answer, so it is shown for time alone.
"""

import os

# Small matrices: more threads of BLAS only wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import resource
import tempfile
from hashlib import sha256
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import numpy as np

import discreet as dp
from discreet.data import ADULT
from discreet.lab.demo.questions import questions
from machine import describe

RESULTS = Path(__file__).parent / "results"


def curator(folder, table, name, epsilon=1):
    return dp.Curator(table, budget=dp.Budget(epsilon=epsilon, delta=1e-9), ledger=Path(folder) / f"{name}.sqlite")


def conditions(count):
    """Distinct conditions on age, sex and education: ranges and cells."""
    made = []
    schools = list(dp.load_adult().domain["education"].values)
    for low in range(17, 80):
        for high in range(low, 91, 3):
            for sex in ("Female", "Male"):
                made.append(dp.col("age").between(low, high) & (dp.col("sex") == sex))
                made.append(dp.col("age").between(low, high) & (dp.col("education") == schools[(low + high) % 16]))
    return made[:count]


def known(folder, table):
    """Known scalar answers a second: distinct predicates, and the same SQL text again and again."""
    with curator(folder, table, "known") as desk:
        desk.ask(dp.Marginal(("age", "sex")), error=300)
        desk.ask(dp.Marginal(("age", "education")), error=300)
        asked = conditions(4000)
        for predicate in asked[:50]:
            desk.ask(predicate, error=40_000)
        rates = {}
        start, cpu = perf_counter(), process_time()
        for predicate in asked:
            assert desk.ask(predicate, error=40_000).origin == "known"
        rates["distinct predicates"] = len(asked) / (process_time() - cpu), len(asked) / (perf_counter() - start)
        counts = [dp.query.count(table.domain, predicate) for predicate in asked]
        desk.ask(dp.Marginal(("age", "sex")), error=200)
        start, cpu = perf_counter(), process_time()
        for count in counts:
            assert desk.ask(count, error=40_000).origin == "known"
        rates["distinct query objects"] = len(counts) / (process_time() - cpu), len(counts) / (perf_counter() - start)
        text = "SELECT COUNT(*) FROM adult WHERE age BETWEEN 30 AND 49 AND sex = 'Female'"
        start, cpu = perf_counter(), process_time()
        for _ in range(5000):
            desk.ask(text, error=40_000)
        rates["one SQL text again"] = 5000 / (process_time() - cpu), 5000 / (perf_counter() - start)
        return rates


def paid(folder, table, name):
    """CPU time of the paid answers of the demonstration's stream, beside a bare spend and record of the ledger."""
    from discreet.accounting import Gaussian

    times = []
    with curator(folder, table, name, epsilon=3) as desk:
        for question in questions(2500):
            dp.curator.asked.read_question(question.sql, table.domain, table.name)
            before = process_time()
            answer = desk.ask(question.sql, error=question.error)
            if answer.origin != "known":
                times.append(process_time() - before)
        bare = []
        for place in range(200):
            before = process_time()
            receipt = desk.ledger.spend(Gaussian(10**6 + place, 1), "bare", table=table.name)
            desk.ledger.record(receipt, bytes(1000))
            bare.append(process_time() - before)
    return times, bare


def on_end(folder, table, count):
    """Seconds for each tenth of a long stream, and the memory after it."""
    marks, stream = [], questions(count)
    with curator(folder, table, "long", epsilon=10) as desk:
        tenth = max(1, count // 10)
        for start in range(0, count, tenth):
            cpu, wall = process_time(), perf_counter()
            free = 0
            for question in stream[start : start + tenth]:
                free += desk.ask(question.sql, error=question.error).origin == "known"
            memory = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20
            marks.append(((process_time() - cpu) / tenth, (perf_counter() - wall) / tenth, free / tenth, memory))
    return marks


def groups(folder):
    """A GROUP BY of 10,000 cells, known."""
    domain = dp.Domain({"a": dp.Integers(0, 99, missing="drop"), "b": dp.Integers(0, 99, missing="drop")})
    rng = np.random.default_rng(1)
    table = dp.open({"a": rng.integers(0, 100, 10**5), "b": rng.integers(0, 100, 10**5)}, domain=domain)
    with curator(folder, table, "groups") as desk:
        desk.ask(dp.Marginal(("a", "b")), error=500)
        times = []
        for place in range(20):
            # Another confidence each time, so that nothing is remembered.
            desk._known.version += 1
            before = process_time()
            desk.ask("SELECT a, b, COUNT(*) FROM data GROUP BY a, b", error=10**6, confidence=0.9 + place / 1000)
            times.append(process_time() - before)
        return median(times)


def peer():
    """OpenDP: a count with discrete Laplace noise, the rows filtered by numpy."""
    import duckdb
    import opendp.prelude as odp

    odp.enable_features("contrib")
    rows = duckdb.sql(f"SELECT age, sex FROM '{ADULT.with_suffix('.parquet')}'").fetchnumpy()
    ages, women = np.asarray(rows["age"]), np.asarray(rows["sex"]) == "Female"
    noise = odp.m.make_laplace(odp.atom_domain(T=int), odp.absolute_distance(T=int), scale=60.0)
    times = []
    for low in range(200):
        before = process_time()
        noise(int(np.count_nonzero((ages >= low % 60) & women)))
        times.append(process_time() - before)
    return median(times)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--questions", type=int, default=100_000)
    count = parser.parse_args().questions
    table = dp.load_adult()
    lines = ["# The curator's speed", "", describe("duckdb", "opendp", "sqlalchemy")]
    lines += [f"Adult, 48,842 rows, sha256 {sha256(ADULT.with_suffix('.parquet').read_bytes()).hexdigest()[:16]}", ""]
    with tempfile.TemporaryDirectory() as folder:
        lines += ["| known answers | a second of CPU | a second |", "|---|---|---|"]
        lines += [f"| {name} | {cpu:,.0f} | {wall:,.0f} |" for name, (cpu, wall) in known(folder, table).items()]
        lines += [f"| OpenDP, one count on the rows, no ledger | {1 / peer():,.0f} | |", ""]
        young, _ = paid(folder, table, "young")
        # A quarter of a million draws, and the noise is compiled: an old process.
        dp.noise.rounded_gaussian(1000, size=300_000)
        old, bare = paid(folder, table, "old")
        lines += ["| paid answers | median CPU ms | 90 % |", "|---|---|---|"]
        named = ("ask, in a young process", young), ("ask, when the noise is compiled", old)
        for name, each in (*named, ("of it the ledger's spend and record", bare)):
            lines.append(f"| {name} ({len(each)}) | {1000 * median(each):.2f} | {1000 * np.quantile(each, 0.9):.2f} |")
        lines += ["", f"A GROUP BY of 10,000 cells, known: {1000 * groups(folder):.1f} ms CPU.", ""]
        marks = on_end(folder, table, count)
        lines += [f"| {count:,} questions on end | CPU µs each | µs each | free | MB |", "|---|---|---|---|---|"]
        for place, (cpu, wall, free, memory) in enumerate(marks, start=1):
            lines.append(f"| tenth {place} | {1e6 * cpu:,.0f} | {1e6 * wall:,.0f} | {free:.1%} | {memory:,.0f} |")
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "curator.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    draw(marks, count)


def draw(marks, count):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    places = [count * (place + 0.5) / len(marks) for place in range(len(marks))]
    figure, left = plt.subplots(figsize=(7, 4))
    left.plot(places, [1e6 * cpu for cpu, *_ in marks], "o-", label="CPU µs a question")
    left.set_ylim(bottom=0)
    left.set_xlabel("questions asked")
    left.set_ylabel("CPU µs a question")
    right = left.twinx()
    right.plot(places, [memory for *_, memory in marks], "s--", color="gray", label="memory, MB")
    right.set_ylim(bottom=0)
    right.set_ylabel("memory, MB")
    figure.tight_layout()
    figure.savefig(RESULTS / "curator.png", dpi=110)


if __name__ == "__main__":
    main()

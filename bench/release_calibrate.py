"""Forecasts of releases against what releases do: on drawn tables, to calibrate; on tables of others, to test.

python bench/release_calibrate.py run FILE         runs methods on drawn tables, and adds what they did to FILE
python bench/release_calibrate.py run FILE --read  the same on the tables of others
python bench/release_calibrate.py judge FILE       forecasts the same runs again, and compares
python bench/release_calibrate.py estimate         how far releases are thought to be from the truth, and are

A forecast is right if methods, tables and budgets are in the right order (the rank correlation over all of them), and
if the method that it would choose does nearly as well as the best. The constants of `release/forecast.py` and
`release/error/estimated_error.py` were chosen on drawn tables alone.
"""

import argparse
import json
import tempfile
from fractions import Fraction
from pathlib import Path
from time import process_time

import numpy as np

from release_data import DRAWN, READ, WORKLOADS, choose, judge, named, sample

DELTA = 1e-9
POOR, RICH = (0.01, 0.03, 0.1, 0.3), (1.0, 3.0, 10.0, 30.0)
TABLES = 30
# A choice that is worse than the best by no more than this is right.
REGRET = 1.1
# So many marginals and questions of a release are compared with what is thought of their errors.
MARGINALS, QUESTIONS = 40, 60


# Tables drawn: each seed is another kind.


def drawn(seed):
    """A table of some kind, width and length, all drawn; nothing about it is chosen by what it is for."""
    random = np.random.default_rng([7, seed])
    rows = int(10 ** random.uniform(3, 5.5))
    widest = int(random.choice([2, 4, 10, 30]))
    sizes = random.integers(2, widest + 1, int(random.integers(4, 10)))
    kind = ("mixture", "tree", "chain", "tree")[seed % 4]
    sharp = float(random.choice([0.3, 0.7, 1.5]))
    columns = []
    if kind == "mixture":
        many = int(random.integers(2, 12))
        member = random.choice(many, rows, p=random.dirichlet(np.full(many, 2.0)))
        columns = [choose(random, random.dirichlet(np.full(size, sharp), many), member) for size in sizes]
    else:
        for place, size in enumerate(sizes):
            before = place - 1 if kind == "chain" else int(random.integers(max(place, 1)))
            given = columns[before] if place else np.zeros(rows, dtype=np.int64)
            common = random.dirichlet(np.full(size, 1.0))
            # What a column says of the next: from little to nearly all.
            kept = random.uniform(0.2, 0.9)
            own = random.dirichlet(np.full(size, sharp), int(sizes[before]) if place else 1)
            columns.append(choose(random, (1 - kept) * common + kept * own, given))
    return named(f"{kind}-{seed}", sizes, columns)


def table_called(name):
    kind, _, seed = name.rpartition("-")
    return drawn(int(seed)) if kind else sample(name)


def jobs(read, seeds):
    """Tables, workloads and budgets; every third table is asked for pairs only."""
    if read:
        return [(name, "3-ways", epsilon) for name in READ for epsilon in (0.03, 0.1, 1.0, 10.0)]
    found = []
    for seed in range(seeds):
        random = np.random.default_rng([8, seed])
        chosen = float(random.choice(POOR)), float(random.choice(RICH))
        found += [(drawn(seed).name, "2-ways" if seed % 3 == 2 else "3-ways", epsilon) for epsilon in chosen]
    for name in DRAWN:
        found += [(name, "2-ways" if name == "hundred" else "3-ways", epsilon) for epsilon in (0.1, 1.0)]
    return found


# Runs.


def units_of(epsilon, delta=DELTA):
    from discreet.accounting.gaussian_dp import gaussian_limit

    return Fraction(float(gaussian_limit(Fraction(epsilon), Fraction(delta)))).limit_denominator(10**9)


def methods():
    """The ways to make a release: from what is known, a goal and units to a procedure."""
    from discreet.release.method_choice import METHODS

    return {name: lambda brief, make=method.make: make(brief, None) for name, method in METHODS.items()}


def released(table, weights, epsilon, make):
    """A model made through the executor that pays and measures, what is known then, and the seconds that it took."""
    from discreet.curator.release_run import RequestExecutor
    from discreet.ledger import Budget, Ledger
    from discreet.plan.plan import run
    from discreet.release.task import Brief, goal_of

    with tempfile.TemporaryDirectory() as folder:
        executor = RequestExecutor(table.table(), Ledger(Path(folder) / "ledger.sqlite"))
        executor.set_cap(Budget(epsilon=500, delta=DELTA))

        goal = goal_of(weights, table.domain())
        start = process_time()
        model = run(
            make(Brief(executor.known, goal, units_of(epsilon))),
            lambda request: executor.answer(request, analyst="bench"),
        )
        return model, executor.known, process_time() - start


def run_all(file, read, only, seeds, keep):
    from discreet.errors import BadParameter, TooLarge

    done = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    seen = {(row["method"], row["table"], row["workload"], row["epsilon"]) for row in done}
    for name, workload, epsilon in jobs(read, seeds):
        table = table_called(name)
        weights = WORKLOADS[workload](table)
        for method, make in methods().items():
            if (method, name, workload, epsilon) in seen or (only and method not in only):
                continue
            try:
                model, known, seconds = released(table, weights, epsilon, make)
                row = {"error": judge(model.marginal, table, weights)["error"], "seconds": seconds}
            except (BadParameter, TooLarge) as refused:
                row = {"error": None, "why": f"{type(refused).__name__}: {refused}"[:200]}
            else:
                if keep is not None and method == "mixture":
                    keep(name, workload, epsilon, model, known)
            row = {"method": method, "table": name, "workload": workload, "epsilon": epsilon, "rows": table.rows} | row
            print(json.dumps(row), flush=True)
            with file.open("a") as out:
                out.write(json.dumps(row) + "\n")


# Forecasts.


def forecasts():
    from discreet.release.method_choice import METHODS

    return {name: method.forecast for name, method in METHODS.items()}


def foreseen(rows):
    """What was forecast for each run: error, seconds."""
    from discreet.estimate.gaussian_estimator import GaussianLattice
    from discreet.release.task import Brief, goal_of
    from discreet.schema import Unit

    goals, found = {}, []
    for row in rows:
        asked = row["table"], row["workload"]
        if asked not in goals:
            table = table_called(row["table"])
            goals[asked] = goal_of(WORKLOADS[row["workload"]](table), table.domain())
        goal = goals[asked]
        brief = Brief(GaussianLattice.nothing(goal.domain, Unit()), goal, units_of(row["epsilon"]))
        found.append(forecasts()[row["method"]](brief, float(row["rows"])))
    return found


def judge_all(files):
    from scipy.stats import spearmanr

    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    rows = [row for row in rows if row["error"] is not None]
    told = foreseen(rows)
    for row, forecast in zip(rows, told, strict=True):
        print(
            f"{row['table']:12} {row['workload']} {row['epsilon']:6g} {row['method']:9} error {row['error']:.4f} "
            f"forecast {forecast.error:.4f} ({forecast.error / row['error']:.2f}), seconds {row['seconds']:.1f} "
            f"forecast {forecast.seconds:.1f}"
        )
    for method in [None, *sorted({row["method"] for row in rows})]:
        both = [(row, each) for row, each in zip(rows, told, strict=True) if method in (None, row["method"])]
        true, thought = [row["error"] for row, _ in both], [each.error for _, each in both]
        ratios = np.quantile(np.array(thought) / np.array(true), (0.1, 0.5, 0.9)).round(2).tolist()
        times = [each.seconds / (row["seconds"] + 2.0) for row, each in both]
        print(
            f"{method or 'all':9} {len(both)} runs: rank correlation {spearmanr(true, thought)[0]:.3f}, "
            f"forecast/true {ratios}, of seconds {np.quantile(times, (0.1, 0.5, 0.9)).round(2).tolist()}"
        )
    regrets(rows, told)


def regrets(rows, told):
    """How much worse the chosen method did than the best, where all of the main ones were run."""
    cases = {}
    for row, forecast in zip(rows, told, strict=True):
        cases.setdefault((row["table"], row["workload"], row["epsilon"]), []).append((row, forecast))
    found = []
    for case, both in sorted(cases.items()):
        if len(both) < 3:
            continue
        best = min(row["error"] for row, _ in both)
        chosen = min(both, key=lambda pair: pair[1].error)[0]
        named = min(both, key=lambda pair: pair[0]["error"])[0]["method"]
        found.append(chosen["error"] / best)
        if found[-1] > REGRET:
            print(f"{case}: {chosen['method']} was chosen, {named} is better by {found[-1]:.2f}")
    within = np.mean(np.array(found) <= REGRET)
    print(f"{len(found)} choices, {within:.0%} within {REGRET} of the best; on average {np.mean(found):.3f}")


# Estimates.


def conjunctions(random, table, number):
    """Questions on two to five columns, each with a row that is counted; and the true counts."""
    from discreet.query.linear import Linear
    from discreet.query.product import Factor, Product

    names = list(table.sizes)
    for _ in range(number):
        factors, here = [], np.ones(table.rows, dtype=bool)
        for name in sorted(random.choice(names, random.integers(2, min(5, len(names)) + 1), replace=False).tolist()):
            codes = table.codes[:, table.places[name]]
            chosen = random.random(table.sizes[name]) < random.choice([0.0, 0.5])
            chosen[codes[random.integers(table.rows)]] = True
            factors.append(Factor((name,), chosen.astype(np.int64)))
            here &= chosen[codes]
        yield Linear([Product(tuple(factors))]), int(here.sum())


def estimate_one(name, workload, model, known, confidence=0.95):
    """Estimates over true errors of some marginals, and how often the error of a question holds."""
    from discreet.release.error.estimated_error import estimated_error_of, estimated_errors
    from discreet.release.task import goal_of

    table, random = table_called(name), np.random.default_rng(0)
    goal = goal_of(WORKLOADS[workload](table), table.domain())
    thought = estimated_errors(model, known, goal)
    scopes = [goal.scopes[place] for place in random.permutation(len(goal.scopes))[:MARGINALS]]
    ratios = [
        thought[scope] * table.rows / float(np.abs(model.marginal(scope) - table.counts(scope)).sum())
        for scope in scopes
    ]
    held = [
        abs(model.answer(query) - true) <= estimated_error_of(query, model, known, confidence)
        for query, true in conjunctions(random, table, QUESTIONS)
        if query.scope
    ]
    return ratios, held


def estimate_all(read, seeds):
    """The main method on each table, and what is thought of its errors."""
    ratios, held = [], []
    for name, workload, epsilon in jobs(read, seeds):
        table = table_called(name)
        model, known, _ = released(table, WORKLOADS[workload](table), epsilon, methods()["mixture"])
        found = estimate_one(name, workload, model, known)
        ratios += found[0]
        held += found[1]
        low, middle, high = np.quantile(found[0], (0.1, 0.5, 0.9)).round(2)
        print(
            f"{name:12} {workload} {epsilon:6g}: estimate/true {middle} ({low}–{high}), held {np.mean(found[1]):.2f}",
            flush=True,
        )
    low, middle, high = np.quantile(ratios, (0.1, 0.5, 0.9)).round(2)
    print(f"all: estimate/true {middle} ({low}–{high}), errors of 95 % hold for {np.mean(held):.1%} of the questions")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "judge", "estimate"))
    parser.add_argument("files", type=Path, nargs="*")
    parser.add_argument("--read", action="store_true")
    parser.add_argument("--methods", nargs="*")
    parser.add_argument("--tables", type=int, default=TABLES)
    chosen = parser.parse_args()
    if chosen.what == "run":
        run_all(chosen.files[0], chosen.read, chosen.methods, chosen.tables, None)
    elif chosen.what == "judge":
        judge_all(chosen.files)
    else:
        estimate_all(chosen.read, chosen.tables)


if __name__ == "__main__":
    main()

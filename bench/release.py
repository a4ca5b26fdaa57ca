"""Releases: the error of marginals by method, table, budget and workload, each run in a process of its own.

python bench/release.py                        runs all, writes bench/results/release.md, .json and two figures
python bench/release.py --quick                one seed, epsilon 1 and the tables of others; nothing is written
python bench/release.py --tables adult --methods discreet independent --epsilons 1 --seeds 0

The error is the mean L1 distance of a marginal from the truth as a share of the rows, weighted as the workload says.
"discreet" chooses its method by its own plan; with the first seed each method of the plan is run as well, to see
whether the plan was right. The tables of others are run with all workloads, the first of them with all seeds for ours;
drawn tables with one seed, and that of a hundred columns with all 2-ways. A sweep of many budgets compares with
independent columns. Peers are run on the tables of others where `bench/release_peers.py --install` has set them up;
what they did before is kept in results/release_peers.json, because it takes hours. The classifier is trained on
synthetic rows of four fifths of Adult and tested on the true rows of the rest.
"""

import argparse
import json
import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from math import sqrt
from pathlib import Path
from threading import Lock
from time import process_time

import numpy as np

import release_aim
import release_peers
import release_report
from release_data import NAMES, READ, WORKLOADS, sample
from release_peers import DELTA, EPSILONS, Found, be_a_child, jobs, keep, kept, key, outside

RESULTS = Path(__file__).parent / "results"
SEEDS = 3
# Budgets of the sweep, besides the others.
SWEEP = (0.01, 0.03, 0.3, 3.0, 30.0, 100.0)
OURS = "discreet"
# A method that would take more seconds than this is not run beside the one that was chosen.
PATIENCE = 60
# What a classifier learns from.
LEARNT = ("adult-train", "adult-test", "target")


# Ours.


def discreet(method=None):
    """A release by a method of ours; by the first of the plan if none is named."""

    def run(table, weights, epsilon):
        import discreet as dp

        budget = dp.Budget(epsilon=epsilon, delta=DELTA)
        with tempfile.TemporaryDirectory() as folder:
            desk = dp.Curator(table.table(), budget=budget, ledger=Path(folder) / "ledger.sqlite")
            start = process_time()
            # A release counts the rows first; the plan is told them, which spares paying twice.
            plan = [
                {"method": row.method, "error": row.error, "seconds": row.seconds, "memory": row.memory}
                for row in desk.plan(weights, budget=budget, rows=table.rows)
                if row.possible
            ]
            notes = {"plan": plan, "planning": process_time() - start}
            made = desk.release(weights, budget=budget, **({} if method is None else {"method": method}))
            notes["chosen"] = made.method
            notes["estimated"] = made.error
            desk.close()
        return Found(made.marginal, lambda number: stacked(made.rows(number).codes, table), notes)

    return run


def stacked(codes, table):
    return np.stack([codes[name] for name in table.sizes], axis=1)


# The simplest baselines. All but independent columns are told the number of rows, which is a favour.


def on_simplex(values, total):
    """The nearest table without negative cells that adds up to the total."""
    flat = np.sort(values.ravel())[::-1]
    over = (np.cumsum(flat) - total) / np.arange(1, flat.size + 1)
    return np.maximum(values - over[np.nonzero(flat > over)[0][-1]], 0)


def laplace(table, weights, epsilon):
    """Laplace noise for every cell of every marginal, epsilon-DP together."""
    scale = len(weights) / epsilon
    return Found(noisy(table, lambda size: np.random.laplace(0, scale, size)), None)


def gaussian(table, weights, epsilon):
    """Gaussian noise for every cell of every marginal."""
    scale = sqrt(len(weights)) / mu(epsilon)
    return Found(noisy(table, lambda size: np.random.normal(0, scale, size)), None)


def noisy(table, noise):
    def answer(columns):
        counts = table.counts(columns)
        return on_simplex(counts + noise(counts.shape), table.rows)

    return answer


def independent(table, weights, epsilon, told=False):
    """The product of the single columns, with all of the budget for them; they say the number of rows too."""
    scale = sqrt(len(table.sizes)) / mu(epsilon)
    counts = {name: table.counts((name,)) + np.random.normal(0, scale, size) for name, size in table.sizes.items()}
    # The sum of a column has the noise of all its cells.
    precisions = [1 / size for size in table.sizes.values()]
    number = max(1.0, np.average([each.sum() for each in counts.values()], weights=precisions))
    number = table.rows if told else number
    shares = {name: on_simplex(each, number) / number for name, each in counts.items()}

    def answer(columns):
        found = np.array(float(number))
        for name in columns:
            found = np.multiply.outer(found, shares[name])
        return found

    def rows(number):
        return np.stack([np.random.choice(len(each), number, p=each / each.sum()) for each in shares.values()], axis=1)

    return Found(answer, rows)


def independent_told(table, weights, epsilon):
    """The same, and it is told the number of rows, which is a favour."""
    return independent(table, weights, epsilon, told=True)


def aim(table, weights, epsilon):
    """AIM as its paper has it, on our tree of cliques."""
    tree, answer = release_aim.aim(table, weights, mu=mu(epsilon))
    return Found(answer, lambda number: stacked(tree.rows(number), table))


def mu(epsilon):
    from discreet.accounting.gaussian_dp import mu_of

    return mu_of(epsilon=epsilon, delta=DELTA)


BASELINES = {"laplace": laplace, "gaussian": gaussian, "independent": independent, "aim": aim}
# Only in the sweep of budgets.
SWEPT = {"independent, told n": independent_told}


def method_called(name):
    """A baseline, or ours: "discreet" or "discreet:" and the name of a method."""
    baselines = BASELINES | SWEPT
    return baselines[name] if name in baselines else discreet(name.partition(":")[2] or None)


# Runs.


def is_peer(job):
    return job["method"] in release_peers.METHODS


@dataclass
class Runs:
    """What was run, and where it is kept; nothing is kept without a folder."""

    folder: Path | None
    seconds: int
    rows: dict = field(default_factory=dict)
    peers: dict = field(default_factory=dict)

    lock: Lock = field(default_factory=Lock)

    def run(self, job, judge=lambda row, codes: row):
        """The figures of a job, and what `judge` adds of its rows. What a peer did before is not done again."""
        peer = is_peer(job)
        python = release_peers.python_of(job["method"]) if peer else sys.executable
        if key(job) in self.peers:
            row = self.peers[key(job)]
        elif python is None:
            row = job | {"failure": "not set up"}
        else:
            script = release_peers.__file__ if peer else __file__
            with tempfile.TemporaryDirectory() as name:
                codes = Path(name) / "rows.npy"
                row = outside(job, python, script, seconds=self.seconds, rows=codes)
                row = judge(row, np.load(codes)) if codes.exists() else row
        with self.lock:
            if peer:
                self.peers[key(row)] = row
            print(json.dumps({each: value for each, value in row.items() if each != "plan"}), flush=True)
            self.rows[key(row)] = row
            if self.folder is not None:
                keep(self.folder / "release.json", self.rows)
                keep(self.folder / "release_peers.json", self.peers)
        return row

    def run_many(self, jobs):
        """All jobs, as many at once as there are processors; what was done is not done again."""
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return list(pool.map(lambda job: self.rows.get(key(job)) or self.run(job), jobs))


def workloads_of(table, workloads):
    """Drawn tables are there to judge, not to compare workloads; a hundred columns have too many triples."""
    if table in READ:
        return workloads
    return [name for name in workloads if name == ("2-ways" if table == "hundred" else "3-ways")]


def run_all(runs, methods, tables, epsilons, workloads, seeds):
    wanted = []
    for table in tables:
        for job in jobs(methods, [table], epsilons, workloads_of(table, workloads), seeds):
            first = (job["seed"], job["workload"]) == (seeds[0], workloads[0])
            # A peer and AIM take long: one seed and one workload, on the tables of others.
            rare = (is_peer(job) or job["method"] == "aim") and key(job) not in runs.peers
            again = job["seed"] != seeds[0]
            if again and (job["method"] != OURS or job["workload"] != workloads[0] or table not in READ):
                continue
            if rare and (
                table not in READ or not first or (is_peer(job) and not release_peers.python_of(job["method"]))
            ):
                continue
            wanted.append(job)
    done = runs.run_many(wanted)
    planned = [
        {name: row[name] for name in ("table", "epsilon", "workload", "seed", "checksum")}
        | {"method": f"{OURS}:{each['method']}"}
        for row in done
        if row["method"] == OURS and row["seed"] == seeds[0]
        for each in row.get("plan", ())
        if each["seconds"] <= PATIENCE and (row["workload"] == workloads[0] or row["table"] == "hundred")
    ]
    runs.run_many(planned)


def sweep(runs, tables, seeds):
    """Many budgets, ours beside independent columns: nothing should be worse than those."""
    wanted = []
    for table in tables:
        for epsilon in sorted({*EPSILONS, *SWEEP}):
            # Where there is much noise, one seed says little; these are quick, and there the number of rows matters.
            several = seeds if epsilon < min(EPSILONS) else seeds[:1]
            methods = [OURS, "independent", *(SWEPT if epsilon < 1 else ())]
            wanted += jobs(methods, [table], [epsilon], ["2-ways" if table == "hundred" else "3-ways"], several)
    return runs.run_many(wanted)


def classify(runs, methods, epsilons, seed):
    """How well a classifier does that has seen synthetic rows only, beside one that has seen the true ones."""
    learn, test, workload = LEARNT
    table, truth = sample(learn), sample(test)
    true = {"method": "the true rows", "epsilon": None} | learnt(table.codes, truth)
    whole = [method for method in methods if method not in ("laplace", "gaussian")]
    whole += [f"{OURS}:{method}" for method in ("mixture", "adaptive")]
    asked = [
        job
        for job in jobs(whole, [learn], epsilons, [workload], [seed])
        if not is_peer(job) or key(job) in runs.peers or release_peers.python_of(job["method"])
    ]
    done = (runs.rows.get(key(job)) or runs.run(job, lambda row, codes: row | learnt(codes, truth)) for job in asked)
    return [true, *done]


def learnt(codes, truth):
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score

    seen, wanted = codes[:, :-1], codes[:, -1]
    tested, true = truth.codes[:, :-1], truth.codes[:, -1]
    if len(np.unique(wanted)) < 2:
        return {"accuracy": float((true == wanted[0]).mean()), "auc": 0.5}
    model = HistGradientBoostingClassifier(random_state=0).fit(seen, wanted)
    chance = model.predict_proba(tested)[:, 1]
    return {"accuracy": float((model.predict(tested) == true).mean()), "auc": float(roc_auc_score(true, chance))}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--child", nargs=2)
    parser.add_argument("--methods", nargs="*")
    parser.add_argument("--tables", nargs="*", choices=NAMES)
    parser.add_argument("--epsilons", nargs="*", type=float)
    parser.add_argument("--workloads", nargs="*", choices=WORKLOADS, default=list(WORKLOADS))
    parser.add_argument("--seeds", nargs="*", type=int)
    parser.add_argument("--cpu-seconds", type=int, default=release_peers.CPU_SECONDS)
    parser.add_argument("--no-classifier", action="store_true")
    parser.add_argument("--sweep", action="store_true")
    parser.add_argument(
        "--resume", action="store_true", help="go on with what release.json has, if the code is the same"
    )
    chosen = parser.parse_args()
    if chosen.child:
        be_a_child(*chosen.child, chosen.cpu_seconds, method_called)
        return
    whole = not (chosen.quick or chosen.methods or chosen.tables or chosen.epsilons or chosen.seeds)
    tables = chosen.tables or (READ if chosen.quick else NAMES)
    epsilons = chosen.epsilons or ((1.0,) if chosen.quick else EPSILONS)
    seeds = chosen.seeds or range(1 if chosen.quick else SEEDS)
    runs = Runs(RESULTS if whole else None, chosen.cpu_seconds, peers=kept(RESULTS / "release_peers.json"))
    if chosen.resume:
        runs.rows |= kept(RESULTS / "release.json")
    known = {row["method"] for row in runs.peers.values()}
    there = [method for method in release_peers.METHODS if method in known or release_peers.python_of(method)]
    methods = chosen.methods or [OURS, *BASELINES, *there]
    run_all(runs, methods, tables, epsilons, chosen.workloads, list(seeds))
    scores = [] if chosen.no_classifier else classify(runs, methods, epsilons, 0)
    if whole or chosen.sweep:
        sweep(runs, tables, seeds)
    text = release_report.report(list(runs.rows.values()), scores)
    if whole:
        (RESULTS / "release.md").write_text(text)
        release_report.lines(list(runs.rows.values()), RESULTS / "release.svg")
        release_report.scatter(list(runs.rows.values()), RESULTS / "release_plan.svg")
    print(text)


if __name__ == "__main__":
    main()

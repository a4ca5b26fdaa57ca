"""Ranges over two columns: the error of each method of release, beside one Gaussian answer for each range.

python bench/ranges.py           prints the table, writes bench/results/ranges.md
python bench/ranges.py --quick   one run, 100 ranges, epsilon 1; nothing is written

Adult, as it is bundled. Asked are counts of random ranges of age × hours_per_week, the same for all methods and runs;
each end is drawn from the cells of its column. They are the workload of the release. The error is the mean of
|answer − truth| in rows. "gaussian" is the simplest baseline: the same budget, each range by itself with the same
noise. "auto" is the method that the plan chooses.
"""

import argparse
import tempfile
from hashlib import sha256
from math import pi, sqrt
from pathlib import Path
from statistics import median
from time import process_time

import numpy as np
import pyarrow.parquet as pq

import discreet as dp
from discreet.accounting.gaussian_dp import mu_of
from discreet.data import ADULT
from discreet.query import count
from machine import describe

RESULTS = Path(__file__).parent / "results"
FILE = ADULT.with_suffix(".parquet")
COLUMNS = ("age", "hours_per_week")
METHODS = ("auto", "mixture", "adaptive", "lattice", "direct")
EPSILONS, DELTA, RUNS, RANGES = (0.1, 1, 10), 1e-9, 3, 400


def draw_ranges(domain, number):
    """Random ranges: the lowest and the highest value of each column."""
    random = np.random.default_rng(7)
    cells = [np.array([int(label) for label in domain[name].labels]) for name in COLUMNS]
    ends = [np.sort(random.integers(0, len(values), (number, 2)), axis=1) for values in cells]
    return np.stack([values[each] for values, each in zip(cells, ends, strict=True)], axis=1)


def condition(ends):
    """A range as a predicate."""
    (young, old), (few, many) = ends
    age, hours = (dp.col(name) for name in COLUMNS)
    return (age >= young) & (age <= old) & (hours >= few) & (hours <= many)


def truth(ranges):
    """The number of rows in each range."""
    rows = pq.read_table(FILE, columns=list(COLUMNS)).to_pandas().to_numpy()[:, None, :]
    return ((rows >= ranges[None, :, :, 0]) & (rows <= ranges[None, :, :, 1])).all(axis=2).sum(axis=0)


def released(method, epsilon, ranges, true):
    """The method that was used, the error of its answers, and the CPU seconds of the release."""
    budget = dp.Budget(epsilon=epsilon, delta=DELTA)
    with tempfile.TemporaryDirectory() as folder:
        desk = dp.Curator(dp.load_adult(), budget=budget, ledger=Path(folder) / "ledger.sqlite")
        questions = [count(desk.table.domain, condition(each)) for each in ranges.tolist()]
        start = process_time()
        made = desk.release(questions, budget=budget, method=method)
        seconds = process_time() - start
        answers = np.array([made.answer(each).value for each in questions])
        desk.close()
    return made.method, float(np.abs(answers - true).mean()), seconds


def gaussian(epsilon, number):
    """The expected error of one Gaussian answer for each range, all of them together within the budget."""
    return sqrt(number) / mu_of(epsilon=epsilon, delta=DELTA) * sqrt(2 / pi)


def spread(values):
    """The median, and the least and the largest."""
    return f"{median(values):.3g} ({min(values):.3g}–{max(values):.3g})" if len(values) > 1 else f"{values[0]:.3g}"


def run(epsilons, runs, number):
    """The lines of the table."""
    ranges = draw_ranges(dp.load_adult().domain, number)
    true = truth(ranges)
    lines = []
    for epsilon in epsilons:
        cells = [f"{gaussian(epsilon, number):.3g}"]
        for method in METHODS:
            found = [released(method, epsilon, ranges, true) for _ in range(runs)]
            cells.append(spread([error for _, error, _ in found]))
            if method == "auto":
                cells[-1] += f", {', '.join(sorted({name for name, _, _ in found}))}"
            print(f"epsilon {epsilon:g}, {method}: {cells[-1]}; {median(each[2] for each in found):.1f} CPU s")
        lines.append(f"| {epsilon:g} | {' | '.join(cells)} |")
    return lines


def main():
    """Run, print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one run, 100 ranges, epsilon 1; nothing is written")
    quick = parser.parse_args().quick
    number, runs = (100, 1) if quick else (RANGES, RUNS)
    lines = run((1,) if quick else EPSILONS, runs, number)
    page = [
        "# Ranges over two columns",
        "",
        f"{describe('scipy')}. bench/ranges.py: {number} ranges of {' × '.join(COLUMNS)} on Adult (sha256 of the file "
        f"{sha256(FILE.read_bytes()).hexdigest()[:12]}…), delta 1e-9, add_remove.",
        "",
        f"Mean error of a range in rows: median (least–largest) of {runs} runs. gaussian: each range by itself, all "
        "within the same budget.",
        "",
        f"| ε | gaussian | {' | '.join(METHODS)} |",
        f"|{'---|' * (len(METHODS) + 2)}",
        *lines,
        "",
    ]
    print("\n".join(page))
    if not quick:
        (RESULTS / "ranges.md").write_text("\n".join(page))


if __name__ == "__main__":
    main()

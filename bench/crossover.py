"""Many more questions than people: where each way of answering them wins.

python bench/crossover.py           prints the tables, writes bench/results/crossover.md and crossover.png
python bench/crossover.py --quick   fewer questions, nothing written

n = 2,000 people answer 12 yes/no questions (classes of people, made by the script). Asked are conjunctions: all 4,096
monotone ones, and up to 100,000 random ones with signs. Everything costs epsilon 1; what needs a delta has 1e-9. One
row is replaced, so n is public. Errors are fractions of n.
"""

import argparse
import re
import sys
import tempfile
from hashlib import sha256
from math import comb, log, log10
from pathlib import Path
from time import process_time

import numpy as np

import discreet as dp
from discreet import noise
from discreet.accounting.calibrate import calibrate, gaussian_sigma
from discreet.accounting.event import Laplace, Repeat
from discreet.errors import BudgetExceeded, Refusal
from discreet.lab.textbook.mwem import Batch, mwem
from discreet.lab.textbook.pmw import PMW
from discreet.lab.textbook.small_db import promised_error, sample_size, small_db
from discreet.model.dense.dense_model import Dense
from discreet.query.linear import Linear
from discreet.query.product import box
from machine import describe

RESULTS = Path(__file__).parent / "results"
ROWS, COLUMNS, EPSILON, DELTA = 2_000, 12, 1, 1e-9
ROUNDS, UPDATES, BETA = 12, 4, 0.05
# What PMW promised, the updates that it made and might have made, by the number of rows and of questions.
PROMISED = {}
LITERALS = 8
UNIT = dp.Unit(neighbors="replace_one")


class Asked:
    """A table and a list of conjunctions: as queries, as a matrix over the cells, and their true answers."""

    def __init__(self, rows, care, wanted, columns):
        self.care, self.wanted, self.columns, self.rows = care, wanted, columns, len(rows)
        names = [f"x{place:02d}" for place in range(columns)]
        domain = dp.Domain({name: dp.Boolean() for name in names})
        # The first column is the highest bit of a cell, as in a table with an axis for each column.
        bits = rows[:, None] >> np.arange(columns - 1, -1, -1) & 1
        data = {name: bits[:, place].astype(bool).tolist() for place, name in enumerate(names)}
        self.table = dp.open(data, domain=domain, unit=UNIT)
        self.queries = [_conjunction(names, *each) for each in zip(care.tolist(), wanted.tolist(), strict=True)]
        self.batch = Batch(self.queries, domain)
        self.histogram = np.bincount(rows, minlength=2**columns)
        self.true = self.count(self.histogram)

    def count(self, histogram):
        """The answers of all conjunctions on a histogram."""
        parts = np.array_split(np.arange(len(self.care)), max(1, len(self.care) // 2000))
        cells = np.arange(len(histogram))
        some = [((cells & self.care[at, None]) == self.wanted[at, None]) @ histogram for at in parts]
        return np.concatenate(some)

    @property
    def moves(self):
        """How many of the answers exchanging a row can change at most: all, or those of the two heaviest cells."""
        cells = np.arange(2**self.columns)
        heavy = np.zeros(len(cells), dtype=np.int64)
        for at in np.array_split(np.arange(len(self.care)), max(1, len(self.care) // 2000)):
            heavy += ((cells & self.care[at, None]) == self.wanted[at, None]).sum(axis=0)
        return int(min(len(self.care), np.sort(heavy)[-2:].sum()))


def _conjunction(names, care, wanted):
    """A count: the columns whose bit is set in `care` have the bits of `wanted`."""
    masks = {}
    for place, name in enumerate(reversed(names)):
        if care >> place & 1:
            masks[name] = np.array([not wanted >> place & 1, bool(wanted >> place & 1)])
    return Linear([box(masks)])


def people(columns=COLUMNS, number=ROWS, classes=6, seed=7):
    """Rows as cells: each of a class of people, with the yeses that are usual there."""
    rng = np.random.default_rng(seed)
    usual = rng.beta(0.5, 0.5, size=(classes, columns))
    answers = rng.random((number, columns)) < usual[rng.integers(0, classes, number)]
    return answers @ (1 << np.arange(columns - 1, -1, -1))


def monotone(columns, number=None, seed=1):
    """All conjunctions of yeses, or so many of them, in a random order."""
    order = np.random.default_rng(seed).permutation(2**columns)[:number]
    return order, order


def signed(columns, number, seed=2):
    """Random conjunctions of 1 to 8 columns, each with yes or no."""
    rng = np.random.default_rng(seed)
    care = np.zeros(number, dtype=np.int64)
    for literals, at in zip(rng.integers(1, min(LITERALS, columns) + 1, number), range(number), strict=True):
        care[at] = sum(1 << int(place) for place in rng.choice(columns, literals, replace=False))
    return care, care & rng.integers(0, 2**columns, number)


# The ways to answer. Each takes what is asked and gives the answers.


def laplace_split(asked):
    """An equal share of epsilon for each question: noise of scale k/epsilon (003 Thm. 2)."""
    return asked.true + noise.discrete_laplace(len(asked.true) / EPSILON, size=len(asked.true))


def laplace_advanced(asked):
    """The same with the lectures' advanced composition."""
    k = len(asked.true)
    scale = calibrate(lambda s: Repeat(Laplace(s, 1), k), epsilon=EPSILON, delta=DELTA, by="advanced")
    return asked.true + noise.discrete_laplace(scale, size=k)


def gaussian(asked):
    """One Gaussian vector, calibrated to its exact L2 sensitivity by the exact condition."""
    sigma = gaussian_sigma(epsilon=EPSILON, delta=DELTA, squared_sensitivity=asked.moves)
    return asked.true + noise.rounded_gaussian(sigma, size=len(asked.true))


def lattice(asked):
    """The curator's pieces, allotted for a known workload: sigma_V^2 ∝ v_V^(-1/2) (design: sum of variances least)."""
    cells = 2**asked.columns
    need = np.zeros(cells)
    for care in asked.care.tolist():
        need[_subsets(care)] += 4.0 ** -care.bit_count()
    # The number of rows is public.
    need[0] = 0.0
    weights = np.sqrt(need)
    # Exchanging rows x and x' changes a character by 2 where it differs on x xor x': the largest sum over all of them.
    moves = (2 * (weights.sum() - _hadamard(weights))).max()
    if not moves:
        return asked.true.astype(float)
    sigma = float(gaussian_sigma(epsilon=EPSILON, delta=DELTA)) * np.sqrt(moves / np.where(need, weights, np.inf))
    noisy = _hadamard(asked.histogram.astype(float))
    for place in np.flatnonzero(need):
        noisy[place] += noise.rounded_gaussian(round(float(sigma[place]), 6))
    noisy[(need == 0) & (np.arange(cells) > 0)] = 0.0
    return asked.count(_hadamard(noisy) / cells)


def _subsets(mask):
    """All submasks of a mask."""
    found = np.zeros(1, dtype=np.int64)
    for place in range(mask.bit_length()):
        if mask >> place & 1:
            found = np.concatenate([found, found | 1 << place])
    return found


def _hadamard(vector):
    """Σ_x vector[x]·(−1)^|V ∩ x| for every V."""
    out, step = vector.copy(), 1
    while step < len(out):
        out = out.reshape(-1, 2, step)
        out = np.stack([out[:, 0] + out[:, 1], out[:, 0] - out[:, 1]], axis=1).reshape(-1)
        step *= 2
    return out


def curator(asked):
    """dp.Curator.ask_many with the smallest error that the budget allows, as its refusal says."""
    with (
        tempfile.TemporaryDirectory() as folder,
        dp.Curator(
            asked.table, budget=dp.Budget(epsilon=EPSILON, delta=DELTA), ledger=f"{folder}/budget.sqlite"
        ) as desk,
    ):
        error = 12.0
        while True:
            try:
                return np.array([answer.value for answer in desk.ask_many(asked.queries, error=error)])
            except BudgetExceeded as refused:
                said = re.search(r"error >= ([\d,.]+)", str(refused))
                error = max(1.02 * error, float(said[1].replace(",", ""))) if said else 1.5 * error


def mwem_pure(asked, step="projected"):
    model = mwem(asked.table, asked.queries, epsilon=EPSILON, rounds=min(ROUNDS, len(asked.true)), step=step)
    return asked.batch.answers(model)


def mwem_textbook(asked):
    return mwem_pure(asked, step="textbook")


def mwem_delta(asked):
    rounds = min(2 * ROUNDS, len(asked.true))
    return asked.batch.answers(mwem(asked.table, asked.queries, epsilon=EPSILON, delta=DELTA, rounds=rounds))


def private_weights(asked):
    """PMW with a few updates, for each more makes all errors larger; after the last one its model answers."""
    updates = round(UPDATES * (asked.rows / ROWS) ** 0.5)
    with tempfile.TemporaryDirectory() as folder, dp.Ledger(f"{folder}/budget.sqlite") as ledger:
        ledger.cap(dp.Budget(epsilon=EPSILON, delta=DELTA), table="data")
        with PMW(asked.table, ledger=ledger, epsilon=EPSILON, updates=updates, queries=len(asked.true)) as session:
            answers = np.array([_ask(session, query) for query in asked.queries])
            PROMISED[asked.rows, len(asked.true)] = session.error / asked.rows, updates - session.updates_left, updates
    return answers


def _ask(session, query):
    try:
        return session.ask(query).value
    except Refusal:
        return session._fitted.answer(query)


def uniform(asked):
    """Nothing is asked of the table: every cell is thought to have as many rows."""
    return asked.batch.answers(Dense(asked.table.domain, total=asked.rows))


WAYS = {
    "Laplace, split": laplace_split,
    "Laplace, advanced composition": laplace_advanced,
    "Gaussian": gaussian,
    "curator's lattice, workload known": lattice,
    "curator, ask_many": curator,
    "MWEM": mwem_pure,
    "MWEM, textbook step": mwem_textbook,
    "MWEM, with delta": mwem_delta,
    "PMW": private_weights,
    "uniform, free": uniform,
}
# What needs more time than it is worth is left out beyond so many questions.
MOST = {"curator, ask_many": 64, "PMW": 20_000, "MWEM, textbook step": 5_000}
ONCE = {"curator, ask_many", "PMW"}
# What takes no time is run often, for so many times as the rest.
CHEAP = {"Laplace, split": 7, "Laplace, advanced composition": 7, "Gaussian": 7, "curator's lattice, workload known": 3}


def measure(asked, times, ways=WAYS):
    """For each way the median over some runs of the largest and of the mean error, and CPU seconds of a run."""
    found = {}
    for name, way in ways.items():
        if len(asked.true) > MOST.get(name, np.inf):
            continue
        errors, start = [], process_time()
        runs = 1 if name in ONCE or len(asked.true) > 5_000 else times * CHEAP.get(name, 1)
        for _ in range(runs):
            off = np.abs(way(asked) - asked.true) / asked.rows
            errors.append((off.max(), off.mean()))
        found[name] = (*np.median(errors, axis=0), (process_time() - start) / runs)
    return found


def crossover(numbers, times):
    """Error against the number of random conjunctions."""
    care, wanted = signed(COLUMNS, max(numbers))
    rows, found = people(), {}
    for number in numbers:
        found[number] = measure(Asked(rows, care[:number], wanted[:number], COLUMNS), times)
        print(f"{number:,} questions: {process_time():.0f} s", file=sys.stderr, flush=True)
    return found


def by_rows(columns, numbers, times):
    """All monotone conjunctions, for more and more people."""
    found = {}
    for number in numbers:
        asked = Asked(people(columns, number), *monotone(columns), columns)
        found[number] = measure(asked, times)
        print(f"{number:,} people: {process_time():.0f} s", file=sys.stderr, flush=True)
    return found


def small_tables(sizes, times):
    """All monotone conjunctions of a few columns: SmallDB where its tables can be listed, beside the others."""
    found = {}
    for columns, few in sizes:
        asked = Asked(people(columns), *monotone(columns), columns)
        ways = {
            name: WAYS[name] for name in ("Laplace, split", "Gaussian", "curator's lattice, workload known", "MWEM")
        }
        ways["SmallDB"] = lambda asked, few=few: asked.batch.answers(
            small_db(asked.table, asked.queries, epsilon=EPSILON, rows=few)
        )
        found[columns, few] = measure(asked, times, ways)
        print(f"SmallDB with {columns} columns: {process_time():.0f} s", file=sys.stderr, flush=True)
    return found


# Text and figure.


def shown(number):
    return f"{number:.3g}" if number < 10 else f"{number:,.0f}"


def rows_text(found, columns):
    lines = [f"## All {2**columns:,} monotone conjunctions: largest and mean error for n people", ""]
    lines += ["| | " + " | ".join(f"n = {number:,}" for number in found) + " |", "|---" * (len(found) + 1) + "|"]
    first = next(iter(found.values()))
    for name in sorted(first, key=lambda name: first[name][0]):
        cells = [f"{shown(each[name][0])} · {shown(each[name][1])}" for each in found.values()]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines += ["", "| PMW | promised at 95 % | updates made | of |", "|---|---|---|---|"]
    for (rows, questions), (error, made, might) in sorted(PROMISED.items()):
        lines.append(f"| n = {rows:,}, {questions:,} questions | {error:.3f} | {made} | {might} |")
    return [*lines, ""]


def crossover_text(found):
    lines = ["## The largest error, against the number k of random conjunctions", ""]
    lines += ["| k | " + " | ".join(WAYS) + " | the best that saw the table |", "|---" * (len(WAYS) + 2) + "|"]
    for number, each in found.items():
        seen = {name: value[0] for name, value in each.items() if name != "uniform, free"}
        best = min(seen, key=seen.get)
        cells = [shown(each[name][0]) if name in each else "" for name in WAYS]
        lines.append(f"| {number:,} | {' | '.join(cells)} | {best} |")
    return [*lines, ""]


def small_text(found):
    lines = ["## SmallDB, where its tables can be listed: all 2^d monotone conjunctions of d columns", ""]
    names = list(next(iter(found.values())))
    lines += ["Largest errors. The theorem's tables would have m* rows; what it promises is at 95 %.", ""]
    lines += ["| d | m | tables | " + " | ".join(names) + " | SmallDB, CPU s | promised | m* | tables of m* rows |"]
    lines += ["|---" * (len(names) + 7) + "|"]
    for (columns, few), each in found.items():
        cells = 2**columns
        promised = promised_error(queries=cells, cells=cells, rows=ROWS, epsilon=EPSILON, beta=BETA)
        needed = sample_size(cells, min(0.99, promised) / 2, notes="003")
        errors = " | ".join(shown(each[name][0]) for name in names)
        lines.append(
            f"| {columns} | {few} | {comb(cells + few - 1, few):,} | {errors} | {each['SmallDB'][2]:.2g} | "
            f"{promised:.2f} | {needed} | 10^{log10(comb(cells + needed - 1, needed)):.0f} |"
        )
    return [*lines, ""]


def draw(found, path):
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(12, 4.8), layout="constrained")
    for at, (side, place, title) in enumerate(zip(axes, (0, 1), ("largest error", "mean error"), strict=True)):
        for order, name in enumerate(WAYS):
            some = [(number, each[name][place]) for number, each in found.items() if name in each]
            style = {"ls": "--", "color": "k"} if name == "uniform, free" else {"marker": "o", "color": f"C{order}"}
            side.loglog(*zip(*some, strict=True), ms=3, label=name, **style)
        numbers = np.array(sorted(found), dtype=float)
        if at == 0:
            blr = (256 * np.log(np.maximum(numbers, 2)) * log(2**COLUMNS) / (EPSILON * ROWS)) ** (1 / 3)
            side.loglog(numbers, blr, "k:", lw=0.9, label="BLR's theorem (not feasible here)")
        side.axhline(1, color="0.7", lw=0.8)
        side.set(title=f"{title} / n", xlabel="number of questions k", ylim=(2e-4, 300))
        side.axvline(ROWS, color="0.7", lw=0.8)
        side.grid(alpha=0.2)
    axes[0].legend(fontsize=7)
    figure.savefig(path, dpi=130, metadata={"Software": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer questions, nothing written")
    quick = parser.parse_args().quick
    times = 1 if quick else 3
    numbers = (4, 64, 1024) if quick else (1, 4, 16, 64, 256, 1024, 4096, 16_384, 100_000)
    small = small_tables(((2, 8), (3, 6)) if quick else ((2, 40), (3, 24), (4, 11), (5, 8)), times)
    columns = 8 if quick else COLUMNS
    every = by_rows(columns, (ROWS,) if quick else (ROWS, 10 * ROWS, 100 * ROWS), times)
    found = crossover(numbers, times)
    rows = people()
    print_of = sha256(np.ascontiguousarray(rows, dtype="<i8").tobytes()).hexdigest()[:12]
    lines = ["# More questions than people", "", describe("scipy"), "", "![error against k](crossover.png)", ""]
    lines += [
        f"n = {ROWS:,} rows of {COLUMNS} yes/no columns, six classes of people (made by the script, sha256 "
        f"{print_of}); epsilon {EPSILON}, delta {DELTA:g} where one is needed; one row is replaced. Errors are "
        f"fractions of n: medians of {times} runs (of more where they take no time; of one for PMW, for the curator, "
        f"and beyond 5,000 questions). MWEM has {ROUNDS} rounds, with delta {2 * ROUNDS}, whatever n. When PMW has "
        "used its updates, its model answers the rest, without a promise.",
        "",
        *rows_text(every, columns),
        *crossover_text(found),
        *small_text(small),
        f"All of this took {process_time():.0f} CPU seconds.",
        "",
    ]
    print("\n".join(lines))
    if not quick:
        (RESULTS / "crossover.md").write_text("\n".join(lines))
        draw(found, RESULTS / "crossover.png")


if __name__ == "__main__":
    main()

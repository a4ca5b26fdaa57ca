"""What the lectures' theorems promise, beside what is measured: updates, errors of private weights, samples.

python bench/textbook.py           prints the tables, writes bench/results/textbook.md and textbook.svg
python bench/textbook.py --quick   less of everything, nothing written

Every session of private weights has a ledger on the disk of temporary files; set TMPDIR to one in memory for speed.
"""

import argparse
import sys
from dataclasses import dataclass
from math import log, sqrt
from pathlib import Path
from time import process_time

import numpy as np

from discreet.lab.textbook.multiplicative_weights import RULES, most_updates, multiplicative_weights
from discreet.lab.textbook.small_db import sample_size, sampled_rows
from machine import describe
from textbook_sessions import (
    BUDGETS,
    CONFIDENCE,
    DOMAIN,
    FEW_QUESTIONS,
    MANY_ROWS,
    QUESTIONS,
    SETTINGS,
    designed,
    first_promise,
    sessions,
    skewed,
)

RESULTS = Path(__file__).parent / "results"
# The lectures' constants: 4 ln N/a² for the linear rule (000), ln N/η² with a = 2η for the exponential one (003).
LECTURES = {"linear": 4.0, "exponential": 4.0}


def subsets(number, cells, seed=1):
    """Counting queries: each a random half of the cells."""
    return (np.random.default_rng(seed).random((number, cells)) < 0.5).astype(np.float64)


# (a) How often the model is wrong.


def random_stream(truth, error, length):
    """Random halves of the cells, whatever the model is."""
    rng = np.random.default_rng(2)
    return ((rng.random(len(truth)) < 0.5).astype(np.float64) for _ in range(min(length, 20_000)))


def picked_stream(truth, error, length, pool=1000):
    """Of many random halves of the cells, always the one on which the model is least wrong, but wrong."""
    halves = subsets(pool, len(truth))

    def ask(model):
        gaps = np.abs(halves @ (truth - model))
        return halves[np.argmin(np.where(gaps > error, gaps, np.inf))] if gaps.max() > error else None

    return at_most(length, ask)


def worst_stream(truth, error, length):
    """Always the query on which the model is worst."""

    def ask(model):
        ahead = truth - model
        return (ahead > 0).astype(np.float64) if ahead[ahead > 0].sum() > error else None

    return at_most(length, ask)


def barely_stream(truth, error, length):
    """Always a query that only just forces an update, so that as little as possible is learnt from it."""

    def ask(model):
        ahead = truth - model
        gap = float(ahead[ahead > 0].sum())
        part = error * (1 + 1e-9) / gap if gap > 0 else 2.0
        return None if part > 1 else np.where(ahead > 0, part, 0.0) + (1 - part) / 2

    return at_most(length, ask)


def at_most(length, ask):
    left = iter(range(length))
    return lambda model: None if next(left, None) is None else ask(model)


STREAMS = {"random": random_stream, "picked": picked_stream, "worst": worst_stream, "barely": barely_stream}


@dataclass(frozen=True)
class Updates:
    """How many updates each stream forced, and what the proof and the lectures allow."""

    cells: int
    error: float
    rule: str
    counted: dict[str, int]

    @property
    def bound(self):
        return most_updates(self.cells, self.error, self.rule)

    @property
    def lectures(self):
        return int(LECTURES[self.rule] * log(self.cells) / self.error**2) if self.rule in LECTURES else None


def updates(sizes, errors):
    found = []
    for cells in sizes:
        spread, alone = skewed(cells, 10**9), np.eye(1, cells, dtype=int)[0]
        for error in errors:
            for rule in RULES:
                counted = {}
                for name, stream in STREAMS.items():
                    counts = alone if name == "barely" else spread
                    truth = counts / counts.sum()
                    queries = stream(truth, error, 2 * most_updates(cells, error, "exponential"))
                    counted[name] = multiplicative_weights(queries, truth, error=error, rule=rule).updates
                found.append(Updates(cells, error, rule, counted))
                if max(counted.values()) > found[-1].bound:
                    raise AssertionError(f"a theorem is false: {found[-1]}")
    return found


def updates_text(found):
    yield "## How often the model is wrong"
    yield ""
    yield (
        "Multiplicative weights that see the truth (`lab/textbook/multiplicative_weights.py`), error a, N cells. "
        "The streams: random halves of the cells; of a thousand such halves always the one on which the model is least "
        "wrong, but wrong (picked); "
        "always the query on which it is worst (these three on a table with a power law); and always a query of "
        "fractions that only just forces an update (barely, on a table with one occupied cell). Beside them what our "
        "proof allows on any stream (`lab/textbook/multiplicative_weights.md`), and what the lectures' "
        "constants do: 4 ln N/a² (000, Claim 15) and ln N/η² with a = 2η (003, Corollary 7)."
    )
    yield ""
    yield "| N | a | rule | random | picked | worst | barely | our bound | most/bound | lectures' bound |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for each in found:
        counted = " | ".join(f"{count:,}" for count in each.counted.values())
        lectures = "–" if each.lectures is None else f"{each.lectures:,}"
        yield (
            f"| {each.cells:,} | {each.error:g} | {each.rule} | {counted} | {each.bound:,} | "
            f"{max(each.counted.values()) / each.bound:.2f} | {lectures} |"
        )


# (b) How far private weights are off.


def sessions_text(found, questions):
    yield "## How far private weights are off"
    yield ""
    yield (
        f"`lab/textbook/pmw.py` on {DOMAIN.size} cells with a power law, {questions:,} random counting queries, "
        f"epsilon 1 and delta 1e-9 (Gaussian gate), confidence {CONFIDENCE:.0%}, replace_one. "
        "The table is given as counts, so it can have any number of rows. "
        "In each field: the error that the setting proves for all answers together, as "
        "a fraction of the rows; the largest error measured; and how many answers came from the model, having passed "
        "their test. Where nothing is promised (–) the session refuses to open, and the error is that of the uniform "
        "table; where no answer came from the model, it is that of the values measured at updates. (From "
        f"{MANY_ROWS:,} rows on *calibrated* is asked {FEW_QUESTIONS} questions, because its updates are slow.)"
    )
    yield ""
    yield "| rows | " + " | ".join(SETTINGS) + " |"
    yield "|---" * (1 + len(SETTINGS)) + "|"
    for rows in sorted({each.rows for each in found}):
        fields = [field(each) for name in SETTINGS for each in found if (each.setting, each.rows) == (name, rows)]
        yield f"| 10^{round(np.log10(rows))} | " + " | ".join(fields) + " |"
    promised = [each for each in found if each.promised is not None]
    broken = [each for each in promised if each.largest > each.promised]
    stopped = [each for each in found if each.answered < each.questions]
    yield ""
    yield (
        "*bun* is Algorithm 2 of 000 with every constant written out, *root* and *cube* are the two settings of 003 "
        "(`lab/textbook/pmw_lectures.py`), *calibrated* is the product's: exact tails, projection, and ln N/t² updates "
        "for a threshold of t, but no more than there are questions. "
        f"Promises broken: {len(broken)} of {len(promised)}; sessions that ran out of updates: {len(stopped)}."
    )


def field(each):
    passed = each.answered - each.updates
    return f"{shown(each.promised)} / **{shown(each.largest)}** ({passed:,} of {each.answered:,})"


def shown(number):
    return "–" if number is None else f"{number:.2g}"


def slopes_text(found):
    yield "### Slopes"
    yield ""
    yield (
        "Of errors against rows, on a log-log scale: measured, over the sizes above at which the model was found wrong "
        "and right, and over the last three of them; promised, from 10^9 to 10^12 rows, with the number of rows from "
        "which on it is below 1."
    )
    yield ""
    budgets = " | ".join(f"promised, {name} | below 1 from" for name in BUDGETS)
    yield f"| setting | theorem | its power | measured | measured, last three | {budgets} |"
    yield "|---" * (5 + 2 * len(BUDGETS)) + "|"
    for setting, (theorem, power) in SETTINGS.items():
        here = [each for each in found if each.setting == setting and 0 < each.updates < each.answered]
        points = [(each.rows, each.largest) for each in here]
        fields = [setting, theorem, power, fitted(points), fitted(points[-3:])]
        for budget in BUDGETS:
            designs = {rows: designed(setting, rows, budget) for rows in (10**power for power in range(9, 13))}
            first = first_promise(setting, budget)
            fields.append(fitted([(rows, each.error / rows) for rows, each in designs.items() if each]))
            fields.append("–" if first is None else f"{first:.1e}")
        yield f"| {' | '.join(fields)} |"
    yield ""
    yield (
        "Why not always the theorem's power: a threshold above every error never learns, so the error of few rows is "
        "that of the uniform table, whatever the theorem. *cube* fixes its rate at (ln N/n)^⅓ and its threshold is the "
        "larger of four rates and four times the noise; with delta the noise falls as n^−⅔, so the slope turns from "
        "that to −1/3 as rows become many; without delta both fall as n^−⅓. Without delta the noise of t updates grows "
        "as t and not as √t, and *bun* and *root* fall as n^−⅓ too. *calibrated* sets aside no more updates than there "
        "are questions, so beyond some size its noise is fixed and its error falls as 1/n."
    )
    yield ""


def fitted(points):
    return f"{slope(*zip(*points, strict=True)):.2f}" if len(points) > 1 else "–"


# (c) How far a sample is off.


@dataclass(frozen=True)
class Sample:
    """The largest error over all queries, in many samples of so many rows."""

    rows: int
    errors: np.ndarray


def samples(queries, cells, sizes, times):
    counts = skewed(cells, 10**9)
    asked = subsets(queries, cells)
    truth = asked @ (counts / counts.sum())
    found = []
    for rows in sizes:
        drawn = sampled_rows(counts, rows * times).reshape(times, rows)
        shares = np.array([np.bincount(each, minlength=cells) for each in drawn]) / rows
        found.append(Sample(rows, np.abs(shares @ asked.T - truth).max(axis=1)))
    return found


def promise(rows, queries, factor):
    """The error that the lemma with factor·ln k/a² rows promises."""
    return sqrt(factor * log(queries) / rows)


def chernoff(rows, queries, failure=0.05):
    """2k exp(−2 m a²) = failure."""
    return sqrt(log(2 * queries / failure) / (2 * rows))


def slope(x, y):
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def samples_text(found, queries, cells):
    times = len(found[0].errors)
    yield "## How far a sample is off"
    yield ""
    yield (
        f"The largest error over k = {queries:,} random counting queries of m rows drawn from a table of {cells:,} "
        f"cells with a power law (`lab/textbook/small_db.py`, `sampled_rows`), {times} samples for each m. Beside it "
        "the lectures' √(ln k/m) (001) and √(8 ln k/m) (003, Lemma 3), and the error that Chernoff's bound and a union "
        "bound allow one sample in twenty, √(ln(40k)/2m)."
    )
    yield ""
    yield "| m | median | 95 % | Chernoff, 95 % | 001 | within | 003 | within |"
    yield "|---|---|---|---|---|---|---|---|"
    for each in found:
        first, second = (promise(each.rows, queries, factor) for factor in (1, 8))
        yield (
            f"| {each.rows:,} | {np.median(each.errors):.4f} | {np.quantile(each.errors, 0.95):.4f} | "
            f"{chernoff(each.rows, queries):.4f} | {first:.4f} | {np.mean(each.errors <= first):.0%} | {second:.4f} | "
            f"{np.mean(each.errors <= second):.0%} |"
        )
    medians = [float(np.median(each.errors)) for each in found]
    yield ""
    yield (
        f"The median falls as m^{slope([each.rows for each in found], medians):.3f}; the theorems say −1/2. To be "
        f"within 0.05 the lectures ask for {sample_size(queries, 0.05):,} rows (001, with some chance) and "
        f"{sample_size(queries, 0.05, notes='003'):,} (003)."
    )


def draw(counted, found, drawn, queries, path):
    import matplotlib

    matplotlib.use("svg")
    # The same figure is the same bytes.
    matplotlib.rcParams |= {"svg.hashsalt": "textbook", "svg.fonttype": "none", "font.size": 8}
    from matplotlib import pyplot

    figure, (left, middle, right) = pyplot.subplots(1, 3, figsize=(13, 4.2), layout="constrained")
    for name in STREAMS:
        left.loglog([each.bound for each in counted], [each.counted[name] for each in counted], "o", label=name, ms=4)
    ends = [min(each.bound for each in counted), max(each.bound for each in counted)]
    left.loglog(ends, ends, "k-", lw=0.8, label="our bound")
    left.set(title="Updates of multiplicative weights", xlabel="most updates that the proof allows", ylabel="updates")
    for at, name in enumerate(SETTINGS):
        here = [each for each in found if each.setting == name]
        middle.loglog([e.rows for e in here], [e.largest for e in here], "o-", color=f"C{at}", ms=3, label=name)
        some = [each for each in here if each.promised]
        middle.loglog([e.rows for e in some], [e.promised for e in some], "--", color=f"C{at}", lw=0.8)
    sizes = np.array(sorted({each.rows for each in found}), dtype=float)
    for power, style in ((1 / 2, ":"), (1 / 3, "-.")):
        middle.loglog(sizes, (sizes / 1e5) ** -power, "k" + style, lw=0.8, label=f"rows^−1/{round(1 / power)}")
    middle.set(
        title="Private weights: measured (—) and promised (- -)",
        xlabel="rows",
        ylabel="largest error / rows",
        ylim=(1e-7, 2),
    )
    rows = np.array([each.rows for each in drawn])
    right.loglog(rows, [np.median(each.errors) for each in drawn], "o-", ms=3, label="measured, median")
    right.loglog(rows, [np.quantile(each.errors, 0.95) for each in drawn], "o-", ms=3, label="measured, 95 %")
    right.loglog(rows, [chernoff(m, queries) for m in rows], "k-", lw=0.8, label="Chernoff, 95 %")
    right.loglog(rows, [promise(m, queries, 1) for m in rows], "k--", lw=0.8, label="001: √(ln k/m)")
    right.loglog(rows, [promise(m, queries, 8) for m in rows], "k:", lw=0.8, label="003: √(8 ln k/m)")
    right.set(title="Samples of m rows", xlabel="m", ylabel="largest error over all queries")
    for axes in (left, middle, right):
        axes.legend(fontsize=7)
        axes.grid(alpha=0.2)
    figure.savefig(path, metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="less of everything, nothing written")
    quick = parser.parse_args().quick
    start = process_time()
    counted = updates((2**8,) if quick else (2**8, 2**12), (0.1,) if quick else (0.1, 0.03))
    print(f"updates: {process_time() - start:.0f} s", file=sys.stderr)
    cells = 2**10
    drawn = samples(QUESTIONS, cells, [2**i for i in range(4, 11 if quick else 16)], 40 if quick else 200)
    print(f"samples: {process_time() - start:.0f} s", file=sys.stderr)
    sizes = [10**5, 10**7] if quick else [10**power for power in range(3, 11)]
    asked = FEW_QUESTIONS if quick else QUESTIONS
    found = sessions(sizes, asked)
    lines = ["# The theorems of the lectures, measured", "", describe("scipy"), "", "![](textbook.svg)", ""]
    lines += [*updates_text(counted), "", *sessions_text(found, asked), "", *slopes_text(found)]
    lines += [*samples_text(drawn, QUESTIONS, cells), ""]
    lines += [f"Tables are made by the script; all of this took {process_time() - start:.0f} CPU seconds.", ""]
    print("\n".join(lines))
    if not quick:
        (RESULTS / "textbook.md").write_text("\n".join(lines))
        draw(counted, found, drawn, QUESTIONS, RESULTS / "textbook.svg")


if __name__ == "__main__":
    main()

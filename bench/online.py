"""What streams of questions cost: this curator, who does not know the next question, beside what knows them all.

python bench/online.py               prints the tables, writes bench/results/online.md and online.png
python bench/online.py --only Covid  one workload, nothing written

What is spent depends on the questions, n, error and confidence, and not on the data; so none is read. The pools of
Covid and CitiBike questions are needed (workloads.py).
"""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import prod
from pathlib import Path
from statistics import median
from time import process_time

import numpy as np
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit, logsumexp

import workloads
from discreet.accounting.gaussian_dp import gaussian_epsilon
from discreet.estimate.measurements import GaussianResiduals
from discreet.estimate.separable import family_of
from discreet.plan import steps
from discreet.plan.plan import plan_steps
from discreet.query.residual import axis_of
from machine import describe

DELTA = Fraction(1, 10**7)
# Turbo [Kostopoulou et al., SOSP '23] on the Covid pool: the rho of its transcript, and its own pure epsilon.
TURBO_RHO, TURBO_PURE = 3.15e-5, 0.169
TARGETS = {"Covid": 1.35e-7, "CitiBike": 6.0e-7, "Subsets": 2.2e-5}
FIVE_WAY_RATIO = 90
PATIENCES = (3, 6, 12, 24)


# The curator, with nothing but the questions.


@dataclass(frozen=True)
class Run:
    """What was spent after each question, in squared mu; how it was bought; CPU seconds."""

    spent: np.ndarray
    lattices: np.ndarray
    directs: np.ndarray
    seconds: np.ndarray

    def upto(self, count):
        return Run(*(series[:count] for series in (self.spent, self.lattices, self.directs, self.seconds)))

    @property
    def free(self):
        bought = np.diff(self.spent, prepend=0) > 0
        return 1 - float(bought.mean())


def simulate(stream):
    known, target, total, counts = stream.nothing_known(), stream.target, 0.0, [0, 0]
    rows, start = [], process_time()
    for place, question in enumerate(stream.questions, start=1):
        plan = plan_steps([(question, target)], known)
        for step in plan.steps:
            counts[not isinstance(step, GaussianResiduals)] += 1
            known.learn(step)
        total += plan.price
        rows.append((total, *counts, process_time() - start))
        if place % 10_000 == 0:
            print(f"{stream.name}: {place:,} questions, {rows[-1][-1]:.0f} s", file=sys.stderr, flush=True)
    return Run(*np.array(rows).T)


# What the same questions cost if they are known in advance.


@dataclass(frozen=True)
class Pieces:
    """The distinct rows of energies of a stream (`table`: rows by pieces, a row for `counts` questions), and prices.

    `prices` has a row for each kind of exchange and a column for each piece: what a unit of precision costs then. The
    price of all pieces together is the largest of the rows; under add_remove there is one.
    """

    table: sparse.csr_matrix
    counts: np.ndarray
    prices: np.ndarray


def pieces_of(stream):
    places, rows, where = {}, {}, {}
    for question in stream.distinct:
        family = family_of(question, stream.domain)
        energies = np.ones(1)
        for reading in family.readings:
            energies = np.multiply.outer(energies, reading.energies[0]).ravel()
        if family.columns not in where:
            named = [
                tuple((name, part) for name, part in zip(family.columns, parts, strict=True) if part)
                for parts in product(*(range(axis.parts) for axis in family.axes))
            ]
            where[family.columns] = np.array(
                [places.setdefault(p, len(places)) if p or not stream.total_is_public else -1 for p in named]
            )
        indices = where[family.columns]
        kept = (indices >= 0) & (energies > 1e-12 * energies.sum())
        # Rows that differ by rounding are one row.
        row = indices[kept].tobytes(), np.round(energies[kept], 10).tobytes()
        rows[row] = rows.get(row, 0) + 1
    indices = [np.frombuffer(left, dtype=np.int64) for left, _ in rows]
    table = sparse.csr_matrix(
        (
            np.concatenate([np.frombuffer(right) for _, right in rows]),
            np.concatenate(indices),
            np.cumsum([0, *map(len, indices)]),
        ),
        shape=(len(rows), len(places)),
    )
    return Pieces(table, np.array(list(rows.values()), dtype=float), prices_of(stream, list(places)))


def cosines(axis):
    """Of each part (columns) for each kind of exchange on one axis (rows, the first being none)."""
    if not axis.levels:
        return np.array([[1, 1], [1, -1 / (axis.cells - 1)]])
    kinds, parts = np.indices((axis.parts, axis.parts))
    return np.where((kinds == 0) | (parts < kinds), 1.0, np.where(parts == kinds, -1.0, 0.0))


def prices_of(stream, places):
    """2 N²/gain (1 − Π cosines) for each kind of exchange and piece; N²/gain under add_remove (sensitivity.py)."""
    axes = {name: axis_of(column) for name, column in stream.domain.columns}
    alone = [prod(axes[name].squared_norm(part) / axes[name].gain(part) for name, part in place) for place in places]
    if stream.unit.neighbors == "add_remove":
        return np.array([alone])
    tables = [cosines(axis) for axis in axes.values()]
    order = {name: k for k, name in enumerate(axes)}
    parts = np.zeros((len(places), len(axes)), dtype=int)
    for row, place in enumerate(places):
        for name, part in place:
            parts[row, order[name]] = part
    kinds = [kind for kind in product(*(range(len(table)) for table in tables)) if any(kind)]
    together = [np.prod([tables[j][k, parts[:, j]] for j, k in enumerate(kind)], axis=0) for kind in kinds]
    return 2 * np.array(alone) * (1 - np.array(together))


@dataclass(frozen=True)
class Optimum:
    """A price that can be had, and one below which nothing of its kind can be, in units of one direct answer."""

    least: float
    found: float
    precisions: np.ndarray | None = None

    @property
    def gap(self):
        return self.found / self.least - 1


def lattice_optimum(pieces, rounds=2000, gap=1e-3):
    """The cheapest precisions of the pieces at which every question has variance at most 1.

    Minimise max_K Σ_V c_KV p_V subject to Σ_V a_qV/p_V ≤ 1 for every q. For any probabilities w on the kinds K and l on
    the questions q, the price is at least F(w, l)², F = Σ_V √(x_V y_V), x = wᵀc, y = lᵀa: the price is at least
    xᵀp, the mean variance is Σ y_V/p_V ≤ 1, and (Σ x p)(Σ y/p) ≥ (Σ √(x y))² (Cauchy–Schwarz). F is concave, and at its
    maximum p ∝ √(y/x) attains it. So F² is certified, and p scaled until all questions are met is what can be had. The
    weights are multiplied by the squares of their gradients, which is exact when nothing is shared.
    """
    table, back, prices = pieces.table, pieces.table.T.tocsr(), pieces.prices
    questions, kinds = (np.full(size, 1 / size) for size in (table.shape[0], len(prices)))
    least, found, precisions = 0.0, np.inf, None
    for _ in range(rounds):
        x, y = kinds @ prices, back @ questions
        shape = np.sqrt(y / x)
        variances, costs = table @ (1 / shape), prices @ shape
        least = max(least, float(np.sqrt(x * y).sum()) ** 2)
        if variances.max() * costs.max() < found:
            found, precisions = float(variances.max() * costs.max()), shape * variances.max()
        if found < least * (1 + gap):
            break
        questions, kinds = (weights * slopes**2 for weights, slopes in ((questions, variances), (kinds, costs)))
        questions, kinds = questions / questions.sum(), kinds / kinds.sum()
    return Optimum(least, found, precisions)


def mixed_optimum(pieces, start, roughness=(0.1, 0.03, 0.01, 0.003, 0.001)):
    """The same if what the lattice leaves is measured directly, question by question.

    A question with variance v from the lattice needs max(0, 1 − 1/v) of a direct answer. Minimise
    max_K Σ_V c_KV p_V + Σ_q n_q max(0, 1 − 1/v_q(p)); it is convex, because 1/v is concave in p. For 0 ≤ l_q ≤ n_q and
    probabilities w the price is at least Σ l_q / max(1, r), r = max_V Σ_q l_q ∂(1/v_q)/∂p_V / (wᵀc)_V at any p: 1/v is
    concave and homogeneous, so Σ l_q/v_q ≤ r (wᵀc)ᵀp everywhere. Directs are paid one by one and help only their own
    question; what joins them could be cheaper still.
    """
    table, back, counts, prices = pieces.table, pieces.table.T.tocsr(), pieces.counts, pieces.prices
    scale, place = float((prices @ start).max()), np.log(start)
    least, found = 0.0, np.inf
    for rough in roughness:
        softness = rough * scale / np.log(len(prices) + 1)

        def parts(logarithm, rough=rough, softness=softness):
            p = np.exp(logarithm)
            variances, costs = table @ (1 / p), prices @ p
            missing = 1 - 1 / variances
            kinds = np.exp(costs / softness - logsumexp(costs / softness))
            return p, variances, costs, missing, counts * expit(missing / rough), kinds @ prices

        def smooth(logarithm, rough=rough, softness=softness, parts=parts):
            p, variances, costs, missing, wanted, price = parts(logarithm)
            total = softness * logsumexp(costs / softness) + rough * counts @ np.logaddexp(0, missing / rough)
            return total, price * p - back @ (wanted / variances**2) / p

        options = {"maxiter": 2000, "maxcor": 30}
        place = minimize(smooth, place, jac=True, method="L-BFGS-B", options=options).x
        p, variances, costs, missing, wanted, price = parts(place)
        found = min(found, float(costs.max() + counts @ np.maximum(0, missing)))
        steepest = float((back @ (wanted / variances**2) / p**2 / price).max())
        least = max(least, float(wanted.sum()) / max(1, steepest))
    return Optimum(least, found)


def best_optimum(pieces):
    """The lattice alone, and with directs."""
    alone = lattice_optimum(pieces)
    if pieces.table.shape[1] > 10_000:
        return alone, None
    mixed = mixed_optimum(pieces, alone.precisions)
    # What needs no directs is at least as good with them.
    return alone, replace(mixed, found=min(mixed.found, alone.found))


def gaussian_optimum(stream, rounds=400, gap=1e-3):
    """The best of all Gaussian mechanisms: any linear measurements, any correlated noise, unbiased answers.

    A mechanism that has measured with Fisher information M (cells by cells; under replace_one with the total public,
    on the functions that add up to zero) answers w with variance wᵀM⁻¹w at best, and costs, in squared mu,
    max_x M_xx under add_remove and max_{x≠y} (e_x − e_y)ᵀM(e_x − e_y) under replace_one. For probabilities l on
    the questions and u on the exchanges, with G = Σ l_q w_q w_qᵀ and L = Σ u_xy (e_x − e_y)(e_x − e_y)ᵀ (L = diag(u)
    under add_remove), if every question has variance at most s² then

        price ≥ tr(M L) ≥ (tr √(√L G √L))²/tr(M⁻¹G) ≥ (sum of the singular values of √l W √L)²/s²,

    the SVD bound [Li and Miklau 2013, Thm. 1] with weights on both sides: theirs, for the mean error, has u uniform on
    n cells, L = I/n, and l uniform; all pairs with one weight give L = 2/(n − 1)·(I − J/n). Here the pairs of one
    kind (which columns differ) have one weight, and l and the kinds are chosen so as to make the bound large. At the
    maximum M = L^(−½) √(√L G √L) L^(−½) attains it; scaled to the worst question it is `found`. In units of s².
    """
    names = sorted(name for name, _ in stream.domain.columns)
    cells = [stream.domain[name].size for name in names]
    queries = np.array([query.table(stream.domain, names).ravel() for query in stream.distinct], dtype=float)
    size = prod(cells)
    if stream.total_is_public:
        queries -= queries.mean(axis=1, keepdims=True)
    exchanges = []
    for kind in product((False, True), repeat=len(cells)):
        if any(kind):
            moved = np.ones((1, 1))
            for n, differs in zip(cells, kind, strict=True):
                moved = np.kron(moved, (np.ones((n, n)) - np.eye(n)) / (n - 1) if differs else np.eye(n))
            exchanges.append(2 / size * (np.eye(size) - moved))
    exchanges = np.array(exchanges)
    chances, kinds = np.full(len(queries), 1 / len(queries)), np.full(len(exchanges), 1 / len(exchanges))
    least, found = 0.0, np.inf
    for _ in range(rounds):
        root, inverse = powers(np.tensordot(kinds, exchanges, 1), 0.5, -0.5)
        middle, middle_inverse = powers(root @ (queries.T * chances @ queries) @ root, 0.5, -0.5)
        information, covariance = inverse @ middle @ inverse, root @ middle_inverse @ root
        least = max(least, float(np.trace(middle)) ** 2)
        variances = np.einsum("qx,qx->q", queries @ covariance, queries)
        own = np.diag(information)
        found = min(found, float(variances.max() * (own[:, None] + own - 2 * information).max()))
        if found < least * (1 + gap):
            break
        costs = np.tensordot(exchanges, information, 2)
        chances, kinds = chances * variances**2, kinds * costs**2
        chances, kinds = chances / chances.sum(), kinds / kinds.sum()
    return Optimum(least, found)


def powers(matrix, *exponents):
    """Powers of a positive matrix on its range."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    large = values > 1e-12 * values.max()
    return [(vectors[:, large] * values[large] ** exponent) @ vectors[:, large].T for exponent in exponents]


# Tables and the figure.


def table(title, head, rows):
    lines = [f"## {title}", "", "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    return "\n".join([*lines, ""])


def epsilon(price):
    return f"{float(gaussian_epsilon(Fraction(price), DELTA)):.3g}"


def line(what, price, stream, optimum):
    """A row of the table of one workload, from a price in squared mu."""
    return what, f"{price / 2:.3g}", epsilon(price), f"{price / stream.unit_price:,.1f}", f"{price / optimum:.2f}"


def compared(stream, run, *, histogram=True, every=False):
    """The table of one workload, and the best optimum in squared mu."""
    one, pieces = stream.unit_price, pieces_of(stream)
    alone, mixed = best_optimum(pieces)
    best = (mixed or alone).found * one
    pure = stream.laplace_epsilon()
    squared = pure**2 / len(stream.distinct)
    rows = [
        (
            "per-query Laplace, exact cache",
            f"{squared / 2:.3g}",
            f"{pure:.3g} (pure: Σε)",
            f"{squared / one:,.1f}",
            f"{squared / best:.2f}",
        ),
        line("per-query Gaussian, exact cache", stream.gaussian_price(), stream, best),
    ]
    if histogram:
        rows.append(line("one histogram up front for the worst question", stream.histogram_price(), stream, best))
    rows.append(line("**this, online**", float(run.spent[-1]), stream, best))
    rows.append(line(f"known in advance: lattice (gap {alone.gap:.1%})", alone.found * one, stream, best))
    if mixed:
        title = f"known in advance: lattice and directs (gap {mixed.gap:.1%})"
        rows.append(line(title, mixed.found * one, stream, best))
    if every:
        free = gaussian_optimum(stream)
        free = replace(free, found=min(free.found, alone.found))
        rows.append(
            line(f"known in advance: any Gaussian mechanism (gap {free.gap:.1%})", free.found * one, stream, best)
        )
        rows.append(line("SVD bound: no Gaussian mechanism is below", free.least * one, stream, best))
    if stream.name == "Covid":
        rows.append(line("Turbo, its transcript of 70,000 questions", 2 * TURBO_RHO, stream, best))
        rows.append(("Turbo, pure (δ = 0)", "", f"{TURBO_PURE} (pure)", "", ""))
    title = (
        f"{stream.name}: {len(stream.questions):,} questions, {len(stream.distinct):,} distinct; within "
        f"{stream.share:.0%} of n = {stream.rows:,} at {stream.confidence:.1%}, {stream.unit.neighbors}"
    )
    head = ("what", "ρ", "ε at δ = 1e-7", "in direct answers", "times the optimum")
    return table(title, head, rows), best


def work(entries):
    rows = [
        (
            f"{stream.name}, {len(stream.questions):,}",
            f"{run.free:.2%}",
            f"{run.lattices[-1]:.0f}",
            f"{run.directs[-1]:.0f}",
            f"{run.seconds[-1]:.1f}",
            f"{run.seconds[-1] / len(run.seconds) * 1e6:.0f}",
        )
        for stream, run, _ in entries
    ]
    head = ("workload", "answered free", "lattice purchases", "direct purchases", "CPU s", "CPU µs a question")
    return table("The work", head, rows)


def goals(entries, spread):
    rows = []
    for stream, run, _ in entries:
        rho = float(run.spent[-1]) / 2
        if stream.name in TARGETS and len(stream.questions) <= 20_000:
            most = TARGETS[stream.name]
            rows.append((stream.name, f"ρ ≤ {most:.3g}", f"{rho:.3g}", "met" if rho <= most else "**missed**"))
        if stream.name == "Five-way" and len(stream.questions) == 100_000:
            ratio = stream.gaussian_price() / (2 * rho)
            said = "met" if ratio >= FIVE_WAY_RATIO else "**missed**"
            rows.append((stream.name, f"per-query Gaussian over this ≥ {FIVE_WAY_RATIO}", f"{ratio:.1f}", said))
    text = table("Targets", ("workload", "target", "this", ""), rows)
    if spread:
        shown = ", ".join(f"{price / 2:.3g}" for price in spread)
        text += f"\nSubsets with {len(spread)} seeds: ρ {shown}; median {median(spread) / 2:.3g}.\n"
    return text


@contextmanager
def patience(value) -> Iterator[None]:
    before, steps.LATTICE_RENTAL_FACTOR = steps.LATTICE_RENTAL_FACTOR, value
    try:
        yield
    finally:
        steps.LATTICE_RENTAL_FACTOR = before


def patiences(streams):
    """What the one constant of the planner does."""
    rows = []
    for value in PATIENCES:
        with patience(value):
            rows.append((value, *(f"{simulate(stream).spent[-1] / 2:.3g}" for stream in streams)))
    head = ("LATTICE_RENTAL_FACTOR", *(f"{stream.name}, ρ" for stream in streams))
    return table(f"The planner's patience (it is {steps.LATTICE_RENTAL_FACTOR:g})", head, rows)


def figure(entries, path):
    from matplotlib import pyplot

    shown, panels = pyplot.subplots(1, len(entries), figsize=(3.1 * len(entries), 3.2))
    for axes, (stream, run, best) in zip(np.atleast_1d(panels), entries, strict=True):
        count = np.arange(1, len(run.spent) + 1)
        axes.plot(count, stream.first_seen * stream.unit_price / 2, label="per-query Gaussian", color="tab:orange")
        axes.plot(count, run.spent / 2, label="this, online", color="tab:blue")
        axes.axhline(best / 2, label="optimum, known in advance", color="grey", linestyle=":")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_title(stream.name, fontsize=9)
        axes.set_xlabel("questions", fontsize=8)
        axes.tick_params(labelsize=7)
        axes.spines[["top", "right"]].set_visible(False)
    np.atleast_1d(panels)[0].set_ylabel("ρ spent")
    np.atleast_1d(panels)[0].legend(frameon=False, fontsize=7)
    shown.tight_layout()
    shown.savefig(path, dpi=150)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="Covid, CitiBike, Subsets, Ranges or Five-way; nothing is written then.")
    only = parser.parse_args().only
    place = workloads.folder()
    makers = {
        "Covid": (lambda: workloads.covid(place, 70_000), (20_000, 70_000)),
        "CitiBike": (lambda: workloads.citibike(place), (20_000,)),
        "Subsets": (workloads.subsets, (3_000,)),
        "Ranges": (workloads.ranges, (10_000,)),
        "Five-way": (workloads.conjunctions, (10_000, 100_000)),
    }
    parts, entries, drawn, tried, spread = [], [], [], [], []
    for name, (make, counts) in makers.items():
        if only not in (None, name):
            continue
        whole = make()
        run = simulate(whole)
        for count in counts:
            stream, some = whole.upto(count), run.upto(count)
            text, best = compared(stream, some, histogram=name != "Five-way", every=name == "Covid")
            print(text, flush=True)
            parts.append(text)
            entries.append((stream, some, best))
        drawn.append(entries[-1] if name == "Five-way" else entries[-len(counts)])
        if name != "Five-way":
            tried.append(drawn[-1][0])
        if name == "Subsets":
            spread = [float(run.spent[-1]), *(float(simulate(workloads.subsets(seed=k)).spent[-1]) for k in (1, 2))]
    for text in (goals(entries, spread), work(entries), patiences(tried) if tried else ""):
        print(text, flush=True)
        parts.append(text)
    if only:
        return
    results = Path(__file__).parent / "results"
    figure(drawn, results / "online.png")
    said = f"{describe('scipy')}. {workloads.checksums(place)}"
    picture = "![what has been spent, question by question](online.png)\n"
    (results / "online.md").write_text("\n".join(["# Streams of questions", "", said, "", picture, *parts]))


if __name__ == "__main__":
    main()

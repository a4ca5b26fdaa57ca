"""Exact noise: samples a second beside OpenDP and inexact numpy, and how much the time of a draw tells of its size.

Run: python bench/noise.py [--draws N]     Writes results/noise.md and results/noise.png beside it.
"""

import argparse
import gc
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

import machine
from discreet.noise import discrete_gaussian, discrete_laplace, kernel, rounded_gaussian
from discreet.noise.sample import _gaussian_shape, _laplace_shape, decide_exactly

SCALES = [1, 10**3, 10**6, 10**9]
RESULTS = Path(__file__).parent / "results"
PEERS = [
    ("discrete Laplace", "OpenDP integer Laplace"),
    ("rounded Gaussian", "OpenDP integer Gaussian"),
    ("discrete Gaussian", "OpenDP integer Gaussian"),
]


def opendp_samplers():
    import opendp.prelude as dp

    dp.enable_features("contrib")
    integers = dp.vector_domain(dp.atom_domain(T=int))

    def laplace(scale, size):
        return dp.m.make_laplace(integers, dp.l1_distance(T=int), scale=float(scale))([0] * size)

    def gaussian(scale, size):
        return dp.m.make_gaussian(integers, dp.l2_distance(T=float), scale=float(scale))([0] * size)

    return {"OpenDP integer Laplace": laplace, "OpenDP integer Gaussian": gaussian}


def speed(draws, rounds=5):
    """Samples a CPU second: all samplers take turns, so that what else the machine does hits them alike; medians."""
    generator = np.random.default_rng()
    samplers = {
        "discrete Laplace": (discrete_laplace, draws),
        "rounded Gaussian": (rounded_gaussian, draws),
        "discrete Gaussian": (discrete_gaussian, draws),
        "numpy normal + rint (not exact)": (lambda scale, size: np.rint(generator.normal(0, scale, size)), draws),
        **{name: (sampler, draws // 20) for name, sampler in opendp_samplers().items()},
    }
    times = {name: [[] for _ in SCALES] for name in samplers}
    for turn in range(rounds + 1):
        for at, scale in enumerate(SCALES):
            for name, (sampler, size) in samplers.items():
                start = time.process_time()
                sampler(scale, size)
                # The first turn warms up: tables, machine code, caches.
                if turn:
                    times[name][at].append((time.process_time() - start) / size)
    return {name: [1 / float(np.median(taken)) for taken in rows] for name, rows in times.items()}


def correlation(one_draw, draws=20_000):
    """Spearman's correlation of the time of a single draw with its absolute value."""
    times, sizes = np.empty(draws), np.empty(draws)
    for _ in range(200):
        one_draw()
    gc.disable()
    for i in range(draws):
        start = time.perf_counter_ns()
        value = one_draw()
        times[i] = time.perf_counter_ns() - start
        sizes[i] = abs(value)
    gc.enable()
    return float(spearmanr(times, sizes).statistic)


def naive_geometric(scale):
    """The textbook loop: count coin flips until tails. Its time is its value."""
    generator = np.random.default_rng()
    stop = 1 - np.exp(-1 / scale)
    count = 0
    while generator.random() > stop:
        count += 1
    return count


def slow_draw(shape):
    """A draw by exact comparison alone, as the rare undecided ones are settled."""
    words = np.random.default_rng().integers(-(2**63), 2**63, size=2).tolist()
    return decide_exactly(shape, *words)


def timing():
    peers = opendp_samplers()
    return {
        "discrete Laplace": correlation(lambda: discrete_laplace(100)),
        "rounded Gaussian": correlation(lambda: rounded_gaussian(100)),
        "discrete Gaussian": correlation(lambda: discrete_gaussian(100), 5_000),
        "the rare slow path, Laplace": correlation(lambda: slow_draw(_laplace_shape(Fraction(100))), 5_000),
        "the rare slow path, Gaussian": correlation(lambda: slow_draw(_gaussian_shape(Fraction(100))), 5_000),
        "OpenDP Laplace": correlation(lambda: peers["OpenDP integer Laplace"](100, 1)[0], 5_000),
        "OpenDP Gaussian": correlation(lambda: peers["OpenDP integer Gaussian"](100, 1)[0], 5_000),
        "naive loop": correlation(lambda: naive_geometric(100), 5_000),
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=1_000_000)
    draws = parser.parse_args().draws
    table, told = speed(draws), timing()
    text = report(table, told, draws)
    print(text)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "noise.md").write_text(text)
    draw_figure(table, RESULTS / "noise.png")


def report(table, told, draws):
    lines = ["# Noise", "", machine.describe("opendp"), "", f"## Samples a CPU second, {draws:,} draws, one core", ""]
    lines += ["| scale | " + " | ".join(f"{s:,}" for s in SCALES) + " |", "|---" * (1 + len(SCALES)) + "|"]
    lines += [f"| {name} | " + " | ".join(f"{r:.1e}" for r in rates) + " |" for name, rates in table.items()]
    for ours, peer in PEERS:
        ratios = [a / b for a, b in zip(table[ours], table[peer], strict=True)]
        lines.append(f"| {ours} / {peer} | " + " | ".join(f"{r:.0f}×" for r in ratios) + " |")
    lines += ["", "## Spearman correlation of the time of one draw with |noise|, scale 100", ""]
    lines += ["| sampler | correlation |", "|---|---|"]
    lines += [f"| {name} | {value:.3f} |" for name, value in told.items()]
    undecided = 2 * _gaussian_shape(Fraction(10**9)).margin
    lines += [
        "",
        f"The float kernel, of error {kernel.ERROR:.1e}, leaves {undecided:.1e} of the draws at scale 10⁹ undecided.",
    ]
    return "\n".join([*lines, ""])


def draw_figure(table, path):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
    for name, rates in table.items():
        axes.loglog(SCALES, rates, marker="o", label=name, linestyle=":" if "OpenDP" in name else "-")
    axes.set(xlabel="scale", ylabel="samples a CPU second", title="Integer noise on one core")
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()

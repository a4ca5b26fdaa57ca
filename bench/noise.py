"""Exact noise: samples a second beside OpenDP and inexact numpy, and how much the time of a draw tells of its size.

Run: python bench/noise.py [--draws N]     Writes out/noise.csv and out/noise.png.
"""

import argparse
import csv
import gc
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

import machine
from discreet.noise import discrete_gaussian, discrete_laplace, kernel, rounded_gaussian
from discreet.noise.inversion import settle
from discreet.noise.sample import _gaussian_shape, _laplace_shape

SCALES = [1, 10**3, 10**6, 10**9]


def opendp_samplers():
    import opendp.prelude as dp

    dp.enable_features("contrib")
    integers = dp.vector_domain(dp.atom_domain(T=int))

    def laplace(scale, size):
        return dp.m.make_laplace(integers, dp.l1_distance(T=int), scale=float(scale))([0] * size)

    def gaussian(scale, size):
        return dp.m.make_gaussian(integers, dp.l2_distance(T=float), scale=float(scale))([0] * size)

    return {"OpenDP integer Laplace": laplace, "OpenDP integer Gaussian": gaussian}


def rate(sampler, scale, draws, repeats):
    """Samples a CPU second: the median of some runs, after one that warms up."""
    sampler(scale, draws)
    times = []
    for _ in range(repeats):
        start = time.process_time()
        sampler(scale, draws)
        times.append(time.process_time() - start)
    return draws / float(np.median(times))


def speed(draws):
    generator = np.random.default_rng()
    ours = {
        "discrete Laplace": discrete_laplace,
        "rounded Gaussian": rounded_gaussian,
        "discrete Gaussian": discrete_gaussian,
        "numpy normal + rint (not exact)": lambda scale, size: np.rint(generator.normal(0, scale, size)),
    }
    table = {name: [rate(sampler, s, draws, 5) for s in SCALES] for name, sampler in ours.items()}
    for name, sampler in opendp_samplers().items():
        table[name] = [rate(sampler, s, draws // 5, 1) for s in SCALES]
    return table


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
    return settle(shape, *words)


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
    print(machine.describe("opendp"))
    table = speed(draws)
    print(f"\nsamples a CPU second, {draws:,} draws\n")
    print(f"{'':34}" + "".join(f"{f'{s:.0e}':>11}" for s in SCALES))
    for name, rates in table.items():
        print(f"{name:34}" + "".join(f"{r:11.2e}" for r in rates))
    for ours, peer in (
        ("discrete Laplace", "Laplace"),
        ("rounded Gaussian", "Gaussian"),
        ("discrete Gaussian", "Gaussian"),
    ):
        ratios = [a / b for a, b in zip(table[ours], table[f"OpenDP integer {peer}"], strict=True)]
        print(f"{ours + ' / OpenDP':34}" + "".join(f"{r:10.0f}×" for r in ratios))
    told = timing()
    print("\nSpearman correlation of the time of one draw with |noise|, scale 100\n")
    for name, value in told.items():
        print(f"{name:34}{value:11.3f}")
    print(
        f"\nundecided by the float kernel at scale 1e9: about {2 * _gaussian_shape(Fraction(10**9)).margin:.1e} "
        f"of the draws; table error {kernel.ERROR:.1e}"
    )
    out = Path("out")
    out.mkdir(exist_ok=True)
    with (out / "noise.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["sampler", *SCALES])
        writer.writerows([name, *rates] for name, rates in table.items())
    draw_figure(table, out / "noise.png")


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

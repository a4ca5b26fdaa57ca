"""The dense model: an update beside the bandwidth of memory, and boxes beside plain numpy.

Run: python bench/dense.py [--turns N]     Writes results/dense.md and results/dense.png beside it.
"""

import argparse
import time
from functools import partial
from pathlib import Path

import numpy as np
from numba import njit

import machine
from discreet.model.dense.dense_model import Dense
from discreet.query.linear import Linear
from discreet.query.product import box
from discreet.schema import Categories, Domain

RESULTS = Path(__file__).parent / "results"
STEP = 2.0**-10
# Boxes in a domain of 13 columns of four values: of each column named, the values allowed.
BOXES = {
    "first column = 1": {0: [1]},
    "first three columns fixed": {0: [1], 1: [2], 2: [0]},
    "columns 1, 5, 9 fixed": {0: [1], 4: [2], 8: [0]},
    "middle column in {1, 3}": {6: [1, 3]},
    "last column = 1": {12: [1]},
    "last three columns fixed": {10: [1], 11: [2], 12: [0]},
    "columns 4, 8 in {0, 2}, last in {0, 1}": {3: [0, 2], 7: [0, 2], 12: [0, 1]},
}


@njit
def numba_scale(weights, factor):
    for i in range(len(weights)):
        weights[i] *= factor


def domain_of(columns):
    values = list("abcd")
    return Domain({f"c{at:02}": Categories(values, outside="drop", missing="drop") for at in range(columns)})


def query_of(chosen):
    return Linear([box({f"c{at:02}": np.isin(np.arange(4), values) for at, values in chosen.items()})])


def turns(jobs, rounds):
    """Milliseconds of each job, wall and CPU: all jobs take turns, so that what else the machine does hits them alike.

    The first turn warms up: machine code, pages, caches.
    """
    wall, cpu = {name: [] for name in jobs}, {name: [] for name in jobs}
    for turn in range(rounds + 1):
        for name, job in jobs.items():
            started, used = time.perf_counter(), time.process_time()
            job()
            if turn:
                wall[name].append(1e3 * (time.perf_counter() - started))
                cpu[name].append(1e3 * (time.process_time() - used))
    return {name: (spread(wall[name]), spread(cpu[name])) for name in jobs}


def spread(values):
    return tuple(float(quartile) for quartile in np.percentile(values, [50, 25, 75]))


def there_and_back(model, query):
    """An update that undoes the one before, so that weights stay where they are however often it is done."""
    sign = [1.0]

    def job():
        sign[0] = -sign[0]
        model.update(query, step=sign[0] * STEP)

    return job


def scaled(weights, factor):
    weights *= factor


def multiplied(weights, mask):
    weights *= np.where(mask, 1.0 + STEP, 1.0)


def bandwidth(rounds):
    """At 2^24 cells: updates of the whole array and of half of it, beside scaling as many doubles in place."""
    model = Dense(domain_of(12))
    weights = np.ones(2**24)
    half = weights[: 2**23]
    jobs = {
        "whole: numpy w *= c": partial(scaled, weights, 1.0),
        "whole: numba w[i] *= c": partial(numba_scale, weights, 1.0),
        "whole: update": there_and_back(model, query_of({})),
        "half: numpy w *= c": partial(scaled, half, 1.0),
        "half: numba w[i] *= c": partial(numba_scale, half, 1.0),
        "half: update": there_and_back(model, query_of({0: [0, 1]})),
    }
    return turns(jobs, rounds)


def boxes(rounds):
    """In 4^13 cells: update and answer of a box, beside numpy on the same box."""
    model = Dense(domain_of(13), most_cells=4**13)
    cube = np.ones((4,) * 13)
    table = {}
    for name, chosen in BOXES.items():
        query = query_of(chosen)
        masks = [np.isin(np.arange(4), chosen.get(at, range(4))) for at in range(13)]
        view = cube[tuple(slicing(mask) for mask in masks)]
        mask = np.ones((1,) * 13, dtype=bool)
        for at, each in enumerate(masks):
            mask = mask & each.reshape([-1 if axis == at else 1 for axis in range(13)])
        # In this order both scalings find their box cold, and both sums find it warm if it fits the cache.
        jobs = {
            "update": there_and_back(model, query),
            "answer": partial(model.answer, query),
            "numpy, mask": partial(multiplied, cube, mask),
            "numpy, sliced view": partial(scaled, view, 1.0),
            "numpy, sum of view": view.sum,
        }
        table[name] = turns(jobs, rounds)
    return table


def slicing(mask):
    """A slice with the places of a mask: plain numpy at its best, where they are evenly spaced."""
    places = np.flatnonzero(mask)
    stride = places[1] - places[0] if len(places) > 1 else 1
    assert (np.diff(places) == stride).all(), "the boxes here are slices"
    return slice(places[0], places[-1] + 1, stride)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--turns", type=int, default=41)
    rounds = parser.parse_args().turns
    scales, found = bandwidth(rounds), boxes(max(3, rounds // 4))
    text = report(scales, found, rounds)
    print(text)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "dense.md").write_text(text)
    draw_figure(found, RESULTS / "dense.png")


def report(scales, found, rounds):
    lines = ["# The dense model", "", machine.describe(), ""]
    lines += [f"## 2²⁴ cells: an update beside scaling as many doubles in place; medians of {rounds}, ms", ""]
    lines += ["| | wall (quartiles) | CPU | wall, update over the faster reference | CPU |", "|---|---|---|---|---|"]
    for name, (wall, cpu) in scales.items():
        ratios = ["", ""]
        if name.endswith("update"):
            part = name.split(":")[0]
            others = [times for other, times in scales.items() if other.startswith(part) and other != name]
            ratios = [f"**{times[0] / min(o[at][0] for o in others):.2f}**" for at, times in enumerate((wall, cpu))]
        lines.append(
            f"| {name} | {wall[0]:.2f} ({wall[1]:.2f}–{wall[2]:.2f}) | {cpu[0]:.2f} | {ratios[0]} | {ratios[1]} |"
        )
    lines += ["", "The faster reference is the one with the smaller median. An update also adds up what it scales.", ""]
    lines += ["## 4¹³ cells (2²⁶, 512 MB): one box; median wall ms (CPU ms)", ""]
    names = list(next(iter(found.values())))
    lines += ["| box | cells | " + " | ".join(names) + " |", "|---" * (2 + len(names)) + "|"]
    for name, times in found.items():
        cells = 4**13
        for values in BOXES[name].values():
            cells = cells * len(values) // 4
        row = " | ".join(f"{times[job][0][0]:.2f} ({times[job][1][0]:.2f})" for job in names)
        lines.append(f"| {name} | {cells:,} | {row} |")
    lines += [
        "",
        "The view is a slice with strides, made beforehand, like the mask, which multiplies every cell.",
    ]
    return "\n".join([*lines, ""])


def draw_figure(found, path):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 4), layout="constrained")
    for shift, job in enumerate(("update", "numpy, sliced view", "numpy, mask")):
        heights = [times[job][0][0] for times in found.values()]
        axes.barh(np.arange(len(found)) + 0.25 * shift, heights, height=0.25, label=job)
    axes.set(xscale="log", xlabel="ms", title="Scaling a box of 4¹³ cells")
    axes.set_yticks(np.arange(len(found)) + 0.25, list(found))
    axes.invert_yaxis()
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()

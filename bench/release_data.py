"""The tables of the benchmark of releases, what is asked of them, and how an answer is judged.

python bench/release_data.py               prints each table: rows, columns, and how far it is from independent columns

Adult, NLTCS and Titanic are read from the folder DISCREET_DATA, or from ../shared/data beside the repository. The other
tables are drawn with fixed seeds: constants were chosen on tables of their kinds with other seeds, and a few (how soft
columns are, what the number of rows gets, when pairs are worth measuring) on these too, so they do not judge alone.
Only numpy is imported at the top, because peers run this file in environments of their own.
"""

import gzip
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import combinations
from math import prod
from pathlib import Path

import numpy as np

# Of a longer workload so many marginals are judged, drawn by their weights.
MOST_JUDGED = 2000
# How much more a marginal with the target column matters.
TARGET = 10


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows of codes 0, …, size − 1, and the size of each column; the last column is the one to be predicted."""

    name: str
    sizes: dict[str, int]
    codes: np.ndarray

    @property
    def rows(self):
        return len(self.codes)

    @property
    def target(self):
        return list(self.sizes)[-1]

    @cached_property
    def places(self):
        return {name: place for place, name in enumerate(self.sizes)}

    @property
    def checksum(self):
        return sha256(np.ascontiguousarray(self.codes, dtype=np.int32).tobytes()).hexdigest()[:12]

    def counts(self, columns):
        """The true marginal."""
        shape = tuple(self.sizes[name] for name in columns)
        cells = np.ravel_multi_index([self.codes[:, self.places[name]] for name in columns], shape)
        return np.bincount(cells, minlength=prod(shape)).reshape(shape).astype(float)

    def part(self, name, chosen):
        return Sample(name, self.sizes, self.codes[chosen])

    def domain(self):
        from discreet.schema.column import Categories
        from discreet.schema.domain import Domain

        columns = {
            name: Categories(list(range(size)), outside="drop", missing="drop") for name, size in self.sizes.items()
        }
        return Domain(columns)

    def table(self):
        """The rows under protection; adding or removing one is what must not show."""
        from discreet.schema import Schema, Unit
        from discreet.source.frame import Frame
        from discreet.source.table import Table

        domain, unit = self.domain(), Unit()
        codes = [self.codes[:, self.places[name]] for name in domain]
        return Table(Schema(self.name, domain, unit), Frame.of_codes(codes, domain=domain, unit=unit))


# Tables of others.


def read(name):
    """A table of others, its columns in the order of its file."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("DISCREET_DATA", beside))
    files = [folder / f"{name}-hd.csv.gz", folder / f"{name}-hd-domain.json"]
    missing = [file.name for file in files if not file.exists()]
    if missing:
        raise SystemExit(f"{', '.join(missing)} not found in {folder}; set DISCREET_DATA to the folder that has them.")
    with gzip.open(files[0], "rt") as file:
        names = file.readline().rstrip("\n").split(",")
        codes = np.loadtxt(file, delimiter=",", dtype=np.int32)
    sizes = json.loads(files[1].read_text())
    return Sample(name, {each: sizes[each] for each in names}, codes)


def halves(sample):
    """Four fifths of the rows to learn from and one fifth to test with, always the same ones."""
    order = np.random.default_rng(0).permutation(sample.rows)
    cut = sample.rows * 4 // 5
    return sample.part(f"{sample.name}-train", order[:cut]), sample.part(f"{sample.name}-test", order[cut:])


# Tables drawn.


def named(name, sizes, columns):
    names = [f"x{place:02}" for place in range(len(sizes))]
    return Sample(name, dict(zip(names, map(int, sizes), strict=True)), np.stack(columns, axis=1).astype(np.int32))


def choose(random, chances, given):
    """A value for each row, with the chances in the row of `chances` that `given` names."""
    edges = np.cumsum(chances, axis=1)
    edges[:, -1] = 1.0
    return (random.random(len(given))[:, None] > edges[given]).sum(axis=1)


def network(rows=200_000, seed=21):
    """A random Bayesian network: twelve columns of 2 to 20 values, each with up to two parents."""
    random = np.random.default_rng(seed)
    sizes, columns = random.integers(2, 21, 12), []
    for place, size in enumerate(sizes):
        parents = random.choice(place, min(place, int(random.integers(1, 3))), replace=False) if place else []
        given, states = np.zeros(rows, dtype=np.int64), 1
        for parent in parents:
            given, states = given * sizes[parent] + columns[parent], states * int(sizes[parent])
        columns.append(choose(random, random.dirichlet(np.full(size, 0.5), states), given))
    return named("network", sizes, columns)


def classes(rows=20_000, seed=22, many=10):
    """Ten classes; within a class twenty columns of 2 to 8 values are independent."""
    random = np.random.default_rng(seed)
    sizes, member = random.integers(2, 9, 20), random.choice(many, rows, p=random.dirichlet(np.full(many, 2.0)))
    columns = [choose(random, random.dirichlet(np.full(size, 0.7), many), member) for size in sizes]
    return named("classes", sizes, columns)


def ordered(rows=100_000, seed=23):
    """Eight ordered columns of 64 cells: a Gaussian with two common factors, cut at equal widths."""
    random = np.random.default_rng(seed)
    values = random.normal(size=(rows, 2)) @ random.normal(size=(2, 8)) + random.normal(size=(rows, 8))
    cells = np.clip(32 + np.floor(values / values.std(axis=0) * 10), 0, 63)
    return named("ordered", [64] * 8, list(cells.T))


def independent(rows=50_000, seed=24):
    """Twelve columns of 2 to 16 values that tell nothing of each other."""
    random = np.random.default_rng(seed)
    sizes, nowhere = random.integers(2, 17, 12), np.zeros(rows, dtype=np.int64)
    columns = [choose(random, random.dirichlet(np.ones(size), 1), nowhere) for size in sizes]
    return named("independent", sizes, columns)


def copies(rows=30_000, seed=25, exceptions=0.01):
    """Three columns, and nine that follow from one or two of them but for one row in a hundred."""
    random = np.random.default_rng(seed)
    sizes = [12, 8, 5]
    columns = [choose(random, random.dirichlet(np.ones(size), 1), np.zeros(rows, dtype=np.int64)) for size in sizes]
    for _ in range(9):
        one, other = random.choice(3, 2, replace=False)
        size = int(random.integers(2, 13))
        rule = random.integers(size, size=(sizes[one], sizes[other] if random.random() < 0.5 else 1))
        follows = rule[columns[one], columns[other] % rule.shape[1]]
        columns.append(np.where(random.random(rows) < exceptions, random.integers(size, size=rows), follows))
        sizes.append(size)
    return named("copies", sizes, columns)


def hundred(rows=100_000, seed=26):
    """A hundred columns of 2 to 4 values along a random tree."""
    random = np.random.default_rng(seed)
    sizes, columns = random.integers(2, 5, 100), []
    for place, size in enumerate(sizes):
        parent = int(random.integers(place)) if place else None
        given = np.zeros(rows, dtype=np.int64) if parent is None else columns[parent]
        chances = random.dirichlet(np.full(size, 0.8), 1 if parent is None else int(sizes[parent]))
        columns.append(choose(random, chances, given))
    return named("hundred", sizes, columns)


READ = ("adult", "nltcs", "titanic")
DRAWN: dict[str, Callable[[], Sample]] = {
    make.__name__: make for make in (network, classes, ordered, independent, copies, hundred)
}
NAMES = (*READ, *DRAWN)


def sample(name):
    """A table by its name; "adult-train" is what a classifier's rows are made from, "adult-test" what tests it."""
    stem, _, half = name.partition("-")
    found = DRAWN[stem]() if stem in DRAWN else read(stem)
    return found if not half else halves(found)[half == "test"]


# What is asked.


def all_of(ways):
    """All marginals of so many columns, equal in weight."""
    return lambda table: dict.fromkeys(combinations(sorted(table.sizes), ways), 1.0)


def target(table):
    """All 3-way marginals, Zipf: in an order that is drawn the r-th weighs 1/r, ten times that with the last column."""
    scopes = list(combinations(sorted(table.sizes), 3))
    ranks = np.random.default_rng(0).permutation(len(scopes)) + 1
    return {
        scope: (TARGET if table.target in scope else 1) / float(rank) for scope, rank in zip(scopes, ranks, strict=True)
    }


WORKLOADS = {"3-ways": all_of(3), "2-ways": all_of(2), "target": target}


# How an answer is judged.


def judged(weights):
    """The marginals that are judged and their weights, which add up to 1."""
    scopes, heavy = list(weights), np.array(list(weights.values()))
    heavy = heavy / heavy.sum()
    if len(scopes) <= MOST_JUDGED:
        return list(zip(scopes, heavy.tolist(), strict=True))
    drawn = np.random.default_rng(0).choice(len(scopes), MOST_JUDGED, p=heavy)
    return [(scopes[place], 1 / MOST_JUDGED) for place in sorted(drawn.tolist())]


def judge(answer, table, weights):
    """Σ weight · ‖answer − truth‖₁/n, and the largest error of a cell as a share of n."""
    total, largest = 0.0, 0.0
    for columns, weight in judged(weights):
        off = np.abs(np.asarray(answer(columns)) - table.counts(columns))
        total += weight * float(off.sum()) / table.rows
        largest = max(largest, float(off.max()) / table.rows)
    return {"error": total, "cell": largest}


def answers_of(codes, table):
    """What rows answer; only their shares matter, as their number is chosen."""
    rows = Sample(table.name, table.sizes, np.asarray(codes))
    return lambda columns: rows.counts(columns) * (table.rows / max(1, rows.rows))


def main():
    for name in NAMES:
        table = sample(name)
        weights = WORKLOADS["2-ways"](table)
        single = {each: table.counts((each,)) / table.rows for each in table.sizes}

        def apart(columns, single=single, table=table):
            return table.rows * np.multiply.outer(single[columns[0]], single[columns[1]])

        found = judge(apart, table, weights)
        print(
            f"{name:12} {table.rows:>7} × {len(table.sizes):<3} sizes {min(table.sizes.values())}–"
            f"{max(table.sizes.values())}, {table.checksum}: independent columns are off by {found['error']:.3f} in "
            f"the pairs, a cell by up to {found['cell']:.3f}"
        )


if __name__ == "__main__":
    main()

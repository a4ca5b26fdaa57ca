"""Wide tables and the questions asked of them: forty two-valued columns, and eight of them at a time.

python bench/wide_data.py                  prints, for each table, what its answers are and how wrong models of it are
python bench/wide_data.py --only tree      one table

Each column has a common value, which is public, and which most rows have. A question counts the rows in which some
columns, chosen at random, all have their common values. The rows are drawn with fixed seeds: from a tree with a few
interactions more (tree), from a denser graph (dense), from classes (latent), and around centres that no model of pairs
finds (unfit). NLTCS is read from the folder DISCREET_DATA, or from ../shared/data beside the repository.
"""

import argparse
import gzip
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, islice
from pathlib import Path
from time import process_time

import numpy as np

import discreet as dp
from discreet.model.interface import NoisyMarginal
from discreet.model.mixture.mixture_model import fit_mixture
from discreet.model.tree.junction_tree import fits
from discreet.model.tree.tree_model import fit_tree
from discreet.query.linear import Linear, Marginal
from discreet.query.product import Factor, Product
from discreet.schema.column import Boolean
from discreet.schema.domain import Domain
from discreet.schema.unit import Unit
from discreet.source.source import unseal
from discreet.source.table import Table

COLUMNS, ROWS = 40, 10**6
NLTCS = ("nltcs-hd.csv.gz", "nltcs-hd-domain.json")
# Questions that are drawn at once.
TOGETHER = 1000


@dataclass(frozen=True, eq=False)
class Wide:
    """A table under protection, the value of each column that is common, and how many columns a question names."""

    name: str
    table: Table
    rows: int
    common: dict[str, bool]
    ways: int = 8

    def questions(self, count=10**5, seed=0):
        return conjunctions_of_common_values(self.common, self.ways, count, seed)

    def truth(self, questions):
        """The true answers, which a benchmark may look at."""
        exact = self.table.evaluate(list(questions))
        return unseal(exact, exact.sensitivity)

    def counts(self, columns):
        exact = self.table.evaluate(Marginal(tuple(columns)))
        return unseal(exact, exact.sensitivity).reshape((2,) * len(columns))


def conjunctions_of_common_values(common, k=8, count=10**5, seed=0) -> Iterator[Linear]:
    """Counts of the rows in which k of the columns have their common value; the columns at random, one by one."""
    random = np.random.default_rng(seed)
    # Sorted as a product sorts them, and shared: a question costs little more than its name.
    factors = sorted(Factor((name,), np.array([not value, value])) for name, value in common.items())
    for start in range(0, count, TOGETHER):
        order = random.random((min(TOGETHER, count - start), len(factors))).argpartition(k - 1, axis=1)[:, :k]
        for places in np.sort(order, axis=1).tolist():
            yield Linear([Product(tuple([factors[place] for place in places]))])


def protect(name, uncommon, seed):
    """A table in which `uncommon` says where a row has the rarer value; which value that is is drawn, and public."""
    common = np.random.default_rng(seed).random(len(uncommon)) < 0.5
    names = [f"x{place:02}" for place in range(len(uncommon))]
    data = {each: rare != value for each, rare, value in zip(names, uncommon, common, strict=True)}
    table = dp.open(data, domain=Domain({each: Boolean() for each in names}), unit=Unit())
    return Wide(name, table, len(uncommon[0]), dict(zip(names, common.tolist(), strict=True)))


def rates(random):
    """How often a column has its rarer value: 3 to 30 %."""
    return random.uniform(0.03, 0.3, COLUMNS)


def grow(random, parents, rows):
    """Rows of a network: each column depends on its parents by a logistic law with a table of strengths.

    `parents[i]` has pairs (columns, strength): where all these columns are rare, the log-odds of column i rise by the
    strength. The constant of each law is set such that the column is rare as often as its rate says.
    """
    uncommon = []
    for rate, causes in zip(rates(random), parents, strict=True):
        code, lift = np.zeros(rows, dtype=np.uint8), np.zeros(2 ** len(causes))
        for bit, (columns, strength) in enumerate(causes):
            code |= np.logical_and.reduce([uncommon[each] for each in columns]).astype(np.uint8) << bit
            lift += strength * (np.arange(len(lift)) >> bit & 1)
        chance = np.bincount(code, minlength=len(lift)) / rows
        low, high = -40.0, 40.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if chance @ logistic(middle + lift) < rate else (low, middle)
        uncommon.append(random.random(rows) < logistic(low + lift)[code])
    return uncommon


def logistic(odds):
    return 1 / (1 + np.exp(-odds))


def tree(rows=ROWS, seed=1):
    """A random tree of strong and weak ties, and ten interactions more: six pairs and four triples."""
    random = np.random.default_rng(seed)
    parents = [
        [((int(random.integers(place)),), random.uniform(0.3, 3.0))] if place else [] for place in range(COLUMNS)
    ]
    for ways in (1, 1, 1, 1, 1, 1, 2, 2, 2, 2):
        child = int(random.integers(10, COLUMNS))
        others = tuple(random.choice(child, ways, replace=False).tolist())
        parents[child].append((others, random.uniform(1.0, 2.5)))
    return protect("tree", grow(random, parents, rows), seed)


def dense(rows=ROWS, seed=2, width=5):
    """A partial k-tree: a column's parents are some of the columns of a clique of k, so its width is at most k."""
    random = np.random.default_rng(seed)
    cliques, parents = [tuple(range(width))], [[] for _ in range(COLUMNS)]
    for place in range(1, width):
        parents[place] = [((other,), random.uniform(0.3, 1.5)) for other in range(place) if random.random() < 0.6]
    for place in range(width, COLUMNS):
        clique = cliques[random.integers(len(cliques))]
        parents[place] = [((other,), random.uniform(0.3, 1.5)) for other in clique if random.random() < 0.6]
        cliques += [(*(one for one in clique if one != gone), place) for gone in clique]
    return protect("dense", grow(random, parents, rows), seed)


def latent(rows=ROWS, seed=3, classes=8):
    """Each class has its own rates, and within a class the columns are independent."""
    random = np.random.default_rng(seed)
    odds = np.log(1 / rates(random) - 1)
    chances = logistic(random.normal(-odds - 0.4, 1.2, (classes, COLUMNS)))
    member = random.choice(classes, rows, p=random.dirichlet(np.full(classes, 3.0)))
    return protect("latent", [random.random(rows) < chances[member, place] for place in range(COLUMNS)], seed)


def unfit(rows=ROWS, seed=4, centres=32, noise=0.02):
    """Rows around random centres: what they say of eight columns does not follow from what they say of two."""
    random = np.random.default_rng(seed)
    centre = random.random((centres, COLUMNS)) < random.uniform(0.08, 0.3, COLUMNS)
    member = random.integers(centres, size=rows)
    uncommon = [centre[member, place] ^ (random.random(rows) < noise) for place in range(COLUMNS)]
    return protect("unfit", uncommon, seed)


def nltcs(folder=None):
    """The National Long-Term Care Survey, sixteen disabilities of 21,574 people: questions about six of them."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    found = Path(folder or os.environ.get("DISCREET_DATA", beside))
    missing = [name for name in NLTCS if not (found / name).exists()]
    if missing:
        raise SystemExit(f"{', '.join(missing)} not found in {found}; set DISCREET_DATA to the folder that has them.")
    with gzip.open(found / NLTCS[0], "rt") as file:
        names = file.readline().rstrip("\n").split(",")
        data = np.loadtxt(file, delimiter=",", dtype=np.int8).astype(bool)
    assert json.loads((found / NLTCS[1]).read_text()) == dict.fromkeys(names, 2)
    table = dp.open(dict(zip(names, data.T, strict=True)), domain=Domain({name: Boolean() for name in names}))
    common = dict(zip(names, (data.mean(axis=0) > 0.5).tolist(), strict=True))
    return Wide("NLTCS", table, len(data), common, ways=6)


TABLES = {"tree": tree, "dense": dense, "latent": latent, "unfit": unfit, "NLTCS": nltcs}


# How wrong models are that know the table without noise.

# The standard deviation at which a fit stops, as a share of the rows: a tenth of the error that is asked for.
NEAR = 1e-3
MOST_CELLS = 2**14
MOST_PAIRS = 120


def models(wide):
    """Name and answers of models fitted to single columns and pairs, from the coarsest on."""
    domain, rows = wide.table.domain, wide.rows
    names = tuple(domain)
    weight = 1 / (NEAR * rows) ** 2
    singles = [NoisyMarginal((name,), None, wide.counts((name,)).astype(float), weight) for name in names]
    pairs = [
        NoisyMarginal(pair, None, wide.counts(pair).astype(float), weight) for pair in combinations(sorted(names), 2)
    ]
    told = sorted(pairs, key=lambda look: (-information(look.values), look.columns))
    yield "independent", fit_tree(domain, singles, total=rows)
    forest = spanning(told)
    yield "tree of pairs", fit_tree(domain, [*singles, *forest], total=rows)
    sizes = dict.fromkeys(names, 2)
    chosen = [look.columns for look in forest]
    for look in told:
        if len(chosen) < MOST_PAIRS and look.columns not in chosen and fits(chosen, look.columns, sizes, MOST_CELLS):
            chosen.append(look.columns)
    wider = [look for look in pairs if look.columns in chosen]
    yield f"{len(wider)} pairs", fit_tree(domain, [*singles, *wider], total=rows)
    yield "mixture", fit_mixture(domain, [*singles, *pairs], total=rows)


def information(counts):
    """The mutual information of a pair, in nats."""
    shares = counts / counts.sum()
    apart = shares.sum(axis=1, keepdims=True) * shares.sum(axis=0)
    return float((shares * np.log(np.maximum(shares, 1e-300) / np.maximum(apart, 1e-300))).sum())


def spanning(told):
    """The pairs of the tree that tells most [Chow & Liu 1968]."""
    root = {name: name for look in told for name in look.columns}
    chosen = []
    for look in told:
        one, other = (root[name] for name in look.columns)
        if one != other:
            chosen.append(look)
            root = {name: other if top == one else top for name, top in root.items()}
    return chosen


def describe(wide, count=5000):
    questions = list(islice(wide.questions(seed=1), count))
    truth = wide.truth(questions) / wide.rows
    common = [wide.counts((name,))[int(value)] / wide.rows for name, value in wide.common.items()]
    print(f"\n{wide.name}: {wide.rows} rows, {len(wide.common)} columns, common values {spread(common)} of the rows")
    print(f"  {wide.ways}-way answers {spread(truth)} of the rows, standard deviation {truth.std():.3f}")
    for name, model in models(wide):
        off = np.abs(model.answers(questions) / wide.rows - truth)
        near, far = np.quantile(off, [0.5, 0.99])
        print(
            f"  {name:14} error: median {near:.2%}, 99 % {far:.2%}, largest {off.max():.2%} of the rows; "
            f"over 1 %: {(off > 0.01).mean():.1%} of the questions"
        )


def spread(values):
    return "–".join(f"{value:.3f}" for value in np.quantile(values, [0.05, 0.5, 0.95]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=TABLES)
    only = parser.parse_args().only
    for name, make in TABLES.items():
        if only in (None, name):
            start = process_time()
            wide = make()
            made = process_time() - start
            start = process_time()
            for _ in wide.questions(20_000):
                pass
            asked = process_time() - start
            describe(wide)
            print(f"  made in {made:.1f} CPU s; {asked / 20_000 * 1e6:.0f} µs to make a question")


if __name__ == "__main__":
    main()

"""The streams of questions of `online.py`, and what is known of each by arithmetic alone.

Covid and CitiBike are the pools of Turbo (SOSP '23), read from the folder DISCREET_DATA or ../shared/data beside the
repository; the others are drawn, with fixed seeds.
"""

import gzip
import json
import os
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from math import log, prod
from pathlib import Path

import numpy as np

from discreet.estimate.gaussian_estimator import GaussianLattice
from discreet.plan.steps import Target
from discreet.query.linear import Linear
from discreet.query.product import box
from discreet.schema.column import Categories, Integers
from discreet.schema.domain import Domain
from discreet.schema.unit import Unit

FILES = ("covid_all_queries.json.gz", "covid_workload_zipf0.txt.gz", "citibike_2485_queries.json")
COVID, CITIBIKE = (2, 2, 4, 8), (7, 6, 6, 10, 10, 2, 3, 4)


def folder():
    """Where the pools lie; a sentence and the end of the script if they do not."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    found = Path(os.environ.get("DISCREET_DATA", beside))
    missing = [name for name in FILES if not (found / name).exists()]
    if missing:
        print(f"{', '.join(missing)} not found in {found}; set DISCREET_DATA to the folder that has them.")
        raise SystemExit(0)
    return found


def checksums(place):
    return ", ".join(f"{name} {sha256((place / name).read_bytes()).hexdigest()[:12]}" for name in FILES)


@dataclass(frozen=True, eq=False)
class Stream:
    """Questions in order of arrival, each to be within `share` of the rows with probability `confidence`."""

    name: str
    domain: Domain
    unit: Unit
    rows: int
    share: float
    confidence: float
    questions: list[Linear]

    def upto(self, count):
        """The first questions."""
        return replace(self, questions=self.questions[:count])

    @property
    def target(self):
        return Target(self.share * self.rows, self.confidence)

    @property
    def total_is_public(self):
        return self.unit.neighbors == "replace_one" and not self.domain.drops

    @property
    def unit_price(self):
        """One direct Gaussian answer, in squared mu: a count moves by 1."""
        return 1 / self.target.variance

    def nothing_known(self):
        known = GaussianLattice.nothing(self.domain, self.unit)
        if self.total_is_public:
            known.learn_total(self.rows)
        return known

    @cached_property
    def distinct(self):
        """The questions that are neither repeated nor public."""
        return [query for query in dict.fromkeys(self.questions) if query.scope or not self.total_is_public]

    @cached_property
    def first_seen(self):
        """For each question in turn, how many distinct ones have been asked by then."""
        seen, count = set() if not self.total_is_public else {Linear([box({})])}, []
        before = len(seen)
        for query in self.questions:
            seen.add(query)
            count.append(len(seen) - before)
        return np.array(count)

    def laplace_epsilon(self):
        """Σε of one Laplace answer for each distinct question: Pr[|Lap(b)| > error] = e^(−error/b) = 1 − confidence."""
        return len(self.distinct) * log(1 / (1 - self.confidence)) / self.target.error

    def gaussian_price(self):
        return len(self.distinct) * self.unit_price

    def histogram_price(self):
        """All cells at once with one noise for which the worst question meets its target.

        A query w has variance ‖w‖² sigma², and ‖w − mean‖² sigma² if the total is public. The histogram moves by 1
        (squared) under add_remove and by 2 under replace_one.
        """
        cells = prod(column.size for _, column in self.domain.columns)
        worst = 0.0
        for query in self.distinct:
            share = prod(float(factor.weights.mean()) for factor in query.products[0].factors)
            worst = max(worst, cells * share * (1 - share if self.total_is_public else 1))
        return (2 if self.unit.neighbors == "replace_one" else 1) * worst * self.unit_price


def categories(sizes):
    return Domain({f"c{place}": Categories(list(range(size)), outside=0) for place, size in enumerate(sizes)})


def chosen(values, size):
    mask = np.zeros(size, dtype=bool)
    mask[values] = True
    return mask


def from_pool(pool, sizes):
    """The queries of Turbo's files: {"column": value or [values]}."""
    return {
        name: Linear([box({f"c{c}": chosen(values, sizes[int(c)]) for c, values in each["query"].items()})])
        for name, each in pool.items()
    }


def covid(place, count=20_000):
    with gzip.open(place / FILES[0], "rt") as file:
        pool = from_pool(json.load(file), COVID)
    with gzip.open(place / FILES[1], "rt") as file:
        asked = [pool[line.strip()] for line in file][:count]
    return Stream("Covid", categories(COVID), Unit(neighbors="replace_one"), 1_008_532, 0.05, 0.999, asked)


def citibike(place, count=20_000, seed=0):
    pool = list(from_pool(json.loads((place / FILES[2]).read_text()), CITIBIKE).values())
    asked = [pool[k] for k in np.random.default_rng(seed).integers(0, len(pool), count)]
    return Stream("CitiBike", categories(CITIBIKE), Unit(neighbors="replace_one"), 400_000, 0.05, 0.999, asked)


def some_values(random, size):
    """Each value with probability ½; not all, not none."""
    while True:
        mask = random.random(size) < 0.5
        if mask.any() and not mask.all():
            return mask


def subsets(count=3_000, seed=0):
    """On 1 to 4 of the CitiBike columns, a random subset of the values of each."""
    random, asked = np.random.default_rng(seed), []
    for _ in range(count):
        columns = random.choice(len(CITIBIKE), random.integers(1, 5), replace=False)
        asked.append(Linear([box({f"c{c}": some_values(random, CITIBIKE[c]) for c in columns})]))
    return Stream("Subsets", categories(CITIBIKE), Unit(neighbors="replace_one"), 400_000, 0.05, 0.999, asked)


def ranges(count=10_000, seed=0):
    """A random range of 512 ordered values, with conditions on 0 to 2 of two categories: a value, or a subset."""
    sizes = {"c": 5, "d": 8}
    # Missing values are passed off as 0, so that no row is dropped and the number of rows is public.
    columns = {name: Categories(list(range(size)), outside=0) for name, size in sizes.items()}
    domain = Domain({"age": Integers(0, 511, missing=0), **columns})
    random, asked = np.random.default_rng(seed), []
    for _ in range(count):
        low, high = sorted(random.integers(0, 512, 2))
        masks = {"age": chosen(slice(low, high + 1), 512)}
        for name in random.choice(list(sizes), random.integers(0, 3), replace=False):
            size = sizes[name]
            masks[name] = chosen(random.integers(size), size) if random.random() < 0.5 else some_values(random, size)
        asked.append(Linear([box(masks)]))
    return Stream("Ranges", domain, Unit(neighbors="replace_one"), 400_000, 0.05, 0.999, asked)


def conjunctions(count=100_000, ways=5, columns=30, seed=0):
    """Random conjunctions over binary columns."""
    random, asked = np.random.default_rng(seed), []
    for _ in range(count):
        named, values = random.choice(columns, ways, replace=False), random.integers(0, 2, ways)
        masks = {f"c{c}": chosen(value, 2) for c, value in zip(named, values, strict=True)}
        asked.append(Linear([box(masks)]))
    return Stream("Five-way", categories((2,) * columns), Unit(), 1_000_000, 0.01, 0.99, asked)

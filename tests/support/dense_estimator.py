"""Everything that is known, once more and slowly: dense matrices over all cells of all columns, padding included.

Written from lattice.md and not from the code: a column of n cells has a list of measuring matrices over N padded
cells, a residual is a Kronecker product of them, and a query is padded with its own mean.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce

import numpy as np

from discreet.estimate.gaussian_estimator import GaussianLattice
from discreet.estimate.measurements import GaussianQuery, GaussianResiduals
from discreet.query import Linear, Marginal
from discreet.query.product import Factor, Product
from discreet.query.residual import Measurement, Residual
from discreet.schema import Bins, Boolean, Categories, Domain, Integers, Unit

COLUMNS = [
    lambda n: Integers(1, n, missing="drop"),
    lambda n: Bins(list(range(n)), upper=n, missing="drop"),
    lambda n: Categories(list(range(n)), outside="drop", ordered=True),
    lambda n: Categories(list(range(n)), outside="drop"),
    lambda n: Categories(list(range(n)), outside="drop"),
    lambda n: Boolean(),
]


def parts_of(column):
    """The measuring matrices of a column over its padded cells, the constants first."""
    n = column.size
    if n == 1:
        return [np.ones((1, 1))]
    if not column.ordered and n > 2:
        return [np.ones((1, n)), n * np.eye(n) - np.ones((n, n))]
    padded = 2
    while padded < n:
        padded *= 2
    parts, blocks = [np.ones((1, padded))], 1
    while blocks < padded:
        half = padded // blocks // 2
        parts.append(np.kron(np.eye(blocks), np.r_[np.ones(half), -np.ones(half)][None, :]))
        blocks *= 2
    return parts


@dataclass(frozen=True)
class Space:
    """All functions on the padded cells of a domain whose columns are sorted."""

    domain: Domain

    @cached_property
    def parts(self):
        return {name: parts_of(self.domain[name]) for name in self.domain}

    @cached_property
    def pad(self):
        """A query on the declared cells as one on the padded cells: its mean, wherever no row can be."""
        pads = []
        for name in self.domain:
            n, padded = self.domain[name].size, self.parts[name][0].shape[1]
            pads.append(np.vstack([np.eye(n), np.full((padded - n, n), 1 / n)]))
        return reduce(np.kron, pads)

    @cached_property
    def declared(self):
        """Which padded cells are declared."""
        masks = [np.arange(self.parts[name][0].shape[1]) < self.domain[name].size for name in self.domain]
        return reduce(np.kron, masks).astype(bool)

    def measure(self, residual):
        """The measuring matrix over all padded cells."""
        chosen = dict(residual.parts)
        return reduce(np.kron, [self.parts[name][chosen.get(name, 0)] for name in self.domain])

    def projection(self, residual):
        """The orthogonal projection on the piece."""
        chosen = dict(residual.parts)
        each = [self.parts[name][chosen.get(name, 0)] for name in self.domain]
        return reduce(np.kron, [np.linalg.pinv(matrix) @ matrix for matrix in each])

    def queries(self, question):
        """A row over the declared cells for each number that is asked, grouped columns in their sorted order."""
        names, shape = tuple(self.domain), self.domain.shape
        if isinstance(question, Linear):
            return question.table(self.domain, names).reshape(1, -1).astype(float)
        weight = np.ones(shape) if question.weight is None else question.weight.table(self.domain, names)
        grouped = [name in question.columns for name in names]
        cells = [np.eye(n) if own else np.ones((1, n)) for n, own in zip(shape, grouped, strict=True)]
        return reduce(np.kron, cells) * weight.ravel()

    def pieces(self):
        """Every piece there is."""
        places = np.ndindex(*(len(self.parts[name]) for name in self.domain))
        names = tuple(self.domain)
        return [
            Residual(tuple((name, part) for name, part in zip(names, place, strict=True) if part)) for place in places
        ]


@dataclass
class Releases:
    """Measurements and directs, to be learnt with any numbers: what is known is a linear map of them."""

    space: Space
    measurements: list
    directs: list
    exact_total: bool = False

    @cached_property
    def design(self):
        """What is measured, a row for each number, over the padded cells; a direct is over declared cells only."""
        rows = [self.space.measure(residual) for each in self.measurements for residual, _ in each.pieces]
        rows += [self.space.queries(question) @ self.space.pad.T for question, _ in self.directs]
        return np.vstack([np.zeros((0, len(self.space.declared))), *rows])

    @cached_property
    def variances(self):
        """The variance of the noise of each number."""
        noise = [
            (float(sigma) ** 2 + 1 / 12, size)
            for each in self.measurements
            for sigma, size in each.stretches(self.space.domain)
        ]
        noise += [(float(sigma) ** 2 + 1 / 12, 1) for _, sigma in self.directs]
        return np.concatenate([np.zeros(0), *(np.full(size, variance) for variance, size in noise)])

    def learnt(self, numbers, total=0):
        """What is known when these numbers were released."""
        known, start = GaussianLattice.nothing(self.space.domain, Unit()), 0
        if self.exact_total:
            known.learn_total(total)
        for each in self.measurements:
            size = sum(size for _, size in each.stretches(self.space.domain))
            known.learn(GaussianResiduals(each, 0.0), np.asarray(numbers[start : start + size]))
            start += size
        for question, sigma in self.directs:
            known.learn(GaussianQuery(question, sigma, 0.0), np.asarray(numbers[start : start + 1]))
            start += 1
        return known

    def least_squares(self, numbers, total=0):
        """The generalised least-squares estimator (without directs): the estimate, its covariance, what is estimable.

        An exact total is a constraint, so this is the solution of [[F, c], [cᵀ, 0]] with F = Σ MᵀM/variance.
        """
        weighted = self.design.T / self.variances
        information, score = weighted @ self.design, weighted @ numbers
        told = [np.ones(len(self.space.declared))] if self.exact_total else []
        constraint = np.array(told).reshape(len(told), len(information))
        system = np.block([[information, constraint.T], [constraint, np.zeros((len(told), len(told)))]])
        inverse = np.linalg.pinv(system, rcond=1e-13, hermitian=True)
        cells = len(information)
        estimate = (inverse @ np.r_[score, [total] * len(told)])[:cells]
        seen = information + constraint.T @ constraint
        return estimate, inverse[:cells, :cells], np.linalg.pinv(seen, rcond=1e-13, hermitian=True) @ seen


def estimate(question, known):
    """The values and the variances of a question, as they are laid out."""
    found = known.estimate(question)
    return found.values, found.variances


def random_domain(rng, *, most_cells=200):
    """Two to four columns: padded and not, ordered and not, of two cells, of one cell."""
    while True:
        count = int(rng.integers(2, 5))
        columns = [COLUMNS[rng.integers(len(COLUMNS))](int(rng.choice([1, 2, 3, 4, 5, 6, 7]))) for _ in range(count)]
        domain = Domain({f"c{place}": column for place, column in enumerate(columns)})
        if domain.size > 1 and np.prod([parts_of(column)[0].shape[1] for column in columns]) <= most_cells:
            return domain


def random_sigma(rng, least=1.0, most=40.0):
    return Fraction(float(np.exp(rng.uniform(np.log(least), np.log(most))))).limit_denominator(1000)


def random_measurements(rng, space, *, share=0.7):
    """Most pieces once or twice, the others not at all, in a few measurements."""
    chosen = [piece for piece in space.pieces() if rng.random() < share]
    again = [piece for piece in chosen if rng.random() < 0.3]
    several = [pieces for pieces in (chosen[::2], chosen[1::2], again) if pieces]
    return [Measurement(tuple((piece, random_sigma(rng)) for piece in pieces)) for pieces in several]


def random_product(rng, domain, *, wide=False):
    """A product of small integer weights; with `wide`, one factor is a table over two columns."""
    names = [name for name in domain if rng.random() < 0.7]
    factors = []
    if wide and len(domain) >= 2:
        pair = tuple(sorted(rng.choice(list(domain), size=2, replace=False).tolist()))
        names = [name for name in names if name not in pair]
        factors.append(Factor(pair, rng.integers(-2, 4, size=[domain[name].size for name in pair])))
    for name in names:
        size = domain[name].size
        kinds = [rng.integers(0, 2, size=size), rng.integers(-3, 9, size=size), np.arange(size) + int(rng.integers(9))]
        factors.append(Factor((name,), kinds[rng.integers(3)]))
    made = Product(factors, int(rng.choice([-2, 1, 1, 3])))
    return made if made.coefficient else Product(())


def random_linear(rng, domain):
    """One product, several, or with a dense factor over two columns."""
    while True:
        count = int(rng.choice([1, 1, 2, 4]))
        made = Linear([random_product(rng, domain, wide=bool(rng.random() < 0.3)) for _ in range(count)])
        if made.products:
            return made


def random_marginal(rng, domain):
    """Some columns, with a weight on any columns or without."""
    names = [name for name in domain if rng.random() < 0.5]
    rng.shuffle(names)
    return Marginal(tuple(names), None if rng.random() < 0.4 else random_linear(rng, domain))


def random_question(rng, domain):
    return random_linear(rng, domain) if rng.random() < 0.5 else random_marginal(rng, domain)

"""Plans with Gaussian noise: the answer is known, residuals are topped up, or the query is measured by itself.

A target is an error that holds with some probability; it is turned into the variance that gives it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf, prod

import numpy as np

from discreet.estimate.estimator import Estimator, normal_quantile
from discreet.estimate.measurements import GaussianQuery, GaussianResiduals, Question
from discreet.estimate.residual_lattice import among, numbers_in
from discreet.estimate.separable import TINY, Family, energies_of
from discreet.mechanism.gaussian import gaussian_half_width
from discreet.plan.allocation import Sparse, fill_to_targets
from discreet.query.linear import weighs_nothing
from discreet.query.residual import Measurement, Residual, axes_of
from discreet.source.query_sensitivity import sensitivity_of
from discreet.types import Columns, Numbers

# A target is met early by this part of it, so that rounding does not make a known answer unknown.
ROUNDING_SLACK = 1e-8
# No question is measured with more noise than this times its sensitivity, whatever error is enough: that costs a
# squared mu of 2^-48, and numbers that say next to nothing are not joined to good ones.
MOST_NOISE = 2.0**24
# Noise is lowered by a millionth at a time until its rounded draws keep the error: a few times, as quantiles agree.
MOST_ROUNDINGS = 10_000


@dataclass(frozen=True, slots=True)
class Target:
    """A half-width that must hold with this probability.

    >>> round(Target(196, 0.95).variance)
    10000
    """

    error: float
    confidence: float = 0.95
    joint: int = 1

    @property
    def variance(self) -> float:
        """The largest variance of a Gaussian error that meets the target."""
        return (self.error / normal_quantile(self.confidence, self.joint)) ** 2 * (1 - ROUNDING_SLACK)


def mean_targets(
    known: Estimator, error: float, rows: float, spread: float, confidence: float, joint: int
) -> tuple[Target, Target]:
    """The targets of a total and of the number of its values, so that their mean is good enough.

    `error` is that of the mean of about this number of `rows`; `spread` is the largest distance of a mean from the
    centre.
    """
    if known.jointly_gaussian:
        z = normal_quantile(confidence, joint)
        room = (error * rows / z) ** 2
        aims = z * (0.8 * room) ** 0.5, z * (0.8 * room / spread**2) ** 0.5
        return Target(aims[0], confidence, joint), Target(aims[1], confidence, joint)
    # Each part has an interval of its own; together they give a little more than the sum of both over the rows.
    both = 1 - (1 - confidence) / 2
    return Target(0.45 * error * rows, both, joint), Target(0.45 * error * rows / spread, both, joint)


def sigma_for(variance: float, gain: float = 1.0, *, bits: int = 24) -> Fraction | None:
    """The noise with which a residual of this gain is known to within a variance, as 2^j/k: rounded down a little.

    Its inverse square is an integer over a power of four, so prices of many residuals add up in short numbers. None if
    it would be below 1: then rounding matters, and a number is measured by itself.
    """
    squared = variance * gain - 1 / 12
    if squared < 1:
        return None
    root: float = squared**-0.5
    shift = bits - int(root).bit_length() if root >= 1 else bits + _leading(root)
    return Fraction(2**shift, int(root * 2**shift) + 1)


def _leading(number: float) -> int:
    """How many binary zeros follow the point."""
    zeros = 0
    while number < 0.5:
        number, zeros = number * 2, zeros + 1
    return zeros


GaussianStep = GaussianResiduals | GaussianQuery

# The lattice is bought if it costs no more than this factor times the direct answer, plus what was paid directly for
# questions on the same columns (ski rental). Measured on four public workloads: bench/online.py.
LATTICE_RENTAL_FACTOR = 6.0
# What is known helps a direct answer if its variance is less than this factor times the wanted one.
HELPFUL = 4.0
# The lattice is not bought in more residuals than this at once, nor in more numbers than this or than four for each of
# the answer: each is paid for, drawn, recorded and read again. Larger questions are measured by themselves.
MOST_BOUGHT, MOST_DRAWN = 2**10, 2**19
# The most kinds of cells of a GROUP BY that are planned for one by one.
MOST_KINDS = 16


def step_for(question: Question, target: Target, known: Estimator, *, ahead: bool = True) -> GaussianStep | None:
    """The cheapest step in the long run, or now if not `ahead`; None if the answer is known."""
    if weighs_nothing(question):
        return None
    error = float(known.intervals(question, target.confidence, target.joint).errors.max())
    if error <= target.error * (1 + ROUNDING_SLACK):
        return None
    direct = _directly(question, target, known, error)
    family = known.family(question)
    lattice = None if family is None else _lattice(family, target, known)
    if direct is None or lattice is None:
        return lattice or direct
    most = LATTICE_RENTAL_FACTOR * direct.price + known.paid.get(question.scope, 0.0) if ahead else direct.price
    return lattice if lattice.price <= most else direct


def direct_step(question: Question, target: Target, known: Estimator) -> GaussianQuery | None:
    """A direct measurement that meets the target together with what is known; None if there is nothing to measure."""
    error = float(known.intervals(question, target.confidence, target.joint).errors.max())
    return _directly(question, target, known, error)


def _directly(question: Question, target: Target, known: Estimator, error: float) -> GaussianQuery | None:
    """A direct measurement that meets the target, where the question is known with this error."""
    moves = sensitivity_of(question, known.domain, known.lattice.unit).l2_squared
    if moves == 0:
        return None
    variance = (error / target.error) ** 2 * target.variance
    sigma = None
    if variance < HELPFUL * target.variance:
        sigma = sigma_for(1 / (1 / target.variance - 1 / variance))
    sigma = sigma or exact_sigma(target)
    return GaussianQuery(question, sigma, float(moves / sigma**2))


def exact_sigma(target: Target) -> Fraction:
    """The most noise whose rounded draws keep the error: |round(Y)| ≤ t exactly when |Y| < t + 1/2."""
    most = int(target.error) + 0.5
    sigma = Fraction(most / target.error * target.variance**0.5).limit_denominator(2**20)
    for _ in range(MOST_ROUNDINGS):
        if gaussian_half_width(sigma, target.confidence, joint=target.joint) <= target.error:
            return sigma
        sigma *= Fraction(2**20 - 1, 2**20)
    raise AssertionError("the variance of a target and the interval of an answer have different quantiles")


def _lattice(family: Family, target: Target, known: Estimator) -> GaussianResiduals | None:
    aim = lattice_variance(family, target)
    if not aim or not can_buy(family):
        return None
    view = known.lattice.viewed(family.columns)
    kinds = kinds_of(family, known)
    price, precision = view.price.ravel(), view.precision.ravel()
    if len(kinds) == 1:
        wanted = fill_to_target(kinds[0], price, precision, aim, known.lattice.uses_of(family.columns).ravel())
    else:
        wanted = fill_to_targets(kinds, price, precision, [aim] * len(kinds))
    return lattice_step(known, family.columns, wanted.reshape(view.price.shape))


def fill_to_target(energies: Numbers, price: Numbers, precision: Numbers, target: float, uses: Numbers) -> Numbers:
    """The precisions at which Σ energy/precision meets the target variance, at a small price.

    p' = max(p, k √((1 + uses) a/c)) with the one k that meets the target: for uses 0 this is the cheapest way (water
    filling: the square root of energy over price). Residuals that many questions have paid for are raised further than
    this question needs; that costs a little more now, and saves far more on the questions to come.

    where a is `energies`, c is `price`, p is `precision`.

    >>> fill_to_target(np.array([1.0, 4.0]), np.ones(2), np.zeros(2), 1.0, np.zeros(2))
    array([3., 6.])
    """
    raised = (energies > 0) & (precision < np.inf)
    shares = np.sqrt((1 + uses) * energies / np.where(price > 0, price, np.inf))
    # The variance that a raised residual leaves at k = 1.
    left = np.divide(energies, shares, out=np.zeros_like(energies), where=shares > 0)
    result = precision.copy()
    while raised.any():
        with np.errstate(divide="ignore", invalid="ignore"):
            fixed = float(np.sum(np.where(raised | (energies == 0), 0.0, energies / precision)))
        factor = float(left[raised].sum()) / (target - fixed)
        wanted = factor * shares
        enough = raised & (wanted <= precision)
        if not enough.any():
            result[raised] = wanted[raised]
            return result
        raised &= ~enough
    return result


def can_buy(family: Family) -> bool:
    """Whether all residuals of a family can be measured at once."""
    pieces, numbers = prod(axis.parts for axis in family.axes), numbers_in(family.axes)
    return pieces <= MOST_BOUGHT and numbers <= max(MOST_DRAWN, 4 * family.size)


def lattice_variance(family: Family, target: Target) -> float:
    """The variance that the lattice must reach; 0 if it cannot. The interval of the total is wider by a half."""
    if family.columns:
        return target.variance
    return replace(target, error=target.error - 0.5).variance if target.error > 1 else 0.0


def kinds_of(family: Family, known: Estimator) -> Numbers:
    """The energies of the residuals (columns) of each kind of cell of a GROUP BY (rows): mostly there is one kind.

    If there are many kinds, one that is at least as demanding in every residual represents all.
    """
    if family.products > 1:
        energies = energies_of(family).reshape(family.size, -1)
        return _few(significant(energies))
    rows = np.full((1, 1), family.coefficients[0] ** 2)
    for reading in family.readings:
        each = _few(reading.kinds)
        rows = (rows[:, None, :, None] * each[None, :, None, :]).reshape(len(rows) * len(each), -1)
        rows = _few(rows)
    return significant(rows)


def _few(rows: Numbers) -> Numbers:
    """The different rows, but for rounding, or their largest entries if there are many."""
    if len(rows) == 1:
        return rows
    digits = 9 - int(np.ceil(np.log10(float(rows.max(initial=0.0)) or 1.0)))
    _, first = np.unique(np.round(rows, digits), axis=0, return_index=True)
    return rows[first] if len(first) <= MOST_KINDS else rows.max(axis=0, keepdims=True)


def significant(energies: Numbers) -> Numbers:
    """The energies, with 0 for those that are rounding error alone."""
    return np.where(energies > TINY * energies.sum(axis=-1, keepdims=True), energies, 0.0)


def lattice_step(known: Estimator, columns: Columns, precisions: Numbers) -> GaussianResiduals | None:
    """The measurement that raises the residuals of some columns to these precisions; None if its noise is too small."""
    view = known.lattice.viewed(columns)
    pieces = []
    with np.errstate(invalid="ignore"):
        missing = np.where(precisions > view.precision, precisions - view.precision, 0.0)
    for place in zip(*np.nonzero(missing), strict=True) if columns else ([()] if missing > 0 else []):
        residual = Residual(tuple((name, int(part)) for name, part in zip(columns, place, strict=True) if part))
        sigma = sigma_for(1 / float(missing[place]), float(np.prod(_gains(known, residual))))
        if sigma is None:
            return None
        pieces.append((residual, sigma))
    if not pieces:
        return None
    measurement = Measurement(tuple(pieces))
    price = sensitivity_of(measurement, known.domain, known.lattice.unit).l2_squared
    return GaussianResiduals(measurement, float(price))


def _gains(known: Estimator, residual: Residual) -> list[int]:
    axes = axes_of(known.domain, residual.columns)
    return [axis.gain(part) for axis, (_, part) in zip(axes, residual.parts, strict=True)]


def gaussian_steps(
    asked: Sequence[tuple[Question, Target]], known: Estimator, *, ahead: bool
) -> tuple[GaussianStep, ...]:
    """The cheapest way to answer some questions together: those that want the lattice share it."""
    needed = []
    for question, target in asked:
        step = step_for(question, target, known, ahead=ahead)
        if step is not None:
            needed.append((question, target, step))
    if len(needed) <= 1:
        return tuple(step for _, _, step in needed)
    return min(_ways(needed, known), key=lambda steps: sum(step.price for step in steps))


def _ways(
    needed: Sequence[tuple[Question, Target, GaussianStep]], known: Estimator
) -> Iterator[tuple[GaussianStep, ...]]:
    """Ways to answer a batch: the lattice for all, for none, for those that want it, and where it is cheaper."""
    wanting = [isinstance(step, GaussianResiduals) for _, _, step in needed]
    able = [_on_lattice(question, target, known) for question, target, _ in needed]
    totals: dict[Columns, float] = {}
    alone = [direct_step(question, target, known) for question, target, _ in needed]
    for (question, _, _), step in zip(needed, alone, strict=True):
        totals[question.scope] = totals.get(question.scope, 0.0) + (inf if step is None else step.price)
    cheaper = [
        can and (each is None or step.price <= totals[question.scope])
        for can, each, (question, _, step) in zip(able, alone, needed, strict=True)
    ]
    for choice in {tuple(able), tuple(wanting), tuple(cheaper), (False,) * len(needed)}:
        shared = [(question, target) for (question, target, _), chosen in zip(needed, choice, strict=True) if chosen]
        rest = [step for step, chosen in zip(alone, choice, strict=True) if not chosen]
        together = _together(shared, known) if shared else []
        if together is not None and all(step is not None for step in rest):
            yield (*together, *(step for step in rest if step is not None))
    yield tuple(step for _, _, step in needed)


def _on_lattice(question: Question, target: Target, known: Estimator) -> bool:
    family = known.family(question)
    return family is not None and can_buy(family) and lattice_variance(family, target) > 0


def _together(shared: Sequence[tuple[Question, Target]], known: Estimator) -> list[GaussianResiduals] | None:
    """The measurements that serve several questions, each residual once; None if there are too many residuals."""
    families = [known.family(question) for question, _ in shared]
    places: dict[tuple[Columns, tuple[int, ...]], int] = {}
    # Of each residual, in the order of their places: what a unit of precision costs, and how much there is.
    market: list[tuple[float, float]] = []
    rows: list[tuple[list[int], Numbers]] = []
    aims: list[float] = []
    for family, (_, target) in zip(families, shared, strict=True):
        assert family is not None, "only what the lattice can answer is planned for it"
        for kind in kinds_of(family, known):
            rows.append(_energies(family, kind, known, places, market))
            aims.append(lattice_variance(family, target))
    if len(rows) > 1 and not all(len(indices) for indices, _ in rows):
        kept = [row for row, (indices, _) in enumerate(rows) if len(indices)]
        rows, aims = [rows[row] for row in kept], [aims[row] for row in kept]
    if not rows:
        return []
    lengths = [len(indices) for indices, _ in rows]
    energies = Sparse(
        np.concatenate([each for _, each in rows]),
        np.concatenate([np.array(indices, dtype=np.int64) for indices, _ in rows]),
        np.cumsum([0, *lengths[:-1]]),
    )
    price, precision = np.array(market).reshape(-1, 2).T
    wanted = fill_to_targets(energies, price, precision, aims)
    return _measurements(known, families, dict(zip(places, wanted.tolist(), strict=True)))


def _energies(
    family: Family,
    kind: Numbers,
    known: Estimator,
    places: dict[tuple[Columns, tuple[int, ...]], int],
    market: list[tuple[float, float]],
) -> tuple[list[int], Numbers]:
    """The energies of a kind of cell, and where its residuals are among all."""
    energies = kind.reshape(tuple(axis.parts for axis in family.axes))
    view = known.lattice.viewed(family.columns)
    indices, values = [], []
    for place in np.argwhere(energies > 0).tolist():
        columns = tuple(name for name, part in zip(family.columns, place, strict=True) if part)
        parts = tuple(part - 1 for part in place if part)
        if view.precision[tuple(place)] < inf:
            if (columns, parts) not in places:
                places[columns, parts] = len(places)
                market.append((float(view.price[tuple(place)]), float(view.precision[tuple(place)])))
            indices.append(places[columns, parts])
            values.append(float(energies[tuple(place)]))
    return indices, np.array(values)


def _measurements(
    known: Estimator, families: Sequence[Family | None], wanted: dict[tuple[Columns, tuple[int, ...]], float]
) -> list[GaussianResiduals] | None:
    """One measurement for each set of columns, the largest first; a residual goes to the first that has it."""
    left: dict[Columns, dict[tuple[int, ...], float]] = {}
    for (columns, parts), precision in wanted.items():
        left.setdefault(columns, {})[parts] = precision
    found: list[GaussianResiduals] = []
    scopes = sorted({family.columns for family in families if family is not None}, key=lambda each: (-len(each), each))
    for scope in scopes:
        view = known.lattice.viewed(scope)
        precisions = view.precision.copy()
        for columns in among(left, scope):
            for parts, precision in left.pop(columns).items():
                by_name = dict(zip(columns, parts, strict=True))
                precisions[tuple(by_name[name] + 1 if name in by_name else 0 for name in scope)] = precision
        if np.any(precisions > view.precision):
            step = lattice_step(known, scope, precisions)
            if step is None:
                return None
            found.append(step)
    return found

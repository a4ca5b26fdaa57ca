"""The lectures' settings of private multiplicative weights, with every constant written out. Proofs: pmw.md

They are here to be reproduced: the calibrated setting promises the same for a fraction of the error. All count in
fractions of a public number of rows, start a new threshold after every update, use one scale of noise everywhere, and
set aside as many updates as the potential argument can need, so that a session never stops early.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, exp, floor, log, log1p

from discreet.accounting.calibrate import largest_epsilon
from discreet.accounting.event import AboveThreshold, Repeat
from discreet.errors import BadParameter
from discreet.lab.textbook.multiplicative_weights import Rule
from discreet.lab.textbook.pmw_design import Design, Setting, Terms

# Of a run's epsilon: to the threshold, to the comparison (whose noise counts twice) and to the value. All noise is then
# of the scale 4·moves/epsilon.
_FIRST = _THIRD = Fraction(1, 4)
# The theorems need many updates.
MOST_LECTURE_UPDATES = 10**7


@dataclass(frozen=True, slots=True)
class LectureSetting:
    """A threshold and a rate, as fractions of the rows; the most updates they can need; the most noise they allow.

    `rate` is a of the rule 1 − a·m ("linear") and η of exp(±η q) ("exponential"). If no draw of noise exceeds `bears`,
    every answer is within threshold + 2·bears, and no more than `updates` updates happen.
    """

    rule: Rule
    threshold: float
    rate: float
    updates: int
    bears: float


def textbook(setting: Setting, terms: Terms, *, cells: int, rows: int) -> Design:
    """The design of one of the lectures' theorems for a domain of `cells` cells and a table of `rows` rows."""
    if setting == "cube":
        return _cube(terms, cells, rows)
    plan_at = _bun if setting == "bun" else _root
    low, high = 0.0, 0.98
    if not _bearable(plan_at(high, cells), terms, rows):
        raise _hopeless(setting, terms, rows)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if _bearable(plan_at(middle, cells), terms, rows) else (middle, high)
    plan = plan_at(high, cells)
    return _design(setting, plan, terms, rows, _epsilon(plan.updates, terms))


def _bun(alpha: float, cells: int) -> LectureSetting:
    """000, Algorithm 2: threshold α, factors 1 − α m, noise at most α/8.

    An update then has a gap of at least 3α/4 and lowers the potential by L·3α/4 − L²/8, L = −ln(1 − α).
    """
    step = -log1p(-alpha)
    return LectureSetting("linear", alpha, alpha, _updates(cells, step * 0.75 * alpha - step**2 / 8), alpha / 8)


def _root(tau: float, cells: int) -> LectureSetting:
    """003, Theorem 9: threshold τ = 4η, factors exp(±η q), noise at most τ/4.

    An update then has a gap of at least τ/2 = 2η and lowers the potential by 2η² − η²/8.
    """
    rate = tau / 4
    return LectureSetting("exponential", tau, rate, _updates(cells, 15 / 8 * rate**2), tau / 4)


def _cube(terms: Terms, cells: int, rows: int) -> Design:
    """003, Theorem 8: η = (ln N/n)^⅓ whatever the budget, and a threshold as high as the noise then asks for."""
    rate = (log(cells) / rows) ** (1 / 3)
    updates = _updates(cells, 15 / 8 * rate**2)
    epsilon = _epsilon(updates, terms)
    noise = _largest_noise(epsilon, updates, terms) / rows if epsilon else 1.0
    tau = max(4 * rate, 4 * noise)
    if epsilon is None or tau >= 1:
        raise _hopeless("cube", terms, rows)
    return _design("cube", LectureSetting("exponential", tau, rate, updates, tau / 4), terms, rows, epsilon)


def _updates(cells: int, fall: float) -> int:
    """The most updates that can be needed; beyond all bounds where one may lower nothing."""
    return max(1, floor(log(cells) / fall)) if fall > log(cells) / 1e12 else 10**12


def _bearable(plan: LectureSetting, terms: Terms, rows: int) -> bool:
    if plan.updates > MOST_LECTURE_UPDATES:
        return False
    epsilon = _epsilon(plan.updates, terms)
    return epsilon is not None and _largest_noise(epsilon, plan.updates, terms) <= plan.bears * rows


def _epsilon(updates: int, terms: Terms) -> Fraction | None:
    """The largest epsilon of a run with which all runs cost no more than the price."""
    if updates > MOST_LECTURE_UPDATES:
        return None
    try:
        return largest_epsilon(lambda each: terms.fits(Repeat(AboveThreshold(each), updates)), terms.gate.epsilon)
    except BadParameter:
        return None


def _largest_noise(epsilon: Fraction, updates: int, terms: Terms) -> int:
    """A bound of all draws, up to the failure: threshold and value of each update, both sides of each question."""
    scale = float(4 * terms.moves / epsilon)
    draws = 2 * updates + 2 * terms.queries
    # Pr[|X| > t] = 2 a^(t+1)/(1 + a), a = e^(−1/scale).
    return max(0, ceil(scale * (log(2 * draws / terms.failure) - log1p(exp(-1 / scale))) * (1 + 1e-12)) - 1)


def _design(setting: Setting, plan: LectureSetting, terms: Terms, rows: int, epsilon: Fraction | None) -> Design:
    assert epsilon is not None, "the plan was found to fit"
    noise = _largest_noise(epsilon, plan.updates, terms)
    # A row more, because the model's answers are rounded to whole rows: a gap is never smaller than assumed.
    threshold = ceil(plan.threshold * rows) + 1
    if threshold + 2 * noise >= rows:
        raise _hopeless(setting, terms, rows)
    return Design(
        setting,
        plan.updates,
        1,
        epsilon,
        epsilon * _FIRST,
        epsilon * _THIRD,
        threshold,
        threshold + 2 * noise,
        noise,
        terms.moves,
        tells_rows=False,
        rule=plan.rule,
        rate=plan.rate,
    )


def _hopeless(setting: Setting, terms: Terms, rows: int) -> BadParameter:
    return BadParameter(
        f'setting "{setting}" promises nothing for {rows} rows, {terms.queries} questions and epsilon '
        f'{float(terms.gate.epsilon):g}: its error would be all rows. Use setting="calibrated", or a larger epsilon.'
    )

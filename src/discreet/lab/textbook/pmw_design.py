"""How a session of private multiplicative weights is set up: thresholds, noise and price, before anything is paid."""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import log, sqrt
from typing import Literal

from discreet.accounting.calibrate import largest_epsilon, round_down
from discreet.accounting.event import AboveThreshold, Compose, Event, Laplace, Repeat
from discreet.accounting.filter import Gate, charge_of, gate_for
from discreet.accounting.sensitivity import Sensitivity
from discreet.cache import memoize
from discreet.errors import BadParameter
from discreet.lab.textbook.multiplicative_weights import Rule
from discreet.mechanism.laplace import laplace_half_width
from discreet.mechanism.protocol import Interactive
from discreet.mechanism.sparse_vector import Run, StreamAnswer, sparse_vector
from discreet.mechanism.sparse_vector_error import alarm_chance, least_whole, pass_chance

Setting = Literal["calibrated", "bun", "cube", "root"]

# A larger number of updates in a session is taken for a mistake.
MOST_UPDATES = 10**5


@dataclass(frozen=True, slots=True)
class Terms:
    """The price of a session, in the currency of a ledger, its number of questions, and its confidence."""

    gate: Gate
    queries: int
    failure: float
    moves: int
    tells_rows: bool

    def fits(self, event: Event) -> bool:
        """Whether an event costs no more than the price."""
        return self.gate.fits(self.gate.nothing, charge_of(self.gate.kind, event))


@dataclass(frozen=True, slots=True)
class Design:
    """`runs` sparse vectors of `hits` each, one after the other; all are paid when the session opens.

    Each costs `epsilon`: `first` for its threshold, `third` for the values of its hits, the rest for comparisons.
    `error` is that of an answer by the model and `value_error` that of a measured one, all of them together with the
    confidence.
    """

    setting: Setting
    runs: int
    hits: int
    epsilon: Fraction
    first: Fraction
    third: Fraction
    threshold: int
    error: int
    value_error: int
    moves: int
    tells_rows: bool
    rule: Rule = "projection"
    rate: float = 0.0

    @property
    def updates(self) -> int:
        """The number of times that the model may be found wrong."""
        return self.runs * self.hits

    @property
    def value_scale(self) -> Fraction:
        """The scale of the noise of a measured value, and of the number of rows where that is private."""
        return self.hits * self.moves / self.third

    @property
    def event(self) -> Event:
        """The event of the whole session, for any number of questions."""
        return session_event(self.runs, self.epsilon, self.value_scale if self.tells_rows else None, self.moves)

    def mechanism(self) -> Interactive[Run, StreamAnswer]:
        """One of its sparse vectors. A model may be too low or too high, so values move apart: no direction."""
        moves = Fraction(self.moves)
        return sparse_vector(
            epsilon=self.epsilon,
            epsilon_threshold=self.first,
            epsilon_values=self.third,
            sensitivity=Sensitivity(l1=moves, l2_squared=moves**2, linf=moves),
            threshold=self.threshold,
            hits=self.hits,
        )


def session_event(runs: int, epsilon: Fraction, rows_scale: Fraction | None, moves: int) -> Event:
    """The event of all runs, and of the number of rows where it is private."""
    whole: Event = AboveThreshold(epsilon) if runs == 1 else Repeat(AboveThreshold(epsilon), runs)
    return whole if rows_scale is None else Compose((Laplace(rows_scale, Fraction(moves)), whole))


def calibrated(terms: Terms, *, updates: int, error: int | None = None) -> Design:
    """The design with the least error for a number of updates, or, if an `error` is given, the highest threshold.

    It guarantees, each with the confidence: all answers are within the error; and no update is used for a question that
    the model answers as precisely as a measurement. Proofs: pmw.md
    """
    shapes = [(1, updates)] if terms.gate.kind == "pure" or updates == 1 else [(1, updates), (updates, 1)]
    found = min((_least(terms, runs, hits) for runs, hits in shapes), key=lambda design: design.error)
    if error is None or error < found.error:
        return found
    return _placed(found, terms, error)


def _least(terms: Terms, runs: int, hits: int) -> Design:
    first, third = _shares(runs, hits, terms)
    epsilon = _epsilon(terms, runs, hits, third)
    design = Design(
        "calibrated", runs, hits, epsilon, epsilon * first, epsilon * third, 0, 0, 0, terms.moves, terms.tells_rows
    )
    scales = comparison_scales(design)
    off = int(laplace_half_width(design.value_scale, Fraction(1 - terms.failure / 2), joint=runs * hits))
    alarm = partial(alarm_chance, scales=scales, queries=terms.queries, runs=runs, off=off)
    threshold = least_whole(lambda level: alarm(threshold=level) <= terms.failure / 2)
    passing = partial(pass_chance, scales=scales, queries=terms.queries, runs=runs, threshold=threshold)
    error = least_whole(lambda bar: passing(error=bar) <= terms.failure / 2, least=max(off, threshold))
    return replace(design, threshold=threshold, error=error, value_error=off)


def _placed(design: Design, terms: Terms, error: int) -> Design:
    """The same noise with room to spare: the highest threshold at which the error is still promised."""
    scales = comparison_scales(design)
    passing = partial(pass_chance, scales=scales, queries=terms.queries, runs=design.runs, error=error)
    lower = least_whole(lambda down: passing(threshold=error - down) <= terms.failure / 2)
    return replace(design, threshold=error - lower, error=error)


def comparison_scales(design: Design) -> tuple[float, float]:
    """The scales of the noise of the threshold and of a comparison."""
    second = design.epsilon - design.first - design.third
    return float(design.moves / design.first), float(2 * design.hits * design.moves / second)


def _shares(runs: int, hits: int, terms: Terms) -> tuple[Fraction, Fraction]:
    """The shares of a run's epsilon that nearly minimise the error 2 A + 2 B + V, each a scale times a logarithm.

    Every division is private, so it may be rounded.
    """
    failure = terms.failure
    parts = [
        sqrt(2 * log(2 * runs / failure)),
        sqrt(4 * hits * log(4 * terms.queries / failure)),
        sqrt(hits * log(2 * runs * hits / failure)),
    ]
    whole = sum(parts)
    return Fraction(parts[0] / whole).limit_denominator(1000), Fraction(parts[2] / whole).limit_denominator(1000)


def _epsilon(terms: Terms, runs: int, hits: int, third: Fraction) -> Fraction:
    """The largest epsilon of a run, to five digits, with which all runs cost no more than the price."""

    def fits(epsilon: Fraction) -> bool:
        scale = hits * terms.moves / (third * epsilon) if terms.tells_rows else None
        return terms.fits(session_event(runs, epsilon, scale, terms.moves))

    return largest_epsilon(fits, terms.gate.epsilon)


@memoize(256)
def solved(gate: Gate, terms: Terms, *, error: int | None, updates: int | None, epsilon: Fraction | None) -> Design:
    """The design for two of three: the price (epsilon), the error, the number of updates; or for all, if they agree."""
    if epsilon is None:
        assert error is not None
        assert updates is not None
        return _cheapest(gate, terms, error, updates)
    if updates is None:
        assert error is not None
        return _longest(terms, error)
    found = calibrated(terms, updates=updates, error=error)
    if error is not None and found.error > error:
        raise BadParameter(
            f"error is {error}; with epsilon {float(epsilon):g}, {updates} updates and {terms.queries} questions the "
            f"least that can be promised is {found.error}. Give that, fewer updates, or a larger epsilon."
        )
    return found


def _longest(terms: Terms, error: int) -> Design:
    """As many updates as the price allows at this error."""
    one = calibrated(terms, updates=1)
    if one.error > error:
        raise BadParameter(
            f"error is {error}; with epsilon {float(terms.gate.epsilon):g} and {terms.queries} questions the least "
            f"that can be promised, with a single update, is {one.error}. Give a larger error or a larger epsilon."
        )
    low, high = 1, 2
    while high <= MOST_UPDATES and calibrated(terms, updates=high).error <= error:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if calibrated(terms, updates=middle).error <= error else (low, middle)
    return calibrated(terms, updates=low, error=error)


def _cheapest(gate: Gate, terms: Terms, error: int, updates: int) -> Design:
    """The smallest epsilon, to three digits, at which this error and number of updates can be promised."""
    low, high = Fraction(0), gate.epsilon

    def at(epsilon: Fraction) -> Design:
        return calibrated(replace(terms, gate=gate_for(gate, epsilon)), updates=updates, error=error)

    if (best := at(high)).error > error:
        raise BadParameter(
            f"error is {error}; with {updates} updates and {terms.queries} questions even the whole budget, epsilon "
            f"{float(high):g}, can promise {best.error} only. Give a larger error, or fewer updates."
        )
    for _ in range(40):
        middle = round_down((low + high) / 2 if low else high / 4, 3)
        if middle in (low, high) or middle == 0:
            break
        found = at(middle)
        if found.error <= error:
            high, best = middle, found
        else:
            low = middle
    return best

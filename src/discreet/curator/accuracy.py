"""How accurate an answer must be, or what it may cost, and what that asks of each part of a question.

A mean is a ratio of two noisy numbers: its confidence interval follows from those of its sum and its count, and a
wanted error of the mean is turned into wanted errors of both.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import exp, inf, log

import numpy as np

from discreet.accounting.event import Event, Gaussian
from discreet.accounting.filter import TICK, Gate
from discreet.accounting.gaussian_dp import epsilon_of
from discreet.answer import error_text, means_of
from discreet.curator.executor import Executor
from discreet.curator.question import Accuracy, ParsedQuestion, Part
from discreet.errors import BadParameter, BudgetExceeded
from discreet.estimate.estimator import Estimator, normal_quantile
from discreet.estimate.measurements import Intervals, Question
from discreet.numeric import positive
from discreet.plan.plan import Steps, plan_steps
from discreet.plan.steps import MOST_NOISE, Target, mean_targets
from discreet.query.linear import Linear, Marginal
from discreet.source.query_sensitivity import sensitivity_of


def intervals_of(part: Part, known: Estimator, confidence: float, joint: int) -> Intervals:
    """The answer to a part, as good as it is known: infinite errors where it is not."""
    if part.values is None:
        return known.intervals(part.total, confidence, joint)
    return _mean_intervals(part, part.values, known, confidence, joint)


def all_intervals(parts: Sequence[Part], known: Estimator, confidence: float, joint: int) -> list[Intervals]:
    """The same of several parts. What is asked under two names is computed once."""
    if len(parts) == 1:
        return [intervals_of(parts[0], known, confidence, joint)]
    different = {replace(part, name=""): part for part in parts}
    found = {key: intervals_of(part, known, confidence, joint) for key, part in different.items()}
    return [found[replace(part, name="")] for part in parts]


def _mean_intervals(part: Part, counted: Question, known: Estimator, confidence: float, joint: int) -> Intervals:
    """A mean from the joint distribution of its sum and count, or from the interval of each: the narrower one."""
    if not known.jointly_gaussian:
        return _separate(part, counted, known, confidence, joint)
    fieller = _joint_mean_intervals(part, counted, known, confidence, joint)
    if part.total not in known.direct_answers and counted not in known.direct_answers:
        return fieller
    apart = _separate(part, counted, known, confidence, joint)
    return apart if float(apart.errors.max()) < float(fieller.errors.max()) else fieller


def _separate(part: Part, counted: Question, known: Estimator, confidence: float, joint: int) -> Intervals:
    both = 1 - (1 - confidence) / 2
    totals, values = (known.intervals(each, both, joint) for each in (part.total, counted))
    return separate_mean_intervals(part, totals, values)


def separate_mean_intervals(part: Part, totals: Intervals, values: Intervals) -> Intervals:
    """A mean from a total and a number of values, each with its own interval; both intervals hold together."""
    ends = part.ends[0] - part.centre, part.ends[1] - part.centre
    means, errors = means_of(np.stack([totals.values, totals.errors, values.values, values.errors]), *ends)
    return Intervals(part.centre + means, np.where(np.isinf(totals.errors), inf, errors))


def _joint_mean_intervals(part: Part, counted: Question, known: Estimator, confidence: float, joint: int) -> Intervals:
    """All means that the total and the number of values allow together, by Fieller's theorem.

    The true mean R has total − R · values = 0, and the error of that is Gaussian for each R; so R is within the bar if
    (total − R · values)² ≤ z² · variance(total − R · values).
    """
    total, count = known.estimate(part.total), known.estimate(counted)
    sum_variances = known.estimate(_sum(part.total, counted)).variances
    total, kept_total = known.with_direct(part.total)
    count, kept_count = known.with_direct(counted)
    totals, total_variances = total.values, total.variances
    values, value_variances = count.values, count.variances
    with np.errstate(invalid="ignore"):
        before = known.estimate(part.total).variances + known.estimate(counted).variances
        # Direct measurements have noise of their own, so only what both take from the lattice is shared.
        shared = np.where(kept_total * kept_count > 0, kept_total * kept_count * (sum_variances - before) / 2, 0.0)
    z = normal_quantile(confidence, joint)
    low, high = part.ends[0] - part.centre, part.ends[1] - part.centre
    means, errors = np.full(totals.shape, np.nan), np.full(totals.shape, high - low)
    with np.errstate(invalid="ignore", divide="ignore"):
        # (N² − z² v_N) R² − 2 (S N − z² c) R + (S² − z² v_S) ≤ 0.
        a = values**2 - z**2 * value_variances
        b = totals * values - z**2 * shared
        c = totals**2 - z**2 * total_variances
        centre = totals / values
        root = np.sqrt(np.maximum(b**2 - a * c, 0.0))
        lows, highs = (b - root) / a, (b + root) / a
        bounded = (a > 0) & (values > 0) & np.isfinite(total_variances)
        inside = np.clip(centre, low, high)
        reach = np.maximum(np.clip(highs, low, high) - inside, inside - np.clip(lows, low, high))
        anywhere = np.maximum(high - inside, inside - low)
    some = values > 0
    means[some] = part.centre + inside[some]
    # Any mean at all is possible where the number of values may be zero.
    errors[some] = anywhere[some]
    # An interval that misses the range of the column altogether says only that something unlikely has happened.
    bounded &= (lows <= high) & (highs >= low)
    errors[bounded] = np.maximum(reach, 0.0)[bounded]
    unknown = ~np.isfinite(total_variances) | ~np.isfinite(value_variances)
    errors[unknown] = inf
    return Intervals(means, errors)


def _sum(total: Question, counted: Question) -> Question:
    if isinstance(total, Linear) and isinstance(counted, Linear):
        return total + counted
    match total, counted:
        case Marginal(columns, Linear() as added), Marginal(_, Linear() as present):
            return Marginal(columns, added + present)
    raise AssertionError("both parts of a mean have one form")


QuestionTargets = list[tuple[Question, Target]]

# To plan a mean, its rows are counted first. The first count costs the first share of the budget; further counts follow
# if need be, and none costs more than the second share: of squared mu, and of epsilon where delta is 0. Each count is
# twice as accurate as the one before, so all together cost at most 4/3 of the last, or twice where delta is 0. A plan
# may buy up to twice what a count needs, for later questions.
_FIRST_COUNT, _LAST_COUNT = {"gaussian": 1e-4, "pure": 1e-3}, {"gaussian": 0.01, "pure": 0.015}
# A count is good enough to plan a mean with if three of its standard deviations are less than half of it.
_ROUGH = 3
# The most plans that are made to find what a price buys.
_GUESSES = 10


def targets_of(
    parsed: ParsedQuestion, accuracy: Accuracy, known: Estimator, gate: Gate | None = None
) -> QuestionTargets:
    """What each number of a question must reach."""
    joint = accuracy.joint_of(parsed, known.domain)
    if accuracy.epsilon is not None:
        assert gate is not None, "a price is in the currency of an account"
        return _for_price(parsed, accuracy, known, gate, joint)
    if accuracy.error is None:
        return []
    asked: QuestionTargets = []
    # The counts of rows that one question needs share one limit.
    counts = len({_whole(part.values) for part in parsed.parts if part.values is not None})
    for part in parsed.parts:
        if part.values is None:
            asked.append((part.total, Target(accuracy.error, accuracy.confidence, joint)))
        else:
            asked += _for_mean(part, part.values, accuracy, known, gate, joint, counts)
    return asked


def _for_mean(
    part: Part, counted: Question, accuracy: Accuracy, known: Estimator, gate: Gate | None, joint: int, counts: int
) -> QuestionTargets:
    """The next targets of a mean: first the number of its rows, then its sum and its count.

    In a GROUP BY the error is for groups of at least the average size; smaller groups have wider intervals.
    """
    assert accuracy.error is not None
    z = normal_quantile(accuracy.confidence, joint)

    def target(variance: float) -> Target:
        return Target(z * variance**0.5, accuracy.confidence, joint)

    whole, (rows, spread_of_rows) = _whole(counted), _rows(counted, known)
    if rows <= 2 * _ROUGH * spread_of_rows < 0.5:
        # There is surely no row: no mean exists, and a better count would not change that.
        return []
    if rows <= 2 * _ROUGH * spread_of_rows:
        if gate is None:
            return [(whole, target(spread_of_rows**2 / 4))]
        variance = min(_count_variance(_FIRST_COUNT, counts, whole, gate, known), spread_of_rows**2 / 4)
        if variance < _count_variance(_LAST_COUNT, counts, whole, gate, known):
            raise BudgetExceeded(few_rows(accuracy))
        return [(whole, target(variance))]
    rows = rows / (counted.size(known.domain) if isinstance(counted, Marginal) else 1)
    values, value_variances = known.estimate(counted).values, known.estimate(counted).variances
    total = known.estimate(part.total)
    large = values >= min(rows, float(values.max()))
    errors = intervals_of(part, known, accuracy.confidence, joint).errors[large]
    spread = _half_range(part)
    # A known total may say no more than the ends of the column's range: then it counts as unknown.
    vague = z**2 * float(known.with_direct(part.total)[0].variances.max()) >= (spread * rows) ** 2
    if vague or not np.isfinite(errors).all() or not np.isfinite(value_variances).all():
        aims = mean_targets(known, accuracy.error, rows, spread, accuracy.confidence, joint)
        return list(zip((part.total, counted), aims, strict=True))
    worst = float(errors.max())
    # Where each group has one value, its mean has no error at all.
    if worst <= accuracy.error:
        return []
    shrink = (accuracy.error / worst) ** 2 * 0.98
    return [
        (part.total, target(float(total.variances.max()) * shrink)),
        (counted, target(float(value_variances.max()) * shrink)),
    ]


def _whole(counted: Question) -> Question:
    """How many rows have a value, in all groups together."""
    return counted.weight if isinstance(counted, Marginal) and counted.weight is not None else counted


def _rows(counted: Question, known: Estimator) -> tuple[float, float]:
    """The estimate of that number, and its standard deviation."""
    bar = known.intervals(_whole(counted), 0.95)
    return float(bar.values[0]), float(bar.errors[0]) / normal_quantile(0.95)


def _count_variance(shares: Mapping[str, float], counts: int, whole: Question, gate: Gate, known: Estimator) -> float:
    """The variance of a count of rows, where all `counts` of them together cost this share of the whole budget."""
    moves = sensitivity_of(whole, known.domain, known.lattice.unit)
    room = shares[known.accounting] / counts * float(max(gate.limit) * TICK)
    return known.variance_for(moves, room)


def few_rows(accuracy: Accuracy) -> str:
    """Why a mean of few rows is refused."""
    return (
        f"a mean with error {error_text(accuracy.error or inf)} costs more than is left, or its rows are too few to "
        "be counted for the small share of the budget that this may cost. Ask with a larger error, or about more rows."
    )


def _half_range(part: Part) -> float:
    """The largest distance of a mean from the centre."""
    furthest = max(part.ends[1] - part.centre, part.centre - part.ends[0])
    return furthest if furthest < inf else 1.0


def next_steps(executor: Executor, analyst: str, asked: QuestionTargets, accuracy: Accuracy) -> Steps:
    """What to measure next. A plan for an error also prepares later questions; a plan for a price does not."""
    steps = plan_steps(asked, executor.known, ahead=accuracy.epsilon is None)
    if accuracy.epsilon is None and not executor.fits(steps.event(executor.table.domain, executor.table.unit), analyst):
        # At the end of a budget nothing is bought for later questions.
        return plan_steps(asked, executor.known, ahead=False)
    return steps


def surely_exceeds(executor: Executor, analyst: str, parsed: ParsedQuestion, accuracy: Accuracy) -> bool:
    """Whether a mean surely costs more than is left: asked before another count of its rows is paid for."""
    return not all(executor.fits(event, analyst) for event in least_events(parsed, accuracy, executor.known))


def least_events(parsed: ParsedQuestion, accuracy: Accuracy, known: Estimator) -> Iterator[Event]:
    """For each mean, a lower bound on its cost, from the largest number of rows that it can have: to refuse early."""
    if accuracy.error is None:
        return
    for part in parsed.parts:
        if part.values is None or parsed.group or not known.jointly_gaussian:
            continue
        rows, spread = _rows(part.values, known)
        moves = sensitivity_of(part.total, known.domain, known.lattice.unit).l2_squared
        variance = float(known.estimate(part.total).variances[0])
        sigma = accuracy.error * max(rows + _ROUGH * spread, 1.0) / normal_quantile(accuracy.confidence)
        if spread < inf and sigma**2 < variance / 2 and moves:
            # Half of the precision may be known already.
            yield Gaussian(Fraction(2 * sigma).limit_denominator(10**6) + 1, moves)


def _for_price(parsed: ParsedQuestion, accuracy: Accuracy, known: Estimator, gate: Gate, joint: int) -> QuestionTargets:
    """The smallest errors whose plan costs no more than the price."""
    questions = [question for part in parsed.parts for question in part.questions]
    moves = [float(sensitivity_of(each, known.domain, known.lattice.unit).l2_squared) ** 0.5 for each in questions]
    price = positive("epsilon", accuracy.epsilon)
    budget = float(known.units_for(price, gate.delta))
    z = normal_quantile(accuracy.confidence, joint)

    def asked(scale: float) -> QuestionTargets:
        pairs = zip(questions, moves, strict=True)
        return [(each, Target(z * scale * max(move, 1e-9), accuracy.confidence, joint)) for each, move in pairs]

    if budget < len(questions) * known.least_units:
        _require_enough(plan_steps(asked(MOST_NOISE), known, ahead=False).price, budget, price, gate)
    low = known.scale_for(budget) / 64
    high = low * 2**24
    below, above = _around(lambda scale: plan_steps(asked(scale), known, ahead=False).price, budget, low, high)
    for _ in range(40):
        middle = (low * high) ** 0.5
        # Less noise costs more, so only scales between the two need a plan.
        if middle >= above:
            affordable = True
        elif middle <= below:
            affordable = False
        else:
            affordable = plan_steps(asked(middle), known, ahead=False).price <= budget
        low, high = (low, middle) if affordable else (middle, high)
        if high / low < 1 + 1e-6:
            break
    return asked(high)


def _require_enough(least: float, budget: float, price: Fraction, gate: Gate) -> None:
    """Refuse a price for which there is no noise large enough."""
    if least <= budget:
        return
    enough = least if gate.delta == 0 else epsilon_of(mu=least**0.5, delta=gate.delta)
    raise BadParameter(
        f"epsilon is {float(price):g}; the noise for it would hide every answer. The least for this question is "
        f"{1.01 * enough:.3g}. Give that or more, or an error instead."
    )


def _around(price_of: Callable[[float], float], budget: float, low: float, high: float) -> tuple[float, float]:
    """Two close scales: the first costs more than the budget, and the second does not.

    Making a plan of many residuals takes long. A price is nearly a power of the scale, so a few guesses find what would
    take thirty bisections.
    """
    below, above, guess, power = low, high, (low * high) ** 0.5, 2.0
    last: tuple[float, float] | None = None
    for _ in range(_GUESSES):
        price = price_of(guess)
        below, above = (below, guess) if price <= budget else (guess, above)
        if above / below < 1 + 1e-7:
            break
        if price <= 0:
            last, guess = None, (below * above) ** 0.5
            continue
        if last is not None and guess != last[0] and price != last[1]:
            power = min(max(log(last[1] / price) / log(guess / last[0]), 0.5), 4.0)
        last = guess, price
        step = log(price / budget) / power
        # A step a little too long, so that the next guess lies on the other side.
        step += (0.02 * abs(step) + 2e-8) * (1 if price > budget else -1)
        guess = guess * exp(step)
        if not below < guess < above:
            guess = (below * above) ** 0.5
    return below, above

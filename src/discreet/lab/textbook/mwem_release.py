"""MWEM as a procedure: select the count on which a model of all cells is most wrong, measure it, update the model."""

from collections.abc import Sequence
from fractions import Fraction
from math import hypot

import numpy as np

from discreet.errors import TooLarge
from discreet.estimate.estimator import Estimator
from discreet.lab.textbook.mwem import SWEEPS, Batch, Learner, expected_rows
from discreet.lab.textbook.small_db import cells_of_goal, number_of_cells
from discreet.model.dense.dense_model import Dense
from discreet.model.interface import Model, noisy_marginals, total_of
from discreet.model.mixture.ensemble import Tell
from discreet.model.mixture.independent_model import product_of
from discreet.plan.plan import Choose, Measure, Procedure, Steps
from discreet.query.linear import Linear
from discreet.release.budget_allocation import measure_row_count, price_of_request
from discreet.release.error.interactions import INTERACTION, guessed, layers_of, sampled, unevenness
from discreet.release.forecast import FORECAST, impossible
from discreet.release.task import Brief, Forecast, Goal
from discreet.source.query_sensitivity import sensitivity_of

# The limits of the model's cells and of the counts that are compared in a round.
MOST_CELLS, MOST_COUNTS = 2**20, 20_000
# The number of rows, where it is not public, gets this part of the budget.
FIRST = Fraction(1, 50)
# A cell of a column starts with at least this part of an equal share.
LEAST = 0.01
# The number of rounds grows with the signal-to-noise ratio of rows, by this factor and power (the second where delta is
# 0, and the noise of a round grows with their number and not its root), within these limits.
FACTOR, FEWEST, MOST = 2.0, 5, 100
POWER = {"gaussian": 0.4, "pure": 0.32}
# Seconds to compare a count in a round, and to update a cell of the model (bench/release_calibrate.py).
SECONDS_A_COUNT, SECONDS_A_CELL = 1e-5, 1.2e-7


def too_many(goal: Goal, questions: int | None = None) -> str:
    """Why MWEM cannot run on a goal, or on this number of questions; empty if it can."""
    counts, domain = number_of_cells(goal) if questions is None else questions, goal.domain
    if domain.size > MOST_CELLS:
        return (
            f"the table has {domain.size} cells, and MWEM keeps a number for each; the limit is {MOST_CELLS}. "
            "Ask for fewer columns, or for another method."
        )
    if counts > MOST_COUNTS:
        return (
            f"there are {counts} counts, and MWEM compares all in every round; the limit is {MOST_COUNTS}. "
            "Ask for fewer marginals."
        )
    return ""


def number_of_rounds(known: Estimator, counts: int, rows: float, units: Fraction) -> int:
    """The number of rounds over which a budget is split, from public facts."""
    clear = max(rows, 1.0) * float(units) ** known.rate
    return int(np.clip(FACTOR * clear ** POWER[known.accounting], min(FEWEST, counts), min(MOST, counts)))


def rounds(brief: Brief, tell: Tell | None = None, *, questions: Sequence[Linear] | None = None) -> Procedure[Model]:
    """In each round select the count with the largest error of a model of all cells, measure it, and update the model.

    The counts are the cells of the goal's marginals, or the `questions`. Half of a round's budget is for selecting and
    half for measuring; the model is scaled to agree with the measurement, for all counts measured so far, several times
    in turn (`mwem.Learner`, "projected"). It starts as the product of the known single columns, and uniform in the
    others; counts that were measured before, at least as precisely as in a round, are learnt at once, for free. Other
    known marginals are not used. Where delta is 0 a measured count is not measured again, and its share goes to later
    rounds.

    Limits: the table itself must be small (`too_many`: a number for each of its cells); every round measures one count,
    so it learns about a hundred numbers, and the time of updates grows with the square of that. It is for a few columns
    and counts that are hard to predict.

    [HLM12]; proofs: mechanism/surprise.md, mechanism/gaussian.md, mechanism/laplace.md
    """
    known, goal = brief.known, brief.goal
    refused = too_many(goal, None if questions is None else len(questions))
    if refused:
        raise TooLarge(refused)
    # One object for all rounds: the executor reads the counts once for it.
    asked = cells_of_goal(goal) if questions is None else tuple(questions)
    # A count that no person can move follows from the number of rows.
    counts = tuple(each for each in asked if sensitivity_of(each, known.domain, known.lattice.unit).l1 > 0)
    left = brief.units
    left -= yield from measure_row_count(known, left * FIRST)
    rows, _ = total_of(known.lattice)
    number = number_of_rounds(known, len(counts), rows, left)
    learner = Learner(initial_model(known, rows), counts, "projected")
    if not counts:
        return learner.result()
    batch = Batch(counts, goal.domain)
    _learn_known(learner, known, counts, left / (2 * number))
    for turn in range(number):
        share = left / (number - turn)
        choose = Choose(
            counts,
            tuple(expected_rows(learner.model, batch).tolist()),
            known.selection_for(share / 2),
            "where a model is most wrong, for a release",
        )
        place = yield choose
        cost = price_of_request(known, choose)
        question = counts[place]
        last = turn == number - 1
        if last or known.averages_direct or question not in known.direct_answers:
            measure = Measure(
                Steps((known.query_step(question, share - cost),)), "where a model was wrong, for a release"
            )
            yield measure
            cost += price_of_request(known, measure)
        left -= cost
        learner.learn(place, round(float(known.direct_answers[question].values[0])))
        if tell is not None:
            tell((turn + 1) / number)
    return learner.result()


def mwem_forecast(brief: Brief, rows: float) -> Forecast:
    """The forecast of "mwem": a model of all cells, updated count by count."""
    goal, many = brief.goal, max(rows, 1.0)
    counts = number_of_cells(goal)
    refused = too_many(goal)
    if refused:
        return impossible("mwem", refused)
    number = number_of_rounds(brief.known, counts, many, brief.units)
    layers = layers_of(goal)
    singles = float(layers.freedom[layers.depth == 1].sum())
    # Half of a round's share measures one count. As many counts as single columns have cells determine most of them.
    share = float(brief.units) / (2 * number)
    deviation = brief.known.deviation_for(share)
    left, noise, whole, supposed = 0.0, 0.0, 0.0, guessed(goal.domain)
    for scope, weight in sampled(goal):
        left += weight * unevenness(supposed.spread(scope))
        noise += weight * INTERACTION.error_per_deviation * goal.cells(scope) ** 0.5 * deviation / many
        whole += weight
    error = hypot(left / (1 + number / singles) ** 2, noise) / whole
    mending = SWEEPS * number * SECONDS_A_CELL * goal.domain.size / 2
    seconds = FORECAST.base_seconds + number * (SECONDS_A_COUNT * counts + mending)
    return Forecast(
        "mwem",
        min(error, INTERACTION.largest_error),
        seconds,
        FORECAST.base_memory + 40.0 * goal.domain.size + 4000.0 * counts,
    )


def initial_model(known: Estimator, rows: float) -> Dense:
    """The product of the single columns, as far as they are known."""
    singles = [(name,) for name in known.domain]
    alone = product_of(known.domain, noisy_marginals(known.lattice, singles), total=max(rows, 1.0))
    weights = np.ones(())
    for name in known.domain:
        # A cell of weight 0 could never grow.
        shares = alone.marginal([name]) / alone.total
        weights = np.multiply.outer(weights, (1 - LEAST) * shares + LEAST / len(shares))
    return Dense(known.domain, total=max(rows, 1.0), weights=weights)


def _learn_known(learner: Learner, known: Estimator, counts: Sequence[Linear], units: Fraction) -> None:
    """Learn counts that were measured before, at least as precisely as `units` would measure them."""
    for place, question in enumerate(counts):
        answer = known.direct_answers.get(question)
        if answer is not None and answer.variance <= known.query_step(question, units).variance:
            learner.learn(place, round(float(answer.values[0])))

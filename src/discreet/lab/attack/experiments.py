"""Experiments: each attack on exact answers, on rounded ones, and on private ones, about the same people."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import exp
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from discreet.curator import Curator
from discreet.errors import BadParameter, BudgetExceeded
from discreet.lab.attack.attack_outcome import Kind, Learnt, Outcome, Roc
from discreet.lab.attack.differencing import difference, point
from discreet.lab.attack.limit import best_guess, largest_area, luckiest_area, luckiest_share, secret_budget
from discreet.lab.attack.people import COIN, People, rows_of, weights
from discreet.lab.attack.posterior import alike_prior, belief, fair_prior, released, without_noise
from discreet.lab.attack.random_questions import cell_mask, random_questions
from discreet.lab.attack.reconstruction import Method, guess_from_cells, reconstruct, share_right
from discreet.lab.attack.target import Answering, answering, rounded
from discreet.lab.attack.tracing import trace
from discreet.lab.random import shuffled
from discreet.ledger import Budget
from discreet.meaning import explain
from discreet.mechanism import gaussian, laplace
from discreet.numeric import Number, whole
from discreet.query.linear import Linear, Marginal
from discreet.schema.domain import Domain
from discreet.schema.schema import Schema
from discreet.schema.unit import Unit
from discreet.source.frame import Frame
from discreet.source.table import Table
from discreet.types import Numbers

Tell = Callable[[float], None]
CONFIDENCE = 0.999
ROUNDINGS = (5, 10)
# The number of questions that an attacker pays for; with more of them, each answer would be noisier.
PAID = 24
# The number of rows that represent the population.
POPULATION = 2000


def attack_by_differencing(
    people: People, *, epsilon: Number = 1, trials: int = 100, desk: Any = None, tell: Tell | None = None
) -> Outcome:
    """Two counts that differ by one person, for one person after the other; each has a curator and a budget.

    A `desk` is attacked instead of new curators if one is given; it has one budget for all of them.
    """
    number = min(whole("trials", trials, least=1), len(people))
    loss, spill = _promise(desk, epsilon)
    exact = [_right(difference(people.exact, people, i).gap, people, i) for i in range(len(people))]
    coarse = rounded(people.exact, to=5)
    round_five = [_right(difference(coarse, people, i).gap, people, i) for i in range(len(people))]
    # One budget for all of them must do for both ways to ask.
    two, one, shared = [], [], 1 if desk is None else 2 * number
    for trial, person in enumerate(shuffled(len(people))[:number].tolist()):
        with _asked(people, epsilon, desk, parts=2 * shared) as answer:
            two.append(_right(difference(answer, people, person).gap, people, person))
        with _asked(people, epsilon, desk, parts=shared) as answer:
            one.append(_right(answer(point(people, person)), people, person))
        _say(tell, (trial + 1) / number)
    return Outcome(
        name="differencing",
        title="Differencing: two counts that differ by one person",
        how=f"How many have {people.label}; and how many of those who are not like you? The difference is you.",
        measure="of people guessed right",
        learnt=(
            Learnt("exact counts", "exact", _mean(exact)),
            Learnt("counts rounded to 5", "rounded", _mean(round_five)),
            Learnt("curator, two counts", "ours", _mean(two)),
            Learnt("curator, their difference", "ours", _mean(one)),
        ),
        chance=_base_rate(people),
        limit=best_guess(epsilon=loss, delta=spill, prior=_prior(people)),
        luck=luckiest_share(number, epsilon=loss, delta=spill, prior=_prior(people), confidence=CONFIDENCE),
        confidence=CONFIDENCE,
        epsilon=loss,
        delta=spill,
        notes=(
            f"{len(people)} people; against the curator {number} of them, with "
            f"{'a new budget for each' if desk is None else 'one budget for all'}.",
            "Rounding stops this attack, which asks for two numbers, and not those that ask for many.",
            "Asking for the difference itself, at the whole price, reaches the limit: no smaller limit would be true.",
        ),
    )


def attack_by_reconstruction(
    people: People, *, epsilon: Number = 1, questions: int = 1500, desk: Any = None, tell: Tell | None = None
) -> Outcome:
    """Many counts of random halves of the people, solved for everybody's secret at once."""
    number = whole("questions", questions, least=1)
    loss, spill = _promise(desk, epsilon)
    secret = {people.secret: cell_mask(people.domain, people.secret, people.cell)}
    asked = random_questions(people.domain, people.public, number, also=secret)
    matrix, stages = people.matrix(asked), len(ROUNDINGS) + 4

    def solved(answer: Answering, method: Method) -> float:
        return share_right(people, reconstruct(matrix, np.array([answer(each) for each in asked]), method=method))

    learnt = []
    for place, (name, kind, answers, method) in enumerate(_unprotected(people)):
        learnt.append(Learnt(name, kind, solved(answers, method)))
        _say(tell, (place + 1) / stages)
    # Of one desk, half is kept for the second way to ask.
    with _asked(people, epsilon, desk, parts=PAID * (1 if desk is None else 2)) as answer:
        learnt.append(Learnt(f"curator, {PAID} of the counts", "ours", _bought(answer, asked, matrix, people)))
    _say(tell, (stages - 1) / stages)
    learnt.append(Learnt("curator, all cells at once", "ours", _from_histogram(people, epsilon, desk)))
    _say(tell, 1.0)
    return Outcome(
        name="reconstruction",
        title="Reconstruction: everybody's secret from many counts",
        how=f"{number:,} counts of random halves of {len(people)} people of whom {', '.join(people.public)} is "
        f"known; each says how many of them have {people.label}. A linear program finds who.",
        measure="of people guessed right",
        learnt=tuple(learnt),
        chance=_base_rate(people),
        limit=best_guess(epsilon=loss, delta=spill, prior=_prior(people)),
        luck=luckiest_share(len(people), epsilon=loss, delta=spill, prior=_prior(people), confidence=CONFIDENCE),
        confidence=CONFIDENCE,
        epsilon=loss,
        delta=spill,
        notes=(
            f"No two of these people have the same public columns; {people.bits.mean():.0%} of them have the secret.",
            "The limit is for what does not follow from the public columns; the rest is learnt with and without you.",
            f"The curator was asked until its budget was gone: {PAID} of the counts; or, by another attacker, once for "
            "the count of every cell.",
        ),
    )


def attack_by_tracing(
    table: Table,
    *,
    people: int = 100,
    means: int = 1500,
    columns: tuple[str, ...],
    epsilon: Number = 1,
    delta: Number = 1e-9,
    tell: Tell | None = None,
) -> Outcome:
    """The means of many yes-or-no questions over some people; then for each of twice as many: in it, or not?"""
    inside_rows, outside_rows, others = _split_rows(table, whole("people", people, least=2), columns)
    asked = random_questions(table.domain, columns, whole("means", means, least=1))
    inside, outside, population = _weights_in(asked, (inside_rows, outside_rows, others), tell)
    members, strangers = inside.T, outside.T
    typical, truth = population.mean(axis=1), members.sum(axis=0)
    coarse, noisy = 10 * np.round(truth / 10), _released_sums(table, inside_rows, asked, epsilon, delta)
    size = len(members)
    found = {
        kind: trace(sums / size, typical, members, strangers)
        for kind, sums in (("exact", truth), ("rounded", coarse), ("ours", noisy))
    }
    meaning = explain(epsilon=epsilon, delta=delta)
    return Outcome(
        name="tracing",
        title="Tracing: was this person in the table?",
        how=f"The means of {len(asked):,} yes-or-no questions over {size} people, published beside those of the "
        "population. A person whose answers deviate like the table's was in it.",
        measure="area under the ROC curve",
        learnt=(
            Learnt("exact means", "exact", found["exact"].area),
            Learnt("counts rounded to 10", "rounded", found["rounded"].area),
            Learnt("private release of all means", "ours", found["ours"].area),
        ),
        chance=0.5,
        limit=largest_area(epsilon=epsilon, delta=delta),
        luck=luckiest_area(size, epsilon=epsilon, delta=delta, confidence=CONFIDENCE),
        confidence=CONFIDENCE,
        epsilon=meaning.epsilon,
        delta=meaning.delta,
        notes=(f"{size} people in the table against {size} who are not, of the same population.",),
        curves=(
            Roc("exact", tuple(found["exact"].curve)),
            Roc("rounded", tuple(found["rounded"].curve)),
            Roc("ours", tuple(found["ours"].curve)),
        ),
    )


def attack_by_posterior(*, epsilon: Number = 1, rows: int = 4) -> Outcome:
    """The exact conclusions from a count of very few people, for somebody who knows all but one of them."""
    number = whole("rows", rows, least=2, most=8)
    fair, alike = fair_prior(number), alike_prior(number)
    noisy = released(laplace(epsilon=epsilon, sensitivity=1), lambda table: [sum(table)], number)
    exact, coarse = without_noise(sum), without_noise(lambda table: 2 * round(sum(table) / 2))
    beliefs = [belief(prior, noisy) for prior in (fair, alike)]
    odds, conclusions = max(each.odds for each in beliefs), max(each.conclusions for each in beliefs)
    e = explain(epsilon=epsilon).epsilon
    limit = best_guess(epsilon=epsilon)
    return Outcome(
        name="posterior",
        title="Posterior: what can be concluded at most",
        how=f"A count of {number} people, given to somebody who knows all of them but one, and nothing about that one. "
        "Bayes' rule, over every table and every outcome: no sampling.",
        measure="how sure one can become",
        learnt=(
            Learnt("the exact count", "exact", belief(fair, exact).sure),
            Learnt("the count rounded to 2", "rounded", belief(fair, coarse).sure),
            Learnt("the private count", "ours", belief(fair, noisy).sure),
        ),
        chance=0.5,
        limit=limit,
        # Nothing is drawn here: but for the rounding of doubles, the limit is the limit.
        luck=limit * (1 + 1e-9),
        confidence=1.0,
        epsilon=e,
        delta=0.0,
        notes=(
            f"Odds move by a factor of {odds:.3f} at most; e^ε = {exp(e):.3f}.",
            f"Conclusions with or without the person differ by a factor of {conclusions:.3f} at most, also for a prior "
            f"in which people are mostly alike; e^2ε = {exp(2 * e):.3f}. Of exact counts both are infinite.",
        ),
    )


def _unprotected(people: People) -> Iterator[tuple[str, Kind, Answering, Method]]:
    """The answerers without noise: name, kind, answers, and the attacker's method of solving for secrets."""
    yield "exact counts", "exact", people.exact, "linear"
    for step in ROUNDINGS:
        yield f"counts rounded to {step}", "rounded", rounded(people.exact, to=step), "linear"
    yield "the same, by least squares", "rounded", rounded(people.exact, to=ROUNDINGS[-1]), "squares"


def _right(gap: float, people: People, person: int) -> bool:
    return bool((gap > 0.5) == people.bits[person])


def _mean(right: list[bool]) -> float:
    return float(np.mean(right))


def _base_rate(people: People) -> float:
    return max(_prior(people), 1 - _prior(people))


def _prior(people: People) -> float:
    """The probability that one of them has the secret, to somebody who knows how many have it; for a coin it is ½."""
    share = float(people.bits.mean())
    return 0.5 if people.secret == COIN else min(max(share, 1e-9), 1 - 1e-9)


def _promise(desk: Any, epsilon: Number) -> tuple[float, float]:
    """The (epsilon, delta) that protects one secret: of a given desk, its whole budget, spent and left."""
    if desk is None:
        return secret_budget(Unit(neighbors="replace_one"), epsilon=epsilon)
    left, spent = desk.remaining, desk.spent
    return secret_budget(desk.table.unit, epsilon=left.epsilon + spent.epsilon, delta=left.delta)


@contextmanager
def _asked(people: People, epsilon: Number, desk: Any, *, parts: int) -> Iterator[Answering]:
    """The answers of a curator whose whole budget is split evenly over `parts` questions."""
    if desk is not None:
        yield answering(desk, epsilon=float(epsilon) / parts)
        return
    with new_curator(people, epsilon) as mine:
        yield answering(mine, epsilon=mine.remaining.epsilon / parts)


@contextmanager
def new_curator(people: People, epsilon: Number, delta: Number = 0) -> Iterator[Curator]:
    """A curator on a table of these people, with a temporary ledger."""
    with TemporaryDirectory() as folder:
        budget = Budget(epsilon=epsilon, delta=delta)
        with Curator(people.table, budget=budget, ledger=Path(folder) / "ledger.sqlite") as desk:
            yield desk


def _bought(answer: Answering, asked: list[Linear], matrix: Numbers, people: People) -> float:
    answers = np.array([answer(each) for each in asked[:PAID]])
    return share_right(people, reconstruct(matrix[:PAID], answers))


def _from_histogram(people: People, epsilon: Number, desk: Any) -> float:
    """Ask once for the count of every cell of the public columns and the secret."""
    columns = (*people.public, people.secret)
    if desk is not None:
        try:
            counts = desk.ask(Marginal(columns), epsilon=desk.remaining.epsilon).value
        except (BadParameter, BudgetExceeded):
            # Nothing is left: no guess is better than another.
            return 0.5
    else:
        with new_curator(people, epsilon) as mine:
            counts = mine.ask(Marginal(columns), epsilon=mine.remaining.epsilon).value
    shape = tuple(people.domain[name].size for name in columns)
    return share_right(people, guess_from_cells(people, np.asarray(counts, dtype=np.float64).reshape(shape)))


def _split_rows(table: Table, people: int, columns: tuple[str, ...]) -> tuple[Any, Any, Any]:
    rows = rows_of(table, columns)
    order = shuffled(len(rows[columns[0]]))
    if len(order) < 3 * people:
        raise BadParameter(
            f"the table has {len(order)} rows and {people} people are traced; three times as many are needed, for "
            "those outside and for the population. Trace fewer."
        )
    ends = (order[:people], order[people : 2 * people], order[2 * people :][:POPULATION])
    inside, outside, others = ({name: codes[part] for name, codes in rows.items()} for part in ends)
    return inside, outside, others


def _weights_in(asked: list[Linear], groups: tuple[Any, ...], tell: Tell | None) -> list[Numbers]:
    """For each group of rows, the weight of every row (column) in every query (row)."""
    found: list[list[Any]] = [[] for _ in groups]
    for place, query in enumerate(asked):
        for kept, rows in zip(found, groups, strict=True):
            kept.append(weights(query, rows))
        _say(tell, (place + 1) / len(asked))
    return [np.array(each, dtype=np.float64) for each in found]


def _released_sums(table: Table, rows: Any, asked: list[Linear], epsilon: Number, delta: Number) -> Numbers:
    """All sums over a table of these rows, in one private release."""
    domain, unit = Domain({name: table.domain[name] for name in rows}), Unit(neighbors="replace_one")
    frame = Frame.of_codes([rows[name].astype(np.int32) for name in domain], domain=domain, unit=unit)
    exact = Table(Schema("traced", domain, unit), frame).evaluate(asked)
    moves = exact.sensitivity
    if delta:
        return np.asarray(gaussian(epsilon=epsilon, delta=delta, sensitivity=moves).release(exact), dtype=np.float64)
    return np.asarray(laplace(epsilon=epsilon, sensitivity=moves).release(exact), dtype=np.float64)


def _say(tell: Tell | None, share: float) -> None:
    if tell is not None:
        tell(share)

"""MWEM: select the query on which a model is most wrong, measure it, update the model, and repeat [HLM12]."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.calibrate import calibrate
from discreet.accounting.event import Compose, Event, Gaussian, Repeat, Selection
from discreet.accounting.sensitivity import Sensitivity
from discreet.errors import BadParameter, BadQuery
from discreet.lab.textbook.batch import EVERYONE, Plain, pay_and_release, public_total
from discreet.lab.textbook.multiplicative_weights import step_between
from discreet.ledger import Ledger
from discreet.ledger.ledger import ANYONE
from discreet.mechanism.distance import largest_surprise
from discreet.mechanism.gaussian import gaussian
from discreet.mechanism.laplace import laplace
from discreet.mechanism.protocol import Mechanism
from discreet.model.dense.dense_model import LARGEST_STEP, Dense
from discreet.model.interface import Model
from discreet.numeric import Number, positive, probability, whole
from discreet.query.linear import Linear
from discreet.query.workload import Workload
from discreet.release.methods.residual_workload import listed, require_table
from discreet.schema.domain import Domain
from discreet.source.query_sensitivity import sensitivity_of
from discreet.source.table import Table
from discreet.types import Ints, Numbers

# The most weights that are computed, and the most nonzero ones that are kept, of twelve bytes each.
MOST_WEIGHTS, MOST_KEPT = 2**30, 2**26


class Batch:
    """The queries as one sparse matrix over the cells of the domain, if it is small enough; otherwise one by one.

    >>> from discreet.model.dense.dense_model import Dense
    >>> from discreet.query.workload import monotone_conjunctions
    >>> from discreet.schema.column import Boolean
    >>> people = Domain({"old": Boolean(), "smoker": Boolean()})
    >>> Batch(list(monotone_conjunctions(people)), people).answers(Dense(people, total=100)).tolist()
    [100.0, 50.0, 50.0, 25.0]
    """

    def __init__(self, queries: Sequence[Linear], domain: Domain) -> None:
        self._queries, self._names = queries, sorted(domain)
        self._matrix = _matrix(queries, domain) if len(queries) * domain.size <= MOST_WEIGHTS else None

    def answers(self, model: Model) -> Numbers:
        """The expected value of each query."""
        if self._matrix is None:
            return np.array([model.answer(query) for query in self._queries])
        found: Numbers = self._matrix @ model.marginal(self._names).ravel()
        return found


def _matrix(queries: Sequence[Linear], domain: Domain) -> Any:
    """A row for each query, or None if there are too many weights other than zero."""
    from scipy.sparse import csr_array

    names = sorted(domain)
    places, weights, ends = list[NDArray[Any]](), list[NDArray[Any]](), [0]
    for query in queries:
        table = query.table(domain, names).ravel()
        cells = np.flatnonzero(table)
        places.append(cells.astype(np.int32))
        weights.append(table[cells].astype(np.float64))
        ends.append(ends[-1] + cells.size)
        if ends[-1] > MOST_KEPT:
            return None
    shape = (len(queries), domain.size)
    return csr_array((np.concatenate(weights), np.concatenate(places), np.array(ends)), shape=shape)


Step = Literal["projected", "textbook"]


# Where the number of rows is not public, this part of the budget counts them.
SHARE_OF_TOTAL = Fraction(1, 20)
# The number of passes over all measurements so far, after each new one.
SWEEPS = 4
# A model's answer this close to 0 or to all rows cannot be changed by a factor.
_EDGE = 1e-12


@dataclass(frozen=True, slots=True)
class Rounds:
    """The two mechanisms of each round, for one budget: select a query given the model's answers, and measure it."""

    number: int
    choose: Callable[[Ints], Mechanism[int]]
    measure: Mechanism[Ints]
    event: Event


def mwem(
    table: Table,
    queries: "Sequence[Linear] | Workload[Linear]",
    *,
    epsilon: Number,
    rounds: int,
    delta: Number = 0,
    step: Step = "projected",
    total: int | None = None,
    ledger: Ledger | None = None,
    analyst: str = ANYONE,
    key: str | None = None,
) -> Dense:
    """A model of all columns that is accurate on a list of counts: epsilon-DP, or (epsilon, delta)-DP.

    In each of T rounds the exponential mechanism selects a query with a large error of the model, with e/2T, the query
    is measured with discrete Laplace noise, with e/2T, and the model, which began uniform, is updated:

    * "projected": by the factor on the query's cells that makes the model agree with the measurement, several times in
      turn for all queries measured so far;
    * "textbook": by exp(q(x)(measured − expected)/2n), once; the answer is the mean of the models of all rounds.

    With a `delta` the noise is Gaussian, and selection and measurement cost the same in zCDP.

    where e is `epsilon`, T is `rounds` and n the number of rows: it is public, or the `total` that you give, or a
    twentieth of the budget counts them. All is paid at once, before a row is read. The model needs eight bytes for each
    cell of the domain; a domain that is too large is refused before anything is paid.

    >>> import discreet as dp
    >>> people = dp.open({"old": [False, True, True] * 200}, domain=dp.Domain({"old": dp.Boolean()}))
    >>> old = dp.query.count(people.domain, dp.col("old") == True)
    >>> model = mwem(people, [old], epsilon=50, rounds=1, total=600)
    >>> abs(model.answer(old) - 400) < 2
    True

    [HLM12, Fig. 1]; proofs: mechanism/surprise.md, mechanism/laplace.md
    """
    require_table(table)
    asked = listed(queries)
    _require_counts(asked, table)
    if step not in ("projected", "textbook"):
        raise BadParameter(f'step is {step!r}; it must be "projected" or "textbook". Leave it out for the better one.')
    loss, chance = positive("epsilon", epsilon), probability("delta", delta, zero=True)
    known = None if total is None else whole("total", total, least=1)
    # A model that is too large is refused here, before anything is paid.
    learner = Learner(Dense(table.domain), asked, step)
    count = None if known is not None or _is_public(table) else _counting(table, loss * SHARE_OF_TOTAL)
    moves = sensitivity_of(asked, table.domain, table.unit)
    plan = plan_rounds(rounds, moves, epsilon=loss if count is None else loss * (1 - SHARE_OF_TOTAL), delta=chance)
    event = plan.event if count is None else Compose((count.event, plan.event))
    batch = Batch(asked, table.domain)

    def release() -> Plain:
        if count is None:
            many = public_total(table) if known is None else known
        else:
            many = int(count.release(table.evaluate(EVERYONE))[0])
        learner.begin(many)
        exact = table.evaluate(asked)
        for _ in range(plan.number):
            place = plan.choose(expected_rows(learner.model, batch)).release(exact)
            learner.learn(place, int(plan.measure.release(table.evaluate(asked[place]))[0]))
        return {"total": many, "measured": learner.measured}

    why = f"{plan.number} rounds of MWEM on {len(asked)} counts"
    plain = pay_and_release(ledger, event, why, release, table=table, asked=asked, analyst=analyst, key=key)
    if not learner.measured:
        # It was released before, under this key.
        learner.begin(plain["total"])
        for place, value in plain["measured"]:
            learner.learn(place, value)
    return learner.result()


def expected_rows(model: Dense, batch: Batch) -> Ints:
    """The model's answer to every query, rounded to whole rows."""
    return np.rint(batch.answers(model)).astype(np.int64)


def plan_rounds(rounds: int, moves: Sensitivity, *, epsilon: Fraction, delta: Fraction = Fraction(0)) -> Rounds:
    """The mechanisms of all rounds, each with its share of the budget; `moves` is the sensitivity of all queries.

    One query moves by at most the largest move of any (linf), and so does a surprise.
    """
    number, most = whole("rounds", rounds, least=1), moves.linf
    one = Sensitivity(l1=most, l2_squared=most**2, linf=most)
    measure: Mechanism[Ints]
    if delta == 0:
        share = epsilon / (2 * number)
        measure = laplace(epsilon=share, sensitivity=one)
    else:
        # The zCDP of a selection is e²/8 and that of a Gaussian μ²/2: equal at e = 2μ.
        def event(noise: Fraction) -> Event:
            return Repeat(Compose((Selection(2 / noise), Gaussian(noise, Fraction(1)))), number)

        scale = calibrate(event, epsilon=epsilon, delta=delta, by="gaussian")
        share = 2 / scale
        measure = gaussian(sigma=scale * most, sensitivity=one)

    def choose(expected: Ints) -> Mechanism[int]:
        return largest_surprise(epsilon=share, sensitivity=one, expected=expected)

    return Rounds(number, choose, measure, Repeat(Compose((Selection(share), measure.event)), number))


class Learner:
    """The model and its updates, from released values alone."""

    def __init__(self, model: Dense, queries: Sequence[Linear], step: Step) -> None:
        self.model, self.measured = model, list[tuple[int, int]]()
        self._queries, self._step = queries, step
        self._sum: Numbers | None = None

    def begin(self, total: int | None) -> None:
        """Set the number of rows."""
        self.model.total = float(max(1, total or 1))

    def learn(self, place: int, value: int) -> None:
        """Update the model with a measured query."""
        self.measured.append((place, value))
        if self._step == "textbook":
            query, total = self._queries[place], self.model.total
            raise_by = (value - self.model.answer(query)) / (2 * total)
            self.model.update(query, step=float(np.clip(raise_by, -LARGEST_STEP, LARGEST_STEP)))
            now = self.model.marginal(list(self.model.domain))
            self._sum = now if self._sum is None else self._sum + now
            return
        for _ in range(SWEEPS):
            for past, seen in self.measured:
                project(self.model, self._queries[past], seen)

    def result(self) -> Dense:
        """The model; for the textbook's step the mean over all rounds."""
        if self._sum is None:
            return self.model
        return Dense(self.model.domain, total=self.model.total, weights=self._sum)


def project(model: Dense, query: Linear, value: float) -> None:
    """Scale the cells of a count so that the model's answer is this value, or the closest possible one.

    >>> from discreet.query.aggregates import count
    >>> from discreet.query.predicate import col
    >>> from discreet.schema.column import Boolean
    >>> from discreet.schema.domain import Domain
    >>> model = Dense(Domain({"old": Boolean()}), total=100)
    >>> project(model, count(model.domain, col("old") == True), 80)
    >>> model.marginal(["old"]).round(6).tolist()
    [20.0, 80.0]
    """
    guess, half = model.answer(query) / model.total, 0.5 / model.total
    if not _EDGE < guess < 1 - _EDGE or half >= 0.5:
        return
    target = min(max(value / model.total, half), 1 - half)
    model.update(query, step=float(np.clip(step_between(guess, target), -LARGEST_STEP, LARGEST_STEP)))


def _is_public(table: Table) -> bool:
    return sensitivity_of(EVERYONE, table.domain, table.unit).l1 == 0


def _counting(table: Table, share: Fraction) -> Mechanism[Ints]:
    return laplace(epsilon=share, sensitivity=sensitivity_of(EVERYONE, table.domain, table.unit))


def _require_counts(queries: Sequence[Linear], table: Table) -> None:
    for query in queries:
        low, high = query.range(table.domain)
        if low < 0 or high > 1:
            raise BadQuery(
                f"a row weighs from {low} to {high} in {query!r}; MWEM learns from counts, where it weighs 0 or 1. "
                "Ask for counts of conditions."
            )

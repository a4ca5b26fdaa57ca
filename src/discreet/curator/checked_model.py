"""A model answers, and the sparse vector technique checks it against the rows: only failed checks cost.

The curator takes it where answers by measurement would cost too much. Proof: model_coin.md
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from operator import le
from typing import Any

import numpy as np

from discreet.accounting.event import Compose, Event, Gaussian, Nothing
from discreet.curator.records import STEEPNESS, Session, compose_events
from discreet.curator.release_run import RequestExecutor
from discreet.curator.stakes import OPENING_REASON, Stake, Stakes
from discreet.errors import BudgetExceeded
from discreet.estimate.estimator import normal_quantile
from discreet.estimate.measurements import GaussianQuery, Intervals
from discreet.estimate.residual_lattice import subsets
from discreet.mechanism.gaussian import gaussian_half_width
from discreet.model.mixture.mixture_model import Mixture
from discreet.model.tree.tree_model import Tree
from discreet.plan.build_model import PROBE, Built, build, mend, model_of
from discreet.plan.model_forecast import WORTH, Stream, lattice_units, model_units
from discreet.plan.plan import Done, Procedure, Quantile, Request, Steps, plan_steps, run
from discreet.plan.steps import Target, exact_sigma
from discreet.query.linear import Linear, counts_rows
from discreet.types import Columns

# Hits may cost this share of what the lattice would, so that a bad model is soon abandoned.
SHARE_FOR_HITS, MOST_HITS = 0.2, 16
# A margin is never computed for a lower confidence than this.
LEAST_MARGIN_CONFIDENCE = 0.01
# The most answers that passed their check and are remembered, in case they are asked for again.
MOST_PASSED = 2**17
# The most batches that failed their check and are remembered.
MOST_REFUTED = 2**10


@dataclass(frozen=True, slots=True)
class Checked:
    """The outcome of a check: the model's answer, which passed; or the steps that were taken on a hit."""

    value: int
    error: float
    steps: Steps | None = None
    cost: Event | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Certified:
    """A model's answers to a batch, all within one error at once."""

    values: tuple[int, ...]
    error: float

    @property
    def bars(self) -> list[Intervals]:
        """The answers, each with the common error."""
        return [Intervals(np.array([float(value)]), np.array([self.error])) for value in self.values]


class Models:
    """The model of one table, if there is one: decides when to build it, builds it, checks it."""

    def __init__(self, executor: RequestExecutor, expected_questions: int | None) -> None:
        self.executor, self.expected_questions = executor, expected_questions
        self.stream = Stream()
        self.stakes = Stakes(executor)
        self._passed: dict[tuple[Fraction, Fraction, Linear], int] = {}
        self._fitted: tuple[Built, int, Tree | Mixture] | None = None
        self._checked_version = -1
        self._refuted: dict[int, int] = {}
        # Events paid for a model since this list was last taken, for the request of any analyst.
        self._done: list[Event] = []

    def take_cost(self) -> Event:
        """What was done to the table for a model since this was last called: building it, and checking a batch."""
        done = [*self._done, *self.stakes.opened]
        self._done.clear()
        self.stakes.opened.clear()
        return compose_events(done)

    def ask(self, question: Linear, target: Target, why: str, analyst: str) -> Checked | None:
        """The outcome of asking the model; None if the lattice must answer."""
        session = self.executor.session
        if session is None:
            session = self._consider(question, target, analyst)
        if session is None or not self._serves(session, question, target) or not self._prices_coin(analyst, session):
            return None
        return self._check(session, question, why, analyst)

    def serves(self, question: Linear, target: Target, analyst: str) -> bool:
        """Whether the current model would answer. Reads no row."""
        session = self.executor.session
        if session is None or not self._serves(session, question, target) or not self._prices_coin(analyst, session):
            return False
        return self.stakes.payable(session.coin, self._largest_cost(session), analyst)

    def guess(self, question: Linear) -> float | None:
        """What the model says, unchecked; None if there is no model of these columns."""
        session = self.executor.session
        if session is None or session.built is None or not set(question.scope) <= set(session.built.columns):
            return None
        return self._model(session.built).answer(question)

    def _serves(self, session: Session, question: Linear, target: Target) -> bool:
        built = session.built
        return (
            built is not None
            and session.keeps(target.error, target.confidence)
            and target.joint == 1
            and set(question.scope) <= set(built.columns)
            and counts_rows(self.executor.table.domain, question)
        )

    # Deciding, and building.

    def _consider(self, question: Linear, target: Target, analyst: str) -> Session | None:
        """Watch the questions; build a model when it pays. Nothing here depends on a row."""
        executor = self.executor
        if not self._prices_coin(analyst) or not counts_rows(executor.table.domain, question):
            return None
        self.stream.see(question)
        to_come = None if self.expected_questions is None else max(0, self.expected_questions - self.stream.asked)
        unit = 1 / target.variance
        if not self.stream.pays(executor.table.domain, to_come=to_come, spent=executor.known.cost / unit):
            return None
        session = self._draft(target, to_come, analyst)
        return self._open(session, target, analyst) if self._affordable(session, target, analyst) else None

    def _affordable(self, session: Session, target: Target, analyst: str) -> bool:
        """Whether a model can be built with what is left, and checked at least once."""
        columns = tuple(sorted(self.stream.columns))
        price = Gaussian(Fraction(1), Fraction(model_units(columns, self.executor.table.domain) / target.variance))
        checks = (session.coin.opening, self._largest_cost(session)) if session.hits_left else ()
        return self.executor.fits(Compose((*checks, price)), analyst)

    def _prices_coin(self, analyst: str, session: Session | None = None) -> bool:
        """Whether every cap over the analyst can price a coin, or the coin of this session."""
        gates = [account.gate for account in self.executor.accounts(analyst)]
        try:
            return all(gate.kind == "renyi" and (session is None or gate.charge(session.coin.hit)) for gate in gates)
        except BudgetExceeded:
            return False

    def _draft(self, target: Target, to_come: int | None, analyst: str) -> Session:
        """A session for a target, with as many hits as pay off; none where the gate cannot price the coin."""
        count, asked = len(self.stream.columns), self.stream.asked
        lattice = lattice_units(count, self.stream.width, asked + (asked if to_come is None else to_come))
        hit = (STEEPNESS / normal_quantile(target.confidence)) ** 2
        hits = min(MOST_HITS, max(1, round(SHARE_FOR_HITS * lattice / hit)))
        hits = hits if self._prices_coin(analyst) else 0
        # The decimal as it was written, not the nearest double.
        chance = Fraction(repr(target.confidence))
        return Session(Fraction(target.error), chance, self.executor.table.unit.contributions, hits, None)

    def _open(self, session: Session, target: Target, analyst: str) -> Session | None:
        """Build a model and open its session, or record that no model fits, so that it is not tried again.

        If another process has opened a session meanwhile, that one is returned.
        """
        built = self._run(build(self.executor.known, target, self.stream), analyst)
        found = replace(session, built=built)
        if built is None:
            self.executor.note(found, Nothing(), "no model is good enough", analyst=analyst)
        elif not found.hits_left:
            self.executor.note(found, Nothing(), "a model for batches of questions", analyst=analyst)
        else:
            try:
                # The opening closes the orders at which a pass is not free, before the first toss.
                self.executor.note(found, found.coin.opening, OPENING_REASON, analyst=analyst)
                self._done.append(found.coin.opening)
            except BudgetExceeded:
                batches = replace(found, hits_left=0)
                self.executor.note(batches, Nothing(), "a model for batches of questions", analyst=analyst)
        return self.executor.session

    def _run(self, procedure: Procedure[Done], analyst: str) -> Done | None:
        """The result of a procedure; None if the budget runs out before its end."""

        def answer(request: Request) -> Any:
            result = self.executor.answer(request, analyst=analyst)
            self._done.append(request.event(self.executor.table.domain, self.executor.table.unit))
            return result

        try:
            return run(procedure, answer)
        except BudgetExceeded:
            return None
        finally:
            self.executor.forget_sealed()

    def _model(self, built: Built) -> Tree | Mixture:
        known = self.executor.known
        if self._fitted is not None and self._fitted[0] == built and self._checked_version == known.version:
            return self._fitted[2]
        self._checked_version = known.version
        stamp = self._stamp(built)
        if self._fitted is None or self._fitted[:2] != (built, stamp):
            self._fitted = built, stamp, model_of(built, known)
            self._passed.clear()
        return self._fitted[2]

    def _stamp(self, built: Built) -> int:
        """A number that changes when a residual changes that the model is fitted to."""
        every = combinations(built.columns, min(3, len(built.columns)))
        scopes: list[Columns] = list(built.scopes if built.kind == "tree" else every)
        scopes += [(name,) for name in built.columns]
        inside = dict.fromkeys(chosen for scope in scopes for chosen in subsets(scope))
        blocks = self.executor.known.lattice.blocks
        return sum(blocks[chosen].version for chosen in inside if chosen in blocks)

    # Checking.

    def _check(self, session: Session, question: Linear, why: str, analyst: str) -> Checked | None:
        assert session.built is not None, "only a session with a model serves"
        model = self._model(session.built)
        check = (session.error, session.confidence, question)
        passed = self._passed.get(check)
        if passed is not None:
            return Checked(passed, float(session.error))
        # Before anything is staked: a source that cannot be reached must cost nothing.
        self.executor.touch()
        stake = self._take_stake(session, question, analyst)
        if stake is None:
            return None
        expected = max(0, round(model.answer(question)))
        with self.executor.reading():
            # If the source fails here, no coin was tossed.
            exact = self.executor.table.evaluate(question)
            self.stakes.begin(analyst)
            passed_now = not session.coin.toss(exact, expected)
        if passed_now:
            if len(self._passed) >= MOST_PASSED:
                self._passed.clear()
            self._passed[check] = expected
            self.stakes.passed(analyst)
            return Checked(expected, float(session.error))
        steps = self._hit(session, question, why, analyst, stake)
        return Checked(expected, float(session.error), steps, self._hit_event(session, steps))

    def _take_stake(self, session: Session, question: Linear, analyst: str) -> Stake | None:
        """The stake for the next hit; None if it cannot be set aside, and then no coin is tossed."""
        price, event = self._largest_cost(session), self._hit_event(session, self._covered_steps(session, question))
        for account in self.executor.accounts(analyst):
            if not all(map(le, account.gate.charge(event), account.gate.charge_parts(price))):
                return None
        return self.stakes.take(session.coin, price, analyst)

    def _hit_event(self, session: Session, steps: Steps) -> Event:
        return Compose((session.coin.hit, steps.event(self.executor.table.domain, self.executor.table.unit)))

    def _largest_cost(self, session: Session) -> Event:
        """The most that a hit and the measurement after it may cost."""
        sigma = self._direct_step(session, Linear([])).sigma
        return Compose((session.coin.hit, Gaussian(sigma, Fraction(session.rows) ** 2)))

    def _covered_steps(self, session: Session, question: Linear) -> Steps:
        """The measurement after a hit that its stake always pays."""
        return Steps((self._direct_step(session, question),))

    def _direct_step(self, session: Session, question: Linear) -> GaussianQuery:
        sigma = exact_sigma(Target(float(session.error), session.after_hit))
        return GaussianQuery(question, sigma, float(session.rows**2 / sigma**2))

    def _hit(self, session: Session, question: Linear, why: str, analyst: str, stake: Stake) -> Steps:
        """Pay, measure, learn. Which steps are taken depends on what is known and left, not on the rows."""
        target = Target(float(session.error), session.after_hit)
        steps = plan_steps([(question, target)], self.executor.known)
        if not steps.steps or not self.executor.fits(self._hit_event(session, steps), analyst):
            steps = self._covered_steps(session, question)
        try:
            self.executor.measure_after_hit(steps, session, why, analyst=analyst, hold=stake.number)
        except BudgetExceeded:
            steps = self._covered_steps(session, question)
            self.executor.measure_after_hit(steps, session, why, analyst=analyst, hold=stake.number)
        self.stakes.close(analyst)
        self._learn(question, analyst)
        return steps

    def _learn(self, question: Linear, analyst: str) -> None:
        """Add to a tree the marginal, among the columns of a failed check, on which it is most wrong."""
        session = self.executor.session
        built = None if session is None else session.built
        model = None if built is None else self._model(built)
        if (
            session is None
            or built is None
            or not isinstance(model, Tree)
            or not set(question.scope) <= set(built.columns)
        ):
            return
        target = Target(float(session.error), float(session.confidence))
        grown = self._run(mend(self.executor.known, built, model, question, target), analyst)
        if grown not in (None, built):
            changed = replace(session, built=grown)
            self.executor.note(changed, Nothing(), "a model learns from a failed check", analyst=analyst)

    # A batch at once.

    def certify(self, questions: Sequence[Linear], asked: int, target: Target, analyst: str) -> Certified | None:
        """A model's answers to a whole batch, if one noisy maximum of their errors says that all are good enough.

        It is tried only where a model could answer all questions, some are not known, and the lattice is expected to
        cost much more.
        """
        units = self._units_without_model(questions, asked)
        built = None if units is None else self._built_for(questions, target, units, analyst)
        if built is None:
            return None
        expected = tuple(max(0, round(value)) for value in self._model(built).answers(questions).tolist())
        # A batch that failed is not checked again until more is known.
        check = hash((tuple(questions), target, expected))
        if self._refuted.get(check) == self.executor.known.version:
            return None
        error = self._largest_error(questions, expected, target, analyst)
        if error is None:
            return None
        if error <= target.error:
            return Certified(expected, error)
        if len(self._refuted) >= MOST_REFUTED:
            self._refuted.clear()
        self._refuted[check] = self.executor.known.version
        return None

    def _units_without_model(self, questions: Sequence[Linear], asked: int) -> float | None:
        """What the lattice would cost for these questions; None where no model is tried."""
        known, domain = self.executor.known, self.executor.table.domain
        if len(questions) < max(2, asked):
            return None
        unknown = [each for each in questions if known.surely_unknown(each)]
        if not unknown:
            return None
        scope = {name for each in questions for name in each.scope}
        width = sum(len(each.scope) for each in questions) / len(questions)
        units = lattice_units(len(scope), width, len(unknown))
        if (
            not known.measures_residuals
            or units <= WORTH * PROBE
            or not all(counts_rows(domain, each) for each in questions)
        ):
            return None
        return units

    def _largest_error(
        self, questions: Sequence[Linear], expected: tuple[int, ...], target: Target, analyst: str
    ) -> float | None:
        """A bound on the largest error of expected answers, by a noisy maximum; None if it cannot be paid for."""
        why = f"the largest error of a model on {len(questions)} questions"
        sigma = Fraction((PROBE * (1 / target.variance)) ** -0.5).limit_denominator(10**6)
        request = Quantile(tuple(questions), expected, sigma, -1, why)
        event = request.event(self.executor.table.domain, self.executor.table.unit)
        if not self.executor.fits(event, analyst):
            return None
        # The noise is below −t as often as above t, so a bound on one side may fail twice as often on both.
        margin = gaussian_half_width(sigma, max(2 * target.confidence - 1, LEAST_MARGIN_CONFIDENCE))
        try:
            largest = self.executor.answer(request, analyst=analyst)
        finally:
            self.executor.forget_sealed()
        self._done.append(event)
        return max(0.0, largest + margin)

    def _built_for(self, questions: Sequence[Linear], target: Target, units: float, analyst: str) -> Built | None:
        session, scope = self.executor.session, sorted({name for each in questions for name in each.scope})
        if session is not None:
            built = session.built
            return built if built is not None and set(scope) <= set(built.columns) else None
        for each in questions:
            self.stream.see(each)
        if units <= WORTH * model_units(tuple(sorted(self.stream.columns)), self.executor.table.domain):
            return None
        session = self._draft(target, None, analyst)
        if session.hits_left and not self._affordable(session, target, analyst):
            session = replace(session, hits_left=0)
        if not self._affordable(session, target, analyst):
            return None
        opened = self._open(session, target, analyst)
        return None if opened is None else opened.built

    def close(self) -> None:
        """Give back what was set aside and is unused, and pay what may have been used."""
        self.stakes.close()

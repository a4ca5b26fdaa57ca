"""A plan as an analyst sees it, before paying: its price, and the error that it would give.

It also lists the coverage: sets of columns that are known in full and can be asked for free, and how accurately.
"""

from dataclasses import dataclass
from itertools import combinations
from math import prod

import numpy as np

from discreet.accounting.event import Event, Nothing
from discreet.answer import error_text
from discreet.curator.accuracy import all_intervals, next_steps, targets_of
from discreet.curator.answers import meets, require_known
from discreet.curator.checked_model import Models
from discreet.curator.executor import Executor
from discreet.curator.question import Accuracy, ParsedQuestion, PreparedQuestion
from discreet.estimate.estimator import Estimator
from discreet.estimate.measurements import GaussianResiduals
from discreet.ledger.accounts import Budget, as_budget
from discreet.plan.plan import Origin
from discreet.query.linear import Marginal
from discreet.types import Columns


@dataclass(frozen=True, slots=True)
class Plan:
    """What would be done for a question. Nothing was read and nothing was spent.

    `cost` is what would be done to the table, `price` what that alone would cost as an epsilon at the table's delta,
    and `fits` whether that is still there. `error` is the half-width that was asked for, or the best one for
    the price. `note` says what the plan cannot know yet; `pieces` is how many residuals would be topped up.
    """

    question: str
    error: float
    confidence: float
    origin: Origin
    cost: Event
    price: Budget
    fits: bool
    note: str = ""
    pieces: int = 0

    @property
    def free(self) -> bool:
        """Whether nothing will be paid: it is known, or a model answers."""
        return isinstance(self.cost, Nothing)

    def __str__(self) -> str:
        """The error and how it is reached, the price, and the note."""
        how = {
            "known": "it is known: free",
            "measured": "residuals of the marginals are topped up",
            "direct": "the numbers are measured by themselves",
            "model": "a model answers, and is checked: free if it passes",
            "mixed": "some residuals are topped up and some numbers are measured by themselves",
        }[self.origin]
        lines = [f"± {error_text(self.error)} ({100 * self.confidence:g} %): {how}."]
        if not self.free:
            detail = "" if not self.pieces else ", 1 residual" if self.pieces == 1 else f", {self.pieces} residuals"
            room = "" if self.fits else " That is more than is left."
            lines.append(f"Price: {self.price}{detail}.{room}")
        return "\n".join([*lines, *([self.note] if self.note else [])])


def explain_plan(executor: Executor, models: Models, question: PreparedQuestion) -> Plan:
    """What would be done for a question now."""
    parsed, accuracy, analyst = question.parsed, question.accuracy, question.analyst
    joint = question.joint(executor.table.domain)
    bars = all_intervals(parsed.parts, executor.known, accuracy.confidence, joint)
    if accuracy.nothing:
        require_known(bars)
    by_model = question.single
    if by_model is not None and not meets(bars, accuracy) and models.serves(by_model, accuracy.target, analyst):
        return _model_plan(executor, analyst, parsed, accuracy)
    gate = executor.gate(analyst)
    asked = targets_of(parsed, accuracy, executor.known, gate)
    steps = next_steps(executor, analyst, asked, accuracy)
    event = steps.event(executor.table.domain, executor.table.unit)
    error = max(float(bar.errors.max()) for bar in bars)
    if steps.steps:
        error = accuracy.error or max(target.error for _, target in asked)
    note = ""
    if any(part.values is not None for part in parsed.parts) and steps.steps:
        note = "The price of a mean depends on how many rows have a value; this is the price of the next step only."
    price, fits = as_budget(gate, gate.charge(event)), executor.fits(event, analyst)
    pieces = sum(len(step.measurement.pieces) for step in steps.steps if isinstance(step, GaussianResiduals))
    return Plan(parsed.text, float(error), accuracy.confidence, steps.origin, event, price, fits, note, pieces)


def _model_plan(executor: Executor, analyst: str, parsed: ParsedQuestion, accuracy: Accuracy) -> Plan:
    """The plan of a question that a model answers."""
    session, gate = executor.session, executor.gate(analyst)
    assert session is not None, "a model that serves has a session"
    hit = as_budget(gate, gate.charge(session.coin.hit), executor.balance(analyst).room)
    note = f"If the check fails, the answer is measured, which costs {hit} more."
    free = as_budget(gate, gate.nothing)
    return Plan(parsed.text, float(session.error), accuracy.confidence, "model", Nothing(), free, True, note)


@dataclass(frozen=True, slots=True)
class Free:
    """Columns about which every question is known; `error` is the half-width of one cell."""

    columns: Columns
    cells: int
    error: float
    confidence: float


def free_now(known: Estimator, confidence: float) -> list[Free]:
    """The largest sets of columns whose residuals were all measured, the most precise first."""
    whole: set[Columns] = set()
    for columns in sorted(known.lattice.blocks, key=len):
        block = known.lattice.blocks[columns]
        smaller = combinations(columns, len(columns) - 1) if columns else ()
        if np.all(block.precision > 0) and all(fewer in whole for fewer in smaller):
            whole.add(columns)
    covered = {fewer for columns in whole if columns for fewer in combinations(columns, len(columns) - 1)}
    found = []
    largest = sorted(whole - covered)
    for columns in largest:
        if known.family(Marginal(columns)) is not None:
            error = known.largest_error(Marginal(columns), confidence, among=len(largest))
            cells = prod(known.domain[name].size for name in columns)
            found.append(Free(columns, cells, error, confidence))
    return sorted(found, key=lambda one: (one.error, one.columns))

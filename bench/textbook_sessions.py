"""Sessions of private multiplicative weights on tables of any size, for bench/textbook.py."""

import sys
from dataclasses import dataclass
from functools import cache
from math import log
from tempfile import TemporaryDirectory

import numpy as np

import discreet.lab.textbook.pmw_lectures
from discreet.errors import BadParameter, Refusal
from discreet.lab.textbook.pmw import PMW
from discreet.lab.textbook.pmw_design import Terms, calibrated
from discreet.lab.textbook.pmw_lectures import textbook
from discreet.ledger import Budget, Ledger
from discreet.ledger.accounts import gate_of
from discreet.query.linear import Linear
from discreet.query.product import Factor, Product
from discreet.schema import Boolean, Domain, Unit
from discreet.schema.schema import Schema
from discreet.source.source import Source
from discreet.source.table import Table

# The setting, its theorem, and the power of the number of rows with which its error falls.
SETTINGS = {
    "bun": ("000, Prop. 16", "−1/2"),
    "root": ("003, Thm. 9", "−1/2"),
    "cube": ("003, Thm. 8", "−1/3"),
    "calibrated": ("ours", "–"),
}
BUDGETS = {"δ = 1e-9": Budget(epsilon=1, delta=1e-9), "δ = 0": Budget(epsilon=1)}
RUN = "δ = 1e-9"
QUESTIONS, CONFIDENCE = 1000, 0.95
# By projection every update looks at all measurements again, so a session in which nearly every question is an update
# takes minutes: beyond so many rows the calibrated one is asked fewer.
FEW_QUESTIONS, MANY_ROWS = 100, 10**7
NAMES = tuple(f"c{at}" for at in range(8))
DOMAIN, UNIT = Domain({name: Boolean() for name in NAMES}), Unit(neighbors="replace_one")
# A guard against slips of the pen. Theorems at 10^12 rows set aside more; what is not used costs no time.
discreet.lab.textbook.pmw_lectures.MOST_LECTURE_UPDATES = 10**12


def skewed(cells, rows, seed=0):
    """A table whose cells are filled by a power law in an order without pattern: counts that add up to `rows`."""
    rng = np.random.default_rng(seed)
    shares = rng.permutation(1.0 / np.arange(1, cells + 1) ** 1.2)
    counts = np.floor(rows * shares / shares.sum()).astype(np.int64)
    counts[np.argmax(counts)] += rows - int(counts.sum())
    return counts


class Histogram(Source):
    """A table that is given by how many rows are in each cell: as many rows as a theorem may need."""

    def __init__(self, counts):
        super().__init__(DOMAIN, UNIT)
        self._given = counts

    def cells(self, columns):
        if not columns:
            yield (), np.array([self._given.sum()])
            return
        codes = dict(zip(NAMES, np.unravel_index(np.arange(self._given.size), DOMAIN.shape), strict=True))
        yield tuple(codes[name] for name in columns), self._given


@cache
def designed(setting, rows, budget):
    """The design of a setting, or None if it promises nothing at so many rows.

    The calibrated one sets aside ln N/t² updates for a threshold of t, as an update by at least that lowers the
    potential by t² (`lab/textbook/multiplicative_weights.md`), and never more than there are questions.
    """
    if setting != "calibrated":
        try:
            found = textbook(setting, _terms(budget), cells=DOMAIN.size, rows=rows)
        except BadParameter:
            return None
        return found if found.error < rows else None
    steps = sorted({round(QUESTIONS ** (step / 40)) for step in range(41)})
    enough = (n for n in steps if n >= log(DOMAIN.size) * (rows / _calibrated(n, budget).threshold) ** 2)
    found = _calibrated(next(enough, QUESTIONS), budget)
    return found if found.error < rows else None


@cache
def _calibrated(updates, budget):
    return calibrated(_terms(budget), updates=updates)


def _terms(budget):
    return Terms(gate_of(BUDGETS[budget]), QUESTIONS, 1 - CONFIDENCE, 1, tells_rows=False)


def first_promise(setting, budget):
    """From how many rows on a setting promises an error below all rows, to two digits; none up to 10^12: None."""
    low, high = 1.0, 12.0
    if designed(setting, 10**12, budget) is None:
        return None
    while high - low > 0.01:
        middle = (low + high) / 2
        low, high = (low, middle) if designed(setting, int(10**middle), budget) else (middle, high)
    return 10**high


@dataclass(frozen=True)
class Errors:
    """What a setting promises at some number of rows, and the largest error of a session; as fractions of the rows."""

    setting: str
    rows: int
    promised: float | None
    largest: float
    updates: int
    answered: int
    questions: int


def session(setting, rows, questions, seed):
    """Ask a session so many random halves of the cells; without a promise all that is known is the uniform table."""
    counts = skewed(DOMAIN.size, rows)
    rng = np.random.default_rng(seed)
    asked = [(rng.random(DOMAIN.size) < 0.5).astype(np.int64) for _ in range(questions)]
    design = designed(setting, rows, RUN)
    if design is None:
        off = max(abs(float(query.mean()) - float(query @ counts) / rows) for query in asked)
        return Errors(setting, rows, None, off, 0, questions, questions)
    wanted = {"updates": design.updates} if setting == "calibrated" else {}
    errors, measured = [], 0
    with TemporaryDirectory() as folder, Ledger(f"{folder}/ledger.sqlite") as ledger:
        ledger.cap(BUDGETS[RUN], table="rows")
        table = Table(Schema("rows", DOMAIN, UNIT), Histogram(counts))
        terms = {"epsilon": BUDGETS[RUN].epsilon, "queries": QUESTIONS, "confidence": CONFIDENCE, **wanted}
        with PMW(table, ledger=ledger, setting=setting, **terms) as opened:
            if opened.error != design.error:
                raise AssertionError(f"{setting} promises {opened.error}, and not {design.error}")
            for query in asked:
                try:
                    answer = opened.ask(Linear([Product((Factor(NAMES, query.reshape(DOMAIN.shape)),))]))
                except Refusal:
                    # The updates are used up: the error is that of what was answered.
                    break
                errors.append(abs(answer.value - int(query @ counts)) / rows)
                measured += answer.origin == "measured"
    return Errors(setting, rows, design.error / rows, max(errors), measured, len(errors), questions)


def sessions(sizes, questions):
    """A session for each setting and size."""
    found = []
    for setting in SETTINGS:
        for rows in sizes:
            few = setting == "calibrated" and rows >= MANY_ROWS
            found.append(session(setting, rows, min(questions, FEW_QUESTIONS) if few else questions, seed=1))
            print(found[-1], file=sys.stderr)
    return found

"""Sessions whose noise is written in a script: every transcript there is, and its exact probability.

A real session runs with a sparse vector that answers what the script says, and tells us the true value of every
comparison. The probability of the transcript on these values is then taken from the exact law of the mechanism that the
session would have used.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np

from discreet.accounting.filter import pure_gate
from discreet.lab.textbook.pmw import PMW
from discreet.lab.textbook.pmw_design import Design, comparison_scales
from discreet.ledger import Budget, Head, Ledger
from discreet.ledger.accounts import Scope
from discreet.ledger.ledger import Receipt
from discreet.ledger.store import Entry
from discreet.mechanism.protocol import LAW_BITS, Interactive
from discreet.mechanism.sparse_vector import Run
from discreet.mechanism.transcript import transcript_law
from discreet.noise.law import laplace_mass, laplace_tail
from discreet.numeric import ball, precision
from discreet.query import Linear
from discreet.query.product import box
from discreet.schema import Categories, Domain, Schema, Unit
from discreet.source.frame import Frame
from discreet.source.source import unseal
from discreet.source.table import Table


@dataclass
class Account:
    """As much of a balance as a session looks at."""

    gate: object = field(default_factory=lambda: pure_gate(100))
    scope: Scope = field(default_factory=lambda: Scope(("data",), None))


class Notebook(Ledger):
    """A ledger in memory that never refuses, and remembers in which order it was called."""

    def __init__(self):
        self.calls, self.kept = [], []

    def bind(self, identity, **named):
        pass

    def look(self, identity):
        pass

    def since(self, table):
        return 0

    def spend(self, event, why, **named):
        self.calls.append(("spend", event, why))
        return Receipt(Head("", len(self.calls), b""), "")

    def record(self, receipt, released, *, after=None):
        self.calls.append(("record", released))
        self.kept.append(Entry(len(self.kept) + 1, "{}", released, b""))
        return True

    def entries(self, after=0):
        return iter(self.kept)

    def balances(self, **_):
        return [Account()]

    def remaining(self, **_):
        return Budget(epsilon=1)

    def close(self):
        pass


def small_domain(cells):
    """So many cells, the last of them for all other values: no row is dropped."""
    return Domain({"x": Categories([f"v{at}" for at in range(cells - 1)])})


def table_of(counts, unit):
    domain = small_domain(len(counts))
    assert domain.shape == (len(counts),)
    assert not domain.drops
    rows = [{"x": f"v{at}"} for at, many in enumerate(counts) for _ in range(many)]
    return Table(Schema("data", domain, unit), Frame(rows or {"x": []}, domain=domain, unit=unit))


def subset(cells, chosen):
    return Linear([box({"x": np.isin(np.arange(cells), chosen)})])


def subsets(cells):
    """Every count that can be asked, but for nobody and everybody."""
    for places in product([False, True], repeat=cells):
        if any(places) and not all(places):
            yield subset(cells, np.flatnonzero(places))


def design_of(unit, *, hits, epsilon=Fraction(4), threshold=1, runs=1):
    """A design as small as its tables, with the shares that a session would take."""
    return Design(
        "calibrated", runs, hits, epsilon, epsilon / 4, epsilon / 4, threshold, 3, 3, 1, unit.neighbors == "add_remove"
    )


@dataclass(frozen=True)
class Heard:
    """What happened on one table: of each comparison the true value less the guess, and the guess; the true rows."""

    values: tuple[int, ...]
    guesses: tuple[int, ...]
    said: tuple[int | None, ...]
    rows: int
    told: tuple[object, ...]


def scripted(counts, unit, queries, script, design, *, rows, monkeypatch):
    """A whole session on these counts in which comparison t gives `script[t]`: None, or the value that is released."""
    heard, guesses, said, true = [], [], [], []

    def step(run, exact):
        value = int(unseal(exact, exact.sensitivity)[0])
        # The noisy threshold is 0 here, so what is added to it is the guess.
        heard.append(value - run.noisy_threshold)
        guesses.append(run.noisy_threshold)
        said.append(script[len(said)] if len(said) < len(script) else None)
        answer = said[-1]
        return Run(run.hits_left - (answer is not None), run.noisy_threshold), answer

    def count_rows(self):
        true.append(sum(counts))
        return rows

    stub = Interactive(design.event, lambda: Run(design.hits, 0), step, None, None)
    with monkeypatch.context() as patch:
        patch.setattr(PMW, "_designed", lambda *_: design)
        patch.setattr(PMW, "_noisy_rows", count_rows)
        patch.setattr(Design, "mechanism", lambda _: stub)
        session = PMW(table_of(counts, unit), ledger=Notebook(), epsilon=1, updates=design.hits)
        told = []
        for query in queries:
            if session.updates_left == 0:
                break
            answer = session.ask(query)
            told.append((answer.value, answer.error, answer.origin))
    return Heard(tuple(heard), tuple(guesses), tuple(said), true[0] if true else sum(counts), tuple(told))


def scales_of(design):
    first, second = (
        design.moves / design.first,
        2 * design.hits * design.moves / (design.epsilon - design.first - design.third),
    )
    assert comparison_scales(design) == (float(first), float(second))
    return first, second, design.value_scale


@cache
def law_of(values, beside, threshold, hits, scales):
    return transcript_law(values, [beside], threshold, hits, scales)


def path_loss(one, other, design, *, hits=None, scales=None):
    """ln of the ratio of the probabilities of one transcript on two tables, as an arb."""
    hits = design.hits if hits is None else hits
    scales = scales_of(design) if scales is None else scales
    here = law_of(one.values, other.values, design.threshold, hits, scales)
    there = law_of(other.values, one.values, design.threshold, hits, scales)
    # The law releases the value less the guess; beyond both true values the ratio is constant, so they are its ends.
    outcome = tuple(
        None if answer is None else min(max(answer - guess, min(a, b)), max(a, b))
        for answer, guess, a, b in zip(one.said, one.guesses, one.values, other.values, strict=True)
    )
    with precision(LAW_BITS):
        return (here.probabilities[outcome] / there.probabilities[outcome]).log()


def segments(heard, hits):
    """What happened, cut after every so many hits: each run has a threshold of its own."""
    start, found, pieces = 0, 0, []
    for place, answer in enumerate(heard.said):
        found += answer is not None
        if found == hits or place == len(heard.said) - 1:
            cut = slice(start, place + 1)
            parts = (heard.values[cut], heard.guesses[cut], heard.said[cut])
            pieces.append(Heard(*parts, heard.rows, heard.told))
            start, found = place + 1, 0
    return pieces


def fresh_runs_loss(one, other, design):
    """The loss of a transcript of several runs: their thresholds are independent, so their losses add up."""
    pairs = zip(segments(one, design.hits), segments(other, design.hits), strict=True)
    return sum((path_loss(a, b, design) for a, b in pairs), ball(0))


def rows_loss(one, other, design):
    """What the number of rows tells at most, where it is measured."""
    return abs(one.rows - other.rows) / design.value_scale if design.tells_rows else Fraction(0)


def exact(loss):
    with precision(LAW_BITS):
        return ball(loss)


def unit_of(neighbors):
    return Unit(neighbors=neighbors)


def reused_noise_loss(one, other, design):
    """The same for a broken session that releases the very noisy value it compared, in its last step."""
    with precision(LAW_BITS):
        here, there = (_reused(heard, design) for heard in (one, other))
        return (here / there).log()


@cache
def above(least, scale):
    """Pr[X ≥ least], remembered: it is asked for again and again."""
    with precision(LAW_BITS):
        return laplace_tail(least, scale)


def _reused(heard, design):
    first, second, _ = scales_of(design)
    reach = int(84 * first) + 2
    mass = ball(0)
    for z in range(-reach, reach + 1):
        chance = laplace_mass(z, first)
        for value, guess, answer in zip(heard.values, heard.guesses, heard.said, strict=True):
            if answer is None:
                chance = chance * (1 - above(design.threshold + z - value, second))
            elif answer - guess < design.threshold + z:
                chance = chance * 0
            else:
                chance = chance * laplace_mass(answer - guess - value, second)
        mass = mass + chance
    return mass

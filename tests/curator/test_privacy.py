"""What one person can change in a whole session: nothing but true values, and those by no more than was paid."""

import json
from collections import Counter
from fractions import Fraction
from functools import reduce
from math import ceil, lcm, prod

import numpy as np
import pytest

import discreet.accounting.sensitivity
import discreet.plan.steps
from discreet.accounting.event import Gaussian, Nothing
from discreet.accounting.filter import TICK
from discreet.curator import Curator
from discreet.curator.release_run import RequestExecutor
from discreet.errors import BudgetExceeded
from discreet.ledger import Budget, Ledger
from discreet.plan.plan import Steps
from discreet.query import Marginal
from discreet.schema import Unit
from discreet.source.frame import Frame
from discreet.source.source import Source, unseal
from support.neighbours import (
    BUDGETS,
    DROPS,
    KEEPS,
    PLENTY,
    PURE,
    UNITS,
    broken_promises,
    heard_session,
    outcome,
    random_pair,
    random_questions,
    session_loss,
)

ADD, REPLACE = Unit(), Unit(neighbors="replace_one")
PERSON, PERSON_REPLACED = (Unit(key="who", contributions=3, neighbors=unit.neighbors) for unit in (ADD, REPLACE))


def session(seed, how_many, **fixed):
    """A pair of neighbours and a session on them, by number."""
    rng = np.random.default_rng([11, seed])
    pair = random_pair(rng, **fixed)
    return pair, random_questions(rng, pair.domain, how_many)


def make_impatient(monkeypatch, seed):
    """Every third session measures numbers by themselves where it can, and not the lattice."""
    if seed % 3 == 2:
        monkeypatch.setattr(discreet.plan.steps, "LATTICE_RENTAL_FACTOR", 0.0)


# --- Record and replay -----------------------------------------------------------------------------------------------


def assert_nothing_leaks(seed, how_many, tmp_path, monkeypatch, budget=None):
    make_impatient(monkeypatch, seed)
    pair, questions = session(seed, how_many)
    budget = BUDGETS[seed // 3 % len(BUDGETS)] if budget is None else budget
    broken, _ = broken_promises(pair, questions, folder=tmp_path, budget=budget, seed=seed)
    assert broken == []


@pytest.mark.parametrize("seed", range(9))
def test_neighbours_see_the_same_course_of_events_and_values_within_what_was_paid(seed, tmp_path, monkeypatch):
    assert_nothing_leaks(seed, 40, tmp_path, monkeypatch)


@pytest.mark.parametrize("seed", range(12, 15))
def test_neighbours_see_the_same_where_delta_is_0(seed, tmp_path, monkeypatch):
    assert_nothing_leaks(seed, 10, tmp_path, monkeypatch, PURE)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1000, 1200))
def test_neighbours_of_200_long_sessions_see_the_same(seed, tmp_path, monkeypatch):
    assert_nothing_leaks(seed, 100, tmp_path, monkeypatch)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2000, 2040))
def test_neighbours_of_40_long_sessions_see_the_same_where_delta_is_0(seed, tmp_path, monkeypatch):
    assert_nothing_leaks(seed, 40, tmp_path, monkeypatch, PURE)


def test_the_sessions_have_all_kinds_of_questions_releases_and_refusals(tmp_path, monkeypatch):
    seen = Counter()
    for seed in range(9):
        with monkeypatch.context() as patch:
            make_impatient(patch, seed)
            pair, questions = session(seed, 40)
            heard = heard_session(
                pair.tables()[0], questions, folder=tmp_path, budget=BUDGETS[seed // 3 % len(BUDGETS)]
            )
        seen.update(type(call[1]).__name__ for call in heard.calls if call[0] == "evaluate")
        seen.update(kind for call in heard.calls if call[0] == "outcome" for kind in kinds(call[1]))
    assert min(seen[kind] for kind in ("Measurement", "Linear", "Marginal")) >= 3
    assert min(seen[kind] for kind in ("known", "measured", "direct", "BadQuery", "BudgetExceeded")) >= 3


def kinds(outcome):
    """The error, or where each of the answers came from."""
    if isinstance(outcome[0], str):
        return [outcome[0]]
    return [dict(answer)["origin"].strip("'") for answer in outcome]


@pytest.mark.parametrize("unit", [ADD, PERSON], ids=lambda unit: unit.describe)
def test_what_is_paid_is_not_far_above_what_a_person_moves(unit, tmp_path):
    """Pieces are flat: whoever is added moves them by exactly what was declared."""
    shares = []
    for seed in range(3):
        pair, questions = session(seed, 15, domain=DROPS, unit=unit)
        one, other = pair.tables()
        first = heard_session(one, questions, folder=tmp_path, budget=BUDGETS[1], seed=seed)
        second = heard_session(other, questions, folder=tmp_path, budget=BUDGETS[1], first=first)
        shares.append(float(session_loss(first, second) / first.spent))
    assert max(shares) <= 1
    assert max(shares) > (0.9 if unit is ADD else 0.05)


# --- Curators that are wrong -----------------------------------------------------------------------------------------


def broken_in_some_session(tmp_path, *, sessions=6, how_many=25, budget=PLENTY, source=Frame, **fixed):
    """All that is found wrong in a few sessions."""
    found = set()
    for seed in range(sessions):
        pair, questions = session(seed, how_many, **fixed)
        found.update(broken_promises(pair, questions, folder=tmp_path, budget=budget, source=source)[0])
    return found


def number_of_rows(table):
    exact = Source.evaluate(table.source, Marginal(()))
    return int(unseal(exact, exact.sensitivity)[0])


def test_a_plan_that_looks_at_the_rows_is_seen(tmp_path, monkeypatch):
    right = Curator._meet

    def peeks(self, *arguments):
        return [] if number_of_rows(self.table) % 2 else right(self, *arguments)

    monkeypatch.setattr(Curator, "_meet", peeks)
    assert broken_in_some_session(tmp_path, sessions=4, domain=KEEPS, unit=ADD) & {"another step", "another outcome"}


def test_an_error_that_depends_on_the_rows_is_seen(tmp_path, monkeypatch):
    right = Curator._meet

    def raises(self, *arguments):
        assert number_of_rows(self.table) % 2, "an even number of rows"
        return right(self, *arguments)

    monkeypatch.setattr(Curator, "_meet", raises)
    assert broken_in_some_session(tmp_path, sessions=4, domain=KEEPS, unit=ADD) & {"another step", "another outcome"}


def test_rows_that_are_read_before_they_are_paid_for_are_seen(tmp_path, monkeypatch):
    right = RequestExecutor.transact

    def reads_first(self, *arguments, **settings):
        self.table.evaluate(Marginal(()))
        return right(self, *arguments, **settings)

    monkeypatch.setattr(RequestExecutor, "transact", reads_first)
    assert broken_in_some_session(tmp_path, sessions=1) == {"evaluate before it is paid"}


def too_many_rows(rows, *, domain, unit):
    """A source that keeps up to four rows of a person and declares fewer."""
    frame = Frame(rows, domain=domain, unit=Unit(key=unit.key, contributions=4, neighbors=unit.neighbors))
    frame.unit = unit
    return frame


@pytest.mark.parametrize(
    ("neighbors", "budget"), [("add_remove", PLENTY), ("replace_one", PLENTY), ("add_remove", PURE)]
)
def test_a_source_that_keeps_more_rows_of_a_person_than_it_declares_is_seen(neighbors, budget, tmp_path):
    fixed = {
        "sessions": 3,
        "how_many": 4,
        "domain": DROPS,
        "unit": Unit(key="who", neighbors=neighbors),
        "budget": budget,
    }
    assert broken_in_some_session(tmp_path, **fixed) == set()
    assert broken_in_some_session(tmp_path, **fixed, source=too_many_rows) == {"more than declared", "more than paid"}


def test_an_exchange_priced_like_a_row_that_comes_or_goes_is_seen(tmp_path, monkeypatch):
    monkeypatch.setattr(
        discreet.accounting.sensitivity, "_largest_exchange", lambda axes, lengths, total: Fraction(total)
    )
    found = broken_in_some_session(tmp_path, sessions=3, domain=KEEPS, unit=REPLACE)
    assert "more than declared" in found


def test_half_the_price_is_seen(tmp_path, monkeypatch):
    right = Steps.event

    def cheaper(self, *arguments):
        event = right(self, *arguments)
        return Gaussian(event.sigma, event.squared_sensitivity / 2) if isinstance(event, Gaussian) else event

    monkeypatch.setattr(Steps, "event", cheaper)
    assert broken_in_some_session(tmp_path, sessions=3, domain=KEEPS, unit=ADD) == {"more than paid"}


# --- The price, computed again ---------------------------------------------------------------------------------------


def haar(cells, level):
    """+1 on the first half of each block of a level, −1 on the second; cut to the cells that are there."""
    padded = 1
    while padded < cells:
        padded *= 2
    rows = np.zeros((2 ** (level - 1), padded), dtype=object)
    block = padded // 2 ** (level - 1)
    for row in range(len(rows)):
        rows[row, row * block : row * block + block // 2] = 1
        rows[row, row * block + block // 2 : (row + 1) * block] = -1
    return rows[:, :cells]


def part_matrix(column, part):
    """What a part of a column measures, from its definition."""
    cells = column.size
    if part == 0:
        return np.ones((1, cells), dtype=object)
    if column.ordered or cells == 2:
        return haar(cells, part)
    return np.array([[cells - 1 if a == b else -1 for b in range(cells)] for a in range(cells)], dtype=object)


def effects_of(step, domain):
    """What a row in each cell of the domain adds to each number of a step over its noise, times a number: both."""
    names = sorted(domain)
    if "pieces" not in step:
        plain = step["direct"] if "direct" in step else {"columns": step["whole"], "weight": None}
        scale = 1 / Fraction(step.get("sigma") or step["scale"])
        return scale.numerator * direct_effects(plain, domain, names), scale.denominator
    inverses = [1 / Fraction(sigma) for _, sigma in step["pieces"]]
    scale = lcm(*(each.denominator for each in inverses))
    blocks = []
    for (parts, _), inverse in zip(step["pieces"], inverses, strict=True):
        by_name = dict(zip(step["of"], parts, strict=True))
        dense = reduce(np.kron, [part_matrix(domain[name], by_name.get(name, 0)) for name in names])
        blocks.append(int(scale * inverse) * dense)
    return np.vstack(blocks), scale


def direct_effects(plain, domain, names):
    cells = np.indices([domain[name].size for name in names]).reshape(len(names), -1)
    products = plain["products"] if "products" in plain else plain["weight"]
    weights = np.ones(cells.shape[1], dtype=object)
    if products is not None:
        weights = np.zeros(cells.shape[1], dtype=object)
        for coefficient, factors in products:
            term = np.full(cells.shape[1], coefficient, dtype=object)
            for columns, shape, listed in factors:
                table = np.array(listed, dtype=object).reshape(shape)
                term = term * table[tuple(cells[names.index(name)] for name in columns)]
            weights = weights + term
    if "products" in plain:
        return weights[None, :]
    shape = [domain[name].size for name in plain["columns"]]
    groups = np.ravel_multi_index([cells[names.index(name)] for name in plain["columns"]], shape) if shape else 0
    return (np.arange(prod(shape))[:, None] == groups) * weights


def largest_move(matrix, unit, drops, power):
    """The longest column, or the largest distance of two, as a sum of absolute values or of squares; for all rows."""
    columns = matrix.T
    if unit.neighbors == "replace_one" and (unit.key is not None or drops):
        columns = np.vstack([columns, np.zeros((1, columns.shape[1]), dtype=object)])
    others = columns if unit.neighbors == "replace_one" else [0]
    return unit.contributions**power * max(int((abs(columns - other) ** power).sum(axis=1).max()) for other in others)


def recomputed(released, domain, unit):
    """What a spend must cost, in ticks, from nothing but what was recorded for it; whether that is exact."""
    magic, header, _ = released.split(b"\n", 2)
    assert magic == b"discreet record 2"
    steps = json.loads(header)["steps"]
    price = Fraction(0)
    for step in steps:
        matrix, scale = effects_of(step, domain)
        power = 1 if "scale" in step else 2
        price += Fraction(largest_move(matrix, unit, domain.drops, power), scale**power)
    # Of sums in groups the declared bound may be above the truth (contribution.md, Lemma 3).
    exact = all("direct" not in step or step["direct"].get("weight") is None for step in steps)
    return ceil(price / TICK), exact


def recorded_session(seed, how_many, tmp_path, *, budget=PLENTY, **fixed):
    """What a session paid for: of each spend what was recorded and charged, as the ledger has them; and the total."""
    pair, questions = session(seed, how_many, **fixed)
    with Ledger(tmp_path / f"{seed}.sqlite") as ledger:
        desk = Curator(pair.tables()[0], budget=budget, ledger=ledger)
        for how, question, wish in questions:
            outcome(desk, how, question, wish)
        fields = [json.loads(entry.body) for entry in ledger.entries()]
        charges = [each["charge"][budget.gate][0] for each in fields if each["is"] == "spend"]
        spends = zip(desk.history(), charges, strict=True)
        paid = [(spend.released, charge) for spend, charge in spends if spend.event != Nothing()]
        return paid, ledger.balances()[0].spent_ticks[0]


@pytest.mark.parametrize("domain", [KEEPS, DROPS], ids=["keeps", "drops"])
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.describe)
@pytest.mark.parametrize("how", ["patient", "impatient", "pure"])
def test_the_total_of_the_ledger_follows_from_the_matrices_that_were_recorded(domain, unit, how, tmp_path, monkeypatch):
    if how == "impatient":
        monkeypatch.setattr(discreet.plan.steps, "LATTICE_RENTAL_FACTOR", 0.0)
    budget = PURE if how == "pure" else PLENTY
    paid, total = recorded_session(3, 8 if how == "pure" else 25, tmp_path, budget=budget, domain=domain, unit=unit)
    assert len(paid) >= 2
    again = 0
    for released, charge in paid:
        ticks, exact = recomputed(released, domain, unit)
        assert ticks == charge if exact else ticks <= charge
        again += ticks if exact else charge
    assert again == total


@pytest.mark.parametrize("budget", [PLENTY, PURE], ids=str)
def test_the_total_computed_with_another_relation_would_be_another(budget, tmp_path):
    paid, _ = recorded_session(3, 8, tmp_path, budget=budget, domain=KEEPS, unit=REPLACE)
    for wrong in (ADD, PERSON_REPLACED):
        assert any(recomputed(released, KEEPS, wrong)[0] != charge for released, charge in paid)


# --- Errors ----------------------------------------------------------------------------------------------------------

NOBODY = "city = 'a' AND city = 'b'"


ASKED = {
    "ask": lambda desk: desk.ask(NOBODY, error=10).value,
    "ask for a price": lambda desk: desk.ask(NOBODY, epsilon=0.1).value,
    "ask_many": lambda desk: desk.ask_many([NOBODY, "sex"], error=10)[0].value,
    "plan": lambda desk: 0 if desk.plan(NOBODY, error=10).free else 1,
}


@pytest.mark.parametrize("how", ASKED)
def test_a_question_about_nobody_has_the_answer_0_and_is_free(how, tmp_path):
    pair, _ = session(0, 0, domain=KEEPS, unit=ADD)
    with Curator(pair.tables()[0], budget=Budget(epsilon=1, delta=1e-6), ledger=tmp_path / "x.sqlite") as desk:
        assert ASKED[how](desk) == 0


def test_a_question_that_is_refused_costs_nothing(tmp_path):
    pair, _ = session(0, 0, domain=KEEPS, unit=ADD)
    with Curator(pair.tables()[0], budget=Budget(epsilon=1, delta=1e-6), ledger=tmp_path / "x.sqlite") as desk:
        with pytest.raises(BudgetExceeded):
            desk.ask("SELECT SUM(age) FROM data", error=0.01)
        assert desk.history() == []


def test_a_mean_that_is_refused_has_paid_for_a_look_at_its_rows_and_hardly_more(tmp_path):
    """How many rows a mean is of decides what it costs, and is private: it is looked at first."""
    pair, _ = session(0, 0, domain=KEEPS, unit=ADD)
    with Curator(pair.tables()[0], budget=Budget(epsilon=1, delta=1e-6), ledger=tmp_path / "x.sqlite") as desk:
        with pytest.raises(BudgetExceeded):
            desk.ask("SELECT AVG(age) FROM data", error=0.01)
        assert desk.ledger.balances()[0].share_left > 0.9

"""Whatever question is accepted, as JSON or as SQL, a desk answers as it reads, and what it paid covers it.

A second program (`rowwise.py`) reads the JSON row by row. Tables are tiny, as they are or as a crowd in which every row
stands two hundred times, so that noise far below that leaves the exact numbers to be seen; the first reach the
answers that are measured by themselves, the second all that follows from pieces and marginals. Questions are asked one
after the other at one desk, so what is known answers too.
"""

from collections import Counter
from functools import lru_cache
from math import ceil, inf, log
from random import Random
from statistics import NormalDist

import ibis
import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

import discreet as dp
from discreet.accounting.event import Compose, Gaussian, Laplace, Nothing, Repeat
from discreet.curator.question import read_question
from discreet.errors import BadQuery, BudgetExceeded, Mistake, Refusal, TooLarge
from discreet.source.table import open as open_table
from discreet.wire.question_json import question_from_plain
from query import grown, rowwise
from query.grown import CROWD
from query.rowwise import SHOWN, Unsure
from support.query_oracle import moves, mutated, sent

COLUMNS = {
    "h": dp.Integers(-1, 2),
    "a": dp.Categories(["x", "y"], missing="missing"),
    "b": dp.Boolean(missing="missing"),
    "g": dp.Bins([0, 5, 10], upper=20),
    "o": dp.Categories(["lo", "mid", "hi"], ordered=True, outside="drop"),
}
NAMES = [("o", "a"), ("b", "h"), ("h", "a", "b"), ("g", "o", "a"), ("o", "h", "b")]
UNITS = [
    dp.Unit(),
    dp.Unit(neighbors="replace_one"),
    dp.Unit(key="who", contributions=2),
    dp.Unit(key="who", contributions=2, neighbors="replace_one"),
]
GAUSSIAN, PURE = dp.Budget(epsilon=1000, delta=1e-9), dp.Budget(epsilon=1000)
MISSES = 1e-9
SURE = 1 - MISSES
Z = NormalDist().inv_cdf(1 - MISSES / 2)
STRANGE = {"h": [7, -9], "a": ["w"], "b": [], "g": [33, -2, 4, 9], "o": ["none", None]}


@lru_cache(maxsize=16)
def rows_of(seed, names):
    """Ten to forty rows of raw values, also such as are clipped, unlisted, missing or dropped."""
    random = Random(f"rows {seed}")
    return [
        {name: random.choice(rowwise.RAW[name] * 3 + STRANGE[name]) for name in names}
        for _ in range(random.randint(10, 40))
    ]


@lru_cache(maxsize=4)
def table_of(seed, names, unit, times, engine):
    """The rows as a table, each so many times; a person has one of them or two."""
    rows = rows_of(seed, names)
    data = {name: [row[name] for row in rows] * times for name in names}
    if unit.key is not None:
        data["who"] = [f"{copy}-{place * 2 // 3}" for copy in range(times) for place in range(len(rows))]
    domain = dp.Domain({name: COLUMNS[name] for name in names})
    return open_table(ibis.memtable(data) if engine else data, domain=domain, unit=unit)


# What is asked, and how well.


class Asked:
    """A question, its tree, and what it says: the oracle's side of it."""

    def __init__(self, question, tree, names, *, sql=False):
        self.question, self.tree, self.names, self.sql = question, tree, names, sql
        self.is_statement = "select" in tree
        items = rowwise.items_of(tree) if self.is_statement else [("count", None, "value")]
        self.aggregates = [kind for kind, _, _ in items if kind != "group"]
        self.is_mean = "avg" in self.aggregates or "numerator" in tree

    def numbers(self, rows):
        """All exact numbers in a row, for the movement: of a mean none."""
        if not self.is_statement:
            return rowwise.meaning(self.tree, rows)
        full = rowwise.table(self.tree, rows, sql=self.sql)
        return [number for _, numbers in full for number in numbers.values()]

    def effects(self):
        """What a row in each cell adds to each number; one that is asked twice is told once."""
        rows = [self.numbers([cell]) for cell in rowwise.every_cell(self.names)]
        return [list(row) for row in zip(*dict.fromkeys(zip(*rows, strict=True)), strict=True)]


def heaviest_of(effects):
    return max((abs(each) for row in effects for each in row), default=1)


def wishes(asked, effects, times):
    """Errors to try, one after the other until one can be paid; the first leaves no doubt."""
    if asked.is_mean:
        return [0.4, 8, 160]
    heaviest = heaviest_of(effects)
    if times == 1 and heaviest < 10:
        return [0.4, 8, 160]
    return [min(each * max(1, heaviest), 10**15) for each in (20, 400)]


# Whether an answer says what it should.


def fits(value, error, exact, heaviest=1):
    """Whether one released number is the exact one, within its error; where there is none, anything may be said."""
    if isinstance(exact, tuple):
        exact = exact[0] / exact[1] if exact[1] > 0 else None
    if exact is None or (value is None and error > 0):
        return True
    return value is not None and abs(value - exact) <= error + 1e-9 * max(1, abs(exact)) + 1e-12 * heaviest


def check_answer(asked, answer, rows, wish, times, seen):
    columns = answer.columns
    if not asked.is_statement:
        (name,) = (each for each in columns if f"{each}_error" in columns)
        exact = rowwise.meaning(asked.tree, rows)
        exact = [each if isinstance(each, tuple) else each * times for each in exact]
        check_column(asked, columns[name], columns[f"{name}_error"], exact, wish)
        for place, group in enumerate(asked.tree.get("columns", [])):
            cells = [cell[group] for cell in rowwise.every_cell(asked.tree["columns"])]
            assert columns[group] == [SHOWN[group][rowwise.code(group, raw)] for raw in cells], place
        return
    items = rowwise.items_of(asked.tree)
    full = [
        (place, {name: scaled(kind, numbers[name], times) for kind, _, name in items if kind != "group"})
        for place, numbers in rowwise.table(asked.tree, rows, sql=asked.sql)
    ]
    kind_of = {name: kind for kind, _, name in items}

    def near(name):
        if kind_of[name] == "avg" and times == 1:
            # Of so few rows noise may leave none, and then there is no mean to choose by.
            raise Unsure
        largest = max([wish or 0, *columns[f"{name}_error"]])
        return 3 * largest if kind_of[name] == "avg" else largest

    classes, limit = rowwise.shown_rows(asked.tree, full, near, sql=asked.sql)
    found = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    expected = sum(map(len, classes))
    assert len(found) == (expected if limit is None else min(expected, limit)), (asked.question, columns)
    for part in classes:
        here, found = found[: len(part)], found[len(part) :]
        # Two groups may look alike where their column is not shown, so any pairing that fits will do.
        pairs = np.array([[same(one, row, items) for one in part] for row in here], dtype=np.int8)
        matched = maximum_bipartite_matching(csr_array(pairs), perm_type="column") if here else np.empty(0)
        assert (matched >= 0).all(), (asked.question, here, part)
    seen["rows"] += sum(map(len, classes))


def scaled(kind, number, times):
    return number if kind == "avg" or number is None else number * times


def same(one, row, items):
    place, numbers = one
    for kind, column, name in items:
        if kind == "group":
            shown = SHOWN[column][rowwise.code(column, place[column])]
            if row[name] != shown or type(row[name]) is not type(shown):
                return False
        elif not fits(row[name], row[f"{name}_error"], numbers[name]):
            return False
    return True


def check_column(asked, values, errors, exact, wish):
    assert len(values) == len(exact), asked.question
    # Numbers are doubles: of a row that weighs 2^32 the last places are not there.
    heaviest = heaviest_of([pair for (pair,) in asked.effects()] if "numerator" in asked.tree else asked.effects())
    for value, error, each in zip(values, errors, exact, strict=True):
        assert fits(value, error, each, heaviest), (asked.question, value, error, each)
        assert wish is None or asked.is_mean or error <= wish * (1 + 1e-6), (asked.question, error, wish)


# Whether it was paid for.


def losses(event):
    """The squared mu and the epsilon of what was done."""
    match event:
        case Nothing():
            return 0, 0
        case Gaussian(sigma, squared):
            return squared / sigma**2, inf
        case Laplace(scale, sensitivity):
            return inf, sensitivity / scale
        case Compose(events):
            return tuple(map(sum, zip(*map(losses, events), strict=True)))
        case Repeat(one, times):
            return tuple(times * each for each in losses(one))
    raise AssertionError(f"{event} is nothing that a question does")


def is_pure(desk):
    return desk.remaining.delta == 0


def errors_of(answer):
    columns = answer.columns
    return [error for name in columns if f"{name}_error" in columns for error in columns[f"{name}_error"]]


def check_price(asked, answer, effects, unit, desk, seen):
    """What was paid for all so far covers what this answer tells of anybody, whom brute force finds."""
    droppable = "o" in asked.names
    cost = answer.cost
    # Of two aggregates one may have been known, and then only the other was measured.
    alone = answer.origin == "direct" and isinstance(cost, (Gaussian, Laplace)) and len(asked.aggregates) == 1
    if alone and len({*map(tuple, effects)}) <= 8:
        l1, l2_squared, _ = moves(effects, unit, droppable=droppable)
        declared = cost.sensitivity if isinstance(cost, Laplace) else cost.squared_sensitivity
        assert declared >= (l1 if isinstance(cost, Laplace) else l2_squared), (asked.question, cost)
        seen["direct prices"] += 1
    errors = errors_of(answer)
    if not errors:
        return
    # In one number: the best error of any cell, and the farthest that anybody moves the cell that moves least.
    farthest = min(
        moves([[row[place]] for row in effects], unit, droppable=droppable)[2] for place in range(len(effects[0]))
    )
    if not farthest:
        return
    squared, epsilon = (
        map(sum, zip(*(losses(spend.event) for spend in desk.history()), strict=True)) if desk.history() else (0, 0)
    )
    if is_pure(desk):
        # So many people move it out of the bar, and each changes no probability by more than e^epsilon.
        people = ceil((2 * max(errors) + 1) / farthest)
        assert people * epsilon >= 0.999 * log((1 - MISSES) / MISSES), (asked.question, epsilon, max(errors))
    else:
        assert squared >= 0.999 * (Z * float(farthest) / (max(errors) + 1)) ** 2, (asked.question, squared, max(errors))
    seen["prices"] += 1


# A desk, and questions one after the other.


def read(random, names):
    """The next question: from the grammar, mutated, or as SQL; None where JSON is refused."""
    kind = random.randrange(10)
    if kind <= 2:
        text, tree = grown.sql(random, list(names))
        return Asked(text, tree, names, sql=True)
    plain = grown.body(random, list(names))
    if kind <= 4:
        plain = mutated(plain, random, names)
    plain = sent(plain)
    question = question_from_plain(plain, table="data")
    return None if isinstance(question, str) else Asked(question, plain, names)


def paid_for(desk, asked, errors):
    for error in errors:
        before = len(desk.history())
        try:
            return desk.ask(asked.question, error=error, confidence=SURE), error
        except BudgetExceeded:
            continue
        except TooLarge:
            assert len(desk.history()) == before, "what is too large was paid for"
    return None, None


def try_one(desk, random, names, rows, unit, times, seen):
    seen["tried"] += 1
    try:
        asked = read(random, names)
        if asked is None:
            return
        read_question(asked.question, desk.table.domain, "data")
    except (Mistake, Refusal):
        return
    seen["accepted"] += 1
    seen["sql" if asked.sql else "json"] += 1
    effects = None if asked.is_mean else asked.effects()
    answer, wish = paid_for(desk, asked, wishes(asked, effects, times))
    if answer is None:
        seen["unaffordable"] += 1
        return
    seen[answer.origin] += 1
    try:
        check_answer(asked, answer, rows, wish, times, seen)
        said = any(error < inf for error in errors_of(answer))
        if said and (not is_pure(desk) or random.random() < 0.2):
            check_answer(asked, desk.ask(asked.question, confidence=SURE), rows, None, times, seen)
        seen["brute-forced"] += 1
    except Unsure:
        seen["unsure"] += 1
    if effects is not None and effects[0]:
        check_price(asked, answer, effects, unit, desk, seen)


def run_desk(seed, questions, folder, seen):
    """One desk and so many questions."""
    random = Random(f"desk {seed}")
    # Bars without a delta take long to compute, of means above all: fewer of those, and of two columns.
    budget, names = (PURE, NAMES[seed % 64 == 63]) if seed % 4 == 3 else (GAUSSIAN, random.choice(NAMES[1:]))
    unit, times = UNITS[seed // 2 % 4], (1, CROWD, CROWD)[seed % 3]
    rows = rows_of(seed % 97, names)
    table = table_of(seed % 97, names, unit, times, seed % 10 == 9)
    with dp.Curator(table, budget=budget, ledger=folder / f"{seed}.sqlite") as desk:
        for _ in range(questions):
            try_one(desk, random, names, rowwise.kept(rows), unit, times, seen)


def run(desks, questions, folder):
    """So many desks; every tenth table is in an engine."""
    seen = Counter()
    for seed in range(desks):
        run_desk(seed, questions, folder, seen)
    return seen


def check_counts(seen):
    """A test in which nothing is accepted, or nothing is known, would show nothing."""
    print(dict(seen))
    assert seen["accepted"] > seen["tried"] / 3
    assert seen["brute-forced"] > 0.7 * seen["accepted"]
    assert min(seen[each] for each in ("known", "measured", "direct", "sql", "json", "prices", "direct prices")) > 0


def test_whatever_is_accepted_is_answered_as_it_reads(tmp_path):
    check_counts(run(20, 16, tmp_path))


# What it found.


@pytest.fixture(params=[(CROWD, GAUSSIAN), (1, GAUSSIAN), (CROWD, PURE)], ids=["crowd", "tiny", "pure"])
def desk(request, tmp_path):
    times, budget = request.param
    table = table_of(5, ("b", "h"), UNITS[0], times, False)
    with dp.Curator(table, budget=budget, ledger=tmp_path / "l.sqlite") as opened:
        yield opened


def test_a_mean_of_groups_of_one_value_has_no_error(desk):
    answer = desk.ask("SELECT h, AVG(h) AS m FROM data GROUP BY h", error=0.3)
    assert [value for value in answer.columns["m"] if value is not None][:4] == pytest.approx([-1, 0, 1, 2], abs=0.3)
    assert desk.plan("SELECT h, AVG(h) AS m FROM data GROUP BY h", error=0.3).free


@pytest.mark.parametrize("weight", [-1, 0])
def test_a_quotient_by_nothing_is_refused_and_not_looked_at(desk, weight):
    body = {"numerator": {"products": [[1, []]]}, "denominator": {"products": [[weight, [[["b"], [3], [1, 0, 0]]]]]}}
    for error in (0.4, 100):
        with pytest.raises(BadQuery, match="the denominator is never above 0"):
            desk.ask(question_from_plain(body, table="data"), error=error, confidence=SURE)
    assert desk.history() == []


def test_what_weighs_too_much_is_refused_before_the_rest_is_paid(desk):
    heavy = {"products": [[1, [[["b"], [3], [0, 2**40, 1]]]]]}
    body = {"numerator": heavy, "denominator": {"products": [[1, []]]}}
    for plain in (body, heavy, {"columns": ["h"], "weight": heavy["products"]}):
        with pytest.raises(TooLarge, match="a row may weigh up to 1099511627776"):
            desk.ask(question_from_plain(plain, table="data"), error=10**6)
    assert desk.history() == []


@pytest.mark.long
def test_whatever_is_accepted_is_answered_as_it_reads_ten_thousand_times(tmp_path):
    seen = run(640, 16, tmp_path)
    check_counts(seen)
    assert seen["tried"] >= 10_000

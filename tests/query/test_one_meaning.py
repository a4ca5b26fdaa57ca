"""A query has one meaning: any JSON that is accepted, any object that can be made, moves by what is declared for it.

Bodies grow from the grammar and from noise. What is accepted is compared with a second program
(`support/query_oracle.py`) that reads the JSON alone: the largest move over all
neighbours, and the true answer, from every source and by every program.
"""

import copy
import pickle
from collections import Counter
from dataclasses import replace
from functools import lru_cache
from random import Random

import ibis
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet.accounting.sensitivity import Sensitivity
from discreet.errors import BadQuery, Mistake, Refusal
from discreet.lab.textbook.pmw_model import read_count
from discreet.model.dense.dense_model import Dense
from discreet.query import Linear, Marginal, Ratio
from discreet.query.linear import counts_rows
from discreet.query.product import Factor, Product
from discreet.query.query_wire import query_from_plain, query_to_plain
from discreet.schema import Unit
from discreet.source.frame import Bitmaps, Frame
from discreet.source.query_sensitivity import linear_queries, sensitivity_of
from discreet.source.source import Source, unseal
from discreet.source.table import open as open_table
from discreet.wire.question_json import question_from_plain
from support.query_oracle import BODIES, CELLS, DROPPING, KEEPING, LINEARS, SIZES, effects, moves, mutated, sent

UNITS = [
    Unit(),
    Unit(neighbors="replace_one"),
    Unit(key="who", contributions=2),
    Unit(key="who", contributions=2, neighbors="replace_one"),
]
# Where every cell has rows, and no two cells as many.
COUNTS = np.array([3 + 7 * place % 13 + place for place in range(len(CELLS))])


@lru_cache
def raw(domain):
    """The rows as somebody would have them, with some that the schema drops or moves."""
    codes = np.repeat(np.array(CELLS), COUNTS, axis=0)
    data = {name: [domain[name].values[code] for code in codes[:, place]] for place, name in enumerate(SIZES)}
    if domain is DROPPING:
        data = {name: [*values, values[0]] for name, values in data.items()}
        data["c"][-1] = "neither"
    return data


@lru_cache
def frame(domain):
    return Frame(raw(domain), domain=domain)


@lru_cache
def engine(domain):
    return open_table(ibis.memtable(raw(domain)), domain=domain).source


def opened(exact):
    return unseal(exact, exact.sensitivity).tolist()


def expected(rows):
    return [int(total) for total in np.array(rows, dtype=object).T @ COUNTS.astype(object)]


def check_moves(question, plain, rows, *, exact, domain=DROPPING):
    """What is declared is what the worst neighbour does; where it is documented as a bound, no less."""
    for unit in UNITS:
        declared = sensitivity_of(question, domain, unit)
        true = Sensitivity(*moves(rows, unit, droppable=domain is DROPPING))
        if exact:
            assert replace(declared, direction=0) == true, (plain, unit, domain)
        assert replace(declared, direction=0).covers(true), (plain, unit, domain)
        signs = {declared.direction * weight >= 0 for row in rows for weight in row}
        assert declared.direction == 0 or (signs == {True} and unit.neighbors == "add_remove")


def check_values(question, plain, rows, *, slow, domain):
    """All programs that compute the answer compute what the JSON says."""
    truth, source = expected(rows), frame(domain)
    exact = source.evaluate(question)
    assert opened(exact) == truth, plain
    assert exact.sensitivity == sensitivity_of(question, domain, Unit())
    if slow:
        assert opened(engine(domain).evaluate(question)) == truth, plain
    if isinstance(question, Marginal):
        if question.weight is not None and question.scope:
            assert source._stream_sums(question.columns, question.weight).tolist() == truth, plain
        return
    queries = linear_queries(question)
    assert Source._answers(source, queries) == truth, plain
    bits = Bitmaps({name: source._codes[name] for name in SIZES}, source._rows)
    assert [bits.answer(query) for query in queries] == truth, plain
    for place, query in enumerate(queries):
        shape = [SIZES[name] if name in query.scope else 1 for name in sorted(SIZES)]
        full = np.broadcast_to(query.table(KEEPING).reshape(shape), [SIZES[name] for name in sorted(SIZES)])
        own = full.transpose([sorted(SIZES).index(name) for name in SIZES]).ravel().tolist()
        assert own == [row[place] for row in rows], plain
        if query.scope:
            stream = source._stream_answers(query.scope, [query])
            assert stream[query] == truth[place], plain
        model = Dense(KEEPING, total=float(COUNTS.sum()), weights=COUNTS.reshape(KEEPING.shape).astype(float))
        assert model.answer(query) == pytest.approx(truth[place], rel=1e-9, abs=1e-3 * (1 + max(map(abs, own))))
        # Sessions, MWEM and the model's coin answer counts: nothing heavier may look like one.
        is_count = all(weight in (0, 1) for weight in own)
        assert counts_rows(KEEPING, query) == is_count, plain
        if not is_count:
            with pytest.raises(BadQuery, match="weigh"):
                read_count(query, KEEPING, "people")


def check(body, seen, *, slow=False):
    """One body: whether it is refused in a sentence, or accepted as what it says."""
    seen["tried"] += 1
    plain = sent(body)
    try:
        question = question_from_plain(plain, table="people")
        if isinstance(question, str):
            return None
        if isinstance(question, (Linear, Marginal, Ratio)):
            sensitivity_of(question, KEEPING, Unit())
    except (Mistake, Refusal):
        return None
    if not isinstance(question, (Linear, Marginal, Ratio)):
        return None
    seen["accepted"] += 1
    rows = effects(plain)
    weighted = isinstance(question, Marginal) and question.weight is not None
    # In turn: rows that the schema drops are neighbours of a further kind.
    domain = (KEEPING, DROPPING)[seen["accepted"] % 2]
    check_moves(question, plain, rows, exact=not weighted, domain=domain)
    check_values(question, plain, rows, slow=slow, domain=domain)
    seen["brute-forced"] += 1
    return question


def run(examples, mutants, *, seen):
    """So many bodies from the grammar, and of each so many mutants; every hundredth also in an engine."""

    @settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(BODIES, st.integers(0, 2**32))
    def bodies(body, seed):
        random = Random(seed)
        check(body, seen, slow=seed % 100 == 0)
        for _ in range(mutants):
            check(mutated(body, random), seen)

    bodies()
    return seen


@pytest.mark.slow
def test_any_json_that_is_accepted_moves_and_answers_as_it_says():
    seen = run(250, 7, seen=Counter())
    print(dict(seen))
    # A test in which nothing is accepted, or everything, would show nothing.
    assert seen["tried"] >= 2000
    assert 0.15 * seen["tried"] < seen["accepted"] == seen["brute-forced"] < 0.9 * seen["tried"]


@pytest.mark.long
def test_any_json_that_is_accepted_moves_and_answers_as_it_says_a_hundred_thousand_times():
    seen = run(10_000, 9, seen=Counter())
    print(dict(seen))
    assert seen["tried"] >= 100_000
    assert 0.15 * seen["tried"] < seen["accepted"] == seen["brute-forced"]


@settings(max_examples=60, deadline=None)
@given(st.lists(LINEARS, min_size=2, max_size=4))
def test_a_list_of_queries_moves_together_as_it_says(bodies):
    seen = Counter()
    queries = [check(body, seen) for body in bodies]
    if any(query is None for query in queries):
        return
    rows = effects([sent(body) for body in bodies])
    check_moves(queries, bodies, rows, exact=True)
    assert opened(frame(KEEPING).evaluate(queries)) == expected(rows)


# Python objects, by every way to make one.


def arrays(weights, shape, random):
    """The same numbers, as somebody might hold them."""
    array = np.array(weights, dtype=np.int64).reshape(shape)
    ways = [array, array.tolist(), np.asfortranarray(array), array.astype(object), array[..., None][..., 0]]
    if array.size and array.min() >= 0:
        ways.append(array.astype(np.uint64))
    if array.size and abs(array).max() < 100:
        ways.append(array.astype(np.int8))
    return random.choice(ways)


def made(products, random):
    """The query of a body, made by constructors: axes in any order, factors in any order, in any container."""
    parts = []
    for coefficient, tables in products:
        own = []
        for columns, shape, weights in tables:
            array = np.array(weights, dtype=np.int64).reshape(shape)
            order = random.sample(range(len(columns)), len(columns))
            given_names = [columns[axis] for axis in order]
            own.append(
                Factor(
                    random.choice([tuple, list, iter])(given_names),
                    arrays(array.transpose(order), [shape[a] for a in order], random),
                )
            )
        random.shuffle(own)
        parts.append(Product(random.choice([tuple, list])(own), random.choice([int, np.int64])(coefficient)))
    random.shuffle(parts)
    query = random.choice(
        [Linear, lambda each: sum((Linear([one]) for one in each), Linear()), lambda each: -1 * Linear(iter(each)) * -1]
    )(parts)
    return random.choice(
        [
            lambda one: one,
            copy.copy,
            copy.deepcopy,
            replace_products,
            lambda one: pickle.loads(pickle.dumps(one)),
            plainly,
        ]
    )(query)


def replace_products(query):
    return Linear(replace(each, factors=tuple(map(replace, each.factors))) for each in query.products)


def plainly(query):
    return query_from_plain(query_to_plain(query))


def objects(examples, each, *, seen):
    @settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(LINEARS, st.integers(0, 2**32))
    def made_of(body, seed):
        random = Random(seed)
        plain = sent(body)
        for _ in range(each):
            seen["tried"] += 1
            try:
                query = made(plain["products"], random)
                sensitivity_of(query, KEEPING, Unit())
            except (Mistake, Refusal):
                continue
            seen["accepted"] += 1
            rows = effects(plain)
            check_moves(query, plain, rows, exact=True)
            assert opened(frame(KEEPING).evaluate(query)) == expected(rows)
            marginal = Marginal(random.choice([tuple, list, iter])(random.sample(sorted(SIZES), 2)), query)
            check_moves(
                marginal, plain, effects({"columns": list(marginal.columns), "weight": plain["products"]}), exact=False
            )
            seen["brute-forced"] += 1

    made_of()
    return seen


def test_any_object_that_can_be_made_moves_and_answers_as_it_says():
    seen = objects(100, 3, seen=Counter())
    print(dict(seen))
    assert seen["tried"] >= 300
    assert seen["tried"] / 4 < seen["accepted"] == seen["brute-forced"]


@pytest.mark.long
def test_any_object_that_can_be_made_moves_and_answers_as_it_says_ten_thousand_times():
    seen = objects(2500, 4, seen=Counter())
    print(dict(seen))
    assert seen["tried"] >= 10_000
    assert seen["tried"] / 4 < seen["accepted"] == seen["brute-forced"]

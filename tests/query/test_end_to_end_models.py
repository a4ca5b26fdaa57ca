"""Batches, sessions, MWEM and releases mean by a question what a desk means by it: columns and factors in any order."""

from itertools import permutations
from random import Random

import numpy as np
import pytest

import discreet as dp
from discreet.curator.question import read_question
from discreet.errors import Mistake, Refusal
from discreet.query import count
from discreet.query.linear import Linear
from discreet.query.predicate import Predicate
from discreet.wire.question_json import question_from_plain
from discreet.wire.workload_json import workload_from_plain
from query import grown, rowwise
from query.test_end_to_end import CROWD, GAUSSIAN, PURE, SURE, UNITS, Asked, check_answer, rows_of, table_of
from support.query_oracle import sent

NAMES = ("o", "h", "b")


def table_and_rows(seed):
    table = table_of(seed, NAMES, UNITS[seed % 4], CROWD, False)
    return table, rowwise.kept(rows_of(seed, NAMES))


def asked_of(table, body):
    """A body as it is asked; None if it is refused."""
    plain = sent(body)
    try:
        asked = Asked(question_from_plain(plain, table="data"), plain, NAMES)
        read_question(asked.question, table.domain, "data")
    except (Mistake, Refusal):
        return None
    return asked


def some(table, random, number, grow):
    found = []
    while len(found) < number:
        asked = asked_of(table, grow(random))
        if asked is not None:
            found.append(asked)
    return found


def a_count(random):
    """A condition, or products that weigh 0 or 1 with axes in any order."""
    if random.random() < 0.5:
        return {"where": grown.condition(random, list(NAMES))}
    names = random.sample(NAMES, random.choice([2, 2, 3]))
    shape = [len(rowwise.SHOWN[name]) for name in names]
    return {"products": [[1, [[names, shape, [random.choice([0, 1]) for _ in range(int(np.prod(shape)))]]]]]}


def light(random):
    """A question whose numbers weigh little, and no mean: a batch has one error for all."""
    while True:
        body = grown.body(random, list(NAMES))
        text = str(body)
        if not any(word in text for word in ("avg", "numerator", str(2**31), "having", "order_by", "limit")):
            return body


@pytest.mark.parametrize("seed", range(6))
def test_a_batch_means_what_its_questions_mean(seed, tmp_path):
    random, (table, rows) = Random(f"batch {seed}"), table_and_rows(seed)
    batch = some(table, random, 6, light)
    with dp.Curator(table, budget=(GAUSSIAN, PURE)[seed % 3 == 2], ledger=tmp_path / "l.sqlite") as desk:
        answers = desk.ask_many([each.question for each in batch], error=30, confidence=SURE)
        for asked, answer in zip(batch, answers, strict=True):
            check_answer(asked, answer, rows, 30, CROWD, {"rows": 0})


@pytest.mark.parametrize("seed", range(4))
def test_a_session_means_what_its_questions_mean(seed, tmp_path):
    random, (table, rows) = Random(f"session {seed}"), table_and_rows(seed)
    ledger = dp.Ledger(tmp_path / "l.sqlite")
    ledger.cap(GAUSSIAN, table=table.name)
    with dp.PMW(table, ledger=ledger, epsilon=400, updates=40, queries=20) as session:
        assert session.error < CROWD / 2
        for asked in some(table, random, 10, a_count):
            answer = session.ask(asked.question)
            (exact,) = rowwise.meaning(asked.tree, rows)
            assert abs(answer.value - CROWD * exact) <= session.error, (asked.tree, answer, exact)
    ledger.close()


def linear_of(table, question):
    return question if isinstance(question, Linear) else count(table.domain, question)


@pytest.mark.parametrize("seed", range(4))
def test_mwem_means_what_its_questions_mean(seed):
    random, (table, rows) = Random(f"mwem {seed}"), table_and_rows(seed)
    workload = some(table, random, 6, a_count)
    assert all(isinstance(each.question, (Linear, Predicate)) for each in workload)
    queries = [linear_of(table, each.question) for each in workload]
    model = dp.mwem(table, queries, epsilon=400, rounds=12, total=CROWD * len(rows))
    for asked, query in zip(workload, queries, strict=True):
        (exact,) = rowwise.meaning(asked.tree, rows)
        assert abs(model.answer(query) - CROWD * exact) < CROWD / 2, (asked.tree, exact)
    # Every cell was in reach, so a marginal of the model is one of the table wherever a question was about it alone.
    assert model.marginal(("b", "o")).shape == (3, 3)


WANTED = [
    {"marginals": 2},
    {"questions": [["b", "o"], ["h", "b"]]},
    {"questions": [{"columns": ["h", "o"]}, ["b"]]},
    {"weights": [[["o", "b"], 3], [["b", "h"], 1]]},
]

SCOPES = [
    [("o", "h"), ("h", "b"), ("b", "o")],
    [("b", "o"), ("h", "b")],
    [("h", "o"), ("b",)],
    [("o", "b"), ("b", "h")],
]


@pytest.mark.parametrize("seed", range(4))
def test_a_release_has_the_marginals_that_were_wanted(seed, tmp_path):
    table, rows = table_and_rows(seed)
    wanted = workload_from_plain(WANTED[seed], table.domain, table="data")
    with dp.Curator(table, budget=GAUSSIAN, ledger=tmp_path / "l.sqlite") as desk:
        release = desk.release(wanted, dp.Budget(epsilon=10, delta=1e-9), method="direct")
        for scope in SCOPES[seed]:
            for names in permutations(scope):
                exact = CROWD * np.array(rowwise.meaning({"columns": list(names)}, rows))
                assert np.abs(release.marginal(names).ravel() - exact).max() < CROWD / 4, names
                said = release.answer(dp.Marginal(names), confidence=SURE)
                reach = said.error.ravel() + 1e-6 if said.origin == "bounded" else CROWD / 4
                assert (np.abs(said.value.ravel() - exact) <= reach).all()
            # What was measured for it is known at the desk.
            known = desk.ask(dp.Marginal(sorted(scope)), confidence=SURE)
            exact = CROWD * np.array(rowwise.meaning({"columns": sorted(scope)}, rows))
            assert known.origin == "known"
            assert (np.abs(known.value.ravel() - exact) <= known.error.ravel() + 1e-6).all()

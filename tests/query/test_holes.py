"""Queries that were once priced as other queries: each is refused now, or priced as what it is."""

import pytest

import discreet as dp
from discreet.accounting.sensitivity import scalar_sensitivity
from discreet.errors import BadQuery, BudgetExceeded
from discreet.query.query_wire import query_from_plain
from discreet.source.query_sensitivity import sensitivity_of
from discreet.source.source import unseal
from discreet.wire.question_json import question_from_plain

M = 2**31
PEOPLE = dp.Domain(
    {"sex": dp.Categories(["F", "M"], outside="drop"), "smoker": dp.Categories(["n", "y"], outside="drop")}
)
ROWS = [("F", "y")] * 300 + [("M", "n")] * 260 + [("F", "n")] * 100 + [("M", "y")] * 90

# The second factor is the first one with its axes named the other way round, so the two do not cancel.
SWAPPED = {
    "products": [
        [1, [[["sex", "smoker"], [2, 2], [0, M, 0, 0]]]],
        [1, [[["smoker", "sex"], [2, 2], [0, -M, 0, 0]]]],
        [1, [[["sex"], [2], [1, 0]]]],
    ]
}
FOUR = dp.Domain({"a": dp.Categories([0, 1, 2, 3], outside=3), "b": dp.Categories([0, 1], outside=0)})
TWICE = [["a"], [4], [1, 1, 0, 0]]
# A column named twice: only a = 3 weighs 0, and under replace_one that is what matters.
REPEATED = {
    "products": [
        [1, [TWICE, TWICE, [["b"], [2], [M, M + 1]]]],
        [1, [[["a"], [4], [0, 0, 1, 0]], [["b"], [2], [M + 1, M]]]],
    ]
}


def people(rows=ROWS):
    return dp.open({"sex": [sex for sex, _ in rows], "smoker": [smoker for _, smoker in rows]}, domain=PEOPLE)


def true(table, question):
    exact = table.evaluate(question)
    return unseal(exact, exact.sensitivity).tolist()


def test_axes_in_another_order_are_the_same_table():
    query = query_from_plain(SWAPPED)
    # F and y weighs M + 1, M and n weighs -M, F and n weighs 1.
    assert query.range(PEOPLE) == (-M, M + 1)
    assert sensitivity_of(query, PEOPLE, dp.Unit()).l1 == M + 1
    assert true(people(), query) == [40 * M + 400]


def test_a_query_of_weight_two_to_the_31_does_not_fit_a_small_budget(tmp_path):
    with dp.Curator(people(), budget=dp.Budget(epsilon=1, delta=1e-9), ledger=tmp_path / "l.sqlite") as desk:
        with pytest.raises(BudgetExceeded):
            desk.ask(question_from_plain(SWAPPED, table="data"), error=1000)
        # With as much noise as it takes, it is answered like any other.
        answer = desk.ask(question_from_plain(SWAPPED, table="data"), error=1000 * M)
        assert 0 < answer.error <= 1000 * M


def test_a_column_twice_is_one_column():
    query = query_from_plain(REPEATED)
    assert query.range(FOUR) == (0, M + 1)
    assert sensitivity_of(query, FOUR, dp.Unit(neighbors="replace_one")).l1 == M + 1


def test_a_column_twice_does_not_fit_a_small_budget(tmp_path):
    table = dp.open({"a": [0, 1, 2, 3] * 100, "b": [0] * 400}, domain=FOUR, unit=dp.Unit(neighbors="replace_one"))
    desk = dp.Curator(table, budget=dp.Budget(epsilon=1, delta=1e-9), ledger=tmp_path / "l.sqlite")
    with desk, pytest.raises(BudgetExceeded):
        desk.ask(question_from_plain(REPEATED, table="data"), error=1000)


def test_a_session_counts_rows_and_refuses_heavier_ones(tmp_path):
    table = people(ROWS[:400])
    ledger = dp.Ledger(tmp_path / "l.sqlite")
    ledger.cap(dp.Budget(epsilon=1), table=table.name)
    session = dp.PMW(table, ledger=ledger, epsilon=0.5, updates=1, queries=10)
    with session, pytest.raises(BadQuery, match=f"a row weighs from -{M} to {M + 1}"):
        session.ask(query_from_plain(SWAPPED))
    ledger.close()


def test_mwem_learns_from_counts_and_refuses_heavier_ones():
    with pytest.raises(BadQuery, match="MWEM learns from counts"):
        dp.mwem(people(), [query_from_plain(SWAPPED)], epsilon=1, rounds=1, total=750)


def test_a_group_by_of_such_a_weight_moves_as_far_as_the_weight():
    body = {"columns": ["sex"], "weight": SWAPPED["products"]}
    marginal = question_from_plain(body, table="data")
    assert sensitivity_of(marginal, PEOPLE, dp.Unit()).l1 == M + 1
    assert true(people(), marginal) == [300 * (M + 1) + 100, -260 * M]


def test_a_list_of_such_queries_moves_as_far_as_they_do():
    query = query_from_plain(SWAPPED)
    assert sensitivity_of([query, query], PEOPLE, dp.Unit()).l1 == 2 * (M + 1)


def test_the_seal_refuses_what_was_calibrated_to_the_scrambled_table():
    exact = people().evaluate(query_from_plain(SWAPPED))
    with pytest.raises(dp.errors.SealBroken):
        unseal(exact, scalar_sensitivity(0, 1, dp.Unit()))

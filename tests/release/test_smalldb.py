"""SmallDB for people: the chosen rows follow the law on the true table, the theorem holds, nothing is paid for a no."""

from itertools import combinations_with_replacement
from math import exp, log

import numpy as np
import pytest

import discreet as dp
from discreet.errors import BadParameter, BadQuery, BudgetExceeded, TooLarge
from discreet.lab.textbook.small_db import promised_error, sample_size, sampled_rows, small_db
from discreet.query.aggregates import count, total
from discreet.query.workload import monotone_conjunctions
from support.failing_source import Unreadable
from support.statistics import assert_follows, assert_rate_at_least, rejects

REPLACE = dp.Unit(neighbors="replace_one")
CITY = dp.Domain({"city": dp.Categories(["a", "b", "c"], outside="a", missing="a")})


def city(counts, unit=REPLACE, domain=CITY):
    """A table with so many rows in each city."""
    names = np.repeat(["a", "b", "c"], counts).tolist()
    return dp.open({"city": names}, domain=domain, unit=unit)


def each_city(domain=CITY):
    return [count(domain, dp.col("city") == name) for name in "abc"]


def binary(columns, rows, unit=REPLACE, seed=0):
    rng = np.random.default_rng(seed)
    domain = dp.Domain({f"x{i}": dp.Boolean() for i in range(columns)})
    leaning = rng.random((rows, columns)) < rng.random(columns)
    return dp.open({f"x{i}": leaning[:, i].tolist() for i in range(columns)}, domain=domain, unit=unit)


def unreadable(table):
    return dp.Table(table.schema, Unreadable())


def test_the_chosen_rows_follow_the_definition_on_the_true_table():
    counts, few, epsilon = np.array([5, 2, 1]), 2, 1.5
    table = city(counts)
    draws = []
    for _ in range(500):
        chosen = small_db(table, each_city(), epsilon=epsilon, rows=few)
        draws.append(tuple(sorted(chosen.codes["city"].tolist())))
    n = counts.sum()
    for scale, follows in ((1, True), (2, False)):
        weights = {
            y: exp(-scale * epsilon * n * np.abs(counts / n - np.bincount(y, minlength=3) / few).max() / 2)
            for y in combinations_with_replacement(range(3), few)
        }
        law = {y: weight / sum(weights.values()) for y, weight in weights.items()}
        if follows:
            assert_follows(draws, law)
        else:
            assert rejects(draws, law)


@pytest.mark.parametrize("unit", [REPLACE, dp.Unit()], ids=lambda unit: unit.describe)
def test_a_large_epsilon_finds_the_best_table_and_its_rows_stand_for_n_over_m(unit):
    table = binary(3, 400, unit)
    queries = list(monotone_conjunctions(table.domain))
    chosen = small_db(table, queries, epsilon=200, rows=6, total=None if unit == REPLACE else 400)
    assert chosen.total == pytest.approx(400)
    assert chosen.number == 6
    errors = [abs(_true(table, query) - chosen.answer(query)) for query in queries]
    # Six rows are wrong by less than a sixth.
    assert max(errors) <= 400 / 6


def _true(table, query):
    """What the source seals, opened by a test."""
    return int(table.evaluate(query)._Exact__values[0])


def test_where_the_number_of_rows_is_not_public_each_row_stands_for_itself():
    chosen = small_db(city([3, 2, 1], dp.Unit()), each_city(), epsilon=1, rows=4)
    assert (chosen.scale, chosen.total) == (1.0, 4.0)
    assert small_db(city([3, 2, 1]), each_city(), epsilon=1, rows=4).total == 6.0


# --- The theorem ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("counts", [[10_000, 0, 0], [5_000, 3_000, 2_000]])
def test_the_error_is_below_what_the_theorem_promises(counts):
    beta, n, epsilon = 0.05, sum(counts), 1
    promised = promised_error(queries=3, cells=3, rows=n, epsilon=epsilon, beta=beta)
    few = sample_size(3, promised / 2, notes="003")
    assert few == pytest.approx(32 * log(3) / promised**2, abs=1)
    table, true = city(counts), np.array(counts) / n
    errors = []
    for _ in range(4):
        chosen = small_db(table, each_city(), epsilon=epsilon, rows=few)
        errors.append(np.abs(true - np.bincount(chosen.codes["city"], minlength=3) / few).max())
    assert_rate_at_least(sum(error <= promised for error in errors), len(errors), 1 - beta)
    # It is generous.
    assert max(errors) < promised / 10


def test_the_sampling_lemma_holds_with_both_constants_and_fails_with_a_tenth_of_the_rows():
    rng = np.random.default_rng(4)
    counts, alpha = rng.integers(0, 50, size=64), 0.1
    queries = rng.integers(0, 2, size=(200, 64))
    true = queries @ counts / counts.sum()

    def worst(rows):
        return np.abs(true - queries[:, sampled_rows(counts, rows)].mean(axis=1)).max()

    for notes in ("001", "003"):
        rows = sample_size(200, alpha, notes=notes)
        # By Hoeffding and a union bound a sample fails with probability at most 2k e^(−2ma²).
        failure = 2 * 200 * exp(-2 * rows * alpha**2)
        assert failure < 0.02
        assert_rate_at_least(sum(worst(rows) <= alpha for _ in range(60)), 60, 1 - failure)
    assert sum(worst(sample_size(200, alpha) // 10) <= alpha for _ in range(60)) < 30


def test_sampled_rows_come_in_proportion():
    assert_follows(sampled_rows([1, 0, 3], 4_000), {0: 0.25, 2: 0.75})
    assert rejects(sampled_rows([1, 0, 3], 4_000), {0: 0.5, 2: 0.5})
    for wrong in ([], [0, 0], [-1, 2], [0.5], [[1]]):
        with pytest.raises(BadParameter, match="histogram"):
            sampled_rows(wrong, 3)


# --- Paying -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def ledger(tmp_path):
    with dp.Ledger(tmp_path / "budget.sqlite") as opened:
        opened.cap(dp.Budget(epsilon=1), table="data")
        yield opened


def test_it_is_paid_before_a_row_is_read(ledger):
    table = unreadable(city([3, 2, 1]))
    with pytest.raises(RuntimeError, match="disk"):
        small_db(table, each_city(), epsilon=0.25, rows=4, ledger=ledger)
    assert ledger.remaining(table="data").epsilon == 0.75
    assert table.source.asked == 1


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"rows": 2**20}, TooLarge),
        ({"rows": None, "alpha": 0.002}, TooLarge),
        ({"rows": 4, "alpha": 0.1}, BadParameter),
        ({"rows": None}, BadParameter),
        ({"rows": 0}, BadParameter),
        ({"epsilon": -1}, BadParameter),
        ({"epsilon": 2}, BudgetExceeded),
        ({"queries": []}, BadQuery),
        ({"queries": ["city = 'a'"]}, BadQuery),
        ({"total": 0}, BadParameter),
    ],
)
def test_what_is_refused_is_neither_paid_nor_read(ledger, changes, error):
    table = unreadable(city([3, 2, 1]))
    asked = {"queries": each_city(), "epsilon": 0.5, "rows": 4, "ledger": ledger} | changes
    with pytest.raises(error):
        small_db(table, asked.pop("queries"), **asked)
    assert ledger.remaining(table="data").epsilon == 1
    assert table.source.asked == 0


def test_the_refusal_says_how_many_tables_there_are_and_how_long_it_would_take():
    with pytest.raises(TooLarge, match=r"about 10\^\d+\.\d multisets of 30 rows from 64 cells.*years"):
        small_db(binary(6, 10), monotone_conjunctions(binary(6, 10).domain), epsilon=1, rows=30)
    wide = dp.Domain({f"x{i}": dp.Boolean() for i in range(30)})
    many = dp.open({f"x{i}": [True] for i in range(30)}, domain=wide)
    with pytest.raises(TooLarge, match=r"matrix of .* bytes"):
        small_db(many, [count(wide)], epsilon=1, rows=2)


def test_the_same_key_gives_the_same_rows_and_is_paid_once(ledger):
    table = city([3, 2, 1])
    first = small_db(table, each_city(), epsilon=0.5, rows=6, ledger=ledger, key="monday")
    again = small_db(unreadable(table), each_city(), epsilon=0.5, rows=6, ledger=ledger, key="monday")
    assert first.codes["city"].tolist() == again.codes["city"].tolist()
    assert first.total == again.total == 6
    assert ledger.remaining(table="data").epsilon == 0.5
    with pytest.raises(dp.KeyReused):
        small_db(table, each_city()[:2], epsilon=0.5, rows=6, ledger=ledger, key="monday")


def test_the_constants_of_the_notes():
    assert sample_size(1000, 0.1) == np.ceil(log(1000) / 0.01)
    assert sample_size(1000, 0.1, notes="003") == np.ceil(8 * log(1000) / 0.01)
    assert sample_size(1, 0.1) == 1
    with pytest.raises(BadParameter, match="notes is '002'"):
        sample_size(10, 0.1, notes="002")
    bound = promised_error(queries=64, cells=32, rows=2000, epsilon=1, beta=0.05)
    assert bound == pytest.approx((256 * log(64) * log(32) / 2000) ** (1 / 3) + 8 * log(20) / 2000)


def test_sums_are_answered_too():
    domain = dp.Domain({"children": dp.Integers(0, 3, outside="clip", missing=0)})
    table = dp.open({"children": [0, 1, 3, 3] * 25}, domain=domain, unit=REPLACE)
    chosen = small_db(table, [total(domain, "children")], epsilon=100, rows=4)
    assert chosen.answer(total(domain, "children")) == pytest.approx(175, abs=10)

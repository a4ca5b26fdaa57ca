"""An answer is laid out, shown and written down once with made-up numbers, before it is paid for."""

import pytest

import discreet as dp
from discreet.curator.accuracy import all_intervals
from discreet.curator.answers import MOST_TRIED, rehearse
from discreet.curator.question import read_question
from discreet.errors import BadQuery, DiscreetError, TooLarge
from discreet.estimate.gaussian_estimator import GaussianLattice
from discreet.wire.question_json import question_from_plain


@pytest.fixture
def desk(tmp_path):
    # A label that no reply can hold.
    domain = dp.Domain({"odd": dp.Categories(["\ud800", "b"]), "age": dp.Integers(0, 2000)})
    table = dp.open({"odd": ["b"] * 50, "age": list(range(50))}, domain=domain)
    with dp.Curator(table, budget=dp.Budget(epsilon=5, delta=1e-9), ledger=tmp_path / "l.sqlite") as found:
        yield found


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("question", [dp.Marginal(["odd"]), "SELECT odd, COUNT(*) FROM data GROUP BY odd"])
def test_what_cannot_be_written_is_refused_before_it_is_paid(desk, question, many):
    before = desk.ledger.head.sequence
    with pytest.raises(BadQuery, match="nothing was asked"):
        desk.ask_many([question], error=10) if many else desk.ask(question, error=10)
    assert desk.ledger.head.sequence == before


@pytest.mark.parametrize(
    "question",
    [
        "age >= 18",
        "SELECT AVG(age), COUNT(*) FROM data",
        "SELECT age, AVG(age), COUNT(*) FROM data GROUP BY age HAVING COUNT(*) > 5 ORDER BY age LIMIT 3",
        "SELECT COUNT(*) FROM data HAVING COUNT(*) > 5",
        dp.Marginal([]),
        dp.Marginal(["age"]),
    ],
)
def test_every_form_passes(desk, question):
    rehearse(read_question(question, desk.table.domain, "data"), desk.table.domain)
    assert desk.table.domain["age"].size > MOST_TRIED


@pytest.mark.parametrize("question", ["odd = '\ud800'", 'SELECT COUNT(*) AS "\ud800" FROM data', "age >= 1\x00"])
def test_texts_that_no_ledger_can_hold_are_refused(desk, question):
    before = desk.ledger.head.sequence
    with pytest.raises(DiscreetError, match="halves of characters"):
        desk.ask(question, error=10)
    assert desk.ledger.head.sequence == before


WIDE = [{"count": None, "as": f"n{place}"} for place in range(100)]


@pytest.mark.parametrize(
    "question",
    [
        {"select": WIDE, "group_by": ["age", "odd"]},
        {
            "select": [*[{"group": "age", "as": f"g{place}"} for place in range(99)], "count"],
            "group_by": ["age", "odd"],
        },
        {"select": ["count"], "group_by": ["age", "size"]},
        {"columns": ["age", "size"]},
    ],
)
def test_an_answer_of_very_many_numbers_is_refused_before_any_work(question):
    domain = dp.Domain({"odd": dp.Boolean(), "age": dp.Integers(0, 2000), "size": dp.Integers(0, 2000)})
    with pytest.raises(TooLarge, match=r"(numbers|groups); the limit is"):
        read_question(question_from_plain(question, table="data"), domain, "data")


def test_so_is_a_batch_of_them(desk):
    with pytest.raises(TooLarge, match="numbers; the limit is 262,144"):
        desk.ask_many(["SELECT age, COUNT(*) FROM data GROUP BY age"] * 200, error=1e6)
    assert len(desk.ask_many(["SELECT age, COUNT(*) FROM data GROUP BY age"] * 3, error=1e6)) == 3


def test_what_is_asked_under_two_names_is_computed_once(desk):
    twice = question_from_plain({"select": [{"count": None, "as": "a"}, {"count": None, "as": "b"}]}, table="data")
    answer = desk.ask(twice, error=20)
    assert answer.columns["a"] == answer.columns["b"]
    reading = read_question(twice, desk.table.domain, "data")
    assert reading.parts[0].total is reading.parts[1].total
    first, second = all_intervals(reading.parts, GaussianLattice.nothing(desk.table.domain, desk.table.unit), 0.95, 1)
    assert first is second


def test_means_of_no_rows_keep_the_range_of_their_column():
    domain = dp.Domain({"low": dp.Integers(0, 4), "high": dp.Integers(0, 400)})
    reading = read_question("SELECT AVG(low), AVG(high) FROM data WHERE low < 0", domain, "data")
    low, high = all_intervals(reading.parts, GaussianLattice.nothing(domain, dp.Unit()), 0.95, 1)
    assert low.errors[0] < high.errors[0]

"""One protocol: what is true of a desk is true of it here and on a server."""

import math
from fractions import Fraction

import numpy as np
import pytest

import discreet as dp
from discreet.query.sql import parse
from discreet.query.statement import Select
from support.live_server import Live, settings

COUNT = "SELECT COUNT(*) FROM people WHERE age >= 65 AND sex = 'Female'"
CITIES = "SELECT city, COUNT(*) FROM people"
UNKNOWN = "age >= 65 AND hours = 3 AND city = 'Chur' AND sex = 'Male'"
GROUPS = "SELECT sex, city, COUNT(*) AS n FROM people GROUP BY sex, city"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Live(settings(tmp_path_factory.mktemp("protocol"))) as live:
        live.ana = live.token("ana")
        yield live


@pytest.fixture(scope="module", params=["here", pytest.param("on a server", marks=pytest.mark.server)])
def desk(request, tmp_path_factory):
    """A desk with a budget of 20, of which nothing was asked."""
    folder = tmp_path_factory.mktemp("desk")
    chosen = settings(folder)
    if request.param == "here":
        with dp.Curator(dp.open(chosen.schemas[0]), budget=chosen.budget, ledger=chosen.ledger, analyst="ana") as here:
            yield here
        return
    with Live(chosen) as live, dp.connect(live.address, live.token("ana")) as there:
        yield there


def test_what_is_public_of_the_table_is_there(desk):
    assert desk.table.name == "people"
    assert list(desk.table.domain) == ["age", "sex", "city", "hours"]
    assert desk.table.unit.describe == "one row is added or removed"
    assert desk.analyst == "ana"


def test_a_plan_costs_nothing_and_says_what_the_question_will(desk):
    before = desk.remaining
    plan = desk.plan(COUNT, error=40)
    assert plan.error == 40
    assert plan.fits
    assert not plan.free
    assert "Price" in str(plan)
    assert desk.remaining == before
    answer = desk.ask(COUNT, error=40)
    assert answer.cost == plan.cost
    assert answer.origin == plan.origin == "measured"


def test_what_was_paid_for_is_known(desk):
    desk.ask(COUNT, error=40)
    again = desk.ask(COUNT, error=40)
    assert again.origin == "known"
    assert isinstance(again.value, float)
    assert again.error <= 40 * (1 + 1e-8)
    assert again.confidence == 0.95
    assert again.neighbors == "one row is added or removed"
    assert 0 < again.remaining.epsilon < 20
    assert desk.ask(COUNT).value == again.value
    assert desk.plan(COUNT, error=40).free
    assert any(set(free.columns) <= {"age", "sex"} for free in desk.known())


def test_a_table_of_groups_has_arrays_and_a_frame(desk):
    answer = desk.ask(GROUPS, error=60)
    assert answer.value.shape == answer.error.shape == (15,)
    assert list(answer.to_frame().columns) == ["sex", "city", "n", "n_error"]
    assert answer.to_frame("polars").height == 15
    assert "Bern" in str(answer)


def test_several_aggregates_are_a_tuple(desk):
    answer = desk.ask("SELECT sex, COUNT(*) AS n, AVG(hours) AS h FROM people GROUP BY sex", error=80)
    assert isinstance(answer.value, tuple)
    assert [part.shape for part in answer.value] == [(3,), (3,)]


def test_every_form_of_question_is_understood(desk):
    domain = desk.table.domain
    old = dp.col("age") >= 65
    forms = [
        "age >= 65",
        old,
        ~old & dp.col("sex").isin(["Female"]),
        parse(
            "SELECT city, COUNT(*) FROM people WHERE age >= 65 GROUP BY city ORDER BY city LIMIT 2",
            domain,
            table="people",
        ),
        dp.Marginal(["sex", "age"]),
        dp.query.count(domain, old),
        dp.query.count(domain, old) + dp.query.count(domain, dp.col("sex") == "Male"),
        dp.query.mean(domain, "hours"),
    ]
    assert isinstance(forms[3], Select)
    for form in forms:
        answer = desk.ask(form, error=400)
        assert np.all(np.asarray(answer.error, dtype=float) > 0)
    assert desk.ask(dp.Marginal(["sex", "age"])).value.shape == (3, domain["age"].size)


def test_questions_are_asked_together(desk):
    answers = desk.ask_many(["hours >= 30", "hours >= 40", GROUPS], error=150)
    assert [np.ndim(each.value) for each in answers] == [0, 0, 1]
    assert desk.ask_many([], error=150) == []


def test_a_price_can_be_given_instead_of_an_error(desk):
    answer = desk.ask("hours >= 50 AND city = 'Bern'", epsilon=Fraction(1, 10))
    assert 0 < answer.error < 4000


def test_numbers_below_zero_can_be_lifted(desk):
    answer = desk.ask("SELECT age, hours, COUNT(*) FROM people GROUP BY age, hours", error=300, nonnegative=True)
    assert answer.value.min() == 0


@pytest.mark.parametrize(
    ("ask", "error", "said"),
    [
        (lambda desk: desk.ask("aeg >= 65", error=10), dp.BadQuery, 'did you mean "age"'),
        (lambda desk: desk.ask("age >= 65", error=-1), dp.BadParameter, "error is -1; it must be a number above 0"),
        (lambda desk: desk.ask("age >= 65", error=math.inf), dp.BadParameter, "error is inf"),
        (lambda desk: desk.ask("age >= 65", error=10, epsilon=1), dp.BadParameter, "give one of them"),
        (lambda desk: desk.ask(UNKNOWN), dp.BadParameter, "nothing is known about this yet"),
        (lambda desk: desk.ask(COUNT, error=1e-3), dp.BudgetExceeded, r"Ask with error >= .* instead of 0.001"),
        (lambda desk: desk.ask(17, error=1), dp.BadQuery, "a int is not a question"),
        (lambda desk: desk.ask("SELECT * FROM people", error=1), dp.BadQuery, "COUNT"),
        (lambda desk: desk.plan("age >= 65", error="small"), dp.BadParameter, "error is 'small'"),
        (lambda desk: desk.known(confidence=2), dp.BadParameter, "confidence is 2"),
        (lambda desk: desk.release([], dp.Budget(1, 1e-9)), dp.BadQuery, "the workload is empty"),
        (lambda desk: desk.release("age", dp.Budget(1, 1e-9)), dp.BadQuery, "the workload is a str"),
        (lambda desk: desk.release([["age"]], dp.Budget(1)), dp.BadParameter, "delta"),
        (lambda desk: desk.release([["age"]], dp.Budget(25, 1e-9)), dp.BudgetExceeded, "more than is left"),
        (lambda desk: desk.release([["age"]], dp.Budget(1, 1e-9), method="best"), dp.BadParameter, "method is 'best'"),
    ],
)
def test_a_mistake_has_the_same_sentence_and_costs_nothing(desk, ask, error, said):
    before, spends = desk.spent, len(desk.history())
    with pytest.raises(error, match=said):
        ask(desk)
    assert desk.spent == before
    assert len(desk.history()) == spends


def test_a_key_is_paid_once(desk):
    question = "city = 'Thun' AND hours >= 20"
    first = desk.ask(question, error=50, key="once")
    spends = len(desk.history())
    assert desk.ask(question, error=50, key="once").value == first.value
    with pytest.raises(dp.KeyReused, match="came before with another request"):
        desk.ask("city = 'Chur' AND hours >= 21 AND age >= 18", error=50, key="once")
    assert len(desk.history()) == spends


def test_a_key_of_a_batch_is_paid_once(desk):
    questions = ["city = 'Thun' AND age >= 45", "city = 'Genf' AND age >= 45"]
    first = desk.ask_many(questions, error=50, key="a batch")
    spends = len(desk.history())
    again = desk.ask_many(questions, error=50, key="a batch")
    assert [each.value for each in again] == [each.value for each in first]
    with pytest.raises(dp.KeyReused, match="came before with another request"):
        desk.ask_many(["city = 'Chur' AND hours = 22 AND age >= 45"], error=50, key="a batch")
    assert len(desk.history()) == spends


def test_the_history_tells_who_asked_what(desk):
    desk.ask("hours >= 10 AND sex = 'Male'", error=33)
    last = desk.history()[-1]
    assert (last.analyst, last.why, last.table) == ("ana", "hours >= 10 AND sex = 'Male'", "people")
    assert last.released
    numbers = [spend.sequence for spend in desk.history()]
    assert numbers == sorted(numbers)


def test_a_release_is_planned_made_and_asked(desk):
    wanted = dp.marginals(desk.table.domain.project(["sex", "city"]), 2)
    budget = dp.Budget(1, 1e-9)
    plan = desk.plan(wanted, budget=budget, rows=4000)
    assert plan.best.possible
    assert "For all 2-way marginals of 2 columns" in str(plan)
    heard = []
    release = desk.release(wanted, budget, key="a release", tell=heard.append)
    assert release.marginal(("sex", "city")).shape == (3, 5)
    assert abs(release.answer("sex = 'Female'").value - 2000) < 400
    assert len(release.rows(100)) == 100
    assert release.card.goal == "all 2-way marginals of 2 columns"
    spends = len(desk.history())
    again = desk.release(wanted, budget, key="a release")
    assert np.array_equal(again.marginal(("sex", "city")), release.marginal(("sex", "city")))
    assert len(desk.history()) == spends


def test_a_desk_tells_what_it_is(desk):
    assert repr(desk).startswith(("<Curator: people; ", "<RemoteCurator: people at http"))


@pytest.mark.server
def test_what_is_known_is_told_alike_by_both(server):
    """Two desks on one ledger, one here and one there, give the same answers to the bit."""
    chosen = server.settings
    with dp.connect(server.address, server.ana) as there:
        there.ask(GROUPS, error=100)
        there.ask("SELECT AVG(hours) FROM people", error=3)
        with dp.Curator(dp.open(chosen.schemas[0]), ledger=chosen.ledger, analyst="ana") as here:
            for question in ("sex = 'Female'", GROUPS, "SELECT AVG(hours) FROM people", dp.Marginal(["city"])):
                one, other = here.ask(question), there.ask(question)
                assert np.array_equal(one.value, other.value)
                assert np.array_equal(one.error, other.error)
                assert one.columns == other.columns
                assert (one.origin, one.cost, one.confidence) == (other.origin, other.cost, other.confidence)
                assert str(one) == str(other)
            assert here.known() == there.known()
            assert [(each.sequence, each.event, each.released) for each in here.history()] == [
                (each.sequence, each.event, each.released) for each in there.history()
            ]
            plans = [desk.plan("hours >= 30 AND city = 'Bern'", error=77) for desk in (here, there)]
            assert str(plans[0]) == str(plans[1])


@pytest.mark.server
def test_nobody_asks_in_the_name_of_another(server):
    with dp.connect(server.address, server.ana) as there:
        assert there.ask("age >= 18", error=900, analyst="ana").error <= 900 * (1 + 1e-8)
        with pytest.raises(dp.NotAllowed, match="requests in another name are refused"):
            there.ask("age >= 18", error=900, analyst="ben")


@pytest.mark.server
def test_what_cannot_be_reached_is_said(server):
    with pytest.raises(dp.NotAllowed, match="this needs a token"):
        dp.connect(server.address, "discreet_wrong")
    with pytest.raises(dp.ServerFailed, match="cannot be reached"):
        dp.connect("http://127.0.0.1:9", "discreet_x", patience=0.1)
    with pytest.raises(dp.BadParameter, match="the token would be read by others"):
        dp.connect("http://example.org", "discreet_x")
    with pytest.raises(dp.BadParameter, match="must be the address of a server"):
        dp.connect("people.yaml", "discreet_x")
    with pytest.raises(dp.BadQuery, match='did you mean "people"'):
        dp.connect(server.address, server.ana, table="peeple")


@pytest.mark.server
def test_the_rows_stay_on_the_server(server):
    with dp.connect(server.address, server.ana) as there, pytest.raises(dp.SourceFailed, match="on a server"):
        there.table.evaluate(dp.Marginal(["sex"]))

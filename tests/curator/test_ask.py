"""What it is like to ask: every form of a question, what is refused and how, and that a refusal costs nothing."""

import re
from itertools import pairwise

import numpy as np
import pytest

from discreet import Budget, Ledger, load_adult
from discreet.accounting.event import Nothing
from discreet.curator import Curator
from discreet.errors import BadParameter, BadQuery, BudgetExceeded, DiscreetError, KeyReused, Mistake
from discreet.ledger.accounts import narrowest
from discreet.mechanism.gaussian import gaussian
from discreet.query import Linear, Marginal, Ratio, col, count
from discreet.query.product import Product
from discreet.query.residual import Residual
from discreet.schema import Boolean, Categories, Domain, Integers, Schema, Unit
from discreet.source.frame import Frame
from discreet.source.table import Table
from discreet.source.table import open as open_table

ROWS = 3000
DOMAIN = Domain(
    {
        "age": Integers(18, 70, missing="drop"),
        "city": Categories(["a", "b", "c"], outside="drop"),
        "smoker": Boolean(),
    }
)
BUDGET = Budget(epsilon=2, delta=1e-9)


def rows_of(seed):
    rng = np.random.default_rng(seed)
    return {
        "age": rng.integers(18, 71, size=ROWS).tolist(),
        "city": rng.choice(["a", "b", "c"], size=ROWS).tolist(),
        "smoker": (rng.random(ROWS) < 0.3).tolist(),
    }


def table_of(*, name="people", unit=None, shares=()):
    unit = unit or Unit()
    return Table(Schema(name, DOMAIN, unit, shares_people_with=shares), Frame(rows_of(7), domain=DOMAIN, unit=unit))


PEOPLE = table_of()


@pytest.fixture
def desk(tmp_path):
    with Curator(PEOPLE, budget=BUDGET, ledger=tmp_path / "ledger.sqlite") as opened:
        yield opened


def paid(desk):
    """Everything that a ledger says about a curator's spending."""
    return desk.spent, len(desk.history())


# Every form of a question.

OLD_SMOKERS = (col("age") >= 60) & (col("smoker") == True)  # noqa: E712
FORMS = [
    "SELECT COUNT(*) FROM people WHERE age >= 60 AND smoker = TRUE",
    "age >= 60 AND smoker = TRUE",
    OLD_SMOKERS,
    count(DOMAIN, OLD_SMOKERS),
]


def test_every_form_of_a_question_is_the_same_question(desk):
    first = desk.ask(FORMS[0], error=100)
    assert first.origin in ("measured", "direct")
    assert first.error <= 100
    for form in FORMS[1:]:
        again = desk.ask(form, error=100)
        assert (again.value, again.error, again.origin) == (first.value, first.error, "known")


def test_a_marginal_has_the_shape_of_its_columns(desk):
    answer = desk.ask(Marginal(("smoker", "city")), error=150)
    assert answer.value.shape == answer.error.shape == (2, 3)
    assert answer.columns["smoker"] == [False] * 3 + [True] * 3
    assert answer.columns["city"] == ["a", "b", "c"] * 2
    assert np.all(answer.error <= 150)
    turned = desk.ask(Marginal(("city", "smoker")), error=150)
    assert turned.origin == "known"
    assert np.allclose(turned.value, answer.value.T)


def test_a_weighted_marginal_adds_up_to_its_weight(desk):
    weight = count(DOMAIN, col("age") >= 60)
    answer = desk.ask(Marginal(("city",), weight), error=150)
    assert answer.value.sum() == pytest.approx(desk.ask(weight).value)


def test_a_ratio_is_a_number_with_a_bar(desk):
    answer = desk.ask(Ratio(count(DOMAIN, OLD_SMOKERS), count(DOMAIN, col("age") >= 60)), error=0.1)
    assert 0 < answer.value < 1
    assert answer.error <= 0.1


def test_a_mean_is_within_its_range_and_its_error(desk):
    answer = desk.ask("SELECT AVG(age) FROM people WHERE city = 'a'", error=2)
    assert 18 <= answer.value <= 70
    assert answer.error <= 2


def test_several_aggregates_are_a_tuple(desk):
    answer = desk.ask("SELECT COUNT(*) AS n, SUM(age) AS s FROM people WHERE smoker = TRUE", error=5000)
    assert len(answer.value) == len(answer.error) == 2
    assert all(error <= 5000 for error in answer.error)
    assert set(answer.columns) == {"n", "n_error", "s", "s_error"}


def test_a_group_by_shows_every_declared_cell(desk):
    answer = desk.ask("SELECT city, smoker, COUNT(*) AS n FROM people GROUP BY city, smoker", error=100)
    assert len(answer.columns["n"]) == 6


def test_a_question_that_no_row_can_answer_is_zero_and_free(desk):
    before = paid(desk)
    answer = desk.ask("age < 18", error=1)
    assert (answer.value, answer.error, answer.origin) == (0, 0, "known")
    assert paid(desk) == before


@pytest.mark.parametrize(
    "ask",
    [
        lambda desk: desk.plan("age < 18", error=1).free,
        lambda desk: desk.ask("age < 18", epsilon=0.01).value == 0,
        lambda desk: desk.ask_many(["age < 18", "smoker = TRUE"], error=200)[0].value == 0,
    ],
    ids=["plan", "epsilon", "many"],
)
def test_a_question_that_no_row_can_answer_is_zero_however_it_is_asked(desk, ask):
    assert ask(desk)


# Error, price, or neither.


def test_with_neither_an_error_nor_a_price_it_is_answered_as_well_as_it_is_known(desk):
    with pytest.raises(BadParameter, match="how good the answer must be"):
        desk.ask("smoker = TRUE")
    assert desk.history() == []
    bought = desk.ask("smoker = TRUE", error=80)
    free = desk.ask("smoker = TRUE")
    assert (free.value, free.error, free.origin) == (bought.value, bought.error, "known")
    assert isinstance(free.cost, Nothing)
    assert desk.ask("smoker = FALSE").error < 100, "the others follow"


def test_a_confidence_of_more_makes_the_bar_wider(desk):
    desk.ask("smoker = TRUE", error=80)
    errors = [desk.ask("smoker = TRUE", confidence=confidence).error for confidence in (0.5, 0.9, 0.95, 0.999)]
    assert all(one < other for one, other in pairwise(errors))


@pytest.mark.parametrize(
    "question",
    [
        "smoker = TRUE",
        "age >= 60 AND smoker = TRUE",
        Marginal(("city", "smoker")),
        "SELECT SUM(age) FROM people WHERE city = 'a'",
        "city = 'a' OR age < 30",
        "SELECT AVG(age) FROM people",
    ],
    ids=str,
)
@pytest.mark.parametrize("epsilon", [0.01, 0.3])
def test_for_a_price_the_spent_amount_is_at_most_the_price_and_within_one_percent_of_it(desk, question, epsilon):
    answer = desk.ask(question, epsilon=epsilon)
    assert np.all(np.isfinite(np.asarray(answer.error, dtype=float)))
    spent = float(desk.spent.epsilon)
    # What was spent is shown rounded up.
    assert 0.99 * epsilon <= spent <= epsilon * (1 + 1e-5)
    if "AVG" not in str(question):
        # The bar of a mean also depends on the mean.
        again = desk.ask(question, epsilon=epsilon)
        assert np.all(np.asarray(again.error) <= np.asarray(answer.error) * (1 + 1e-9)), "and more is better"


def test_twice_the_price_is_a_better_answer(tmp_path):
    errors = []
    for place, epsilon in enumerate([0.05, 0.1, 0.2]):
        with Curator(PEOPLE, budget=BUDGET, ledger=tmp_path / f"{place}.sqlite") as desk:
            errors.append(desk.ask("age >= 60", epsilon=epsilon).error)
    assert errors[0] > 1.8 * errors[1] > 1.8**2 * errors[2]


# A plan.

ASKED = [
    ("smoker = TRUE", {"error": 60}),
    ("age >= 60 AND smoker = TRUE", {"error": 60}),
    ("age >= 60 AND smoker = TRUE AND city = 'a'", {"error": 20, "confidence": 0.8}),
    ("SELECT city, COUNT(*) FROM people GROUP BY city", {"error": 60, "joint": True}),
    ("SELECT SUM(age) FROM people", {"error": 6000}),
    ("age >= 60", {"epsilon": 0.1}),
]


@pytest.mark.parametrize(("question", "options"), ASKED, ids=[question for question, _ in ASKED])
def test_a_plan_says_what_is_charged_and_the_error_that_is_reached(desk, question, options):
    before = paid(desk)
    plan = desk.plan(question, **options)
    assert paid(desk) == before
    assert plan == desk.plan(question, **options), "looking changes nothing"
    assert plan.fits
    assert not plan.free
    answer = desk.ask(question, **options)
    assert answer.cost == plan.cost
    (spend,) = desk.history()
    assert spend.event == plan.cost
    assert desk.spent == plan.price
    assert np.max(answer.error) <= plan.error * (1 + 1e-8)
    after = desk.plan(question, **options)
    assert after.free or "epsilon" in options


def test_a_plan_that_does_not_fit_says_so(desk):
    plan = desk.plan("age >= 60", error=2)
    assert not plan.fits
    assert "more than is left" in str(plan)
    with pytest.raises(BudgetExceeded):
        desk.ask("age >= 60", error=2)
    assert desk.history() == []


def test_a_larger_error_is_planned_cheaper(desk):
    prices = [desk.plan("age >= 60 AND city = 'a'", error=error).price.epsilon for error in (20, 40, 80, 160)]
    assert all(one > other for one, other in pairwise(prices))


def test_a_batch_of_many_conditions_costs_less_than_one_after_the_other(tmp_path):
    questions = [f"age >= {age} AND smoker = TRUE" for age in range(20, 70, 5)] + [f"city = '{city}'" for city in "abc"]
    together, apart = batch(tmp_path, questions, error=100)
    assert together < apart


def test_a_batch_of_groups_costs_less_than_one_after_the_other(tmp_path):
    """Asked the other way round, from small to large: what comes first is topped up by what comes next."""
    questions = [Marginal(("city",)), Marginal(("smoker",)), Marginal(("city", "smoker")), "age >= 50"]
    together, apart = batch(tmp_path, questions, error=60)
    assert together < apart


def batch(folder, questions, *, error):
    """What a batch costs, and what its questions cost one after the other."""
    spent = []
    for together in (True, False):
        with Curator(PEOPLE, budget=BUDGET, ledger=folder / f"{together}.sqlite") as desk:
            if together:
                answers = desk.ask_many(questions, error=error)
                assert len(desk.history()) == 1
            else:
                answers = [desk.ask(each, error=error) for each in questions]
            assert all(np.max(answer.error) <= error * (1 + 1e-8) for answer in answers)
            spent.append(float(desk.spent.epsilon))
    return spent


# Nonsense.

NONSENSE = [
    ("SELECT * FROM people", BadQuery),
    ("SELECT COUNT(*) FROM others", BadQuery),
    ("aeg >= 60", BadQuery),
    ("", BadQuery),
    ("age >", BadQuery),
    ("age >= 'sixty'", BadQuery),
    ("city < 'b'", BadQuery),
    ("SELECT COUNT(*) FROM people; DROP TABLE people", BadQuery),
    (17, BadQuery),
    (None, BadQuery),
    (["age >= 60"], BadQuery),
    (Residual((("age", 1),)), BadQuery),
    (Marginal(("wealth",)), BadQuery),
    (col("wealth") > 3, BadQuery),
]


@pytest.mark.parametrize(("question", "kind"), NONSENSE, ids=[str(question)[:30] for question, _ in NONSENSE])
@pytest.mark.parametrize("way", ["ask", "plan", "ask_many"])
def test_a_question_that_makes_no_sense_is_a_mistake_and_costs_nothing(desk, question, kind, way):
    before = paid(desk)
    asked = [question] if way == "ask_many" else question
    with pytest.raises(kind) as refused:
        getattr(desk, way)(asked, error=10)
    says_what_to_do(refused.value)
    assert paid(desk) == before


@pytest.mark.parametrize(
    "options",
    [
        {"error": 0},
        {"error": -1},
        {"error": float("nan")},
        {"error": float("inf")},
        {"error": "10"},
        {"error": True},
        {"error": 1e300},
        {"epsilon": 0},
        {"epsilon": -1},
        {"epsilon": float("inf")},
        {"epsilon": "1"},
        {"error": 10, "epsilon": 0.1},
        {"error": 10, "confidence": 0},
        {"error": 10, "confidence": 1},
        {"error": 10, "confidence": 95},
        {"error": 10, "confidence": "high"},
        {"error": 10, "analyst": 3},
        {"error": 10, "analyst": ""},
        {"error": 10, "key": ""},
        {"error": 10, "key": 3},
    ],
    ids=str,
)
def test_a_wish_that_makes_no_sense_is_a_mistake_and_costs_nothing(desk, options):
    before = paid(desk)
    with pytest.raises(BadParameter) as refused:
        desk.ask("smoker = TRUE", **options)
    says_what_to_do(refused.value)
    assert paid(desk) == before


def says_what_to_do(error):
    """One or more sentences, of which one is an instruction."""
    text = str(error)
    assert isinstance(error, (Mistake, DiscreetError))
    assert text[-1] in '.?"' or text.endswith("…"), text
    told = ("Give", "Ask", "Write", "Use", "Name", "Compare", "Say", "give", "did you mean", "it has", "Declare", "Put")
    assert any(word in text for word in told), text


def test_a_table_that_is_none_is_refused_and_the_ledger_is_not_made(tmp_path):
    with pytest.raises(BadParameter, match=r"dp\.open"):
        Curator("people.yaml", budget=BUDGET, ledger=tmp_path / "ledger.sqlite")
    assert not (tmp_path / "ledger.sqlite").exists()


def test_without_a_cap_nothing_is_asked(tmp_path):
    with pytest.raises(DiscreetError) as refused, Curator(PEOPLE, ledger=tmp_path / "ledger.sqlite") as desk:
        desk.ask("smoker = TRUE", error=100)
    assert "cap" in str(refused.value).lower() or "budget" in str(refused.value).lower()


# Rows chosen by looking at the numbers.


def test_having_and_limit_make_the_bars_joint(desk):
    plain = "SELECT city, COUNT(*) AS n FROM people GROUP BY city"
    each = desk.ask(plain, error=60)
    joint = desk.ask(plain, joint=True)
    assert np.all(joint.error > each.error)
    for chosen in (f"{plain} HAVING n > 10", f"{plain} ORDER BY n DESC LIMIT 2"):
        answer = desk.ask(chosen)
        assert answer.origin == "known"
        assert np.max(answer.error) == pytest.approx(np.max(joint.error))
    assert np.max(desk.ask(f"{plain} ORDER BY n DESC").error) == pytest.approx(np.max(each.error))


def test_an_error_asked_with_a_limit_holds_for_all_rows_together(desk):
    answer = desk.ask("SELECT age, COUNT(*) AS n FROM people GROUP BY age ORDER BY n DESC LIMIT 3", error=100)
    assert len(answer.value) == 3
    assert np.all(answer.error <= 100 * (1 + 1e-8))
    every = desk.ask("SELECT age, COUNT(*) AS n FROM people GROUP BY age")
    assert np.max(every.error) < 65, "for one row alone 100 jointly over 53 is 59"


def test_nonnegative_lifts_and_changes_nothing_else(desk):
    question = "SELECT age, COUNT(*) AS n FROM people WHERE city = 'a' AND smoker = TRUE GROUP BY age"
    plain = desk.ask(question, error=60)
    lifted = desk.ask(question, nonnegative=True)
    assert np.min(plain.value) < 0, "with noise of 30 around 5, in 53 cells"
    assert np.array_equal(lifted.value, np.maximum(plain.value, 0))
    assert np.array_equal(lifted.error, plain.error)


def test_what_may_be_negative_is_not_lifted(tmp_path):
    domain = Domain({"change": Integers(-50, 50), "sex": Categories(["F", "M"])})
    rows = {"change": [-20] * 4000, "sex": ["F", "M"] * 2000}
    with Curator(open_table(rows, domain=domain), budget=Budget(20, 1e-9), ledger=tmp_path / "ledger.sqlite") as opened:
        for asked, true, error in (
            ("SELECT SUM(change) FROM data", -80_000, 5000),
            ("SELECT AVG(change) FROM data", -20, 2),
            ("SELECT sex, SUM(change) AS s FROM data GROUP BY sex", -40_000, 5000),
            (Ratio(-1 * count(domain), count(domain)), -1, 0.2),
        ):
            answer = opened.ask(asked, error=error, confidence=1 - 1e-9, nonnegative=True)
            assert np.all(np.abs(np.atleast_1d(answer.value)[:2] - true) <= error), asked
        lifted = opened.ask("sex = 'F' AND change = 50", error=50, nonnegative=True)
        assert lifted.value >= 0


@pytest.mark.parametrize(("delta", "most"), [(1e-9, 0.03), (0, 0.06)])
def test_a_mean_of_few_rows_is_refused_after_cheap_looks_and_says_what_they_cost(tmp_path, delta, most):
    """However it is asked: singly, in groups, by a quotient or in a batch; with a key the looks are paid once."""
    more = [f"a{place}" for place in range(12)]
    rows = {"age": [30] * 4000, "sex": ["F"] * 3999 + ["M"], **dict.fromkeys(more, [1] * 4000)}
    domain = Domain({"age": Integers(0, 99), "sex": Categories(["F", "M"]), **dict.fromkeys(more, Integers(0, 9))})
    every = f"SELECT {', '.join(f'AVG({name}) AS m_{name}' for name in more)} FROM data WHERE sex = 'M'"
    few, rare = "SELECT AVG(age) AS a FROM data WHERE sex = 'M'", count(domain, col("sex") == "M")
    for place, ask in enumerate(
        [
            lambda desk: desk.ask(few, error=30, key="k"),
            lambda desk: desk.ask("SELECT age, AVG(age) AS a FROM data WHERE sex = 'M' GROUP BY age", error=0.01),
            lambda desk: desk.ask(Ratio(count(domain), rare), error=0.5),
            lambda desk: desk.ask(Ratio(count(domain), count(domain, col("sex") == "F") - count(domain)), error=0.5),
            lambda desk: desk.ask_many([few], error=30),
            lambda desk: desk.ask(every, error=4),
        ]
    ):
        with Curator(
            open_table(rows, domain=domain), budget=Budget(1, delta), ledger=tmp_path / f"{place}.sqlite"
        ) as desk:
            limit = max(desk._gate(desk.analyst).limit)
            for again in range(3):
                before = len(desk.history())
                with pytest.raises((BudgetExceeded, BadQuery)) as refused:
                    ask(desk)
                paid = len(desk.history()) > before
                assert ("is charged: epsilon" in str(refused.value)) == paid, place
                assert paid == (again == 0 and refused.type is BudgetExceeded), place
            spent = narrowest(desk.ledger.balances(table="data", analyst="anyone")).spent_ticks
            assert max(spent) <= most * limit, place


# The end of the budget.


@pytest.fixture
def poor(tmp_path):
    with Curator(PEOPLE, budget=Budget(epsilon=0.05, delta=1e-9), ledger=tmp_path / "ledger.sqlite") as opened:
        opened.ask("smoker = TRUE", epsilon=0.05)
        yield opened


def test_when_the_budget_is_gone_what_is_known_is_still_answered(poor):
    assert float(poor.remaining.epsilon) < 1e-3
    assert poor.ask("smoker = FALSE").origin == "known"
    assert poor.ask("SELECT smoker, COUNT(*) FROM people GROUP BY smoker").origin == "known"
    assert poor.ask("SELECT COUNT(*) FROM people").origin == "known"


def test_when_the_budget_is_gone_a_refusal_names_the_error_that_is_free(poor):
    before = paid(poor)
    free = poor.ask("smoker = TRUE").error
    with pytest.raises(BudgetExceeded) as refused:
        poor.ask("smoker = TRUE", error=5)
    (told,) = re.findall(r"for free with error ([\d.,]+)", str(refused.value))
    assert free <= float(told.replace(",", "")) <= free * 1.01 + 1
    assert "without an error" in str(refused.value)
    with pytest.raises(BudgetExceeded, match="It does not follow from earlier answers"):
        poor.ask("age >= 60", error=5)
    assert paid(poor) == before
    assert callable(getattr(poor, "known", None)), "what is known can be listed"


@pytest.mark.parametrize(
    "question",
    [
        "smoker = TRUE",
        "SELECT city, COUNT(*) FROM people GROUP BY city",
        "age >= 60 AND city = 'a'",
    ],
)
def test_the_error_that_a_refusal_suggests_fits(desk, question):
    desk.ask("age >= 40", epsilon=1.5)
    with pytest.raises(BudgetExceeded) as refused:
        desk.ask(question, error=2)
    (suggested,) = re.findall(r"Ask with error >= ([\d.,]+) instead", str(refused.value))
    assert np.max(desk.ask(question, error=float(suggested.replace(",", ""))).error) < 100


def test_what_fits_directly_is_not_refused(tmp_path):
    question = "age >= 60 AND city = 'a'"
    with Curator(PEOPLE, budget=Budget(epsilon=1, delta=1e-9), ledger=tmp_path / "ledger.sqlite") as desk:
        direct, gate = gaussian(sigma=6, sensitivity=1), desk._gate(desk.analyst)
        if direct.error(0.95) > 12 or not gate.fits((0,), gate.charge(direct.event)):
            pytest.fail("a direct answer with error 12 fits", pytrace=False)
        assert desk.ask(question, error=12).error <= 12


@pytest.mark.parametrize(
    "question",
    [
        "age >= 60",
        Marginal(("age", "city")),
    ],
    ids=str,
)
def test_a_refused_question_changes_nothing(desk, question):
    desk.ask("smoker = TRUE", error=100)
    before, known = paid(desk), desk.ask("smoker = TRUE").value
    with pytest.raises(BudgetExceeded):
        desk.ask(question, error=0.001)
    assert (paid(desk), desk.ask("smoker = TRUE").value) == (before, known)


# Requests that are repeated, and other curators.


def test_a_repeated_request_is_charged_once(desk):
    first = desk.ask("smoker = TRUE", error=100, key="one")
    after = paid(desk)
    again = desk.ask("smoker = TRUE", error=100, key="one")
    assert (again.value, again.error) == (first.value, first.error)
    assert paid(desk) == after


def test_a_key_that_came_with_another_question_is_refused(desk):
    desk.ask("smoker = TRUE", error=100, key="one")
    after = paid(desk)
    with pytest.raises(KeyReused):
        desk.ask("age >= 60", error=100, key="one")
    assert paid(desk) == after


def test_a_request_repeated_to_another_curator_gets_the_same_numbers_and_no_charge(tmp_path):
    place = tmp_path / "ledger.sqlite"
    with Curator(PEOPLE, budget=BUDGET, ledger=place) as one, Curator(PEOPLE, ledger=place) as other:
        first = one.ask("smoker = TRUE", error=100, key="one")
        after = paid(one)
        again = other.ask("smoker = TRUE", error=100, key="one")
        assert (again.value, again.error) == (first.value, first.error)
        assert paid(other) == after


def test_two_curators_on_one_ledger_know_what_either_learnt(tmp_path):
    place = tmp_path / "ledger.sqlite"
    with Curator(PEOPLE, budget=BUDGET, ledger=place) as one, Curator(PEOPLE, ledger=place) as other:
        bought = one.ask("smoker = TRUE", error=100)
        found = other.ask("smoker = TRUE", error=100)
        assert (found.value, found.origin) == (bought.value, "known")
        better = other.ask("smoker = TRUE", error=50)
        assert one.ask("smoker = TRUE", error=50).value == better.value
        assert paid(one) == paid(other)
        assert one.remaining == other.remaining


def test_what_another_curator_learnt_is_known_without_an_error_too(tmp_path):
    place = tmp_path / "ledger.sqlite"
    with Curator(PEOPLE, budget=BUDGET, ledger=place) as one, Curator(PEOPLE, ledger=place) as other:
        bought = one.ask("smoker = TRUE", error=100)
        assert other.ask("smoker = TRUE").value == bought.value


def test_a_curator_that_starts_again_gives_the_same_answers(tmp_path):
    place = tmp_path / "ledger.sqlite"
    questions = ["smoker = TRUE", "age >= 60 AND city = 'a'", "SELECT AVG(age) FROM people", Marginal(("city",))]
    errors = [100, 60, 2, 80]
    with Curator(PEOPLE, budget=BUDGET, ledger=place) as one:
        for question, error in zip(questions, errors, strict=True):
            one.ask(question, error=error)
        before = [one.ask(question) for question in questions]
    with Curator(PEOPLE, ledger=place) as other:
        for question, first in zip(questions, before, strict=True):
            again = other.ask(question)
            assert np.array_equal(again.value, first.value)
            assert np.array_equal(again.error, first.error)


def test_tables_that_share_people_share_a_budget(tmp_path):
    ledger = Ledger(tmp_path / "ledger.sqlite")
    one, other = table_of(name="one", shares=("two",)), table_of(name="two", shares=("one",))
    first, second = Curator(one, budget=BUDGET, ledger=ledger), Curator(other, budget=BUDGET, ledger=ledger)
    first.ask("smoker = TRUE", epsilon=1.5)
    assert float(second.remaining.epsilon) < 1.5
    with pytest.raises(BudgetExceeded):
        second.ask("smoker = TRUE", epsilon=1.5)
    with pytest.raises(BadParameter):
        second.ask("smoker = TRUE")
    second.ask("smoker = TRUE", epsilon=0.3)
    assert float(first.remaining.epsilon) == float(second.remaining.epsilon)
    ledger.close()


def test_tables_apart_do_not_know_of_each_other(tmp_path):
    ledger = Ledger(tmp_path / "ledger.sqlite")
    one, other = (Curator(table_of(name=name), budget=BUDGET, ledger=ledger) for name in ("one", "two"))
    one.ask("smoker = TRUE", epsilon=1.5)
    assert other.remaining.epsilon == 2
    with pytest.raises(BadParameter):
        other.ask("smoker = TRUE")
    ledger.close()


def test_an_analyst_with_a_cap_is_refused_where_another_is_not(tmp_path):
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.cap(Budget(epsilon=0.1, delta=1e-9), table="people", analyst="ana")
    desk = Curator(PEOPLE, budget=BUDGET, ledger=ledger)
    with pytest.raises(BudgetExceeded, match="ana"):
        desk.ask("smoker = TRUE", error=20, analyst="ana")
    assert desk.history() == []
    answer = desk.ask("smoker = TRUE", error=20, analyst="bob")
    assert answer.origin != "known"
    assert desk.ask("smoker = TRUE", error=20, analyst="ana").origin == "known", "what is known is free for everyone"
    (spend,) = desk.history()
    assert spend.analyst == "bob"
    hers = Curator(PEOPLE, ledger=ledger, analyst="ana")
    assert float(hers.remaining.epsilon) <= 0.1
    assert not hers.plan("age >= 60", error=20).fits
    assert desk.plan("age >= 60", error=20).fits
    ledger.close()


def test_the_number_of_rows_is_public_where_no_one_can_change_it(tmp_path):
    unit = Unit(neighbors="replace_one")
    domain = Domain({"smoker": Boolean()})
    table = Table(Schema("people", domain, unit), Frame({"smoker": rows_of(7)["smoker"]}, domain=domain, unit=unit))
    with Curator(table, budget=BUDGET, ledger=tmp_path / "ledger.sqlite") as desk:
        answer = desk.ask("SELECT COUNT(*) FROM people")
        assert (answer.value, answer.error) == (ROWS, 0)
        assert desk.spent.epsilon == 0
        everyone = Linear([Product(())])
        assert desk.ask(everyone, error=1).origin == "known"
        smokers = desk.ask("smoker = TRUE", error=30)
        others = desk.ask("smoker = FALSE")
        assert smokers.value + others.value == pytest.approx(ROWS)


# One question is paid once.


@pytest.mark.parametrize(
    ("question", "error"),
    [
        ("smoker = TRUE", 60),
        ("age >= 60 AND city = 'a' AND smoker = TRUE", 30),
        ("age = 33 AND city = 'a' AND smoker = TRUE", 7.7),
        ("SELECT city, COUNT(*) FROM people WHERE age >= 60 GROUP BY city", 30.3),
        ("city = 'a' OR age < 30", 60),
    ],
    ids=str,
)
def test_a_question_is_paid_in_one_step(desk, question, error):
    plan = desk.plan(question, error=error)
    answer = desk.ask(question, error=error)
    assert np.max(answer.error) <= error * (1 + 1e-8)
    assert len(desk.history()) == 1
    assert desk.spent == plan.price


def test_a_group_by_that_is_measured_directly_is_paid_once(tmp_path):
    asked = (
        "SELECT sex, COUNT(*) AS n FROM adult WHERE age >= 33 AND hours_per_week >= 33 AND race = 'White' "
        "AND occupation = 'Sales' GROUP BY sex"
    )
    with Curator(load_adult(), budget=BUDGET, ledger=tmp_path / "ledger.sqlite") as desk:
        plan = desk.plan(asked, error=60.7)
        if plan.origin != "direct":
            pytest.fail("this is about direct answers", pytrace=False)
        desk.ask(asked, error=60.7)
        assert desk.spent == plan.price


@pytest.mark.parametrize("error", [0.5, 1, 2, 2.7, 50])
def test_the_number_of_rows_is_paid_once(tmp_path, error):
    with Curator(PEOPLE, budget=Budget(epsilon=500, delta=1e-9), ledger=tmp_path / "ledger.sqlite") as desk:
        answer = desk.ask("SELECT COUNT(*) FROM people", error=error)
        assert answer.error <= error * (1 + 1e-8)
        assert len(desk.history()) == 1


def test_a_batch_with_the_number_of_rows_in_it_is_paid_once(desk):
    answers = desk.ask_many(["SELECT COUNT(*) FROM people", "smoker = TRUE", "city = 'a'"], error=80)
    assert all(answer.error <= 80 * (1 + 1e-8) for answer in answers)
    assert len(desk.history()) == 1

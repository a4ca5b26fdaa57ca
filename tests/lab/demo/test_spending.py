"""What the baselines pay, by hand."""

from dataclasses import dataclass
from math import log

import pytest

from discreet.accounting import epsilon_of, mu_of
from discreet.lab.demo.spending import Spending, gaussian_spending, laplace_spending
from discreet.ledger import Budget, Ledger
from discreet.ledger.accounts import count_event


@dataclass
class Wanted:
    sql: str
    error: float


BUDGET = Budget(epsilon=1, delta=1e-9)
# The third is the first again; the fourth is the second with another error, which is a new question.
STREAM = [Wanted("a", 500), Wanted("b", 250), Wanted("a", 500), Wanted("b", 100)]


def test_laplace_adds_up_epsilons_of_new_questions():
    spending = laplace_spending(STREAM, BUDGET, confidence=0.95)
    by_hand = [log(20) / 500, log(20) / 500 + log(20) / 250]
    by_hand += [by_hand[1], by_hand[1] + log(20) / 100]
    assert spending.used == pytest.approx(by_hand)
    assert [spending.epsilon(place) for place in (1, 2, 3, 4)] == pytest.approx(by_hand)


def test_gaussian_adds_up_squares_of_new_questions():
    spending = gaussian_spending(STREAM, BUDGET, confidence=0.95)
    z, whole = 1.959963984540054, mu_of(epsilon=1, delta=1e-9) ** 2
    first, second, fourth = ((z / (error + 0.5)) ** 2 for error in (500, 250, 100))
    by_hand = [first, first + second, first + second, first + second + fourth]
    assert spending.used == pytest.approx([square / whole for square in by_hand])
    assert spending.epsilon(4) == pytest.approx(epsilon_of(mu=by_hand[3] ** 0.5, delta=1e-9))


def test_the_whole_budget_is_the_whole_budget():
    assert Spending("x", [1.0], BUDGET, "squares").epsilon(1) == pytest.approx(1)
    assert Spending("x", [1.0], BUDGET, "epsilon").epsilon(1) == 1


def test_the_price_of_a_gaussian_answer_is_what_our_own_ledger_charges_for_it(tmp_path):
    with Ledger(tmp_path / "budget.sqlite") as ledger:
        ledger.cap(BUDGET, table="t")
        event = count_event(ledger.balances()[0].gate, error=250, confidence=0.95, contributions=1)
        ledger.spend(event, "a count", table="t")
        used = 1 - ledger.balances()[0].share_left
    assert gaussian_spending([Wanted("a", 250)], BUDGET, confidence=0.95).used == pytest.approx([used])


def test_a_budget_is_enough_until_a_question_goes_beyond_it():
    assert Spending("x", [0.5, 1.0, 1.1], BUDGET, "epsilon").answered == 2
    assert Spending("x", [0.5, 0.6], BUDGET, "epsilon").answered == 2

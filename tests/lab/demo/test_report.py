"""The report is one well-formed file that asks nobody for anything and says what happened."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from rich.console import Console

from discreet.answer import Answer
from discreet.errors import BudgetExceeded
from discreet.lab.demo.demo_outcome import Outcome, Reply, ask_all
from discreet.lab.demo.demo_output import show_examples, show_groups, show_meaning, show_summary
from discreet.lab.demo.demo_page import budget_figure, free_figure, groups_figure, misses_figure, report
from discreet.lab.demo.meter import Meter
from discreet.lab.demo.questions import Condition, Question, questions
from discreet.lab.demo.spending import Spending, gaussian_spending, laplace_spending
from discreet.ledger import Budget

BUDGET, CONFIDENCE = Budget(epsilon=1, delta=1e-9), 0.95
TABLE = Question((Condition("sex", "=", ("Female",)),), ("occupation",), 500)


@pytest.fixture(scope="module")
def groups(desk, truth):
    return ask_all(desk, [TABLE], truth, budget=BUDGET, confidence=CONFIDENCE).replies[0]


@pytest.fixture(scope="module")
def baselines(outcome):
    stream = [reply.question for reply in outcome.replies]
    return [make(stream, BUDGET, confidence=CONFIDENCE) for make in (gaussian_spending, laplace_spending)]


@pytest.fixture(scope="module")
def examples(outcome):
    return [(place, reply) for place, reply in enumerate(outcome.replies, 1) if not reply.question.groups][:5]


@pytest.fixture(scope="module")
def page(outcome, baselines, examples, groups, truth):
    return report(outcome, baselines, examples, groups, truth.rows)


def test_an_outcome_counts_what_was_free_and_what_was_spent(outcome, baselines):
    """The stand-in does what the Gaussian baseline computes, so that the two can be compared."""
    again = len(outcome.replies) - len({reply.question.sql for reply in outcome.replies})
    assert outcome.free.sum() == again > 0
    assert outcome.spending.used == pytest.approx(baselines[0].used)
    assert outcome.refused == 0


def test_errors_are_measured_against_the_truth(outcome):
    assert outcome.every_miss.size == sum(reply.values.size for reply in outcome.replies)
    assert 0.85 < outcome.held <= 1
    for reply in outcome.replies:
        assert len(reply.truth) == reply.values.size == reply.misses.size


def test_a_miss_is_the_distance_in_promised_errors():
    answer = Answer(np.array([10, 20, 30]), np.array([5.0, 5.0, 0.0]), 0.95, None, "")
    assert Reply(TABLE, answer, (10, 30, 30), 0.1).misses.tolist() == [0, 2, 0]


def test_what_is_refused_is_counted_and_the_stream_goes_on(truth, desk):
    class Poor:
        ledger = desk.ledger

        def ask(self, sql, *, error, confidence):
            raise BudgetExceeded("nothing is left")

    outcome = ask_all(Poor(), questions(3), truth, budget=BUDGET, confidence=CONFIDENCE)
    assert outcome.refused == 3
    assert outcome.held == 1
    assert outcome.every_miss.size == 0
    assert "3 were refused" in report(outcome, [], [], Reply(TABLE, None, (), 1.0), 48_842)


def test_the_page_is_well_formed_and_asks_nobody_for_anything(page):
    root = ElementTree.fromstring(page.removeprefix("<!DOCTYPE html>\n"))
    assert len(list(root.iter("svg"))) == 7
    assert not list(root.iter("script"))
    assert not re.search(r"https?://|src=|url\(|@import|<link", page)


def test_the_page_says_what_happened(page, outcome):
    assert f"{outcome.free.mean():.1%}" in page
    assert f"{outcome.held:.1%}" in page
    assert "Only a demonstration" in page
    assert TABLE.sql in page.replace("&#x27;", "'")


def test_numbers_of_a_table_are_all_in_its_picture(groups):
    texts = {text.text for text in ElementTree.fromstring(groups_figure(groups)).iter("text")}
    for value, error, true in zip(groups.values, groups.errors, groups.truth, strict=True):
        assert f"{value:,.0f} ± {error:,.0f}" in texts
        assert f"{true:,}" in texts


def test_the_picture_of_the_budget_marks_where_it_is_gone():
    used = [(place + 1) / 100 for place in range(400)]
    svg = budget_figure(
        [Spending("Discreet", [0.3] * 400, BUDGET, "squares"), Spending("Laplace", used, BUDGET, "epsilon")]
    )
    texts = [text.text for text in ElementTree.fromstring(svg).iter("text")]
    assert [text for text in texts if text.startswith("gone")] == ["gone at 101"]
    assert {"ε 4", "Laplace each", "Discreet", "over budget"} <= set(texts)


def test_the_picture_of_the_errors_says_how_many_are_outside():
    svg = misses_figure("counts", np.array([0.2] * 9 + [1.5]), confidence=0.95, last=2)
    texts = [text.text for text in ElementTree.fromstring(svg).iter("text")]
    assert {"10.0% outside", "90.0% within", "worst 1.50"} <= set(texts)
    styles = [bar.get("class") for bar in ElementTree.fromstring(svg).iter("rect")]
    assert styles == ["inside", "outside"]


@pytest.mark.parametrize("number", [1, 2, 7])
def test_short_streams_have_pictures_too(number, outcome):
    few = Outcome(outcome.replies[:number], BUDGET, CONFIDENCE, 0.1)
    ElementTree.fromstring(free_figure(few))
    ElementTree.fromstring(budget_figure([few.spending]))


def test_the_terminal_shows_the_same(outcome, baselines, examples, groups, truth):
    console = Console(width=140, record=True, quiet=False, file=open("/dev/null", "w"))  # noqa: SIM115
    with Meter(console, len(outcome.replies)) as meter:
        for reply in outcome.replies:
            meter.watch(reply, 0.5)
    show_summary(console, outcome, baselines)
    show_examples(console, examples)
    show_groups(console, groups)
    show_meaning(console, outcome, truth.rows)
    shown = console.export_text()
    assert f"{outcome.free.mean():.1%}" in shown
    assert "one Laplace answer each" in shown
    assert "Armed-Forces" in shown
    for _, reply in examples:
        assert f"{reply.truth[0]:,}" in shown

"""The demonstration tells the truth about its own town."""

import re

import pytest

from discreet import demo
from discreet.errors import BudgetExceeded
from discreet.query.ask import count
from discreet.source.exact import unseal
from discreet.source.table import open as open_table


@pytest.fixture(scope="module")
def town():
    return demo.made_up_town()


@pytest.mark.parametrize(("text", "where", "truly"), demo.QUESTIONS, ids=[text for text, _, _ in demo.QUESTIONS])
def test_what_is_asked_is_what_is_looked_up(town, text, where, truly):
    table = open_table([person._asdict() for person in town], domain=demo.DOMAIN)
    exact = table.evaluate(count(demo.DOMAIN, where))
    assert unseal(exact, exact.sensitivity).tolist() == [sum(map(truly, town))]


def test_it_runs_and_spends_its_budget_and_no_more(capsys):
    demo.run()
    shown = capsys.readouterr().out
    for text, _, _ in demo.QUESTIONS:
        assert text in shown
    # Eight equal parts of the budget: an eighth less each time, and nothing in the end.
    assert re.findall(r"(\d+)%\s*│$", shown, flags=re.M) == ["88", "75", "63", "50", "38", "25", "13", "0"]


def test_what_the_budget_does_not_allow_is_refused_before_a_row_is_read(monkeypatch):
    enough = demo._sigma
    monkeypatch.setattr(demo, "_sigma", lambda moves, questions: enough(moves, questions) / 2)
    read = []
    evaluate = demo.Table.evaluate
    monkeypatch.setattr(demo.Table, "evaluate", lambda self, question: (read.append(1), evaluate(self, question))[1])
    with pytest.raises(BudgetExceeded, match="no row was read"):
        demo.run()
    # Half of the noise costs four times as much: two of the eight questions fit.
    assert len(read) == 2

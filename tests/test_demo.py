"""The demonstration tells the truth about the bundled table."""

import re

import pytest

from discreet import demo
from discreet.data import load_adult
from discreet.errors import BudgetExceeded
from discreet.source.exact import unseal


@pytest.mark.parametrize("sql", demo.QUESTIONS)
def test_what_is_asked_is_what_plain_duckdb_says_to_the_same_sql(sql):
    adult = load_adult()
    exact = adult.evaluate(demo._question(adult, sql))
    assert unseal(exact, exact.sensitivity).tolist() == demo._truth(sql)


def test_it_runs_and_spends_its_budget_and_no_more(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    demo.run()
    shown = capsys.readouterr().out
    for sql in demo.QUESTIONS:
        assert sql.removeprefix(demo.COUNT) in shown
    # Eight equal parts of the budget: an eighth less each time, and nothing in the end.
    assert re.findall(r"(\d+)%\s*│$", shown, flags=re.M) == ["88", "75", "63", "50", "38", "25", "13", "0"]


def test_what_the_budget_does_not_allow_is_refused_before_a_row_is_read(monkeypatch):
    enough = demo._sigma
    monkeypatch.setattr(demo, "_sigma", lambda moves, questions: enough(moves, questions) / 2)
    read = []
    evaluate = demo.Table.evaluate
    monkeypatch.setattr(demo.Table, "evaluate", lambda self, question: (read.append(1), evaluate(self, question))[1])
    with pytest.raises(BudgetExceeded, match="ask the data owner for more"):
        demo.run()
    # Half of the noise costs four times as much: two of the eight questions fit.
    assert len(read) == 2

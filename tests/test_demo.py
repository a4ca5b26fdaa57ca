"""The demonstration tells the truth about its own town."""

import pytest

from discreet import demo
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
    assert "0%" in shown

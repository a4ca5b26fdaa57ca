"""The page needs nothing else, and says what came out."""

from dataclasses import replace

from discreet.lab.attack import Learnt, attack_by_posterior, attack_by_tracing
from discreet.lab.attack.attack_page import report


def test_the_page_shows_a_figure_for_each_attack_and_asks_for_nothing(adult):
    outcomes = [attack_by_posterior(), attack_by_tracing(adult, people=10, means=40, columns=("age", "occupation"))]
    page = report(outcomes, table="the <b>census</b>")
    assert page.count("<svg") == 3
    assert "<script" not in page
    assert "http" not in page.replace("http-equiv", "")
    assert "&lt;b&gt;census" in page
    assert page.count("Nothing was learnt that is not permitted") == 2


def test_the_page_says_so_if_an_attack_has_succeeded():
    bad = replace(attack_by_posterior(), learnt=(Learnt("a broken curator", "ours", 0.99),))
    assert not bad.holds
    page = report([bad], table="people", public=False)
    assert "More was learnt than is permitted" in page
    assert "keep it as safe as the table itself" in page

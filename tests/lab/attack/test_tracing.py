"""Many exact means tell who was in the table; a private release of them does not."""

import numpy as np
import pytest

from discreet.errors import BadParameter
from discreet.lab.attack import attack_by_tracing, experiments, largest_area, luckiest_area
from discreet.lab.attack.tracing import Traced, trace
from discreet.lab.random import normals, truths


@pytest.fixture
def small(monkeypatch):
    """A smaller population is quicker, and good enough to lean against."""
    monkeypatch.setattr(experiments, "POPULATION", 400)
    return {"people": 60, "means": 600, "columns": ("age", "occupation", "hours_per_week"), "delta": 1e-12}


def test_exact_and_rounded_means_tell_and_private_ones_do_not(adult, small):
    """Few people and few means, so that it is quick; the bound on ours is wrong with probability 1e-6 at most."""
    outcome = attack_by_tracing(adult, epsilon=1, **small)
    bound = luckiest_area(60, epsilon=1, delta=1e-12, confidence=1 - 1e-6)
    assert outcome.best("exact") >= 0.9
    assert outcome.best("rounded") >= 0.85
    assert outcome.best("ours") <= bound < 1
    assert outcome.limit == largest_area(epsilon=1, delta=1e-12)


def test_a_budget_of_ten_thousand_is_no_budget(adult, small):
    outcome = attack_by_tracing(adult, epsilon=10_000, **small)
    assert outcome.best("ours") > luckiest_area(60, epsilon=1, delta=1e-12, confidence=0.9)


def test_people_of_whom_nothing_was_told_cannot_be_traced():
    """The means of other people: no more than luck, even that of a tiny budget (1e-6)."""
    inside, outside, others = (truths(0.5, 60, 400).astype(float) for _ in range(3))
    area = trace(others.mean(axis=0), np.full(400, 0.5), inside, outside).area
    assert area <= luckiest_area(60, epsilon=1e-6, confidence=1 - 1e-6) < 0.9


def test_means_that_are_missing_are_left_out():
    inside, outside = truths(0.5, 20, 800).astype(float), truths(0.5, 20, 800).astype(float)
    means = inside.mean(axis=0)
    means[:50] = np.nan
    assert trace(means, np.full(800, 0.5), inside, outside).area > 0.95


def test_the_area_is_that_under_the_curve():
    traced = Traced(normals(50) + 1, normals(60))
    alarms, hits = np.array(traced.curve).T
    assert np.trapezoid(hits, alarms) == pytest.approx(traced.area)


def test_luck_falls_with_more_people():
    areas = [luckiest_area(people, epsilon=1, delta=1e-9) for people in (30, 300, 3000)]
    assert largest_area(epsilon=1) < areas[2] < areas[1] < areas[0] < 1


def test_too_few_rows_are_refused(adult):
    with pytest.raises(BadParameter, match="Trace fewer"):
        attack_by_tracing(adult, people=20_000, means=2, columns=("age", "occupation"))


@pytest.mark.long
def test_at_full_size_exact_means_tell_nearly_everybody(adult):
    columns = ("age", "education", "occupation", "hours_per_week")
    outcome = attack_by_tracing(adult, people=100, means=1500, columns=columns, epsilon=1, delta=1e-12)
    assert outcome.best("exact") >= 0.95
    assert outcome.best("ours") <= luckiest_area(100, epsilon=1, delta=1e-12, confidence=1 - 1e-9)

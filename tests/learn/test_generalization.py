"""Bounds for the population: each against simulation, against the others, and a wrong one caught by an attack."""

from math import exp, log, sqrt

import numpy as np
import pytest
from scipy.stats import binom

from discreet.learn.holdout.generalization import (
    bassily,
    chernoff_interval,
    description_nats,
    deviation,
    gaussian_answers,
    gaussian_mechanism_delta,
    jung,
    log_all_transcripts,
    log_choose,
    log_transcripts,
    splitting,
)


def test_transcripts_are_counted_as_they_are_listed():
    """Every word of four answers, each none or one of three values."""
    words = np.array(np.meshgrid(*[range(4)] * 4)).reshape(4, -1).T
    for hits in range(5):
        with_hits = words[(words > 0).sum(axis=1) == hits]
        assert round(exp(log_transcripts(4, hits, 3))) == len(with_hits)
        rising = [word for word in with_hits if list(word[word > 0]) == sorted(word[word > 0])]
        assert round(exp(log_transcripts(4, hits, 3, rising=True))) == len(rising)
    assert log_choose(3, 4) == -float("inf")


@pytest.mark.parametrize(("queries", "checks", "values"), [(3, 1, 2), (4, 2, 3)])
def test_no_session_has_more_transcripts_than_are_carried_on(queries, checks, values):
    def sessions(asked, left):
        """Wherever it was left."""
        yield 1
        if asked < queries and left:
            yield from sessions(asked + 1, left)
            for _ in range(values):
                yield from sessions(asked + 1, left - 1)

    assert sum(sessions(0, checks)) <= exp(log_all_transcripts(queries, checks, values)) * (1 + 1e-9)


def test_the_parts_of_the_failure_add_up():
    """Over all questions that can be asked, the probabilities that the union bound spends are at most the failure."""
    queries, checks, values, failure = 20, 4, 5, 0.05
    spent = 0.0
    for asked in range(queries):
        for hits in range(min(asked, checks - 1) + 1):
            nats = description_nats(
                asked=asked, hits=hits, queries=queries, checks=checks, values=values, failure=failure
            )
            spent += exp(log_transcripts(asked, hits, values)) * 2 * exp(-nats)
    assert 0.5 * failure < spent <= failure * (1 + 1e-9)


@pytest.mark.parametrize(("rows", "p"), [(50, 0.5), (50, 0.03), (200, 0.9)])
def test_a_sample_mean_is_outside_no_more_often_than_was_said(rows, p):
    """Exactly, by the binomial law."""
    for nats in (1.0, 3.0, 8.0):
        missed = 0.0
        for successes in range(rows + 1):
            mean = successes / rows
            low, high = chernoff_interval(mean, mean, rows=rows, nats=nats)
            assert mean - deviation(rows, nats) - 1e-9 <= low <= mean <= high <= mean + deviation(rows, nats) + 1e-9
            missed += binom.pmf(successes, rows, p) * (not low <= p <= high)
        assert missed <= 2 * exp(-nats)


def test_an_interval_of_half_the_nats_misses_too_often():
    """The power of the test above."""
    rows, p, nats = 400, 0.5, 8.0
    ends = [chernoff_interval(ones / rows, ones / rows, rows=rows, nats=nats / 2) for ones in range(rows + 1)]
    missed = sum(binom.pmf(ones, rows, p) for ones, (low, high) in enumerate(ends) if not low <= p <= high)
    assert missed > 2 * exp(-nats)


def test_jung_is_better_than_what_was_before_and_than_splitting_where_rows_are_many():
    def laplace(scale):
        return lambda b: scale * log(1000 / b)

    for scale, epsilon, delta in [(1e-4, 0.002, 0.0), (1e-3, 0.005, 1e-9), (3e-4, 0.001, 1e-7)]:
        new = jung(laplace(scale), epsilon=epsilon, delta=delta, failure=0.05)
        old = bassily(laplace(scale), epsilon=epsilon, delta=delta, failure=0.05)
        assert new < old
    assert bassily(laplace(1.0), epsilon=0.5, delta=0.0, failure=0.05) == 1.0
    assert gaussian_answers(rows=10**4, queries=1000, failure=0.05) < splitting(rows=10**4, queries=1000, failure=0.05)
    assert gaussian_answers(rows=10**3, queries=10, failure=0.05) > splitting(rows=10**3, queries=10, failure=0.05)


def test_a_short_description_beats_privacy_until_nearly_every_question_is_a_hit():
    def described(rows, queries, hits):
        nats = description_nats(
            asked=queries - 1, hits=hits - 1, queries=queries, checks=hits, values=33, failure=0.025
        )
        return deviation(rows, nats)

    answered = {queries: gaussian_answers(rows=10**6, queries=queries, failure=0.05) for queries in (1000, 100_000)}
    assert described(10**6, 1000, 10) < answered[1000] / 4
    assert described(10**6, 100_000, 50) < answered[100_000] / 4
    assert described(10**6, 100_000, 100_000) > answered[100_000]


def test_the_delta_of_gaussian_noise_is_that_of_its_definition():
    """sup over events of P − e^ε Q, on a fine grid of N(mu, 1) against N(0, 1)."""
    mu, epsilon = 0.7, 0.9
    x = np.linspace(-12, 12, 200_001)
    p, q = (np.exp(-((x - at) ** 2) / 2) / sqrt(2 * np.pi) for at in (mu, 0.0))
    excess = np.maximum(p - exp(epsilon) * q, 0).sum() * (x[1] - x[0])
    assert gaussian_mechanism_delta(epsilon, mu) == pytest.approx(excess, rel=1e-4)


# --- The transfer theorem and the description length, against an analyst who adapts ----------------------------------


def attacked(rng, rows, features, told):
    """Features that say nothing; each mean is told; then a vote by their signs: its mean on these rows (truth: ½)."""
    table = rng.integers(0, 2, size=(rows, features))
    answers = np.array([told(mean) for mean in table.mean(axis=0)])
    vote = (table - 0.5) @ np.sign(answers - 0.5)
    return float((vote > 0).mean() + (vote == 0).mean() / 2)


def test_without_the_union_over_transcripts_a_bound_is_broken_and_with_it_it_holds():
    """Exact answers to 400 questions are 400 hits; counting only the questions asked is the usual mistake."""
    rng, rows, features = np.random.default_rng(5), 400, 400
    off = [abs(attacked(rng, rows, features, lambda mean: mean) - 0.5) for _ in range(20)]
    wrong = deviation(rows, log(2 * (features + 1) / 0.05))
    right = deviation(
        rows,
        description_nats(
            asked=features, hits=features, queries=features + 1, checks=features + 1, values=rows + 1, failure=0.05
        ),
    )
    assert min(off) > wrong
    assert max(off) < right


def test_private_answers_meet_the_transfer_theorem_and_the_theorem_is_not_empty():
    """Gaussian noise at 20,000 rows and 30 features, 30 times."""
    rng, rows, features, failure, sigma = np.random.default_rng(6), 20_000, 30, 0.05, 0.01
    mu = sqrt(features + 1) / (rows * sigma)
    promised = min(
        jung(
            lambda b: sigma * sqrt(2 * log((features + 1) / b)),
            epsilon=times * mu,
            delta=gaussian_mechanism_delta(times * mu, mu),
            failure=failure,
        )
        for times in (2, 3, 4, 5)
    )
    assert promised < 0.25
    off = [abs(attacked(rng, rows, features, lambda mean: mean + rng.normal(scale=sigma)) - 0.5) for _ in range(30)]
    assert max(off) < promised

"""A look is split into two that know nothing of each other's noise; what was learnt from one is judged by the other."""

from dataclasses import replace
from itertools import combinations, pairwise, product
from math import inf, sqrt

import numpy as np
import pytest
from scipy.stats import chi2

from discreet.model.interface import NoisyMarginal
from discreet.model.mixture.ensemble import ADDED, confirmed_share, fit_ensemble, thin
from discreet.model.mixture.independent_model import product_of
from discreet.model.mixture.mixture_model import Mixture
from discreet.query.residual import axis_of
from discreet.schema import Boolean, Categories, Domain, Integers

DOMAIN = Domain(
    {
        "age": Integers(0, 5, missing="drop"),
        "ill": Boolean(),
        "job": Categories(list("abcd"), outside="drop"),
        "region": Categories(list("vwxyz"), outside="drop"),
    }
)
NAMES = tuple(DOMAIN)
TOTAL = 10_000.0
# The deviations of false alarms of 1e-9, and as little of what has a χ² law.
DEVIATIONS, SELDOM = 6.1, 1e-9


def mixture(components, seed=0):
    rng = np.random.default_rng(seed)
    tables = np.concatenate([rng.dirichlet(np.ones(size), size=components).T for size in DOMAIN.shape])
    return Mixture(DOMAIN, TOTAL, rng.dirichlet(np.full(components, 3.0)), tables)


def looks_at(truth, spread, seed):
    """Looks at all single columns and pairs: some of whole marginals, some of pieces, of more and of less noise."""
    rng, found = np.random.default_rng(seed), []
    scopes = [(name,) for name in NAMES] + list(combinations(NAMES, 2))
    for place, scope in enumerate(scopes):
        sigma = spread * (1 + place % 3)
        parts = (1,) * len(scope) if place % 2 else None
        exact = NoisyMarginal(scope, parts, np.zeros(()), 1.0).residual(truth.marginal(scope), DOMAIN)
        found.append(NoisyMarginal(scope, parts, exact + sigma * rng.normal(size=exact.shape), sigma**-2))
    return found


# --- Two looks from one -----------------------------------------------------------------------------------------------


def noisy_looks(number=60_000):
    """Looks at nothing, so that their values are their noise; and the deviation of each."""
    rng = np.random.default_rng(1)
    spreads = (0.3, 20.0, 500.0)
    return [NoisyMarginal(("age",), None, sigma * rng.normal(size=number), sigma**-2) for sigma in spreads], spreads


def correlation(one, other):
    """In deviations of what independent numbers have."""
    return float(np.mean(one * other) / sqrt(np.mean(one**2) * np.mean(other**2)) * sqrt(one.size))


def test_the_noise_of_one_says_nothing_of_the_noise_of_the_other():
    looks, _ = noisy_looks()
    learn, judge = thin(looks)
    for look, one, other in zip(looks, learn, judge, strict=True):
        assert abs(correlation(one.values, other.values)) < DEVIATIONS
        # Power: each has to do with the look that it was made of.
        assert correlation(one.values, look.values) > DEVIATIONS
        assert correlation(other.values, look.values) > DEVIATIONS
        # So has what is left if the noise is added to both, or not taken as often from the other.
        added = one.values - look.values
        for wrong in (look.values + added / ADDED**2, look.values - added / ADDED, look.values):
            assert abs(correlation(one.values, wrong)) > DEVIATIONS


def test_looks_know_nothing_of_each_other():
    """Those of different looks get noise of their own."""
    looks, _ = noisy_looks()
    both = thin(looks)
    for these in both:
        for one, other in pairwise(these):
            assert abs(correlation(one.values, other.values)) < DEVIATIONS
    # Looks of the same shape at the same columns too.
    learn, _ = thin([looks[0], looks[0]])
    added = [look.values - looks[0].values for look in learn]
    assert abs(correlation(*added)) < DEVIATIONS


def test_weights_are_one_over_the_variance():
    looks, spreads = noisy_looks()
    for found in thin(looks):
        for look in found:
            low, high = chi2.ppf([SELDOM / 2, 1 - SELDOM / 2], look.values.size)
            assert low < look.weight * float((look.values**2).sum()) < high
    learn, judge = thin(looks)
    for sigma, one, other in zip(spreads, learn, judge, strict=True):
        assert 1 / one.weight == pytest.approx(sigma**2 * (1 + ADDED**2))
        assert 1 / other.weight == pytest.approx(sigma**2 * (1 + ADDED**-2))
        # Power: the bound is narrow.
        assert high / low < 1.1


def test_nothing_is_lost():
    """Precisions add up, and the two together say what the look said."""
    looks = looks_at(mixture(3), 30.0, seed=0)
    for look, one, other in zip(looks, *thin(looks), strict=True):
        assert one.weight + other.weight == pytest.approx(look.weight)
        together = (one.weight * one.values + other.weight * other.values) / look.weight
        np.testing.assert_allclose(together, look.values, atol=1e-6 * look.weight**-0.5)
        for each in (one, other):
            assert (each.columns, each.parts, each.values.shape) == (look.columns, look.parts, look.values.shape)


def test_the_same_looks_are_split_alike_and_stay_as_they_are():
    looks = looks_at(mixture(3), 30.0, seed=0)
    before = [look.values.copy() for look in looks]
    for first, second in zip(thin(looks), thin(iter(looks)), strict=True):
        for one, other in zip(first, second, strict=True):
            assert one.values.tobytes() == other.values.tobytes()
            assert one.weight == other.weight
    for look, values in zip(looks, before, strict=True):
        np.testing.assert_array_equal(look.values, values)
    assert thin([]) == ([], [])


# --- What is borne out ------------------------------------------------------------------------------------------------


def scores(model, simple, truth, expected, spread, seeds=range(60)):
    """For looks at the truth: how many of its own deviations the part is away from what is expected."""
    found = [confirmed_share(model, simple, looks_at(truth, spread, seed)) for seed in seeds]
    return np.array([(part - expected) / deviation for part, deviation in found])


def are_standard(numbers):
    low, high = chi2.ppf([SELDOM / 2, 1 - SELDOM / 2], numbers.size)
    return abs(numbers.mean()) * sqrt(numbers.size) < DEVIATIONS and low < float((numbers**2).sum()) < high


@pytest.mark.parametrize("spread", [5.0, 200.0])
def test_the_true_model_is_borne_out_as_a_whole_and_noise_not_at_all(spread):
    truth = mixture(4)
    simple = product_of(DOMAIN, looks_at(truth, 1.0, seed=99), total=TOTAL)
    assert are_standard(scores(truth, simple, truth, 1.0, spread))
    assert are_standard(scores(truth, simple, simple, 0.0, spread))
    # Power: half of it would be seen, and so would a deviation that is off by a half.
    assert not are_standard(scores(truth, simple, truth, 0.5, 5.0))
    assert not are_standard(2 * scores(truth, simple, truth, 1.0, spread))


def test_half_of_a_difference_is_borne_out_by_half():
    truth = mixture(4)
    simple = product_of(DOMAIN, looks_at(truth, 1.0, seed=99), total=TOTAL)
    tables = np.concatenate([simple.tables, truth.tables], axis=1)
    half = Mixture(DOMAIN, TOTAL, np.concatenate([[0.5], truth.weights / 2]), tables)
    assert are_standard(scores(truth, simple, half, 0.5, 20.0))
    # A model that goes only half of the way is borne out twice.
    assert are_standard(scores(half, simple, truth, 2.0, 20.0))


def test_models_that_do_not_differ_are_never_borne_out():
    truth = mixture(2)
    assert confirmed_share(truth, truth, looks_at(truth, 5.0, 0)) == (inf, inf)
    assert confirmed_share(truth, mixture(3), []) == (inf, inf)


def pieces_of(truth, spread, seed):
    """Looks at all pieces of single columns and pairs, as releases measure them: pairs say nothing of columns alone."""
    rng, found = np.random.default_rng(seed), []
    for scope in [(name,) for name in NAMES] + list(combinations(NAMES, 2)):
        for parts in product(*(range(1, axis_of(DOMAIN[name]).parts) for name in scope)):
            exact = NoisyMarginal(scope, parts, np.zeros(()), 1.0).residual(truth.marginal(scope), DOMAIN)
            found.append(NoisyMarginal(scope, parts, exact + spread * rng.normal(size=exact.shape), spread**-2))
    return found


def true_part(model, simple, truth, looks):
    """What is borne out by looks without any noise."""
    exact = [replace(look, values=look.values + look.residual(truth.marginal(look.columns), DOMAIN)) for look in looks]
    return confirmed_share(model, simple, exact)[0]


def test_what_was_fitted_to_noise_is_borne_out_by_the_same_noise_alone():
    truth = mixture(1)
    fresh, same = [], []
    for seed in range(24):
        looks = pieces_of(truth, 100.0, seed)
        # The noise that splits them depends on their places: each time another.
        learn, judge = thin(looks[seed:] + looks[:seed])
        # Less noise is said to be there than is, so mixtures are fitted to it.
        bold = [replace(look, weight=4 * look.weight) for look in learn]
        model = fit_ensemble(DOMAIN, bold, total=TOTAL, members=3, components=6, steps=60)
        assert len(model.weights) > 1
        simple = product_of(DOMAIN, bold, total=TOTAL)
        for seen, found in ((judge, fresh), (learn, same)):
            part, deviation = confirmed_share(model, simple, seen)
            found.append((part - true_part(model, simple, truth, seen)) / deviation)
    # What it has not seen says how much of it is true; what it was fitted to says more, and is wrong.
    assert are_standard(np.array(fresh))
    assert np.mean(same) * sqrt(24) > DEVIATIONS

"""Many small mixtures, fitted down to the noise and no further: their mean is a table, and nearer than each."""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import binom, norm

from discreet.errors import BadParameter
from discreet.model.interface import NoisyMarginal
from discreet.model.mixture import ensemble
from discreet.model.mixture.ensemble import TUNING, fit_ensemble
from discreet.model.mixture.features import mixture_features
from discreet.model.mixture.independent_model import product_of
from discreet.model.mixture.mixture_model import Mixture
from discreet.schema import Boolean, Categories, Domain, Integers

DOMAIN = Domain(
    {
        "region": Categories(list("vwxyz"), outside="drop"),
        "age": Integers(0, 5, missing="drop"),
        "ill": Boolean(),
        "job": Categories(list("abcd"), outside="drop"),
        "old": Boolean(),
    }
)
TOTAL = 10_000.0
SMALL = {"members": 6, "components": 8, "steps": 200}


def table(components=4, seed=0):
    """A table in which columns go together: some kinds of people, with products of their own."""
    rng = np.random.default_rng(seed)
    tables = np.concatenate([rng.dirichlet(np.full(size, 0.5), size=components).T for size in DOMAIN.shape])
    return Mixture(DOMAIN, TOTAL, rng.dirichlet(np.full(components, 3.0)), tables)


def looks_at(truth, columns=(1, 2), spread=20.0, seed=1):
    """Looks at all whole marginals of so many columns."""
    rng, found = np.random.default_rng(seed), []
    for size in columns:
        for scope in combinations(sorted(DOMAIN), size):
            exact = truth.marginal(scope)
            found.append(NoisyMarginal(scope, None, exact + spread * rng.normal(size=exact.shape), spread**-2))
    return found


def error_of(model, truth, size=3):
    """The mean L1 distance of all marginals of so many columns, in parts of the rows."""
    scopes = list(combinations(sorted(DOMAIN), size))
    return float(np.mean([np.abs(model.marginal(each) - truth.marginal(each)).sum() for each in scopes])) / TOTAL


def misfit(model, looks):
    """How far off a model is, a number, in variances of the noise."""
    squares = [look.weight * float((look.residual(model.marginal(look.columns), DOMAIN) ** 2).sum()) for look in looks]
    return sum(squares) / sum(np.size(look.values) for look in looks)


@pytest.fixture(scope="module")
def truth():
    return table()


@pytest.fixture(scope="module")
def looks(truth):
    return looks_at(truth)


@pytest.fixture(scope="module")
def fitted(looks):
    return fit_ensemble(DOMAIN, looks, total=TOTAL, **SMALL)


# --- What it is -------------------------------------------------------------------------------------------------------


def test_it_is_one_table_never_negative_with_all_rows(fitted):
    assert fitted.total == TOTAL
    assert fitted.tables.min() >= 0
    assert fitted.weights.min() >= 0
    assert fitted.weights.sum() == pytest.approx(1)
    whole = fitted.marginal(sorted(DOMAIN))
    assert whole.sum() == pytest.approx(TOTAL)
    # Any marginal is one of the whole table's.
    for kept in ((0,), (1, 4), (0, 2, 3)):
        others = tuple(place for place in range(5) if place not in kept)
        found = fitted.marginal([sorted(DOMAIN)[place] for place in kept])
        np.testing.assert_allclose(found, whole.sum(axis=others), rtol=1e-4)


def test_every_member_counts_alike(fitted):
    assert fitted.weights.shape == (SMALL["members"] * SMALL["components"],)
    each = fitted.weights.reshape(SMALL["members"], -1).sum(axis=1)
    np.testing.assert_allclose(each, 1 / SMALL["members"], rtol=1e-5)


def test_the_same_looks_give_the_same(looks, fitted):
    again = fit_ensemble(DOMAIN, looks, total=TOTAL, **SMALL)
    np.testing.assert_array_equal(again.tables, fitted.tables)
    np.testing.assert_array_equal(again.weights, fitted.weights)


def test_its_misfit_is_what_it_says(looks, fitted):
    numbers = mixture_features(looks, DOMAIN).numbers
    assert fitted.misfit * numbers == pytest.approx(
        misfit(fitted, looks) * sum(look.values.size for look in looks), rel=0.01
    )


def test_the_order_of_the_looks_does_not_matter_beyond_the_noise(looks, fitted, truth):
    other = fit_ensemble(DOMAIN, looks[::-1], total=TOTAL, **SMALL)
    assert error_of(fitted, other, size=2) < 0.3 * error_of(fitted, truth, size=2)


def test_the_order_of_the_columns_does_not_matter_beyond_the_noise(looks, fitted, truth):
    """Members start elsewhere, but what they learn is the same."""
    backwards = Domain({name: DOMAIN[name] for name in reversed(list(DOMAIN))})
    other = fit_ensemble(backwards, looks, total=TOTAL, **SMALL)
    assert list(other.domain) == list(backwards)
    assert error_of(other, truth) == pytest.approx(error_of(fitted, truth), rel=0.3)


# --- How near it comes ------------------------------------------------------------------------------------------------


def test_a_member_stops_at_the_noise_and_no_sooner(looks):
    one = fit_ensemble(DOMAIN, looks, total=TOTAL, members=1, components=8, steps=400)
    assert 0.4 < one.misfit < 1.02


def test_going_on_learns_the_noise(truth):
    """Power: told that there is less noise than there is, it comes nearer to the looks and further from the table."""
    honest = looks_at(truth, spread=100.0)
    bold = [NoisyMarginal(look.columns, None, look.values, 100 * look.weight) for look in honest]
    right, wrong = (
        fit_ensemble(DOMAIN, looks, total=TOTAL, members=1, components=32, steps=400) for looks in (honest, bold)
    )
    assert misfit(wrong, honest) < 0.7 * misfit(right, honest)
    assert error_of(wrong, truth) > 1.05 * error_of(right, truth)


def test_the_mean_of_many_is_nearer_than_one(looks, truth):
    alone = [
        error_of(
            fit_ensemble(DOMAIN, looks_at(truth, seed=seed), total=TOTAL, members=1, components=8, steps=200), truth
        )
        for seed in (1, 2, 3)
    ]
    together = [
        error_of(fit_ensemble(DOMAIN, looks_at(truth, seed=seed), total=TOTAL, **SMALL), truth) for seed in (1, 2, 3)
    ]
    assert np.mean(together) < 0.9 * np.mean(alone)


def test_it_is_far_nearer_than_the_product_of_single_columns(looks, fitted, truth):
    alone = product_of(DOMAIN, looks, total=TOTAL)
    assert error_of(fitted, truth) < 0.25 * error_of(alone, truth)


def test_less_noise_is_nearer(truth):
    errors = [
        error_of(fit_ensemble(DOMAIN, looks_at(truth, spread=spread), total=TOTAL, **SMALL), truth)
        for spread in (300.0, 50.0, 8.0)
    ]
    assert errors[0] > 1.5 * errors[1] > 2 * errors[2]


def test_looks_at_three_columns_count(looks, fitted, truth):
    more = fit_ensemble(DOMAIN, [*looks, *looks_at(truth, columns=(3,), spread=10.0)], total=TOTAL, **SMALL)
    assert error_of(more, truth) < 0.7 * error_of(fitted, truth)


@pytest.mark.parametrize("spread", [50.0, 1e4])
def test_what_columns_on_their_own_explain_stays_a_product(spread):
    """Where nothing else is to be learned, or all is noise."""
    alone = product_of(DOMAIN, looks_at(table(), columns=(1,), spread=1.0), total=TOTAL)
    looks = looks_at(alone, spread=spread)
    # A product of what was measured is off by a little more than the noise; this is as if more had been measured.
    gentle = [NoisyMarginal(look.columns, look.parts, look.values, look.weight / 2) for look in looks]
    model = fit_ensemble(DOMAIN, gentle, total=TOTAL, **SMALL)
    assert len(model.weights) == 1
    assert model.misfit <= 1
    expected = product_of(DOMAIN, gentle, total=TOTAL, soft=True)
    np.testing.assert_array_equal(model.tables, expected.tables)


def in_doubt(truth, spread, seeds):
    """Looks of which the product of the single columns is off by more than their noise, but not by much more."""
    every = (looks_at(truth, spread=spread, seed=seed) for seed in seeds)
    return [
        looks
        for looks in every
        if 1 < fit_ensemble(DOMAIN, looks, total=TOTAL, components=1).misfit < TUNING.doubtful_misfit
    ]


def times_that_something_is_learnt(doubtful):
    return sum(len(fit_ensemble(DOMAIN, looks, total=TOTAL, **SMALL).weights) > 1 for looks in doubtful)


@pytest.mark.parametrize("spread", [50.0, 600.0])
def test_noise_is_not_learnt_though_a_product_is_off_by_more(spread, monkeypatch):
    alone = product_of(DOMAIN, looks_at(table(), columns=(1,), spread=1.0), total=TOTAL)
    doubtful = in_doubt(alone, spread, range(80))
    # Noise is borne out by two deviations in one case of forty; that a few more are is next to impossible.
    most = binom.isf(1e-9, len(doubtful), norm.sf(TUNING.trial_deviations))
    assert len(doubtful) > 2 * most
    assert times_that_something_is_learnt(doubtful) <= most
    # Power: if nobody asks whether it is borne out, noise is learnt.
    monkeypatch.setattr(ensemble, "_learns_more_than_noise", lambda *_: True)
    assert times_that_something_is_learnt(doubtful) == len(doubtful)


def test_what_is_more_than_noise_is_learnt_though_a_product_is_off_by_little(truth):
    doubtful = in_doubt(truth, 200.0, range(20))
    assert len(doubtful) > 5
    assert times_that_something_is_learnt(doubtful) > len(doubtful) / 2
    # Where it is off by far there is no doubt.
    clear = [looks_at(truth, spread=60.0, seed=seed) for seed in range(5)]
    assert times_that_something_is_learnt(clear) == 5


def test_of_what_no_look_tells_a_mixture_says_what_is_supposed():
    """Two groups of columns that tell nothing of each other, of which nobody has looked at both."""
    left, right = ("age", "job"), ("ill", "old", "region")
    truth = table()

    def both(scope):
        one, other = (tuple(name for name in scope if name in side) for side in (left, right))
        return np.multiply.outer(truth.marginal(one), truth.marginal(other)) / TOTAL

    apart = [pair for pair in combinations(sorted(DOMAIN), 2) if len(set(pair) & set(left)) == 1]
    looks = [look for look in looks_at(truth, spread=3.0) if look.columns not in apart]
    names = {pair: sorted(pair, key=lambda name: (name in right, name)) for pair in apart}
    expected = {pair: both(names[pair]) if names[pair][0] == pair[0] else both(names[pair]).T for pair in apart}
    supposed = [NoisyMarginal(pair, None, each, 0.1**2) for pair, each in expected.items()]
    errors, models = [], []
    for more in ((), supposed):
        model = fit_ensemble(DOMAIN, looks, total=TOTAL, **SMALL, supposed=more)
        models.append(model)
        errors.append(np.mean([np.abs(model.marginal(pair) - expected[pair]).sum() for pair in apart]) / TOTAL)
    assert errors[1] < 0.5 * errors[0]
    # It learns as much of the looks, and says how far off those are.
    assert misfit(models[1], looks) < 1.1 * max(1.0, misfit(models[0], looks))
    numbers = mixture_features(looks, DOMAIN).numbers
    said = misfit(models[1], looks) * sum(look.values.size for look in looks)
    assert models[1].misfit * numbers == pytest.approx(said, rel=0.01)


def test_without_looks_it_is_uniform():
    model = fit_ensemble(DOMAIN, [], total=TOTAL)
    np.testing.assert_allclose(model.marginal(["ill", "old"]), TOTAL / 4)


# --- Stopping and refusing --------------------------------------------------------------------------------------------


def test_it_tells_how_much_is_done_and_can_be_stopped(looks):
    heard = []
    fit_ensemble(DOMAIN, looks, total=TOTAL, members=4, components=4, steps=20, tell=heard.append)
    assert heard == sorted(heard)
    assert len(heard) >= 4
    assert heard[-1] == 1

    def enough(done):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit_ensemble(DOMAIN, looks, total=TOTAL, members=4, components=4, steps=20, tell=enough)


@pytest.mark.parametrize("dependent", [True, False])
def test_it_tells_of_a_trial_as_of_a_part_of_the_work(dependent, truth, monkeypatch):
    doubtful = in_doubt(truth, 200.0, range(20))[0]
    right, said = ensemble._learns_more_than_noise, []

    def telling(*arguments):
        said.append(right(*arguments))
        return dependent

    monkeypatch.setattr(ensemble, "_learns_more_than_noise", telling)
    heard = []
    fit_ensemble(DOMAIN, doubtful, total=TOTAL, **SMALL, tell=heard.append)
    assert len(said) == 1
    assert heard == sorted(heard)
    assert len(set(heard)) > 4
    assert heard[0] < 0.1
    assert heard[-1] == 1 if dependent else 0.2 < heard[-1] <= 1


def test_a_fit_in_doubt_ends_when_that_is_enough(truth):
    doubtful = in_doubt(truth, 200.0, range(20))[0]
    told, heard = [], []

    def enough(done):
        heard.append(done)
        return False

    fit_ensemble(DOMAIN, doubtful, total=TOTAL, **SMALL, tell=told.append)
    model = fit_ensemble(DOMAIN, doubtful, total=TOTAL, **SMALL, tell=enough)
    # Once for the trial, once for the fit, and that each is over.
    assert len(heard) <= 4 < len(told) / 2
    assert heard == sorted(heard)
    assert model.marginal(["age", "job"]).sum() == pytest.approx(TOTAL)


@pytest.mark.parametrize("named", [{"total": 0}, {"total": -3}, {"members": 0}, {"components": 0}, {"components": 1.5}])
def test_nonsense_is_refused(looks, named):
    with pytest.raises(BadParameter, match=next(iter(named))):
        fit_ensemble(DOMAIN, looks, **{"total": TOTAL, **named})

"""Which pairs of columns are worth measuring, and how much: what a noisy look says of it, and what it cannot say."""

from itertools import combinations
from math import inf, log, sqrt

import numpy as np
import pytest
from scipy.stats import binom, norm

from discreet.estimate.gaussian_estimator import GaussianLattice
from discreet.model.interface import total_of
from discreet.model.mixture.mixture_model import Mixture
from discreet.plan.plan import Measure, run
from discreet.query.residual import Residual
from discreet.release.budget_allocation import steps_within
from discreet.release.methods import pair_split as module
from discreet.release.methods.mixture import distances_of_pairs
from discreet.release.methods.pair_split import PAIR_SPLIT, PairDependence, PairDistances, best_split, dependence_of
from discreet.schema import Categories, Domain, Unit
from release.oracle import Oracle

ROWS = 2_000
# Squared mu: noise of a good part of the rows in a distance, of a few of them, and of hardly one.
POOR, FAIR, RICH = 1e-4, 1e-2, 1.0


def domain_of(*sizes):
    return Domain(
        {f"x{n:02}": Categories([*range(size)], outside="drop", missing="drop") for n, size in enumerate(sizes)}
    )


DOMAIN = domain_of(8, 8, 8, 5, 5, 4, 3, 2)
NAMES = tuple(DOMAIN)
PAIRS = tuple(combinations(NAMES, 2))
# A few pairs that go together, and one column that tells all others.
FEW = (("x00", "x01"), ("x02", "x03"))
ALL = tuple(("x00", name) for name in NAMES[1:])


def linked_rows(linked=(), seed=0, rows=ROWS):
    """Codes of independent columns, but for those that follow from another one nearly always."""
    rng = np.random.default_rng(seed)
    found = {name: rng.integers(DOMAIN[name].size, size=rows) for name in NAMES}
    for one, other in linked:
        follows = found[one] * DOMAIN[other].size // DOMAIN[one].size
        found[other] = np.where(rng.random(rows) < 0.9, follows, found[other])
    return found


def looked(codes, units, seed=0):
    """What is known once rows and single columns were measured, and a look at all pairs."""
    oracle = Oracle(DOMAIN, codes, Unit(), seed=seed)
    for wanted, part in (({(): 1.0}, 0.01), ({(name,): 1.0 for name in NAMES}, 0.1)):
        oracle(Measure(steps_within(oracle.known, wanted, part * units), "a look"))
    rows = max(1.0, total_of(oracle.known.lattice)[0])
    return oracle.known, run(distances_of_pairs(oracle.known, list(PAIRS), rows, 0.02 * units), oracle), rows


def wanted_of(known, seen):
    singles = {(name,): known.domain[name].size ** 0.5 for pair in seen.pairs for name in pair}
    return singles, {pair: far**0.5 for pair, far in zip(seen.pairs, seen.about, strict=True)}


def split_of(known, seen, rows, units=1.0):
    importance = dict.fromkeys(seen.pairs, 1 / len(seen.pairs))
    return best_split(known, seen, wanted_of(known, seen), importance, units, rows)


def split_after_a_look(linked, units, seed=0):
    return split_of(*looked(linked_rows(linked, seed), units, seed), 0.8 * units)


def uniform(domain, rows):
    tables = np.concatenate([np.full((size, 1), 1 / size) for size in domain.shape])
    return Mixture(domain, float(rows), np.ones(1), tables)


def supposed(domain, far, *, deviation=1.0, rows=100.0, variance=1.0):
    """As if single columns had been measured with this variance, and pairs been seen so far from independent."""
    known = GaussianLattice.nothing(domain, Unit())
    for name in domain:
        if domain[name].size > 1:
            known.lattice.add(Residual(((name, 1),)), variance=variance, values=None)
    seen = PairDistances(uniform(domain, rows), tuple(combinations(domain, 2)), np.array(far, dtype=float), deviation)
    return known, seen, rows


# --- Which pairs, and how much ----------------------------------------------------------------------------------------


def times_that_pairs_get_some(units, seeds=range(24)):
    return sum(split_after_a_look((), units, seed).part > 0 for seed in seeds)


def test_independent_columns_get_nothing_for_pairs(monkeypatch):
    # One of 28 normal numbers is above what stands out of them by chance, now and then.
    above = 1 - norm.cdf(sqrt(2 * log(len(PAIRS) + 1))) ** len(PAIRS)
    most = binom.isf(1e-9, 24, above)
    assert most < 24
    for units in (FAIR, 10 * FAIR):
        assert times_that_pairs_get_some(units) <= most
    split = split_after_a_look((), FAIR)
    assert (split.part, dict(split.weights)) == (0.0, {})
    # Power: so many rows are some way from independent by chance; who forgets that takes it for something.
    monkeypatch.setattr(module._Table, "by_chance", property(lambda table: np.zeros(len(table.columns))))
    assert times_that_pairs_get_some(10 * FAIR) > most


@pytest.mark.parametrize("seed", range(3))
def test_where_all_columns_go_together_a_good_budget_is_all_for_all_pairs(seed):
    split = split_after_a_look(ALL, RICH, seed)
    assert split.part == 1
    assert set(split.weights) == set(PAIRS)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("units", [FAIR, 10 * FAIR])
def test_of_many_pairs_of_which_few_go_together_only_these_get_something(units, seed):
    split = split_after_a_look(FEW, units, seed)
    assert set(split.weights) == set(FEW)
    assert 0 < split.part < 1


def test_where_all_is_noise_pairs_get_nothing_though_they_go_together():
    for linked in (FEW, ALL):
        assert split_after_a_look(linked, POOR / 10).part == 0


def test_weights_are_those_that_were_wanted():
    known, seen, rows = looked(linked_rows(FEW), FAIR)
    _, wanted = wanted_of(known, seen)
    split = split_of(known, seen, rows, FAIR)
    assert split.weights == {pair: wanted[pair] for pair in FEW}


@pytest.mark.filterwarnings("error")
def test_pairs_with_a_column_of_one_value_have_nothing_to_tell():
    """They have no weight, and are told whatever is measured."""
    known, seen, rows = looked(linked_rows(FEW), RICH)
    singles, weights = wanted_of(known, seen)
    idle = {pair for pair in PAIRS if "x07" in pair}
    weights = {pair: 0.0 if pair in idle else weight for pair, weight in weights.items()}
    split = best_split(known, seen, (singles, weights), dict.fromkeys(PAIRS, 1.0), 1.0, rows)
    assert set(FEW) <= set(split.weights)
    assert set(split.well_known) == {*split.weights, *idle}


def test_what_was_known_as_well_before_is_told_too():
    codes = linked_rows(FEW)
    known, seen, rows = looked(codes, RICH)
    split = split_of(known, seen, rows)
    first = set(split.weights)
    assert set(split.well_known) == first
    assert set(FEW) <= first < set(PAIRS)
    # Now two others are known far better, and one a little.
    oracle, (*_, little, better, good) = Oracle(DOMAIN, codes, Unit(), known=known), sorted(set(PAIRS) - first)
    oracle(Measure(steps_within(known, {good: 1.0, better: 2.0}, 10.0), "much"))
    oracle(Measure(steps_within(known, {little: 1.0}, 1e-4), "little"))
    split = split_of(known, seen, rows)
    assert set(split.weights) == first
    assert set(split.well_known) == {*first, good, better}


def test_the_order_of_the_pairs_does_not_matter():
    for linked, units in ((FEW, FAIR), (ALL, FAIR), (ALL, RICH), ((), FAIR)):
        known, seen, rows = looked(linked_rows(linked), units)
        order = np.random.default_rng(0).permutation(len(PAIRS))
        turned = PairDistances(seen.alone, tuple(PAIRS[at] for at in order), seen.distance[order], seen.deviation)
        one, other = split_of(known, seen, rows, units), split_of(known, turned, rows, units)
        assert one.part == other.part
        assert one.weights == other.weights


def test_what_matters_little_does_not_decide():
    """A pair that goes together gets nothing if nobody asks for it."""
    known, seen, rows = looked(linked_rows(FEW), FAIR)
    light = {pair: 1e-6 if pair in FEW else 1.0 for pair in PAIRS}
    assert best_split(known, seen, wanted_of(known, seen), light, FAIR, rows).part == 0


def test_parts_are_parts_whatever_is_seen():
    rng = np.random.default_rng(1)
    parts = set()
    for rows in (1.0, 50.0, 1e6):
        for units in (1e-12, 1e-2, 1e6):
            for far in (np.zeros(28), -rows * np.ones(28), 2 * rows * np.ones(28), rows * rng.normal(size=28)):
                for deviation in (1e-6, rows / 10, 100 * rows):
                    split = split_of(*supposed(DOMAIN, far, deviation=deviation, rows=rows), units)
                    parts.add(split.part)
                    assert set(split.weights) <= set(PAIRS)
                    assert (split.part > 0) == (len(split.weights) > 0)
    assert parts <= set(PAIR_SPLIT.candidate_shares)
    assert min(PAIR_SPLIT.candidate_shares) == 0
    assert max(PAIR_SPLIT.candidate_shares) == 1
    assert len(parts) > 3


def test_one_pair_gets_all_or_nothing():
    both = domain_of(4, 6)
    near, far = (split_of(*supposed(both, [each], rows=1000.0), 1.0) for each in (1.0, 900.0))
    assert (near.part, dict(near.weights)) == (0.0, {})
    assert far.part > 0
    assert set(far.weights) == {tuple(both)}


def test_columns_of_one_value_change_nothing():
    plain, more = domain_of(4, 6), domain_of(4, 6, 1)
    for each in (1.0, 900.0):
        known, seen, rows = supposed(more, [each, 0.0, 0.0], rows=1000.0)
        split = split_of(known, seen, rows)
        assert (split.part > 0) == (split_of(*supposed(plain, [each], rows=1000.0)).part > 0)
        assert (("x00", "x01") in split.weights) == (split.part > 0)


def test_nothing_is_left_for_what_is_known_exactly():
    known, seen, rows = supposed(DOMAIN, np.full(28, 90.0), variance=0.0)
    for one, other in PAIRS:
        known.lattice.add(Residual(((one, 1), (other, 1))), variance=0.0, values=None)
    assert split_of(known, seen, rows).part == 0
    # Power: pairs that nobody knows get all.
    assert split_of(*supposed(DOMAIN, np.full(28, 90.0), variance=0.0)).part > 0


def test_pairs_that_are_known_well_leave_the_budget_to_single_columns():
    known, seen, rows = supposed(DOMAIN, np.full(28, 90.0), variance=100.0)
    fresh = split_of(known, seen, rows).part
    for one, other in PAIRS:
        known.lattice.add(Residual(((one, 1), (other, 1))), variance=1e-3, values=None)
    assert split_of(known, seen, rows).part == 0 < fresh


# --- What a look tells ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("often", "usually"), [(0.3, 0.15), (0.6, 0.1), (1.0, 0.08)])
def test_a_look_tells_how_often_pairs_are_how_far_apart(often, usually):
    """As well as means of so many numbers with noise do; all do not stand out, so no single one is known."""
    number, deviation, chance = 200_000, 0.1, 0.1
    rng = np.random.default_rng(3)
    true = np.hypot(chance, usually * (rng.random(number) < often))
    noisy = true + deviation * rng.normal(size=number)
    found = dependence_of(noisy, deviation, np.full(number, chance))
    assert found.significant.mean() < 1e-3

    def told(above, square):
        distance = sqrt((square / above - chance) ** 2 - chance**2)
        return np.array([square / distance**2, distance])

    # The errors of both means, and what a small error of each does to the two figures.
    means = np.array([often * (sqrt(chance**2 + usually**2) - chance), often * usually**2])
    errors = np.cov(noisy - chance, noisy**2 - chance**2 - deviation**2) / number
    step = 1e-4 * means
    slopes = np.column_stack(
        [(told(*(means + move)) - told(*(means - move))) / (2 * move.sum()) for move in np.diag(step)]
    )
    deviations = np.sqrt(np.diag(slopes @ errors @ slopes.T))
    np.testing.assert_allclose(told(*means), [often, usually])
    assert (deviations < 0.1 * np.array([often, usually])).all()
    assert abs(found.usual_distance - usually) < 6 * deviations[1]
    # No more than all of them are apart.
    assert -6 * deviations[0] < found.frequency - often < min(6 * deviations[0], 1 - often + 1e-12)
    # Power: with half of what there is by chance, it says something else.
    wrong = dependence_of(noisy, deviation, np.full(number, chance / 2))
    assert abs(wrong.usual_distance - usually) > 6 * deviations[1] or abs(wrong.frequency - often) > 6 * deviations[0]


def test_noise_alone_says_that_next_to_nothing_is_apart():
    """Of all pairs together: how often, times how far squared, is a mean of noise."""
    number, deviation, chance = 20_000, 0.1, 0.1
    for seed in range(5):
        noisy = chance + deviation * np.random.default_rng(seed).normal(size=number)
        found = dependence_of(noisy, deviation, np.full(number, chance))
        error = sqrt((4 * chance**2 * deviation**2 + 2 * deviation**4) / number)
        assert found.frequency * found.usual_distance**2 < 6 * error


def test_pairs_that_stand_out_are_as_far_as_was_seen():
    far = np.array([0.5, 1.5, 0.1, 0.11])
    found = dependence_of(far, 0.01, np.full(4, 0.1))
    assert found.significant.tolist() == [True, True, False, False]
    np.testing.assert_allclose(found.distance[:2], np.sqrt(far[:2] ** 2 - 0.01 - 0.0001))
    every = dependence_of(far, 0.01, np.full(4, 0.01))
    assert every.significant.all()
    assert (every.frequency, every.usual_distance) == (0.0, 0.0)


def test_what_is_left_of_a_distance_is_never_more_than_it_or_than_its_noise():
    noise = np.array([0.0, 0.01, 0.1, 1.0, 100.0, inf])
    far = np.full(6, 0.3)
    left = PairDependence(np.ones(6, dtype=bool), far, 0.0, 0.0).remaining_error(noise, np.zeros(6))
    assert (left <= np.minimum(far, noise) + 1e-12).all()
    assert (np.diff(left) > 0).all()
    assert left[0] == 0
    assert left[-1] == pytest.approx(0.3)
    # What is wrong about the columns comes on top.
    below = PairDependence(np.ones(6, dtype=bool), far, 0.0, 0.0).remaining_error(noise, np.full(6, 0.16))
    np.testing.assert_allclose(below**2 - left**2, 0.16)


def test_pairs_of_which_nobody_knows_whether_they_are_apart_are_worth_less_than_known_ones():
    noise = np.full(1, 0.2)
    known = PairDependence(np.ones(1, dtype=bool), np.full(1, 0.3), 0.0, 0.0).remaining_error(noise, np.zeros(1))
    nobody = np.zeros(1, dtype=bool)
    unknown = PairDependence(nobody, np.zeros(1), 0.25, 0.3).remaining_error(noise, np.zeros(1))
    assert unknown > 0.25 * known
    assert PairDependence(nobody, np.zeros(1), 0.25, 0.3).remaining_error(
        np.array([inf]), np.zeros(1)
    ) == pytest.approx(0.25 * 0.3)
    assert PairDependence(nobody, np.zeros(1), 0.0, 0.0).remaining_error(noise, np.zeros(1)) == 0


def test_a_look_never_says_that_a_pair_is_nearer_than_half_its_noise():
    seen = PairDistances(uniform(DOMAIN, 100), PAIRS, np.linspace(-50, 50, 28), 8.0)
    assert seen.about.min() == 4
    np.testing.assert_allclose(seen.about[-1], np.hypot(50, 4))
    assert (np.diff(seen.about) >= 0).all()

"""Distances of marginals: the laws over all small tables, the twins that spend more than they say, and the seals."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from discreet import verify
from discreet.accounting.event import Gaussian, Selection
from discreet.accounting.sensitivity import Sensitivity, matrix_sensitivity
from discreet.errors import BadParameter, DiscreetError, SealBroken
from discreet.mechanism import exponential, gaussian, gaussian_pieces, laplace, public
from discreet.mechanism.distance import Parts, distances, farthest, noisy_distances
from discreet.query.linear import Marginal
from discreet.schema import Boolean, Categories, Domain
from discreet.source.query_sensitivity import sensitivity_of
from support.broken_mechanisms import pretend
from support.mechanism_values import (
    ADD,
    ADD_PERSON,
    ONE,
    ONE_WAY,
    REPLACE,
    REPLACE_PERSON,
    UNITS,
    floats,
    sealed,
    total,
)
from support.statistics import assert_follows, assert_rate_at_least, rejects

# Two columns of two cells, their four cells in the order of the marginal of both, and the marginals of each and both.
DOMAIN = Domain({"ill": Boolean(), "old": Boolean()})
DROPS = Domain({name: Categories([False, True], outside="drop", missing="drop") for name in ("ill", "old")})
ILL, OLD, BOTH = [[1, 1, 0, 0], [0, 0, 1, 1]], [[1, 0, 1, 0], [0, 1, 0, 1]], np.eye(4, dtype=int).tolist()
QUERY, SIZES = [*ILL, *OLD], (2, 2)
# What a model says: too few and too many; and what makes every distance move as far as it can.
EXPECTED, APART = [[0, 2], [2, 0]], [[0, 5], [5, 0]]
# Handicaps that make one part very likely: then the other shows the loss.
LATE = [0, 60]
NOTHING = Sensitivity(Fraction(0), Fraction(0), Fraction(0))


def moves_of(unit, domain=DOMAIN, scopes=(("ill",), ("old",))):
    return [sensitivity_of(Marginal(scope), domain, unit) for scope in scopes]


def measure(moves, *, sigma=2, expected=EXPECTED):
    return noisy_distances(sigma=sigma, sensitivity=moves, expected=expected)


def choose(moves, *, expected=EXPECTED, **more):
    return farthest(epsilon=1, sensitivity=moves, expected=expected, **more)


def checked(mechanism, unit, *, rows=3, query=QUERY, droppable=False):
    return verify.check(lambda _: mechanism, query, unit, rows=rows, droppable=droppable)


def told_apart(unit, expected, *, rows=2, droppable=False):
    """Pairs of neighbours' values, one for each way in which the distances move: noise is added to them."""
    pairs = {}
    for one, other in verify.neighboring_tables(4, rows, unit, droppable=droppable):
        here, there = (np.array(QUERY) @ table for table in (one, other))
        steps = np.array(far(here, expected)) - far(there, expected)
        if steps.any():
            # Both ways are looked at, and the noise of both parts is the same.
            pairs.setdefault(tuple(sorted(steps * np.sign(steps.sum() or steps[0]))), (here.tolist(), there.tolist()))
    return list(pairs.values())


def far(values, expected, sizes=SIZES):
    return distances(np.array(values), np.concatenate(expected), sizes).tolist()


# --- Privacy, exactly -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.describe)
@pytest.mark.parametrize("handicaps", [None, [3, -1], LATE])
def test_the_claimed_epsilon_of_the_selection_holds_over_all_small_tables(unit, handicaps):
    verdict = checked(choose(moves_of(unit), handicaps=handicaps), unit, rows=4)
    assert verdict.holds
    assert verdict.exact.lower > 0.3


@pytest.mark.parametrize("unit", [ADD, REPLACE], ids=lambda unit: unit.describe)
def test_it_holds_where_a_person_is_outside_the_domain(unit):
    moves = moves_of(unit, DROPS)
    assert checked(choose(moves), unit, droppable=True).holds
    assert verify.check_pairs(measure(moves), told_apart(unit, EXPECTED, droppable=True)).holds


def test_the_loss_of_the_selection_has_bounded_range():
    mechanism = choose(moves_of(ADD))
    widest = 0
    for one, other in verify.neighboring_tables(4, 4, ADD):
        here, there = (mechanism.law(np.array(QUERY) @ table).probabilities for table in (one, other))
        losses = [float((here[place] / there[place]).log().mid()) for place in here]
        widest = max(widest, max(losses) - min(losses))
    assert widest == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.describe)
@pytest.mark.parametrize("expected", [EXPECTED, APART])
def test_the_claimed_delta_of_the_noisy_distances_holds_over_all_small_tables(unit, expected):
    mechanism = measure(moves_of(unit), sigma=unit.contributions, expected=expected)
    verdict = verify.check_pairs(mechanism, told_apart(unit, expected))
    assert verdict.holds
    assert verdict.exact.lower > 0


def test_of_one_marginal_the_noisy_distance_is_tight_where_the_rounded_gaussian_is():
    one = noisy_distances(sigma=2, sensitivity=[1], expected=[[0, 0]])
    assert verify.check_pairs(one, [([9, 9], [9, 10])], epsilon=Fraction(1, 2)).tight


@pytest.mark.parametrize("droppable", [False, True], ids=["all rows count", "some persons are outside the domain"])
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.describe)
def test_no_person_moves_the_distances_further_than_the_marginals_and_some_move_them_as_far(unit, droppable):
    """By brute force: all tables with up to two rows, and all small expectations of three marginals."""
    scopes, query, sizes = (("ill",), ("old",), ("ill", "old")), np.array([*QUERY, *BOTH]), (2, 2, 4)
    each = [moves.l1 for moves in moves_of(unit, DROPS if droppable else DOMAIN, scopes)]
    pairs, quadruples = product((0, 2), repeat=2), product((0, 2), repeat=4)
    expectations = [np.array([*some, *some, *rest]) for some, rest in product(pairs, quadruples)]
    farthest_of_each, squared = [0, 0, 0], 0
    for one, other in verify.neighboring_tables(4, 2, unit, droppable=droppable):
        here, there = query @ one, query @ other
        for expected in expectations:
            steps = np.abs(distances(here, expected, sizes) - distances(there, expected, sizes))
            farthest_of_each = np.maximum(farthest_of_each, steps)
            squared = max(squared, int(steps @ steps))
    assert farthest_of_each.tolist() == each
    assert squared == sum(l1**2 for l1 in each)


# --- Twins that claim the same and are wrong --------------------------------------------------------------------------


def test_twice_the_rate_because_counts_move_one_way_is_refuted():
    """Δ for 2Δ: one marginal comes nearer what is expected while the other goes away."""
    moves = moves_of(ADD)
    assert all(each.monotone for each in moves)
    eager = exponential(epsilon=1, sensitivity=moves[0])
    late = np.array(LATE)
    broken = pretend(choose(moves).event, lambda values, beside=(): eager.law(far(values, EXPECTED) - late))
    verdict = checked(broken, ADD, rows=2)
    assert verdict.refuted
    assert verdict.exact.lower == pytest.approx(2)
    right = checked(choose(moves, handicaps=LATE), ADD, rows=2)
    assert right.holds
    assert right.exact.lower == pytest.approx(1)


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.describe)
def test_half_the_noise_is_refuted_for_both(unit):
    moves = moves_of(unit)
    sigma = Fraction(unit.contributions)
    narrow = pretend(measure(moves, sigma=sigma).event, measure(moves, sigma=sigma / 2).law)
    assert verify.check_pairs(narrow, told_apart(unit, EXPECTED)).refuted
    eager = farthest(epsilon=2, sensitivity=moves, expected=EXPECTED, handicaps=LATE)
    assert checked(pretend(choose(moves).event, eager.law), unit).refuted


@pytest.mark.parametrize(("person", "row"), [(ADD_PERSON, ADD), (REPLACE_PERSON, REPLACE)], ids=["add", "replace"])
def test_forgotten_contributions_are_refuted_for_both(person, row):
    """What one row moves, for persons with two."""
    assert verify.check_pairs(measure(moves_of(row), expected=APART), told_apart(person, APART)).refuted
    assert checked(choose(moves_of(row), handicaps=LATE), person).refuted


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.describe)
def test_the_sensitivity_of_one_part_for_all_is_refuted(unit):
    moves = moves_of(unit)
    right = measure(moves, sigma=unit.contributions, expected=APART)
    one = pretend(Gaussian(right.event.sigma, moves[0].l1 ** 2), right.law)
    assert verify.check_pairs(one, told_apart(unit, APART)).refuted
    # Where a row weighs three in the second part, the first says too little for the selection.
    heavy = [*ILL, *(3 * np.array(OLD)).tolist()]
    true = [matrix_sensitivity(part, unit) for part in (heavy[:2], heavy[2:])]
    assert checked(choose(true, handicaps=LATE), unit, query=heavy).holds
    assert checked(choose([true[0], true[0]], handicaps=LATE), unit, query=heavy).refuted


def test_other_norms_than_l1_are_refuted_under_replacement():
    """The largest cell, and the length of the vector, instead of the sum of all cells."""
    moves = moves_of(REPLACE)
    pairs = told_apart(REPLACE, APART)
    largest = [each.linf for each in moves]
    assert verify.check_pairs(measure(largest, expected=APART), pairs).refuted
    assert checked(choose(largest, handicaps=LATE), REPLACE).refuted
    right = measure(moves, expected=APART)
    short = Gaussian(right.event.sigma, sum(each.l2_squared for each in moves))
    assert verify.check_pairs(pretend(short, right.law), pairs).refuted


# --- What is released -------------------------------------------------------------------------------------------------


def test_the_laws_are_those_of_the_gaussian_and_of_the_exponential_mechanism():
    for values in product(range(3), repeat=4):
        ill, old = abs(values[0]) + abs(values[1] - 2), abs(values[2] - 2) + abs(values[3])
        assert far(values, EXPECTED) == [ill, old]
        law = choose([2, 1], handicaps=[0, -3]).law(values)
        assert floats(law) == floats(exponential(epsilon=1, sensitivity=2).law([ill, old + 3]))
        assert abs(total(law) - 1) < 1e-50
    assert floats(measure([1, 1], sigma=1).law([1, 2, 0, 1])) == floats(gaussian(sigma=1, sensitivity=1).law([1, 3]))


def parts_of(values, moves=(ONE_WAY, ONE_WAY), sizes=SIZES):
    ends = np.cumsum(sizes)[:-1]
    return Parts([sealed(part, each) for part, each in zip(np.split(np.array(values), ends), moves, strict=True)])


def test_draws_follow_the_law_and_other_expectations_are_noticed():
    values = [1, 2, 0, 1]
    pick, noisy = choose([ONE, ONE], handicaps=[-1, 0]), measure([ONE, ONE], sigma=1)
    for mechanism, draws in (
        (pick, [pick.release(parts_of(values)) for _ in range(1_000)]),
        (noisy, [tuple(noisy.release(parts_of(values)).tolist()) for _ in range(1_000)]),
    ):
        assert_follows(draws, floats(mechanism.law(values)))
        assert rejects(draws, floats(mechanism.law([5, 2, 0, 1])))
    assert type(pick.release(parts_of(values))) is int
    assert noisy.release(parts_of(values)).dtype == np.int64


def test_the_prices_do_not_count_the_cells():
    expected = [np.zeros(5_000, dtype=np.int64), np.zeros(3, dtype=np.int64)]
    moves = [Sensitivity(Fraction(2), Fraction(2), Fraction(1)), ONE_WAY]
    noisy = measure(moves, sigma=3, expected=expected)
    assert noisy.event == Gaussian(Fraction(3), Fraction(5))
    assert choose(moves, expected=expected).event == Selection(Fraction(1))
    values = np.ones(5_003, dtype=np.int64)
    assert np.abs(noisy.release(parts_of(values, moves, (5_000, 3))) - [5_000, 3]).max() < 40
    assert choose(moves, expected=expected).release(parts_of(values, moves, (5_000, 3))) == 0


def test_the_errors_hold():
    values, wide = [40, 0, 0, 0], 0.9
    select = farthest(epsilon=Fraction(1, 4), sensitivity=[1] * 4, expected=[[0]] * 4)
    law = floats(select.law(values))
    assert sum(mass for place, mass in law.items() if 40 - values[place] <= select.error(wide)) >= wide
    assert select.error(wide) == exponential(epsilon=Fraction(1, 4), sensitivity=1).error(wide, candidates=4)
    noisy = measure([1, 1], sigma=5)
    off = np.array([noisy.release(parts_of([0, 2, 2, 0])) for _ in range(500)])
    assert_rate_at_least(int((np.abs(off[:, 0]) <= noisy.error(wide)).sum()), 500, wide)
    assert_rate_at_least(int((np.abs(off).max(axis=1) <= noisy.error(wide, joint=2)).sum()), 500, wide)
    assert noisy.error(wide, joint=2) > noisy.error(wide)


def test_a_part_that_nobody_can_move_may_be_among_the_others():
    """As the number of rows, where persons are replaced."""
    moves = moves_of(REPLACE, DOMAIN, ((), ("old",)))
    assert [each.l1 for each in moves] == [0, 2]
    expected = [[7], [3, 4]]
    assert measure(moves, expected=expected).event == Gaussian(Fraction(2), Fraction(4))
    assert choose(moves, expected=expected).release(parts_of([7, 300, 400], moves, (1, 2))) == 1


def test_sums_at_the_ends_of_64_bits_do_not_wrap_round():
    ends, expected = [2**63 - 1] * 4 + [-(2**63)] * 3, [-(2**60)] * 4 + [2**60] * 3
    found = distances(np.array(ends), np.array(expected), (4, 3)).tolist()
    assert found == [2**61, 3 * 2**59]
    assert distances(np.array([2**63 - 1]), np.array([-(2**60)]), (1,)).tolist() == [2**61]
    late = farthest(epsilon=1, sensitivity=[1, 1], expected=[[2**60], [2**60]], handicaps=[2**60, -(2**60)])
    assert late.release(parts_of([-(2**63), -(2**63)], sizes=(1, 1))) == 1


# --- Seals ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", range(2))
def test_a_part_that_moves_further_than_declared_stays_sealed(wrong):
    """In either part, though the other has room for both."""
    wide = Sensitivity(Fraction(2), Fraction(2), Fraction(1))
    moves = [wide if place == wrong else ONE for place in range(2)]
    declared = [Fraction(1) if place == wrong else Fraction(9) for place in range(2)]
    for make in (measure, choose):
        with pytest.raises(SealBroken):
            make(declared).release(parts_of([1, 2, 3, 4], moves))
        make(moves).release(parts_of([1, 2, 3, 4], moves))


def test_two_parts_are_not_taken_for_one():
    for make in (measure, choose):
        with pytest.raises(BadParameter, match="there are 2 parts with together 4 values; this mechanism takes 1 with"):
            make([9], expected=[[0, 0, 0, 0]]).release(parts_of([1, 2, 3, 4]))
        with pytest.raises(BadParameter, match="there are 1 parts with together 4 values; this mechanism takes 2"):
            make([9, 9]).release(sealed([1, 2, 3, 4]))
        with pytest.raises(BadParameter, match="and as many in each as are expected"):
            make([9, 9]).release(parts_of([1, 2, 3, 4], sizes=(1, 3)))


def test_other_mechanisms_find_nothing_in_parts():
    secret = parts_of([87_654_321, 2, 3, 4])
    assert repr(secret) == "<Exact, sealed: 4 integers>"
    for mechanism in (gaussian(sigma=1, sensitivity=9), laplace(epsilon=1, sensitivity=9), public()):
        with pytest.raises(SealBroken):
            mechanism.release(secret)
    room = Sensitivity(Fraction(9), Fraction(9), Fraction(9))
    with pytest.raises(SealBroken):
        gaussian_pieces(sensitivity=room, stretches=[(2, 4)]).release(secret)
    with pytest.raises(SealBroken):
        secret.parts = ()
    with pytest.raises(SealBroken):
        list(secret)


def test_no_error_text_holds_a_true_value():
    secret = 87_654_321
    wide = Sensitivity(Fraction(5), Fraction(25), Fraction(5))
    for make in (measure, choose):
        mechanism = make([1], expected=[[0]])
        for exact in (sealed([secret], wide), Parts([sealed([secret], wide)]), sealed([secret, 1]), [secret], secret):
            with pytest.raises(DiscreetError) as caught:
                mechanism.release(exact)
            assert str(secret) not in str(caught.value)


@pytest.mark.parametrize(
    "part", [np.array([1, 2]), 3, None, parts_of([1, 2, 3, 4])], ids=["array", "int", "none", "parts"]
)
def test_a_part_is_a_sealed_value(part):
    with pytest.raises(SealBroken, match=r"a part is a .*; it must be an Exact from a source"):
        Parts([sealed([1]), part])


def test_no_parts_are_no_parts():
    with pytest.raises(BadParameter, match="there are no parts"):
        Parts([])


# --- Bad parameters ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [0, -1, float("nan"), float("inf"), "1", True, None, 1e300], ids=repr)
def test_a_bad_epsilon_or_sigma_is_refused(number):
    for make in (
        lambda: noisy_distances(sigma=number, sensitivity=[1], expected=[[0]]),
        lambda: farthest(epsilon=number, sensitivity=[1], expected=[[0]]),
    ):
        with pytest.raises(BadParameter, match=r"(epsilon|sigma) is .*; (it|the noise) must be .*\. Give "):
            make()


@pytest.mark.parametrize("confidence", [0, 1, float("nan"), "0.95"], ids=repr)
def test_a_bad_confidence_is_refused(confidence):
    for mechanism in (measure([1, 1]), choose([1, 1])):
        with pytest.raises(BadParameter, match="confidence is"):
            mechanism.error(confidence)


@pytest.mark.parametrize("number", [0, -1, float("nan"), "1", True, None], ids=repr)
def test_a_bad_sensitivity_is_refused(number):
    for make in (measure, choose):
        with pytest.raises(BadParameter, match=r"sensitivity is .*; it must be .*\. Give exact\.sensitivity"):
            make([1, number])


@pytest.mark.parametrize("many", [[], [1], [1, 1, 1], 1, ONE, None], ids=repr)
def test_there_is_a_sensitivity_for_each_part(many):
    for make in (measure, choose):
        with pytest.raises(BadParameter, match=r"sensitivity has . parts and 2 are expected"):
            make(many)


def test_parts_that_nobody_can_move_need_no_mechanism():
    for make in (measure, choose):
        with pytest.raises(BadParameter, match="public: answer it without a mechanism"):
            make([NOTHING, NOTHING])


@pytest.mark.parametrize(
    "expected",
    [[], None, "ab", 3, [[]], [[0.5]], [["1"]], [[True]], [[2**60 + 1]], [[-(2**70)]], [np.array([2**62])], [3], ["1"]],
    ids=repr,
)
def test_what_is_expected_must_be_integers_that_fit(expected):
    for make in (measure, choose):
        with pytest.raises(BadParameter, match="expected"):
            make([1], expected=expected)


@pytest.mark.parametrize("handicaps", [[], [1], [1, 2, 3], [0.5, 1], [2**61, 0], "12", 3], ids=repr)
def test_there_is_a_whole_handicap_for_each_part(handicaps):
    with pytest.raises(BadParameter, match="handicaps"):
        choose([1, 1], handicaps=handicaps)


def test_a_law_takes_a_value_for_each_cell():
    for mechanism in (measure([1, 1]), choose([1, 1])):
        with pytest.raises(BadParameter, match="there are 3 values and 4 expected"):
            mechanism.law([1, 2, 3])


def test_changing_the_arrays_afterwards_changes_nothing():
    expected, handicaps = [np.array([0]), np.array([100])], np.array([0, 7])
    select = choose([1, 1], expected=expected, handicaps=handicaps)
    before = floats(select.law([0, 0]))
    expected[1][:], handicaps[:] = 0, 0
    assert floats(select.law([0, 0])) == before


def test_parameters_that_change_privacy_cannot_be_given_by_position():
    for make in (noisy_distances, farthest):
        with pytest.raises(TypeError):
            make(1, [1], [[0]])

"""verify: its intervals contain the truth, its tables are all tables, and it says no when it should."""

from fractions import Fraction
from itertools import product
from math import exp, inf, log

import pytest
from flint import arb

from discreet import verify
from discreet.accounting.sensitivity import Sensitivity, matrix_sensitivity
from discreet.errors import BadParameter
from discreet.mechanism import Law, gaussian, laplace, randomized_response
from discreet.numeric import ball, precision
from discreet.schema.unit import Unit
from support.mechanism_values import ADD, ADD_PERSON, REPLACE, REPLACE_PERSON, UNITS


def law(*chances, rest=0):
    with precision(192):
        return Law({place: ball(Fraction(chance)) for place, chance in enumerate(chances)}, ball(Fraction(rest)))


FAIR, BIASED = law("1/2", "1/2"), law("1/4", "3/4")


def test_divergence_is_the_sum_of_the_excesses():
    assert verify.divergence(FAIR, BIASED, 0) == pytest.approx((0.25, 0.25))
    found = verify.divergence(FAIR, BIASED, Fraction(1, 2))
    assert found.lower <= 0.5 - exp(0.5) / 4 <= found.upper
    assert found.upper - found.lower < 1e-15


def test_epsilon_is_the_largest_log_ratio_and_goes_one_way():
    assert verify.epsilon(FAIR, BIASED) == pytest.approx((log(2), log(2)))
    assert verify.epsilon(BIASED, FAIR) == pytest.approx((log(1.5), log(1.5)))


@pytest.mark.parametrize("delta", ["1/100", "1/10", "1/5"])
def test_epsilon_at_a_delta_inverts_the_divergence(delta):
    exact = log((Fraction(1, 2) - Fraction(delta)) * 4)
    found = verify.epsilon(FAIR, BIASED, Fraction(delta))
    assert found == pytest.approx((exact, exact), abs=1e-14)
    assert verify.divergence(FAIR, BIASED, Fraction(found.upper)).lower <= float(Fraction(delta))
    assert verify.divergence(FAIR, BIASED, Fraction(found.lower)).upper >= float(Fraction(delta))


def test_with_enough_delta_no_epsilon_is_needed():
    assert verify.epsilon(FAIR, BIASED, Fraction(1, 4)) == (0, 0)
    assert verify.epsilon(FAIR, BIASED, Fraction(1, 2)) == (0, 0)


def test_an_outcome_that_the_other_cannot_have_is_infinite_without_delta():
    sure = law(1)
    assert verify.epsilon(FAIR, sure) == (inf, inf)
    assert verify.epsilon(FAIR, sure, Fraction(2, 5)).upper == inf
    assert verify.epsilon(sure, FAIR) == pytest.approx((log(2), log(2)))
    assert verify.renyi(FAIR, sure, 2) == (inf, inf)


def test_what_is_not_listed_counts_against_the_mechanism():
    with_rest = law("1/2", "49/100", rest="1/100")
    assert verify.divergence(with_rest, FAIR, 5).upper >= 0.01
    assert verify.divergence(with_rest, FAIR, 5).lower == 0
    assert verify.epsilon(with_rest, FAIR).upper == inf
    assert verify.epsilon(law("1/2", "1/2"), law("1/2", rest="1/2")).upper == inf


def test_a_wide_ball_gives_a_wide_interval_that_still_holds():
    blurred = Law({0: arb("0.5", "0.01"), 1: arb("0.5", "0.01")}, arb(0))
    found = verify.divergence(blurred, BIASED, 0)
    assert found.lower < 0.25 < found.upper
    assert found.upper - found.lower > 0.01


def test_renyi_of_two_coins():
    order_two = log(0.25 / 0.25 + 0.25 / 0.75)
    found = verify.renyi(FAIR, BIASED, 2)
    assert found == pytest.approx((order_two, order_two), abs=1e-15)
    assert found.lower < found.upper


def test_tables_are_all_tables():
    listed = verify.tables(3, 2)
    assert len(listed) == len(set(listed)) == 10
    assert all(sum(table) <= 2 for table in listed)


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.describe)
def test_neighbours_are_what_exchanging_one_persons_rows_can_do(unit):
    cells, rows = 2, 3

    def bags(most):
        return [bag for bag in product(range(most + 1), repeat=cells) if sum(bag) <= most]

    wanted = set()
    own = [bag for bag in bags(unit.contributions) if unit.key or sum(bag) == 1]
    for others in bags(rows):
        for here in own:
            ends = [(0,) * cells] if unit.neighbors == "add_remove" else own
            for there in ends:
                one = tuple(a + b for a, b in zip(others, here, strict=True))
                other = tuple(a + b for a, b in zip(others, there, strict=True))
                if one != other and max(sum(one), sum(other)) <= rows:
                    wanted.add(frozenset([one, other]))
    assert {frozenset(pair) for pair in verify.neighboring_tables(cells, rows, unit)} == wanted


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.describe)
@pytest.mark.parametrize("query", [[[1, 0]], [[2, -1]], [[0, 1, 3], [1, 1, 0]]])
@pytest.mark.parametrize("droppable", [False, True])
def test_computed_sensitivities_are_the_largest_moves_over_all_pairs(query, unit, droppable):
    """The brute force behind the formulas of accounting/sensitivity.py."""
    claimed = matrix_sensitivity(query, unit, droppable=droppable)
    moves = []
    for one, other in verify.neighboring_tables(len(query[0]), 4, unit, droppable=droppable):
        moves.append([sum(w * (b - a) for w, a, b in zip(row, one, other, strict=True)) for row in query])
    assert max(sum(map(abs, move)) for move in moves) == claimed.l1
    assert max(sum(value**2 for value in move) for move in moves) == claimed.l2_squared
    assert max(max(map(abs, move)) for move in moves) == claimed.linf
    one_way = all(min(move) >= 0 or max(move) <= 0 for move in moves)
    assert one_way or not claimed.monotone


def test_the_four_relations_differ():
    counts = [len(list(verify.neighboring_tables(2, 2, unit))) for unit in (ADD, REPLACE, ADD_PERSON, REPLACE_PERSON)]
    assert counts == [6, 3, 9, 15]


def test_a_row_that_may_be_dropped_takes_its_whole_effect_with_it():
    make = lambda s: laplace(epsilon=1, sensitivity=s)
    assert verify.check(make, [[10, 12]], REPLACE, droppable=True).tight
    careless = lambda _: laplace(epsilon=1, sensitivity=2)
    assert verify.check(careless, [[10, 12]], REPLACE).tight
    assert verify.check(careless, [[10, 12]], REPLACE, droppable=True).refuted


def test_a_function_can_be_the_query():
    moves = Sensitivity(Fraction(1), Fraction(1), Fraction(1))
    make = lambda s: laplace(epsilon=1, sensitivity=s)
    verdict = verify.check(make, lambda table: [max(table)], ADD, cells=2, sensitivity=moves)
    assert verdict.tight
    with pytest.raises(BadParameter, match="a function needs both"):
        verify.check(make, lambda table: [max(table)], ADD)


def test_the_verdict_says_what_it_found():
    good = verify.check(lambda s: laplace(epsilon=1, sensitivity=s), [[1, 0]], ADD)
    assert repr(good) == "the claim holds, and is tight: epsilon is 1, claimed 1 (2 pairs, worst at [0] | [1])"
    bad = verify.check(lambda s: laplace(epsilon=1, sensitivity=1), [[0, 3]], ADD)
    assert "the claim IS FALSE: epsilon is 3, claimed 1" in repr(bad)
    assert bad.worst_pair == ((0,), (3,))
    with pytest.raises(AttributeError):
        bad.holds = True


def test_what_cannot_be_decided_is_not_said_to_hold():
    blurred = Law({0: arb("0.5", "0.4"), 1: arb("0.5", "0.4")}, arb(0))
    mechanism = randomized_response(epsilon=1)
    vague = type(mechanism)(mechanism.event, mechanism.release, mechanism.error, lambda values, beside=(): blurred)
    verdict = verify.check_pairs(vague, [([0], [1])])
    assert not verdict.holds
    assert not verdict.refuted
    assert "is not decided" in repr(verdict)


def test_both_directions_are_looked_at():
    # Q is a coin that sometimes stands on edge; only Q against P is infinite.
    mechanism = randomized_response(epsilon=1)
    laws = {(0,): law("1/2", "1/2"), (1,): law("49/100", "49/100", "1/50")}
    odd = type(mechanism)(mechanism.event, mechanism.release, mechanism.error, lambda v, beside=(): laws[tuple(v)])
    assert verify.check_pairs(odd, [((0,), (1,))]).exact.lower == inf


def test_the_curve_falls_and_meets_the_claim():
    points = verify.curve(laplace(epsilon=1, sensitivity=1), [([0], [1])], [0, 0.25, 0.5, 0.75, 1])
    deltas = [delta.upper for _, delta in points]
    assert deltas == sorted(deltas, reverse=True)
    assert deltas[-1] < 1e-30
    # The discrete Laplace curve in closed form: (1 − e^(ε−1))/(1 + e^−1) for a move of one, a/(1+a) tails.
    a = exp(-1)
    for epsilon, delta in points:
        assert delta.lower == pytest.approx(1 / (1 + a) - exp(epsilon) * a / (1 + a), abs=1e-12)


def test_an_epsilon_for_a_pure_mechanism_asks_for_its_delta():
    verdict = verify.check(lambda s: laplace(epsilon=1, sensitivity=s), [[1, 0]], ADD, epsilon=1)
    assert verdict.measure == "delta at epsilon 1"
    assert verdict.holds
    assert verify.check(lambda s: gaussian(sigma=1, sensitivity=s), [[1, 0]], ADD).measure == "delta at epsilon 1"


@pytest.mark.parametrize("epsilon", [-1, float("nan"), "1", True])
def test_bad_epsilons_are_refused(epsilon):
    with pytest.raises(BadParameter, match="epsilon is"):
        verify.divergence(FAIR, BIASED, epsilon)


@pytest.mark.parametrize("delta", [-1, 1, float("nan"), "1", True])
def test_bad_deltas_are_refused(delta):
    with pytest.raises(BadParameter, match="delta is"):
        verify.epsilon(FAIR, BIASED, delta)


def test_persons_with_two_rows_move_a_count_by_two():
    verdict = verify.check(lambda s: laplace(epsilon=1, sensitivity=1), [[1, 0]], Unit(key="person", contributions=2))
    assert verdict.refuted
    assert verdict.exact.lower == pytest.approx(2)

"""Sparse vector: however long the stream, it costs what it says; the published mistakes cost what was published."""

from fractions import Fraction

import pytest

from discreet import verify
from discreet.accounting.sensitivity import matrix_sensitivity
from discreet.errors import BadParameter, Refusal, SealBroken
from discreet.mechanism import above_threshold, run_stream, sparse_vector
from support.broken_mechanisms import (
    algorithm_1,
    algorithm_2,
    algorithm_3,
    algorithm_4,
    algorithm_5,
    algorithm_6,
    query_noise_reused,
    sparse_vector_one_way_by_mistake,
    stream_law,
)
from support.mechanism_values import ADD, ONE, ONE_WAY, UNITS, floats, sealed, total
from support.statistics import assert_follows, assert_rate_at_least, rejects

STREAMS = {
    "counts": [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0]],
    "signed": [[1, -1], [-1, 1], [1, -1]],
}


def apart(below, above):
    """The worst case of the proof: values that stay below move up, values that are above move down."""
    return [([0] * below + [1] * above, [1] * below + [0] * above)]


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.describe)
@pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS)
def test_the_claimed_epsilon_holds_over_all_small_tables(stream, unit):
    make = lambda moves: sparse_vector(epsilon=4, sensitivity=moves, threshold=1, hits=2)
    assert verify.check(make, stream, unit).holds


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.describe)
def test_it_holds_with_released_values_too(unit):
    make = lambda moves: sparse_vector(epsilon=4, epsilon_values=1, sensitivity=moves, threshold=1, hits=2)
    assert verify.check(make, STREAMS["signed"], unit).holds


@pytest.mark.parametrize("one_way", [False, True])
def test_released_values_with_fresh_noise_add_at_most_their_own_epsilon(one_way):
    pairs = [([0] * 3 + [1], [1] * 3 + [2 if one_way else 0])]
    moves = ONE_WAY if one_way else ONE
    common = {"epsilon_threshold": Fraction(1, 3), "sensitivity": moves, "threshold": 2}
    plain, told = sparse_vector(epsilon=1, **common), sparse_vector(epsilon=2, epsilon_values=1, **common)
    difference = verify.check_pairs(told, pairs).exact.upper - verify.check_pairs(plain, pairs).exact.upper
    assert 0 < difference <= 1 + 1e-12


def test_a_count_and_its_negative_do_not_fit_in_one_run_of_smaller_noise():
    count, negative = matrix_sensitivity([[1, 0]], ADD), matrix_sensitivity([[-1, 0]], ADD)
    assert (count.direction, negative.direction) == (1, -1)
    watch = sparse_vector(epsilon=1, sensitivity=count, threshold=2, hits=2)
    watch.step(watch.init(), sealed(1, count))
    for other in (negative, ONE):
        with pytest.raises(SealBroken):
            watch.step(watch.init(), sealed(1, other))
    # What a flag without a direction would have allowed: such a stream is the worst case, not the best.
    broken = sparse_vector_one_way_by_mistake(1, threshold=2, hits=2)
    stream = [[1, 0]] * 4 + [[-1, 0]] * 2
    assert verify.check(lambda _: broken, stream, ADD).refuted
    assert verify.check(
        lambda moves: sparse_vector(epsilon=1, sensitivity=moves, threshold=2, hits=2), stream, ADD
    ).holds


def test_noise_for_both_ways_serves_one_way_too():
    watch = sparse_vector(epsilon=1, sensitivity=1, threshold=0)
    _, answer = watch.step(watch.init(), sealed(10**6, ONE_WAY))
    assert answer is True


def test_the_whole_run_costs_no_more_than_claimed_however_long_and_comes_near():
    shares = []
    for length in (2, 8, 32, 128):
        watch = above_threshold(epsilon=1, sensitivity=1, threshold=6)
        verdict = verify.check_pairs(watch, apart(length, 1))
        assert verdict.holds
        shares.append(verdict.exact.lower)
    assert shares == sorted(shares)
    assert shares[-1] > 0.95


def test_the_law_agrees_with_one_written_out_another_way():
    scales = {"threshold_scale": Fraction(3), "query_scale": Fraction(9)}
    ours = sparse_vector(
        epsilon=1, epsilon_threshold=Fraction(1, 3), sensitivity=3, threshold=2, hits=1
    )  # 3/(1/3) = 9 and 2·3/(2/3) = 9
    theirs = stream_law([0, 4, 1, 2], threshold=2, threshold_scale=Fraction(9), query_scale=Fraction(9), hits=1)
    assert floats(ours.law([0, 4, 1, 2])) == pytest.approx(floats(theirs), abs=1e-30)
    assert floats(theirs) != pytest.approx(floats(stream_law([0, 4, 1, 2], threshold=2, hits=1, **scales)), abs=1e-3)


@pytest.mark.parametrize("values", [None, 1])
def test_the_law_is_complete(values):
    law = sparse_vector(epsilon=3, epsilon_values=values, sensitivity=1, threshold=1, hits=2).law([0, 2, 1])
    assert abs(total(law) - 1) < 1e-30


# --- The six variants of Lyu, Su and Li ------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", [algorithm_1, algorithm_2])
def test_the_two_right_variants_hold(variant):
    assert verify.check_pairs(variant(1, threshold=2, hits=2), apart(2, 2)).holds


@pytest.mark.parametrize("below", [3, 4, 6])
def test_algorithm_3_releases_the_compared_noise_and_loses_half_an_epsilon_for_each_value_below(below):
    verdict = verify.check_pairs(algorithm_3(1, threshold=0, hits=1), [([0] * (below + 1), [1] * below + [0])])
    assert verdict.refuted
    assert verdict.exact.lower == pytest.approx(below / 2, abs=1e-9)


@pytest.mark.parametrize("hits", [1, 2, 3])
def test_algorithm_4_forgets_the_number_of_hits_and_loses_up_to_its_published_bound(hits):
    verdict = verify.check_pairs(algorithm_4(1, threshold=2, hits=hits), apart(3, hits))
    assert verdict.refuted
    assert verdict.exact.upper <= (1 + 6 * hits) / 4
    assert verdict.exact.lower > 0.75 * (1 + 6 * hits) / 4


def test_algorithm_5_adds_no_query_noise_and_loses_everything():
    verdict = verify.check_pairs(algorithm_5(1, threshold=0), [([0, 1], [1, 0])])
    assert verdict.refuted
    assert verdict.exact.lower == float("inf")


@pytest.mark.parametrize("half", [2, 3])
def test_algorithm_6_has_no_limit_and_loses_with_each_value(half):
    verdict = verify.check_pairs(algorithm_6(1, threshold=0), [([0] * 2 * half, [1] * half + [-1] * half)])
    assert verdict.refuted
    assert verdict.exact.lower > half / 2


def test_one_draw_of_query_noise_for_the_whole_stream_is_refuted():
    verdict = verify.check_pairs(query_noise_reused(1, threshold=0), [([0, 1], [1, 0])])
    assert verdict.exact.lower > 10


def test_one_way_noise_for_values_that_move_apart_is_refuted():
    broken = sparse_vector_one_way_by_mistake(1, threshold=2, hits=2)
    assert verify.check_pairs(broken, apart(4, 2)).refuted
    assert verify.check_pairs(broken, [([0] * 6, [1] * 6)]).holds


# --- Running it ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("values", [None, 2])
def test_runs_follow_the_law_and_another_threshold_is_noticed(values):
    make = lambda threshold: sparse_vector(epsilon=4, epsilon_values=values, sensitivity=1, threshold=threshold, hits=2)
    stream = [0, 3, 1, 2]
    exact = [sealed(value) for value in stream]
    runs = [run_stream(make(2), exact) for _ in range(8_000)]
    if values:
        # Told values are clamped in the law: clamp them here at the same places.
        law = make(2).law(stream, beside=[[-2, 1, -1, 0], [2, 5, 3, 4]])
        runs = [
            tuple(None if said is None else min(max(said, v - 2), v + 2) for said, v in zip(run, stream, strict=False))
            for run in runs
        ]
        wrong = make(3).law(stream, beside=[[-2, 1, -1, 0], [2, 5, 3, 4]])
    else:
        law, wrong = make(2).law(stream), make(3).law(stream)
    assert_follows(runs, floats(law))
    assert rejects(runs, floats(wrong))


def test_after_its_last_hit_it_refuses():
    watch = sparse_vector(epsilon=50, sensitivity=1, threshold=0, hits=2)
    run = watch.init()
    for _ in range(2):
        run, answer = watch.step(run, sealed(1000))
        assert answer is True
    with pytest.raises(Refusal, match="found its 2 values"):
        watch.step(run, sealed(1000))


def test_values_below_are_free_for_ever():
    watch = above_threshold(epsilon=50, sensitivity=1, threshold=1000)
    run = watch.init()
    for _ in range(500):
        run, answer = watch.step(run, sealed(0))
        assert answer is False
    assert run.hits_left == 1


def test_the_state_does_not_show_its_secret_and_cannot_be_changed():
    run = above_threshold(epsilon=1, sensitivity=1, threshold=10**6).init()
    assert repr(run) == "Run(hits_left=1)"
    with pytest.raises(AttributeError):
        run.hits_left = 5


def test_the_error_holds_for_a_long_stream():
    watch = sparse_vector(epsilon=1, sensitivity=1, threshold=100, hits=1)
    queries, good = 20, 0
    margin = int(watch.error(0.9, queries=queries))
    for _ in range(300):
        # All but the last are as near to the threshold as the promise allows; none may be called above, the last must.
        stream = [sealed(100 - margin - 1)] * (queries - 1) + [sealed(100 + margin)]
        good += run_stream(watch, stream) == (False,) * (queries - 1) + (True,)
    assert_rate_at_least(good, 300, 0.9)


def test_one_value_at_a_time():
    watch = above_threshold(epsilon=1, sensitivity=1, threshold=0)
    with pytest.raises(BadParameter, match="there are 2 values; this mechanism takes 1"):
        watch.step(watch.init(), sealed([1, 2]))


def test_a_value_that_moves_further_does_not_open():
    watch = above_threshold(epsilon=1, sensitivity=1, threshold=0)
    with pytest.raises(SealBroken):
        watch.step(watch.init(), sealed(1, matrix_sensitivity([[0, 2]], UNITS[0])))


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"sensitivity": 0.5}, "whole number"),
        ({"hits": 0}, "hits is 0"),
        ({"threshold": 0.5}, "threshold is 0.5"),
        ({"epsilon_threshold": 1}, "Some must be left"),
        ({"epsilon_values": 0.5, "epsilon_threshold": 0.5}, "Some must be left"),
        ({"epsilon_values": 2}, "Some must be left|epsilon_values"),
    ],
)
def test_bad_parameters_are_refused(given, why):
    with pytest.raises(BadParameter, match=why):
        sparse_vector(**{"epsilon": 1, "sensitivity": 1, "threshold": 0, **given})


def test_the_split_makes_the_comparison_nearly_as_quiet_as_possible():
    def spread(share, hits):
        return (1 / share) ** 2 + (2 * hits / (1 - share)) ** 2

    for hits in (1, 5, 50):
        watch = sparse_vector(epsilon=1, sensitivity=1, threshold=0, hits=hits)
        cells = dict(zip(watch.law.__code__.co_freevars, watch.law.__closure__, strict=True))
        share = float(1 / cells["threshold_scale"].cell_contents)
        best = min(spread(i / 1000, hits) for i in range(1, 1000))
        assert spread(share, hits) <= best * 1.001

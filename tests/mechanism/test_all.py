"""What holds for every mechanism: bad numbers are refused, draws ignore the data, no error text leaks."""

import re
import subprocess
import sys
from fractions import Fraction
from itertools import count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet.mechanism
from discreet import noise, verify
from discreet.accounting.sensitivity import Sensitivity, matrix_sensitivity
from discreet.errors import BadParameter, DiscreetError, TooLarge
from discreet.mechanism import (
    above_threshold,
    best_price,
    discrete_gaussian,
    exponential,
    farthest,
    gaussian,
    histogram,
    laplace,
    largest_surprise,
    most_common,
    name_and_shame,
    noisy_distances,
    noisy_max,
    public,
    quantile,
    quantile_effects,
    randomized_response,
    run_stream,
    small_table,
    sparse_vector,
    surprise_quantile,
)
from discreet.mechanism.distance import Parts
from support.mechanism_values import ADD, ONE, ONE_WAY, UNITS, sealed

BAD_EPSILONS = [0, -1, float("nan"), float("inf"), 1e-320, "1", True, None, np.float64("nan"), 1e300, [1]]

BY_EPSILON = {
    "above_threshold": lambda e: above_threshold(epsilon=e, sensitivity=1, threshold=0),
    "best_price": lambda e: best_price([1, 2], epsilon=e, unit=ADD),
    "exponential": lambda e: exponential(epsilon=e, sensitivity=1),
    "farthest": lambda e: farthest(epsilon=e, sensitivity=[1, 1], expected=[[0, 1], [2]]),
    "gaussian": lambda e: gaussian(epsilon=e, delta=1e-6, sensitivity=1),
    "discrete_gaussian": lambda e: discrete_gaussian(epsilon=e, delta=1e-6, sensitivity=1),
    "gaussian sigma": lambda e: gaussian(sigma=e, sensitivity=1),
    "histogram": lambda e: histogram(epsilon=e, cells=3, unit=ADD),
    "laplace": lambda e: laplace(epsilon=e, sensitivity=1),
    "largest_surprise": lambda e: largest_surprise(epsilon=e, sensitivity=1, expected=[0, 1]),
    "most_common": lambda e: most_common(["a", "b"], epsilon=e, unit=ADD),
    "noisy_distances sigma": lambda e: noisy_distances(sigma=e, sensitivity=[1, 1], expected=[[0, 1], [2]]),
    "noisy_max": lambda e: noisy_max(epsilon=e, sensitivity=1),
    "noisy_max gumbel": lambda e: noisy_max(epsilon=e, sensitivity=1, noise="gumbel"),
    "quantile": lambda e: quantile(epsilon=e, cells=3, unit=ADD),
    "randomized_response": lambda e: randomized_response(epsilon=e),
    "small_table": lambda e: small_table([[1, 0]], epsilon=e, sensitivity=1, rows=2),
    "sparse_vector": lambda e: sparse_vector(epsilon=e, sensitivity=1, threshold=0, hits=2),
    "surprise_quantile sigma": lambda e: surprise_quantile(sigma=e, sensitivity=1, expected=[0, 1]),
}


def test_no_mechanism_is_forgotten_here():
    """Every exported function that takes an epsilon and gives a mechanism is tried with bad ones below."""
    named = {each.split()[0] for each in BY_EPSILON}
    for name in discreet.mechanism.__all__:
        made = getattr(getattr(discreet.mechanism, name), "__annotations__", {})
        if "epsilon" in made and re.search("Mechanism|Interactive", str(made.get("return"))):
            assert name in named, f"{name} is in no list of test_all.py"


@pytest.mark.parametrize("make", BY_EPSILON.values(), ids=BY_EPSILON)
@pytest.mark.parametrize("epsilon", BAD_EPSILONS, ids=repr)
def test_a_bad_epsilon_is_refused_with_value_rule_and_next_step(make, epsilon):
    with pytest.raises(BadParameter) as caught:
        make(epsilon)
    said = str(caught.value)
    assert re.search(r"(epsilon|sigma) is .*; (it|the noise) must be .*\. Give ", said)


@pytest.mark.parametrize("make", [laplace, exponential, noisy_max], ids=lambda make: make.__name__)
@pytest.mark.parametrize("sensitivity", [0, -1, float("nan"), "1", True, None], ids=repr)
def test_a_bad_sensitivity_is_refused(make, sensitivity):
    with pytest.raises(BadParameter, match=r"sensitivity is .*; it must be .*\. Give exact\.sensitivity"):
        make(epsilon=1, sensitivity=sensitivity)


@pytest.mark.parametrize("make", [laplace, exponential, noisy_max], ids=lambda make: make.__name__)
def test_a_value_that_nobody_can_move_needs_no_mechanism(make):
    with pytest.raises(BadParameter, match="public: answer it without a mechanism"):
        make(epsilon=1, sensitivity=Sensitivity(Fraction(0), Fraction(0), Fraction(0)))


def test_a_scale_that_cannot_be_drawn_is_refused_before_anything_is_paid():
    for make in (
        lambda: laplace(epsilon=1e-15, sensitivity=1e15),
        lambda: exponential(epsilon=1e-10, sensitivity=1e10),
        lambda: noisy_max(epsilon=1e-10, sensitivity=1e10),
        lambda: sparse_vector(epsilon=1e-10, sensitivity=10**10, threshold=0),
        lambda: gaussian(sigma=2**51, sensitivity=1),
        lambda: farthest(epsilon=1e-10, sensitivity=[1e10], expected=[[0, 1]]),
        lambda: noisy_distances(sigma=2**51, sensitivity=[1], expected=[[0, 1]]),
        lambda: gaussian(epsilon=1e-9, delta=1e-9, sensitivity=1e10),
    ):
        with pytest.raises(BadParameter, match=r"(scale|rate|sigma) is .*; it must be between"):
            make()


@pytest.mark.parametrize("delta", [0, 1, 2, -0.5, float("nan"), "0.1", True], ids=repr)
@pytest.mark.parametrize("make", [gaussian, discrete_gaussian])
def test_a_bad_delta_is_refused(make, delta):
    with pytest.raises(BadParameter, match=r"delta is .*; it must be .*probability|delta is .*; it must be a"):
        make(epsilon=1, delta=delta, sensitivity=1)


@pytest.mark.parametrize("confidence", [0, 1, 1.5, -1, float("nan"), "0.95", True], ids=repr)
def test_a_bad_confidence_is_refused(confidence):
    for error in (
        laplace(epsilon=1, sensitivity=1).error,
        gaussian(sigma=1, sensitivity=1).error,
        lambda c: exponential(epsilon=1, sensitivity=1).error(c, candidates=3),
        lambda c: noisy_max(epsilon=1, sensitivity=1).error(c, candidates=3),
        lambda c: above_threshold(epsilon=1, sensitivity=1, threshold=0).error(c, queries=3),
        lambda c: randomized_response(epsilon=1).error(c, reports=3),
        quantile(epsilon=1, cells=3, unit=ADD).error,
        largest_surprise(epsilon=1, sensitivity=1, expected=[0, 1]).error,
        surprise_quantile(sigma=1, sensitivity=1, expected=[0, 1]).error,
        farthest(epsilon=1, sensitivity=[1], expected=[[0, 1]]).error,
        noisy_distances(sigma=1, sensitivity=[1], expected=[[0, 1]]).error,
        small_table([[1, 0]], epsilon=1, sensitivity=1, rows=2).error,
        public().error,
    ):
        with pytest.raises(BadParameter, match="confidence is"):
            error(confidence)


@pytest.mark.parametrize("make", [exponential, noisy_max], ids=lambda make: make.__name__)
def test_no_candidates_no_choice(make):
    with pytest.raises(BadParameter, match="there are 0 scores"):
        make(epsilon=1, sensitivity=1).release(sealed([]))


def test_parameters_that_change_privacy_cannot_be_given_by_position():
    for make in (
        laplace,
        gaussian,
        exponential,
        noisy_max,
        sparse_vector,
        histogram,
        randomized_response,
        name_and_shame,
        largest_surprise,
        surprise_quantile,
        farthest,
        noisy_distances,
    ):
        with pytest.raises(TypeError):
            make(1, 1)


# --- Any query, any relation ------------------------------------------------------------------------------------------


@st.composite
def queries(draw):
    cells, values = draw(st.integers(2, 3)), draw(st.integers(1, 3))
    weights = st.lists(st.integers(-2, 2), min_size=cells, max_size=cells)
    return draw(st.lists(weights, min_size=values, max_size=values))


@settings(max_examples=30, deadline=None, derandomize=True)
@given(query=queries(), unit=st.sampled_from(UNITS), epsilon=st.fractions(Fraction(1, 10), 4, max_denominator=10))
def test_on_any_small_query_laplace_is_tight_and_selections_hold(query, unit, epsilon):
    moves = matrix_sensitivity(query, unit)
    if not moves.linf:
        return
    assert verify.check(lambda s: laplace(epsilon=epsilon, sensitivity=s), query, unit).tight
    for make in (exponential, noisy_max):
        assert verify.check(lambda s, make=make: make(epsilon=epsilon, sensitivity=s), query, unit).holds


# --- Record and replay -----------------------------------------------------------------------------------------------

RUNS = {
    "laplace": (lambda x: laplace(epsilon=1, sensitivity=1).release(x), [3, 5], [4, 5]),
    "gaussian": (lambda x: gaussian(sigma=2, sensitivity=1).release(x), [3, 5], [4, 5]),
    "discrete_gaussian": (lambda x: discrete_gaussian(sigma=2, sensitivity=1).release(x), [3, 5], [4, 5]),
    "exponential": (lambda x: exponential(epsilon=1, sensitivity=1).release(x), [3, 5], [4, 4]),
    "noisy_max": (lambda x: noisy_max(epsilon=1, sensitivity=1).release(x), [3, 5], [4, 4]),
    "randomized_response": (lambda x: randomized_response(epsilon=1).release(x), [0, 1, 1], [1, 1, 1]),
    "name_and_shame": (lambda x: name_and_shame(delta=0.5).release(x), [0, 1, 1], [1, 1, 1]),
    "quantile": (
        lambda x: quantile(epsilon=1, cells=2, unit=ADD).release(x),
        quantile_effects(2) @ np.array([3, 3]),
        quantile_effects(2) @ np.array([3, 4]),
    ),
    "largest_surprise": (
        lambda x: largest_surprise(epsilon=1, sensitivity=1, expected=[4, 0]).release(x),
        [3, 5],
        [4, 6],
    ),
    "surprise_quantile": (
        lambda x: surprise_quantile(sigma=1, sensitivity=1, expected=[4, 0]).release(x),
        [3, 5],
        [4, 6],
    ),
    "farthest": (
        lambda x: farthest(epsilon=1, sensitivity=[1, 1], expected=[[4, 0], [0, 9]]).release(Parts([x, x])),
        [3, 5],
        [4, 5],
    ),
    "noisy_distances": (
        lambda x: noisy_distances(sigma=1, sensitivity=[1, 1], expected=[[4, 0], [0, 9]]).release(Parts([x, x])),
        [3, 5],
        [4, 5],
    ),
}


def record(monkeypatch, run, values):
    """What noise was asked for, with the noise frozen: names, parameters and, apart from them, true inputs."""
    calls, inputs, places = [], [], count()

    def freeze(name):
        def fake(first, *rest, size=None, rate=None):
            if name.endswith("race"):
                calls.append((name, len(first), *rest))
                inputs.append(np.array(first))
                return 0
            calls.append((name, first, size))
            draws = (np.arange(size or 1) + next(places)) % 2
            return (draws.astype(bool) if name.startswith("bern") else draws) if size is not None else int(draws[0])

        monkeypatch.setattr(noise, name, fake)

    for name in noise.__all__:
        freeze(name)
    run(sealed(values, ONE_WAY))
    return calls, inputs


@pytest.mark.parametrize(("run", "here", "there"), RUNS.values(), ids=RUNS)
def test_on_neighbouring_tables_the_same_noise_is_asked_for(monkeypatch, run, here, there):
    one, other = record(monkeypatch, run, here), record(monkeypatch, run, there)
    assert one[0] == other[0]
    assert one[0]
    for scores, moved in zip(one[1], other[1], strict=True):
        assert np.abs(scores - moved).max() <= 1


def test_sparse_vector_asks_for_the_same_noise_as_long_as_its_answers_are_the_same(monkeypatch):
    watch = sparse_vector(epsilon=1, sensitivity=1, threshold=10, hits=2)
    one = record(monkeypatch, lambda _: run_stream(watch, [sealed(v) for v in (0, 20, 5)]), [0])
    other = record(monkeypatch, lambda _: run_stream(watch, [sealed(v) for v in (1, 21, 4)]), [0])
    assert one[0] == other[0]
    assert len(one[0]) == 4


# --- Leaks -----------------------------------------------------------------------------------------------------------


def test_no_error_text_holds_a_draw_or_a_true_value():
    secret = 87_654_321
    wide = Sensitivity(Fraction(5), Fraction(25), Fraction(5))
    texts = []
    for mechanism in (laplace(epsilon=1, sensitivity=1), exponential(epsilon=1, sensitivity=1),
                      gaussian(sigma=1, sensitivity=1), quantile(epsilon=1, cells=4, unit=ADD),
                      largest_surprise(epsilon=1, sensitivity=1, expected=[0]),
                      surprise_quantile(sigma=1, sensitivity=1, expected=[0]),
                      farthest(epsilon=1, sensitivity=[1], expected=[[0]]),
                      noisy_distances(sigma=1, sensitivity=[1], expected=[[0]]),
                      small_table([[0]], epsilon=1, sensitivity=1, rows=1),
                      name_and_shame(delta=0.1), randomized_response(epsilon=1), public()):  # fmt: skip
        for exact in (sealed([secret], wide), [secret], np.array([secret])):
            with pytest.raises(DiscreetError) as caught:
                mechanism.release(exact)
            texts.append(str(caught.value))
    watch = above_threshold(epsilon=1, sensitivity=1, threshold=10**6)
    run, _ = watch.step(watch.init(), sealed(secret, ONE))
    with pytest.raises(DiscreetError) as caught:
        watch.step(run, sealed(secret, ONE))
    texts.append(str(caught.value))
    assert not any(str(secret) in text for text in texts)
    assert not any(str(run.noisy_threshold) in text for text in texts)


def test_importing_mechanisms_and_building_one_loads_neither_the_compiler_nor_the_interval_library():
    code = """
import sys
from discreet.mechanism import laplace, sparse_vector
laplace(epsilon=1, sensitivity=1).error(0.9)
sparse_vector(epsilon=1, sensitivity=1, threshold=0)
print(sorted({"flint", "numba", "scipy"} & set(sys.modules)))
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_the_public_names_are_sorted_and_documented():
    names = discreet.mechanism.__all__
    assert sorted(names) == names
    undocumented = [name for name in names if not getattr(discreet.mechanism, name).__doc__]
    assert undocumented == []


def test_the_release_of_a_vector_keeps_its_length_and_type():
    for mechanism in (laplace(epsilon=1, sensitivity=matrix_sensitivity([[1], [1]], ADD)),
                      gaussian(sigma=1, sensitivity=2), discrete_gaussian(sigma=1, sensitivity=2)):  # fmt: skip
        noisy = mechanism.release(sealed([10**12, -(10**12)]))
        assert noisy.dtype == np.int64
        assert noisy.shape == (2,)
        assert abs(noisy[0] - 10**12) < 10**4


@pytest.mark.parametrize(
    "law",
    [
        lambda: laplace(epsilon=Fraction(1, 10**9), sensitivity=1).law([0]),
        lambda: laplace(epsilon=1, sensitivity=10**9).law([0], beside=[[10**9]]),
        lambda: gaussian(sigma=10**9, sensitivity=1).law([0], beside=[[1]]),
        lambda: discrete_gaussian(sigma=10**9, sensitivity=1).law([0]),
        lambda: sparse_vector(epsilon=Fraction(1, 10**9), sensitivity=1, threshold=0).law([0]),
    ],
)
def test_a_law_too_long_to_list_is_refused_at_once(law):
    with pytest.raises(TooLarge, match="at most"):
        law()

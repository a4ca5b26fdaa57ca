"""Noise on pieces of a lattice: from the exact law it costs what its event says; the seal keeps measurements apart."""

from fractions import Fraction
from functools import reduce

import numpy as np
import pytest

from discreet import noise, verify
from discreet.accounting.event import Gaussian
from discreet.accounting.sensitivity import Sensitivity, pieces_sensitivity
from discreet.errors import BadParameter, SealBroken
from discreet.mechanism import discrete_gaussian, gaussian, gaussian_pieces, laplace, public
from discreet.mechanism.protocol import LAW_BITS
from discreet.numeric import precision
from discreet.query import Marginal, Residual
from discreet.query.residual import Measurement, axis_of_size
from discreet.schema import Boolean, Categories, Domain, Integers, Unit
from discreet.source import Frame, sensitivity_of
from discreet.source.source import Exact
from support.broken_mechanisms import pretend
from support.mechanism_values import ADD, ONE, REPLACE, UNITS, floats, sealed, total
from support.statistics import assert_follows, rejects

TWO, THREE, PADDED = (axis_of_size(n, ordered=o) for n, o in ((2, False), (3, False), (3, True)))
# Axes, and the noise of each piece. So few numbers with so little noise that the whole law is listed.
SMALL = "the total and a column of two"
LATTICES = {
    SMALL: ((TWO,), {(0,): Fraction(3, 2), (1,): Fraction(1)}),
    "two columns of two": ((TWO, TWO), {(0, 1): Fraction(1), (1, 0): Fraction(3, 2), (1, 1): Fraction(1)}),
    "a category": ((THREE,), {(1,): Fraction(1)}),
    "the levels of a padded column": ((PADDED,), {(1,): Fraction(3, 2), (2,): Fraction(2, 3)}),
    "a level and the total": ((PADDED,), {(2,): Fraction(1), (0,): Fraction(2)}),
}


def matrix_of(axes, sigmas):
    return np.vstack(
        [reduce(np.kron, [axis.measure(part) for axis, part in zip(axes, place, strict=True)]) for place in sigmas]
    )


def stretches_of(axes, sigmas):
    sizes = [int(np.prod([a.rows(part) for a, part in zip(axes, place, strict=True)])) for place in sigmas]
    return list(zip(sigmas.values(), sizes, strict=True))


def declared(axes, sigmas, unit):
    return pieces_sensitivity(axes, {place: 1 / sigma**2 for place, sigma in sigmas.items()}, unit)


def verdict_of(name, unit, epsilon, *, make=gaussian_pieces, moves=None):
    """The exact law on all neighbouring tables of at most one row (two, with two rows a person) against the event."""
    axes, sigmas = LATTICES[name]
    return verify.check(
        lambda given: make(sensitivity=given, stretches=stretches_of(axes, sigmas)),
        matrix_of(axes, sigmas),
        unit,
        rows=unit.contributions,
        sensitivity=declared(axes, sigmas, unit) if moves is None else moves,
        epsilon=epsilon,
    )


# A law of three numbers takes seconds for each pair of tables, and persons with two rows have many pairs.
CASES = [
    pytest.param(
        name, unit, marks=pytest.mark.long if unit.key and name != SMALL else (), id=f"{name}, {unit.describe}"
    )
    for name in LATTICES
    for unit in UNITS
]


@pytest.mark.parametrize(("name", "unit"), CASES)
def test_the_exact_law_costs_no_more_than_the_event_says(name, unit):
    verdict = verdict_of(name, unit, Fraction(1, 2))
    assert verdict.holds, verdict
    assert verdict.pairs
    # What rounding to integers hides is little: the event is not far above the truth.
    assert verdict.exact.lower > verdict.claimed * 0.6


def test_the_claim_is_tight_where_the_best_test_cuts_between_two_integers():
    # As in test_gaussian.py: it cuts at Δ/2 + εσ²/Δ = 5/2.
    mechanism = gaussian_pieces(sensitivity=4, stretches=[(Fraction(3, 2), 1), (1, 1)])
    assert verify.check_pairs(mechanism, [([2, -2], [2, 2])], epsilon=2).tight


def halved(stretch):
    """A wrong mechanism: the noise of one stretch is divided by two, and the event stays."""

    def make(*, sensitivity, stretches):
        little = [(sigma / 2 if place == stretch else sigma, size) for place, (sigma, size) in enumerate(stretches)]
        right = gaussian_pieces(sensitivity=sensitivity, stretches=stretches)
        return pretend(right.event, gaussian_pieces(sensitivity=sensitivity, stretches=little).law)

    return make


@pytest.mark.parametrize("name", LATTICES)
def test_half_the_noise_in_any_stretch_is_refuted(name):
    _, sigmas = LATTICES[name]
    unit = REPLACE if all(any(place) for place in sigmas) else ADD
    for stretch in range(len(sigmas)):
        verdict = verdict_of(name, unit, Fraction(1, 2), make=halved(stretch))
        assert verdict.refuted, (stretch, verdict)


def test_a_price_that_forgets_how_an_exchange_moves_several_pieces_is_refuted():
    axes, sigmas = LATTICES["two columns of two"]
    alone = max(declared(axes, {place: sigma}, REPLACE).l2_squared for place, sigma in sigmas.items())
    for wrong in (alone, declared(axes, sigmas, ADD).l2_squared):
        moves = Sensitivity(l1=wrong, l2_squared=wrong, linf=wrong)
        assert verdict_of("two columns of two", REPLACE, Fraction(1, 2), moves=moves).refuted


def test_the_event_is_noise_of_one_on_the_vector_over_its_noise():
    axes, sigmas = LATTICES["the levels of a padded column"]
    mechanism = gaussian_pieces(sensitivity=declared(axes, sigmas, ADD), stretches=stretches_of(axes, sigmas))
    assert mechanism.event == Gaussian(Fraction(1), Fraction(4, 9) + Fraction(9, 4))


def test_the_law_is_the_product_of_those_of_the_stretches():
    mechanism = gaussian_pieces(sensitivity=ONE, stretches=[(1, 1), (Fraction(3, 2), 2)])
    law = mechanism.law([5, 0, -3])
    one, two = gaussian(sigma=1, sensitivity=1).law([5]), gaussian(sigma=Fraction(3, 2), sensitivity=1).law([0, -3])
    assert abs(total(law) - 1) < 1e-40
    with precision(LAW_BITS):
        for a, b in (((5,), (0, -3)), ((4,), (2, -1)), ((9,), (-3, 0))):
            assert abs(law.probabilities[a + b] - one.probabilities[a] * two.probabilities[b]) < 1e-40
        with pytest.raises(BadParameter, match="there are 2 values and the stretches hold 3; give one for each"):
            mechanism.law([5, 0])


def test_draws_of_each_stretch_follow_its_law_and_not_that_of_the_other():
    many = 20_000
    stretches = ((Fraction(1), many), (Fraction(3, 2), many))
    values = np.repeat([7, -4], many)
    drawn = gaussian_pieces(sensitivity=ONE, stretches=stretches).release(Exact(values, ONE, stretches))
    assert drawn.dtype == np.int64
    laws = [
        {outcome[0]: mass for outcome, mass in floats(gaussian(sigma=sigma, sensitivity=1).law([value])).items()}
        for (sigma, _), value in zip(stretches, (7, -4), strict=True)
    ]
    assert_follows(drawn[:many], laws[0])
    assert_follows(drawn[many:], laws[1])
    assert rejects(drawn[:many] - 11, laws[1])
    assert rejects(drawn[many:] + 11, laws[0])


def test_the_error_is_that_of_the_stretch_with_the_most_noise():
    mechanism = gaussian_pieces(sensitivity=1, stretches=[(10, 3), (40, 1), (5, 2)])
    assert mechanism.error(0.95) == gaussian(sigma=40, sensitivity=1).error(0.95)
    assert mechanism.error(0.95, joint=6) == gaussian(sigma=40, sensitivity=1).error(0.95, joint=6)


# --- The seal --------------------------------------------------------------------------------------------------------

DOMAIN = Domain({"age": Integers(0, 4, missing="drop"), "city": Categories(["a", "b"]), "sex": Boolean()})
SEX, AGE, TOTAL = Residual([("sex", 1)]), Residual([("age", 2)]), Residual([])
MEASUREMENT = Measurement(((SEX, Fraction(10)), (AGE, Fraction(20)), (TOTAL, Fraction(30))))
ROWS = {"age": [0, 3, 4, 1], "city": ["a", "b", "a", "c"], "sex": [True, False, True, True]}


def mechanism_for(measurement, unit=ADD):
    moves = sensitivity_of(measurement, DOMAIN, unit)
    return gaussian_pieces(sensitivity=moves, stretches=measurement.stretches(DOMAIN))


def test_a_measurement_is_opened_by_the_mechanism_built_for_it(monkeypatch):
    asked = []
    monkeypatch.setattr(
        noise, "rounded_gaussian", lambda sigma, size: asked.append((sigma, size)) or np.zeros(size, dtype=np.int64)
    )
    for unit in (ADD, REPLACE):
        exact = Frame(ROWS, domain=DOMAIN, unit=unit).evaluate(MEASUREMENT)
        # Three of four are of the first sex (False comes first); ages 0 and 1 in one half, 3 and 4 in the two others.
        assert mechanism_for(MEASUREMENT, unit).release(exact).tolist() == [-2, 1, 1, 4]
    assert asked == 2 * [(Fraction(10), 1), (Fraction(20), 2), (Fraction(30), 1)]


@pytest.mark.parametrize(
    "other",
    [
        Measurement(((SEX, Fraction(10)), (AGE, Fraction(20)))),
        Measurement(((AGE, Fraction(20)), (SEX, Fraction(10)), (TOTAL, Fraction(30)))),
        Measurement(((SEX, Fraction(10)), (AGE, Fraction(19)), (TOTAL, Fraction(30)))),
        Measurement(((SEX, Fraction(10)), (AGE, Fraction(21)), (TOTAL, Fraction(30)))),
        Measurement(((SEX, Fraction(10)), (Residual([("age", 3)]), Fraction(20)), (TOTAL, Fraction(30)))),
    ],
    ids=["fewer pieces", "another order", "less noise", "more noise", "another piece"],
)
def test_the_values_of_another_measurement_are_refused(other):
    exact = Frame(ROWS, domain=DOMAIN).evaluate(other)
    with pytest.raises(SealBroken, match="measured for other noise"):
        mechanism_for(MEASUREMENT).release(exact)


def test_values_that_move_further_than_the_noise_was_calibrated_for_are_refused():
    exact = Frame(ROWS, domain=DOMAIN, unit=REPLACE).evaluate(MEASUREMENT)
    with pytest.raises(SealBroken, match="the noise is calibrated to"):
        mechanism_for(MEASUREMENT, ADD).release(exact)
    people = Unit(key="who", contributions=2)
    exact = Frame(ROWS | {"who": [1, 1, 2, 3]}, domain=DOMAIN, unit=people).evaluate(MEASUREMENT)
    with pytest.raises(SealBroken, match="the noise is calibrated to"):
        mechanism_for(MEASUREMENT, ADD).release(exact)


def test_a_mechanism_for_plain_values_refuses_a_measurement_however_much_noise_it_adds():
    exact = Frame(ROWS, domain=DOMAIN).evaluate(MEASUREMENT)
    far = 10**6
    for mechanism in (
        gaussian(sigma=far, sensitivity=far),
        discrete_gaussian(sigma=far, sensitivity=far),
        laplace(epsilon=1, sensitivity=far),
        public(),
    ):
        with pytest.raises(SealBroken, match="measured for other noise"):
            mechanism.release(exact)


def test_pieces_refuse_plain_values_and_numbers():
    frame = Frame(ROWS, domain=DOMAIN)
    mechanism = gaussian_pieces(sensitivity=10**6, stretches=[(10, 2)])
    for plain in (frame.evaluate(Marginal(("sex",))), frame.evaluate(SEX), sealed([1, 2])):
        with pytest.raises(SealBroken, match="measured for other noise"):
            mechanism.release(plain)
    for number in ([1, 2], np.array([1, 2]), 3, None):
        with pytest.raises(SealBroken, match="takes an Exact from a source"):
            mechanism.release(number)


# --- Bad parameters --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sigma", [0, -1, float("nan"), float("inf"), "1", True, None, 2**51], ids=repr)
def test_bad_noise_is_refused(sigma):
    with pytest.raises(BadParameter, match=r"sigma is .*; it must be"):
        gaussian_pieces(sensitivity=1, stretches=[(10, 1), (sigma, 1)])


@pytest.mark.parametrize("size", [0, -1, 1.5, "1", True, None], ids=repr)
def test_a_bad_size_is_refused(size):
    with pytest.raises(BadParameter, match=r"size is .*; it must be"):
        gaussian_pieces(sensitivity=1, stretches=[(10, size)])


def test_no_stretches_are_refused():
    with pytest.raises(BadParameter, match=r"stretches is empty; .* Give one"):
        gaussian_pieces(sensitivity=1, stretches=[])


@pytest.mark.parametrize("sensitivity", [0, -1, float("nan"), "1", True, None], ids=repr)
def test_a_bad_sensitivity_is_refused(sensitivity):
    with pytest.raises(BadParameter, match=r"sensitivity is .*; it must be .*\. Give exact\.sensitivity"):
        gaussian_pieces(sensitivity=sensitivity, stretches=[(10, 1)])


def test_pieces_that_nobody_can_move_need_no_mechanism():
    only_total = Measurement(((TOTAL, Fraction(1)),))
    keeps = Domain({"sex": Boolean()})
    with pytest.raises(BadParameter, match="public: answer it without a mechanism"):
        gaussian_pieces(sensitivity=sensitivity_of(only_total, keeps, REPLACE), stretches=[(1, 1)])


def test_parameters_that_change_privacy_cannot_be_given_by_position():
    with pytest.raises(TypeError):
        gaussian_pieces(ONE, [(1, 1)])

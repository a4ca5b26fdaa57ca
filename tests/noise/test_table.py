"""The error budget of the float kernels, recomputed with rigorous intervals for every cell of both tables."""

import random
from fractions import Fraction
from math import isnan

import pytest
from flint import arb

from discreet.noise import kernel
from discreet.noise.kernel import (
    QuantileTable,
    exponential_coefficients,
    exponential_table,
    normal_coefficients,
    normal_table,
)
from discreet.numeric import ball, precision

ROUNDING = arb(2) ** -53
# How far the kernel's place in a cell can be from the true one: one rounding of a number below 128, and the digits of T
# that it does not look at. The true place may therefore lie as much outside the cell.
PLACE = arb(2) ** -45
CELLS = [(octave, cell) for octave in range(kernel.OCTAVES) for cell in range(kernel.CELLS)]


def upper_tail(z):
    return (z / arb(2).sqrt()).erfc() / 2


def enclose_normal(tail, guess):
    """A ball of radius 2^-80 that provably holds the z with Pr[Z > z] = tail."""
    z, radius = arb(guess), arb(2) ** -80
    for _ in range(3):
        z = (z + (upper_tail(z) - tail) * (2 * arb.pi()).sqrt() * (z * z / 2).exp()).mid()
    assert upper_tail(z - radius) > tail > upper_tail(z + radius)
    return arb(z, radius)


def normal_cell(octave, cell, stored):
    """The true coefficients, a bound on the seventh, and a bound on the slope, of the normal quantile."""
    width, centre = arb(2) ** -(8 + octave), arb(2 * (kernel.CELLS + cell) + 1) / 2
    true = normal_coefficients(width, enclose_normal(centre * width, stored[0]))
    # Derivatives grow with z in absolute value, so their largest is at the lower end of the cell.
    end = (true[0] - arb("0.55") * true[1]).upper()
    assert upper_tail(end) < (centre - arb("0.5") - PLACE) * width
    beyond = normal_coefficients(width, end, terms=8)
    return true, abs(beyond[7]), abs(beyond[1])


def exponential_cell(octave, cell, stored):
    width, centre = arb(2) ** -(8 + octave), arb(2 * (kernel.CELLS + cell) + 1) / 2
    lowest = centre - arb("0.5") - PLACE
    return exponential_coefficients(width, centre), 1 / (7 * lowest**7), 1 / lowest


def evaluation_error(stored):
    """Of Horner's rule in doubles for |x| ≤ 1/2: each product and each sum is rounded once."""
    size, error = abs(arb(stored[6])), arb(0)
    for coefficient in stored[5::-1]:
        error = error / 2 + ROUNDING * (size + error) / 2
        size = size / 2 + abs(arb(coefficient))
        error = error + ROUNDING * (size + error)
    return error


def total_error(true, seventh, slope, stored):
    coefficients = sum((abs(arb(c) - t) / 2**n for n, (c, t) in enumerate(zip(stored, true, strict=True))), arb(0))
    truncation = seventh / 2**7
    return coefficients + truncation + evaluation_error(stored) + slope * PLACE


def worst(table: QuantileTable, cell_of) -> arb:
    with precision(128):
        found = arb(0)
        for at, (octave, cell) in enumerate(CELLS, start=2 * kernel.CELLS):
            stored = table.plain[kernel.TERMS * at : kernel.TERMS * (at + 1)]
            found = found.max(total_error(*cell_of(octave, cell, stored), stored))
        return found.upper()


@pytest.mark.parametrize(
    ("table", "cell_of"), [(normal_table, normal_cell), (exponential_table, exponential_cell)], ids=["normal", "exp"]
)
def test_the_error_of_every_cell_is_below_the_promised_one(table, cell_of):
    assert worst(table(), cell_of) < arb(kernel.ERROR)


def test_a_table_with_one_wrong_digit_in_one_coefficient_is_caught():
    plain = list(exponential_table().plain)
    plain[kernel.TERMS * 1000] *= 1 + 2.0**-45  # the constant term of a cell of octave 13
    assert not worst(QuantileTable(plain, None), exponential_cell) < arb(kernel.ERROR)


@pytest.mark.parametrize("octave", [0, 1, 2, 9, 30, 47])
def test_the_kernel_reads_the_right_cell(octave):
    """At random digits, the float is within the promised error of the exact quantile."""
    chance = random.Random(octave)
    for _ in range(60):
        high = (1 << 61 | chance.getrandbits(61)) >> octave
        low = chance.getrandbits(62)
        with precision(160):
            tail = ball(Fraction((high << 62) + low, 1 << 125))
            normal = kernel.tail_quantile(high, low, normal_table().plain)
            assert abs(enclose_normal(tail, normal) - arb(normal)) < arb(kernel.ERROR)
            assert abs(-tail.log() - arb(kernel.tail_quantile(high, low, exponential_table().plain))) < arb(
                kernel.ERROR
            )


@pytest.mark.parametrize("value", [1.0, 0.75, 2.0**52, 2.0**53 - 1, 2.0**-40, 1.5 * 2.0**-30, 1 - 2.0**-53, 3.7e5])
def test_machine_code_splits_a_float_as_plain_python_does(value):
    mantissa, exponent = kernel.split_by_bits(value)
    assert (float(mantissa), int(exponent)) == kernel.split(value)


def test_beyond_the_table_the_kernel_gives_up():
    for table in (normal_table().plain, exponential_table().plain):
        assert isnan(kernel.tail_quantile(0, kernel.MASK, table))
        assert isnan(kernel.tail_quantile((1 << 14) - 1, 0, table))
        assert not isnan(kernel.tail_quantile(1 << 14, 0, table))


def test_the_largest_tail_rounds_to_a_half_which_no_cell_holds():
    assert isnan(kernel.tail_quantile(kernel.MASK, kernel.MASK, exponential_table().plain))


@pytest.mark.parametrize("octave", range(1, kernel.OCTAVES, 5))
def test_digits_that_round_into_the_next_octave_are_evaluated_there(octave):
    """All ones round up to a power of two: the next octave's first cell, just outside of which they lie."""
    high, low = kernel.MASK >> octave, kernel.MASK
    with precision(160):
        tail = ball(Fraction((high << 62) + low, 1 << 125))
        assert abs(-tail.log() - arb(kernel.tail_quantile(high, low, exponential_table().plain))) < arb(kernel.ERROR)


@pytest.mark.parametrize("octave", [0, 5, 46])
def test_the_place_in_the_cell_is_as_near_as_the_budget_says(octave):
    """Against exact rationals: one unit around every cell edge, where rounding could cross it."""
    for cell in range(64, 128):
        for step in (-1, 0, 1):
            digits = max((cell << 117) + step, 64 << 117)
            high, low = digits >> (62 + octave), (digits >> octave) & kernel.MASK
            mantissa, _ = kernel.split(float(high >> 9) + float((high & 511) << 44 | low >> 18) * 2.0**-53)
            true = Fraction((high << 62) + low, 1 << (117 - octave))
            assert abs(Fraction(mantissa * 128.0) - true) < Fraction(1, 2**45)

"""The map from digits to integers: exact on all short streams, and the same by every route."""

import random
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from flint import arb

from discreet.noise import kernel, law
from discreet.noise.sample import Digits, _gaussian_shape, _laplace_shape, decide_exactly, magnitude
from discreet.numeric import precision

SCALES = [Fraction(3, 10), Fraction(1), Fraction(21, 2), Fraction(10**6), Fraction(10**12)]
SHAPES = [make(scale) for make in (_laplace_shape, _gaussian_shape) for scale in SCALES]
NAMES = [f"{make} {float(scale):g}" for make in ("laplace", "gaussian") for scale in SCALES]
every_shape = pytest.mark.parametrize("shape", SHAPES, ids=NAMES)


class OutOfDigitsError(Exception):
    pass


def walk(decide, depth):
    """Run `decide` on every bit string up to a depth: the decided mass of each result, and the mass undecided."""
    decided, undecided, waiting = {}, 0, [()]
    while waiting:
        path = waiting.pop()
        bits = iter(path)

        def next_bit(bits=bits):
            try:
                return next(bits)
            except StopIteration:
                raise OutOfDigitsError from None

        try:
            result = decide(Digits(0, 0, next_bit, width=1))
        except OutOfDigitsError:
            if len(path) == depth:
                undecided += Fraction(1, 2**depth)
            else:
                waiting += [(*path, 0), (*path, 1)]
        else:
            decided[result] = decided.get(result, 0) + Fraction(1, 2 ** len(path))
    return decided, undecided


def assert_mass(mass, probability, undecided):
    with precision(200):
        assert law.ball(mass) <= probability
        assert law.ball(mass + undecided) >= probability


@pytest.mark.parametrize("tail", [law.laplace_tail, law.gaussian_tail], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("scale", [Fraction(3, 10), Fraction(5, 4)])
@pytest.mark.parametrize("guess", [0, 5])
def test_on_all_streams_of_eleven_bits_each_integer_gets_its_mass(tail, scale, guess):
    decided, undecided = walk(lambda digits: magnitude(lambda k: tail(k, scale), digits, guess), depth=11)
    assert undecided < Fraction(1, 50)
    for k in range(4):
        with precision(200):
            # Both signs of k together: 2 tail(k) − 2 tail(k + 1), and for 0 what is left.
            mass = 2 * tail(k, scale) if k else arb(1)
            mass -= 2 * tail(k + 1, scale)
        assert_mass(decided.get(k, Fraction(0)), mass, undecided)


def test_a_wrong_tail_is_caught_by_the_same_walk():
    wrong = Fraction(11, 8)
    decided, undecided = walk(lambda digits: magnitude(lambda k: law.laplace_tail(k, wrong), digits), depth=11)
    with precision(200), pytest.raises(AssertionError):
        assert_mass(decided[0], 1 - 2 * law.laplace_tail(1, Fraction(5, 4)), undecided)


def random_words(seed, count):
    chance = random.Random(seed)
    return [chance.getrandbits(64) - 2**63 for _ in range(2 * count)]


def crafted_words():
    """Words at every edge of the digits: none, all, powers of two and their neighbours, both signs."""
    edges = [0, 1, 2, 3, -1, -2, 2**62, 2**63 - 1, -(2**63)]
    edges += [(1 << bit) + step for bit in range(2, 63, 5) for step in (-1, 0, 1)]
    return [word for first in edges for second in (0, -1, 12345) for word in (first, second)]


def by_kernel(shape, words):
    out = [0] * (len(words) // 2)
    kernel.integers(words, shape.table().plain, float(shape.scale), shape.offset, shape.margin, out)
    return out


@every_shape
def test_what_the_floats_decide_the_exact_comparison_decides_alike(shape):
    words = random_words(1, 150) + crafted_words()
    decided = by_kernel(shape, words)
    for i, value in enumerate(decided):
        if value != kernel.UNDECIDED:
            assert decide_exactly(shape, words[2 * i], words[2 * i + 1], lambda: 2**63) == value


def test_with_no_margin_the_floats_are_sometimes_wrong():
    """The power of the test above: at a large scale the margin is what makes the kernel right."""
    shape = _gaussian_shape(Fraction(10**14))
    words = random_words(2, 400)
    bold = [0] * 400
    kernel.integers(words, shape.table().plain, float(shape.scale), shape.offset, 0.0, bold)
    careful = by_kernel(shape, words)
    doubtful = [i for i, value in enumerate(careful) if value == kernel.UNDECIDED]
    assert any(decide_exactly(shape, words[2 * i], words[2 * i + 1]) != bold[i] for i in doubtful)


@every_shape
def test_machine_code_and_plain_python_agree_on_the_same_words(shape):
    words = random_words(3, 3000) + crafted_words()
    out = np.empty(len(words) // 2, dtype=np.int64)
    machine = kernel.compiled_kernel(kernel.integers)
    machine(np.array(words, dtype=np.int64), shape.table().array, float(shape.scale), shape.offset, shape.margin, out)
    assert out.tolist() == by_kernel(shape, words)


@pytest.mark.parametrize("k", [1, 2, 7])
@pytest.mark.parametrize("shape", [_laplace_shape(Fraction(10)), _gaussian_shape(Fraction(10))], ids=["lap", "gauss"])
def test_words_on_a_boundary_are_left_undecided_and_settled_by_the_words_after_them(shape, k):
    with precision(400):
        prefix = int((2 * shape.tail(k) * 2**124).lower().floor().unique_fmpz())
    first, second = (prefix >> 62) << 1, prefix & kernel.MASK
    assert by_kernel(shape, [first, second]) == [kernel.UNDECIDED]
    assert decide_exactly(shape, first, second, lambda: 0) == k
    assert decide_exactly(shape, first, second, lambda: 2**64 - 1) == k - 1
    assert decide_exactly(shape, first + 1, second, lambda: 0) == -k


@every_shape
def test_the_far_tail_beyond_the_table_is_settled_exactly(shape):
    far = decide_exactly(shape, 0b110, 0, lambda: 0)
    assert by_kernel(shape, [0b110, 0]) == [kernel.UNDECIDED]
    with precision(300):
        # high = 3, so T is just above 3/2^63.
        point = law.ball(Fraction(3, 2**63))
        assert shape.tail(far + 1) <= point < shape.tail(far)


@pytest.mark.parametrize("probability", [Fraction(1, 3), Fraction(1, 2), Fraction(5, 8), Fraction(1, 1000)])
def test_a_uniform_is_below_a_point_on_exactly_its_share_of_streams(probability):
    decided, undecided = walk(lambda digits: digits.below(partial(law.ball, probability)), depth=14)
    assert undecided <= Fraction(2, 2**14)
    assert decided.get(True, 0) <= probability <= decided.get(True, 0) + undecided

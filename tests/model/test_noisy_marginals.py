"""What a lattice knows becomes looks: each piece once, with the weight of its noise."""

import numpy as np
import pytest

from discreet.estimate.residual_lattice import Lattice
from discreet.model.interface import LARGEST_WEIGHT, noisy_marginals, total_of
from discreet.query.residual import Residual
from discreet.schema import Boolean, Categories, Domain, Integers, Unit

DOMAIN = Domain(
    {"d": Integers(0, 4, missing="drop"), "a": Boolean(), "c": Categories(list("xyz"), outside="drop"), "b": Boolean()}
)


def measured(lattice, counts, parts, sigma, rng, claimed=None):
    """Measure a piece of a table with noise, as the curator does, and learn it."""
    residual = Residual(parts)
    names = list(DOMAIN)
    marginal = np.einsum(counts, range(len(names)), [names.index(name) for name in residual.columns])
    exact = np.asarray(residual.measure(marginal, DOMAIN)).ravel()
    noise = np.rint(sigma * rng.normal(size=exact.shape)).astype(np.int64)
    lattice.add(residual, variance=(claimed or sigma) ** 2, values=exact + noise)


def full_lattice(seed=0, sigma=5.0):
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 50, size=DOMAIN.shape)
    lattice = Lattice(DOMAIN, Unit())
    pieces = [
        (),
        (("a", 1),),
        (("c", 1),),
        (("d", 2),),
        (("a", 1), ("c", 1)),
        (("c", 1), ("d", 3)),
        (("a", 1), ("b", 1)),
    ]
    for parts in pieces:
        measured(lattice, counts, parts, sigma, rng)
    return lattice, counts


def test_each_piece_of_the_scopes_and_their_subsets_is_there_once():
    lattice, _ = full_lattice()
    found = [
        (look.columns, look.parts) for look in noisy_marginals(lattice, [("c", "a"), ("a", "c"), ("d",), ("c", "d")])
    ]
    assert found == [
        (("a",), (1,)),
        (("a", "c"), (1, 1)),
        (("c",), (1,)),
        (("c", "d"), (1, 3)),
        (("d",), (2,)),
    ]
    assert noisy_marginals(lattice, [("b",)]) == []
    assert [look.columns for look in noisy_marginals(lattice, [("a", "b")])] == [("a",), ("a", "b")]


def test_asking_does_not_make_blocks():
    lattice, _ = full_lattice()
    before = list(lattice.blocks)
    noisy_marginals(lattice, [("a", "b", "c", "d")])
    total_of(Lattice(DOMAIN, Unit()))
    assert list(lattice.blocks) == before


def test_weights_are_the_inverse_variance_of_the_numbers_and_add_up():
    lattice, counts = full_lattice(sigma=5.0)
    for look in noisy_marginals(lattice, [("a", "c"), ("c", "d")]):
        assert look.weight == pytest.approx(1 / 25)
    measured(lattice, counts, (("a", 1), ("c", 1)), 10.0, np.random.default_rng(1))
    (both,) = [look for look in noisy_marginals(lattice, [("a", "c")]) if len(look.columns) == 2]
    assert both.weight == pytest.approx(1 / 25 + 1 / 100)


def surprise(sigma, claimed):
    """χ² of true tables by the weights of their looks, were the noise as claimed, and how many numbers vary."""
    names, chi, freedom = list(DOMAIN), 0.0, 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        counts = rng.integers(0, 50, size=DOMAIN.shape)
        lattice = Lattice(DOMAIN, Unit())
        for parts, size in (((("a", 1), ("c", 1)), 2), ((("c", 1), ("d", 3)), 8), ((("d", 2),), 2)):
            measured(lattice, counts, parts, sigma, rng, claimed)
            freedom += size
        for look in noisy_marginals(lattice, [("a", "c"), ("c", "d")]):
            marginal = np.einsum(counts, range(len(names)), [names.index(name) for name in look.columns])
            chi += look.weight * float((look.residual(marginal.astype(float), DOMAIN) ** 2).sum())
    return chi, freedom


def test_residuals_of_the_true_table_are_the_noise():
    chi, freedom = surprise(5.0, 5.0)
    # The standard deviation of χ² is √(2·freedom).
    assert abs(chi - freedom) < 6 * np.sqrt(2 * freedom)
    # Power: with a fifth more noise than is claimed it is far off.
    chi, freedom = surprise(6.0, 5.0)
    assert chi - freedom > 6 * np.sqrt(2 * freedom)


def test_the_total_and_its_variance():
    lattice, counts = full_lattice(sigma=5.0)
    value, variance = total_of(lattice)
    assert abs(value - counts.sum()) < 6 * 5
    assert variance == pytest.approx(25)
    assert total_of(Lattice(DOMAIN, Unit())) == (0.0, float("inf"))
    exact = Lattice(DOMAIN, Unit())
    exact.add(Residual(()), variance=0.0, values=np.array([123]))
    assert total_of(exact) == (123.0, 0.0)


def test_what_is_known_exactly_has_a_finite_weight():
    lattice = Lattice(DOMAIN, Unit())
    lattice.add(Residual((("a", 1),)), variance=0.0, values=np.array([7]))
    (look,) = noisy_marginals(lattice, [("a",)])
    assert look.values.tolist() == [7.0]
    assert look.weight == LARGEST_WEIGHT


def test_what_was_measured_without_values_says_nothing():
    lattice = Lattice(DOMAIN, Unit())
    lattice.add(Residual((("a", 1),)), variance=4.0, values=None)
    assert noisy_marginals(lattice, [("a",)]) == []

"""The chances of a failed comparison are those of the exact law, and never less."""

import numpy as np
import pytest

from discreet.errors import BadParameter
from discreet.mechanism.sparse_vector_error import alarm_chance, discrete_laplace_tail, least_whole, pass_chance
from discreet.noise.law import laplace_mass, laplace_tail
from discreet.numeric import precision, rational


def by_definition(first, wrong, times, runs=1, *, largest=True):
    """Σ_z Pr[a = z] (1 − (1 − wrong(z))^times), a the largest or smallest of some draws, with rigorous intervals."""
    first, sign = rational("scale", first), 1 if largest else -1

    def chance(z):
        return (1 - laplace_tail(z + 1, first)) ** runs - (1 - laplace_tail(z, first)) ** runs

    with precision(128):
        assert float(chance(2)) == pytest.approx(float(laplace_mass(2, first))) or runs > 1
        return float(sum(chance(z) * (1 - (1 - wrong(sign * z)) ** times) for z in range(-200, 201)))


@pytest.mark.parametrize(("first", "second"), [(0.7, 2.5), (3.0, 1.5), (2.0, 9.0)])
@pytest.mark.parametrize(("queries", "runs"), [(1, 1), (40, 1), (5000, 1), (40, 7), (5000, 30)])
def test_both_chances_are_the_exact_sums(first, second, queries, runs):
    scale = rational("scale", second)
    for threshold, error, off in [(5, 12, 0), (20, 60, 4), (60, 130, 20)]:
        passed = by_definition(first, lambda z, t=threshold, e=error: laplace_tail(e + 2 - t - z, scale), queries, runs)
        found = pass_chance(scales=(first, second), threshold=threshold, error=error, queries=queries, runs=runs)
        assert passed - 1e-15 <= found == pytest.approx(passed, rel=1e-6, abs=1e-13)

        def either(z, t=threshold, v=off):
            return laplace_tail(t + z - v, scale) + laplace_tail(t + z + v, scale)

        if threshold - off > 3 * first + 10:
            alarm = by_definition(first, lambda z: either(z).min(1), queries, runs, largest=False)
            found = alarm_chance(scales=(first, second), threshold=threshold, off=off, queries=queries, runs=runs)
            assert alarm - 1e-15 <= found == pytest.approx(alarm, rel=1e-6, abs=1e-13)


def test_a_coarse_sum_is_an_upper_bound():
    """Thresholds with much noise are summed in blocks; that must not make a failure look rarer."""
    fine = [
        pass_chance(scales=(s, s), threshold=int(9 * s), error=int(25 * s), queries=10**4, runs=1) for s in (40, 4e5)
    ]
    assert fine[0] <= fine[1] <= 1.1 * fine[0]


def test_runs_share_the_questions():
    together = pass_chance(scales=(5.0, 9.0), threshold=100, error=260, queries=1000, runs=1)
    apart = pass_chance(scales=(5.0, 9.0), threshold=100, error=260, queries=1000, runs=10)
    # However they are shared: the analyst may stay with the run whose threshold is the highest.
    assert together <= apart


def test_tails_are_those_of_the_law():
    for scale in (0.5, 3.0, 80.0):
        with precision(128):
            true = [float(laplace_tail(k, rational("scale", scale))) for k in range(-50, 51)]
        np.testing.assert_allclose(discrete_laplace_tail(np.arange(-50.0, 51.0), scale), true, rtol=1e-12)


def test_a_number_that_is_never_large_enough_is_told():
    with pytest.raises(BadParameter, match="larger epsilon"):
        least_whole(lambda n: False)

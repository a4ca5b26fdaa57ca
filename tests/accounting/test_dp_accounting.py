"""Agreement with dp-accounting where it is right, and a record of where it is not."""

from fractions import Fraction
from math import exp

import pytest

from discreet.accounting import ORDERS, Compose, DiscreteGaussian, Gaussian, Laplace, Pure, Repeat, delta, epsilon
from support.needs import needs

pytestmark = needs("dp_accounting")


@pytest.mark.parametrize(("sigma", "times"), [(1, 1), (10, 30), (134, 1000)])
def test_its_distributions_of_gaussians_agree_with_the_exact_condition(sigma, times):
    event = Repeat(Gaussian(sigma, 1), times)
    exact = epsilon(event, delta=1e-6)
    assert exact <= epsilon(event, delta=1e-6, by="pld") <= exact + 2e-4
    assert delta(event, epsilon=exact, by="pld") == pytest.approx(1e-6, rel=1e-2)


@pytest.mark.parametrize(("sigma", "times"), [(1, 1), (10, 30), (134, 1000)])
def test_its_renyi_accountant_agrees_for_gaussians_at_our_orders(sigma, times):
    import dp_accounting
    from dp_accounting.rdp import RdpAccountant

    accountant = RdpAccountant([float(order) for order in ORDERS])
    accountant.compose(dp_accounting.GaussianDpEvent(sigma), times)
    ours = epsilon(Repeat(Gaussian(sigma, 1), times), delta=1e-6, by="renyi")
    assert ours == pytest.approx(accountant.get_epsilon(1e-6), rel=1e-9)


@pytest.mark.parametrize("times", [1, 10, 200])
def test_its_discrete_laplace_agrees_with_randomized_response(times):
    from dp_accounting.pld import privacy_loss_distribution

    peer = privacy_loss_distribution.from_discrete_laplace_mechanism(1 / 16, 1).self_compose(times)
    ours = epsilon(Repeat(Laplace(16, 1), times), delta=1e-6, by="pld")
    assert ours == pytest.approx(peer.get_epsilon_for_delta(1e-6), abs=2e-4 * times**0.5 + 1e-4 * times)


def test_its_pure_sums_agree():
    event = Compose((Repeat(Laplace(10, 1), 3), Pure(Fraction(1, 2))))
    assert epsilon(event, delta=0, by="pld") == pytest.approx(epsilon(event, delta=0, by="pure"), abs=1e-3)


@pytest.mark.parametrize(
    "event",
    [Repeat(Laplace(20, 1), 40), Repeat(DiscreteGaussian(9, 1), 10), Compose((Gaussian(4, 2), Repeat(Pure(0.1), 5)))],
)
def test_a_distribution_is_never_worse_than_our_other_reports(event):
    tight = epsilon(event, delta=1e-6, by="pld")
    for by in ("basic", "advanced", "concentrated", "renyi", "gaussian"):
        assert tight <= epsilon(event, delta=1e-6, by=by) * (1 + 1e-3)


def test_its_accountant_forgets_the_count_of_randomized_response_and_we_do_not():
    """dp-accounting 0.6.0 composes randomized response once, whatever `count` says."""
    import dp_accounting
    from dp_accounting.pld import PLDAccountant

    def peer(count, written_out):
        accountant = PLDAccountant(dp_accounting.NeighboringRelation.REPLACE_ONE)
        event = dp_accounting.RandomizedResponseDpEvent(noise_parameter=2 / (1 + exp(0.5)), num_buckets=2)
        for _ in range(count if written_out else 1):
            accountant.compose(event, 1 if written_out else count)
        return accountant.get_epsilon(1e-9)

    assert peer(10, written_out=False) == pytest.approx(peer(1, written_out=True), abs=1e-3)
    right = peer(10, written_out=True)
    assert right > 4
    assert epsilon(Repeat(Pure(0.5), 10), delta=1e-9, by="pld") == pytest.approx(right, abs=3e-3)


def test_our_repeats_of_distributions_are_the_compositions_written_out():
    event = Pure(Fraction(1, 4))
    written_out = Compose((event,) * 6)
    assert epsilon(Repeat(event, 6), delta=1e-9, by="pld") == epsilon(written_out, delta=1e-9, by="pld")
    nearly = Compose(tuple(Pure(Fraction(1, 4) + Fraction(k, 10**9)) for k in range(6)))
    assert epsilon(nearly, delta=1e-9, by="pld") == pytest.approx(epsilon(event, delta=0, by="pure") * 6, abs=5e-3)

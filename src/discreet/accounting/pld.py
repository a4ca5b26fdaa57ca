"""Privacy-loss distributions, by dp-accounting: the tightest report on a plan that is fixed in advance.

The loss is the collection of events itself; it is turned into numbers only at the end. Never a gate: composing whole
curves is not a valid filter when parameters are chosen after seeing answers (gates.md §4).

dp-accounting rounds losses upwards on a grid, in floating point: a careful estimate from above, not a proof.
"""

from collections import Counter
from fractions import Fraction
from functools import reduce
from math import ceil, inf, log2, sqrt
from typing import Any

from discreet.accounting.event import Accounting, Amount, Approximate, DiscreteGaussian, Gaussian, Single, pure_epsilon
from discreet.errors import BadParameter

Events = tuple[tuple[Single, int], ...]

# The widest step of the grid on which losses are rounded up.
WIDEST_STEP = 1e-4


def pld_epsilon(events: Events, delta: Fraction) -> Amount:
    """The epsilon of the composed privacy-loss distributions at this delta; infinite if an event has none."""
    composed = _composed(events)
    return inf if composed is None else max(0.0, float(composed.get_epsilon_for_delta(float(delta))))


def pld_delta(events: Events, epsilon: Fraction) -> Amount:
    """The delta of the composed privacy-loss distributions at this epsilon; 1 if an event has none."""
    composed = _composed(events)
    return 1.0 if composed is None else min(1.0, float(composed.get_delta_for_epsilon(float(epsilon))))


def _composed(events: Events) -> Any:
    step = _grid(events)
    parts = [_distribution(event, times, step) for event, times in events]
    if any(part is None for part in parts):
        return None
    return reduce(lambda one, other: one.compose(other), parts, _library().identity(value_discretization_interval=step))


def _distribution(event: Single, times: int, step: float) -> Any:
    """The distribution of one event repeated `times` times, or None if it is not known.

    Repeats are composed as distributions: the `count` that the library's accountant takes with an event is forgotten
    for randomized response (version 0.6.0; tests/accounting/test_dp_accounting.py), so we never pass one.
    """
    library = _library()
    match event:
        case Gaussian(sigma, squared_sensitivity) if squared_sensitivity:
            # n Gaussians are one with 1/√n of the noise, exactly.
            noise = float(sigma) / sqrt(float(squared_sensitivity) * times)
            return library.from_gaussian_mechanism(noise, value_discretization_interval=step)
        case DiscreteGaussian(sigma, squared_sensitivity) if squared_sensitivity == 1:
            # Integers at squared distance 1 differ by one in one place, so the one-dimensional distribution is right.
            one = library.from_discrete_gaussian_mechanism(float(sigma), 1, value_discretization_interval=step)
            return one.self_compose(times)
        case Approximate(epsilon, delta):
            return _worst(float(epsilon), float(delta), step).self_compose(times)
        case _:
            pure = pure_epsilon(event)
            return None if pure == inf else _worst(float(pure), 0.0, step).self_compose(times)


def _worst(epsilon: float, delta: float, step: float) -> Any:
    """The distribution that dominates all (epsilon, delta)-DP ones: randomized response that may reveal everything."""
    from dp_accounting.pld.common import DifferentialPrivacyParameters

    if epsilon == delta == 0:
        return _library().identity(value_discretization_interval=step)
    pair = DifferentialPrivacyParameters(epsilon, delta)
    return _library().from_privacy_parameters(pair, value_discretization_interval=step)


def _grid(events: Events) -> float:
    """A step that divides the smallest pure loss by a power of two, so that its multiples are not rounded at all."""
    pure = [float(epsilon) for event, _ in events if 0 < (epsilon := pure_epsilon(event)) < inf]
    smallest = min(pure, default=WIDEST_STEP)
    return smallest / 2.0 ** max(0, ceil(log2(smallest / WIDEST_STEP)))


def _library() -> Any:
    try:
        from dp_accounting.pld import privacy_loss_distribution
    except ImportError as missing:
        raise BadParameter(
            'by is "pld", which needs the package dp-accounting, and it is not installed. '
            'Install discreet[pld], or use by="gaussian".'
        ) from missing
    return privacy_loss_distribution


def _single(event: Single) -> Events:
    return ((event, 1),)


def _add(one: Events, other: Events) -> Events:
    merged = Counter(dict(one)) + Counter(dict(other))
    return tuple(sorted(merged.items(), key=lambda item: repr(item[0])))


PLD = Accounting[Events](
    name="pld",
    single=_single,
    zero=(),
    add=_add,
    times=lambda events, times: tuple((event, count * times) for event, count in events),
    epsilon=pld_epsilon,
    delta=pld_delta,
)

"""What an event costs, in any currency, and what that means as (epsilon, delta).

These are reports about plans fixed in advance. Whether the next question may be asked is for a gate (`gate.py`).
"""

from typing import Any, Literal, get_args

from discreet.errors import BadParameter, did_you_mean
from discreet.parameter import positive, probability
from discreet.privacy.accounting import Accounting, total_loss
from discreet.privacy.additive import ADVANCED, BASIC, PURE
from discreet.privacy.bound import float_above
from discreet.privacy.concentrated import CONCENTRATED
from discreet.privacy.event import Event
from discreet.privacy.gaussian import GAUSSIAN
from discreet.privacy.pld import PLD
from discreet.privacy.renyi import RENYI

By = Literal["pure", "basic", "advanced", "concentrated", "gaussian", "renyi", "pld"]

ACCOUNTINGS: dict[str, Accounting[Any]] = {
    accounting.name: accounting for accounting in (PURE, BASIC, ADVANCED, CONCENTRATED, GAUSSIAN, RENYI, PLD)
}
assert set(ACCOUNTINGS) == set(get_args(By))


def accounting_for(by: str) -> Accounting[Any]:
    """The accounting of this name.

    >>> accounting_for("gausian")
    Traceback (most recent call last):
    discreet.errors.BadParameter: by is 'gausian'; it must be the name of an accounting: did you mean "gaussian"?
    """
    if by not in ACCOUNTINGS:
        hint = did_you_mean(str(by), ACCOUNTINGS)
        raise BadParameter(f"by is {by!r}; it must be the name of an accounting: {hint}")
    return ACCOUNTINGS[by]


def loss(event: Event, *, by: By = "gaussian") -> Any:
    """What an event costs in one currency: exact, or an upper bound where the true value is irrational.

    pure: Σε. basic: Σ(ε, δ). advanced: Σε². concentrated: Σρ. gaussian: Σμ². renyi: a divergence per order.
    pld: the events themselves. What the currency cannot price is infinite.

    >>> from discreet.privacy.event import Gaussian, Repeat
    >>> loss(Repeat(Gaussian(sigma=10, squared_sensitivity=1), 50))
    Fraction(1, 2)
    """
    return total_loss(event, accounting_for(by))


def epsilon(event: Event, *, delta: Any, by: By = "gaussian") -> float:
    """An epsilon for which the event is (epsilon, delta)-DP, rounded up; infinite if the currency gives none.

    >>> from discreet.privacy.event import Gaussian, Repeat
    >>> round(epsilon(Repeat(Gaussian(sigma=134, squared_sensitivity=1), 1000), delta=1e-6), 4)
    0.9968
    """
    accounting = accounting_for(by)
    exact = probability("delta", delta, zero=True)
    return float_above(accounting.epsilon(total_loss(event, accounting), exact))


def delta(event: Event, *, epsilon: Any, by: By = "gaussian") -> float:
    """A delta for which the event is (epsilon, delta)-DP, rounded up; 1 if the currency gives none.

    >>> from discreet.privacy.event import Gaussian
    >>> delta(Gaussian(sigma=1, squared_sensitivity=1), epsilon=1)
    0.12693673750664397
    """
    accounting = accounting_for(by)
    return float_above(accounting.delta(total_loss(event, accounting), positive("epsilon", epsilon)))

"""What an event costs, in any currency, and what that means as (epsilon, delta).

`loss`, `epsilon` and `delta` report on plans fixed in advance. Where questions are chosen adaptively, a privacy filter
(`Gate`) decides whether the next one may still be asked.

A gate is a frozen value over plain integers: the limit is rounded down, charges are rounded up, and a spend is one
addition and one comparison for each order. Amounts count ticks of 10^-15 and fit a signed 64-bit integer, sums
included. Why each gate is valid for adaptively chosen parameters: gates.md §4.
"""

from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import inf
from operator import add, le
from typing import Any, Literal, get_args

from discreet.accounting.composition import ADVANCED, BASIC, PURE
from discreet.accounting.concentrated_dp import CONCENTRATED, divergence_limit
from discreet.accounting.event import Accounting, Amount, Compose, Event, Repeat, leaves, total_loss
from discreet.accounting.gaussian_dp import GAUSSIAN, gaussian_limit
from discreet.accounting.pld import PLD
from discreet.accounting.renyi_dp import ORDERS, RENYI
from discreet.cache import memoize
from discreet.errors import BadParameter, BudgetExceeded, did_you_mean
from discreet.numeric import float_above, positive, probability

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

    >>> from discreet.accounting.event import Gaussian, Repeat
    >>> loss(Repeat(Gaussian(sigma=10, squared_sensitivity=1), 50))
    Fraction(1, 2)
    """
    return total_loss(event, accounting_for(by))


def epsilon(event: Event, *, delta: Any, by: By = "gaussian") -> float:
    """An epsilon for which the event is (epsilon, delta)-DP, rounded up; infinite if the currency gives none.

    >>> from discreet.accounting.event import Gaussian, Repeat
    >>> round(epsilon(Repeat(Gaussian(sigma=134, squared_sensitivity=1), 1000), delta=1e-6), 4)
    0.9968
    """
    accounting = accounting_for(by)
    exact = probability("delta", delta, zero=True)
    return float_above(accounting.epsilon(total_loss(event, accounting), exact))


def delta(event: Event, *, epsilon: Any, by: By = "gaussian") -> float:
    """A delta for which the event is (epsilon, delta)-DP, rounded up; 1 if the currency gives none.

    >>> from discreet.accounting.event import Gaussian
    >>> delta(Gaussian(sigma=1, squared_sensitivity=1), epsilon=1)
    0.12693673750664397
    """
    accounting = accounting_for(by)
    return float_above(accounting.delta(total_loss(event, accounting), positive("epsilon", epsilon)))


# A decimal fraction, as the parameters that people give are: a hundred spends of 0.01 are exactly 1.
TICK = Fraction(1, 10**15)
# More than any limit. Two of them still fit a signed 64-bit integer, so a guarded SQL update cannot overflow.
FULL_TICKS = 2**62 - 1
# The limit of an order at which nothing fits.
CLOSED = -1
LARGEST_EPSILON = 1000

Ticks = tuple[int, ...]
FilterKind = Literal["pure", "gaussian", "renyi"]
# How many numbers an amount has.
ORDERS_OF = {"pure": 1, "gaussian": 1, "renyi": len(ORDERS)}

_ADVICE = {
    "pure": "Use Laplace noise; or the data owner sets a cap with a delta above 0.",
    "gaussian": "Use rounded Gaussian or Laplace noise; or the data owner sets a cap with a renyi gate.",
    "renyi": "Use a mechanism that is epsilon-DP or adds Gaussian noise.",
}


@dataclass(frozen=True, slots=True)
class Gate:
    """A privacy filter: a cap on everything that is ever spent, in one currency.

    Whatever was asked, in whatever order, for whatever reason: as long as every spend was `charge`d and `fits`, the
    whole interaction is (epsilon, delta)-DP. The promise is the cap; a running total read at a moment chosen by looking
    at answers is not itself a guarantee.
    """

    kind: FilterKind
    epsilon: Fraction
    delta: Fraction
    limit: Ticks = field(repr=False)

    @property
    def nothing(self) -> Ticks:
        """What is spent at the start."""
        return (0,) * len(self.limit)

    def charge(self, event: Event) -> Ticks:
        """What an event costs, in ticks, one number for each order; never below its true loss (or `FULL_TICKS`).

        >>> from discreet.accounting.event import Laplace
        >>> pure_gate(1).charge(Laplace(scale=10, sensitivity=1))
        (100000000000000,)
        """
        return charge_of(self.kind, event)

    def charge_parts(self, event: Event) -> Ticks:
        """What the parts of an event cost when each is charged, and rounded up, by itself.

        >>> from discreet.accounting.event import Pure, Repeat
        >>> third, gate = Pure(Fraction(1, 3)), pure_gate(1)
        >>> gate.charge_parts(Repeat(third, 3))[0] - gate.charge(Repeat(third, 3))[0]
        2
        """
        match event:
            case Compose(parts):
                amounts = [self.charge_parts(part) for part in parts]
                return tuple(map(sum, zip(*amounts, strict=True))) if amounts else self.nothing
            case Repeat(part, times):
                return tuple(times * ticks for ticks in self.charge_parts(part)) if times else self.nothing
            case _:
                return self.charge(event)

    def fits(self, spent: Ticks, amount: Ticks) -> bool:
        """Whether the amount can be added with at least one order staying within its limit."""
        return any(map(le, map(add, spent, amount), self.limit))

    def add(self, spent: Ticks, amount: Ticks) -> Ticks:
        """The new total; no order goes above `FULL_TICKS`."""
        return tuple(min(before + more, FULL_TICKS) for before, more in zip(spent, amount, strict=True))


def pure_gate(epsilon: Any) -> Gate:
    """Σ ε_i ≤ epsilon: the whole interaction is epsilon-DP.

    >>> gate = pure_gate(1)
    >>> gate.fits(gate.nothing, (10**15,)), gate.fits((1,), (10**15,))
    (True, False)

    [RRUV16]; proof: gates.md §4
    """
    exact = positive("epsilon", epsilon, at_most=LARGEST_EPSILON)
    return Gate("pure", exact, Fraction(0), (_ticks_down(exact),))


def gaussian_gate(epsilon: Any, delta: Any) -> Gate:
    """Σ μ_i² ≤ μ², where μ-GDP is exactly (epsilon, delta)-DP: the whole interaction is μ-GDP.

    >>> round(float(gaussian_gate(1, 1e-6).limit[0] * TICK) ** 0.5, 4)
    0.2367

    [ST22; KTH23]; proof: gates.md §4
    """
    exact, exact_delta = positive("epsilon", epsilon, at_most=LARGEST_EPSILON), probability("delta", delta)
    return Gate("gaussian", exact, exact_delta, (_ticks_down(gaussian_limit(exact, exact_delta)),))


def renyi_gate(epsilon: Any, delta: Any) -> Gate:
    """Σ r_i(a) ≤ limit(a) for at least one order a: the whole interaction is (epsilon, delta)-DP.

    Which order survives may depend on the answers, so the orders share delta: half goes to the one that serves Gaussian
    noise best, the rest falls off with the square of the distance from it. With all of delta for every order the rule
    would be wrong (gates.md §4 has the counterexample).

    >>> gate = renyi_gate(1, 1e-6)
    >>> max(most * TICK / order for most, order in zip(gate.limit, ORDERS)) > Fraction(1, 50)
    True

    [FZ21; Lec21]; proof: gates.md §4
    """
    exact, exact_delta = positive("epsilon", epsilon, at_most=LARGEST_EPSILON), probability("delta", delta)
    limit = _renyi_limit(exact, exact_delta, best_order(exact, exact_delta))
    if max(limit) <= 0:
        raise BadParameter(
            f"epsilon is {float(exact):g} with delta {float(exact_delta):g}; even our largest order, "
            f"{float(ORDERS[-1]):,.0f}, would let nothing through. Give a larger epsilon or delta, or a gaussian gate."
        )
    return Gate("renyi", exact, exact_delta, limit)


def gate_for(gate: Gate, epsilon: Fraction) -> Gate:
    """A gate of the same kind and delta for another epsilon: the price of a part, in the currency of the whole.

    >>> gate_for(pure_gate(3), Fraction(1)) == pure_gate(1)
    True
    """
    match gate.kind:
        case "pure":
            return pure_gate(epsilon)
        case "gaussian":
            return gaussian_gate(epsilon, gate.delta)
    return renyi_gate(epsilon, gate.delta)


def delta_shares(epsilon: Fraction, delta: Fraction) -> tuple[Fraction, ...]:
    """The share of delta of each order: positive, and together exactly delta.

    >>> sum(delta_shares(Fraction(1), Fraction(1, 10**6))) == Fraction(1, 10**6)
    True
    """
    return _shares_around(best_order(epsilon, delta), delta)


def best_order(epsilon: Fraction, delta: Fraction) -> int:
    """The place of the order that lets most Gaussian noise through, if it has all of delta."""
    noise = [divergence_limit(order - 1, epsilon, delta) / order for order in ORDERS]
    return noise.index(max(noise))


def raised_gate(before: Gate, after: Gate) -> Gate:
    """The gate of a larger budget with the shares of the one before, so that no limit is lower than it was.

    The owner may raise a cap because of answers. With the shares of the larger budget itself, whose best order may be
    another, some transcripts would use one set of shares, some the other, and together more than delta.

    >>> one, two = renyi_gate(1.19, 1e-6), renyi_gate(1.2, 1e-6)
    >>> all(map(le, one.limit, two.limit)), all(map(le, one.limit, raised_gate(one, two).limit))
    (False, True)

    proof: ledger.md §2, Raising
    """
    if after.kind != "renyi":
        return after
    limit = _renyi_limit(after.epsilon, after.delta, _order_of_shares(before))
    # Both are rounded down, perhaps not by the same.
    return replace(after, limit=tuple(map(max, before.limit, limit)))


@memoize(256)
def _order_of_shares(gate: Gate) -> int:
    """The order with half of delta, from the limits: they have no place for it, and a raised gate has kept it."""
    natural = best_order(gate.epsilon, gate.delta)
    for place in sorted(range(len(ORDERS)), key=lambda place: abs(place - natural)):
        if _renyi_limit(gate.epsilon, gate.delta, place) == gate.limit:
            return place
    raise BadParameter(
        f"the limits of a cap with epsilon {float(gate.epsilon):g} and delta {float(gate.delta):g} follow from no "
        "shares of delta. Another version of discreet may have written them: raise the cap with that."
    )


def _renyi_limit(epsilon: Fraction, delta: Fraction, best: int) -> Ticks:
    shares = _shares_around(best, delta)
    limits = (divergence_limit(order - 1, epsilon, share) for order, share in zip(ORDERS, shares, strict=True))
    return tuple(_ticks_down(most) if most > 0 else CLOSED for most in limits)


def _shares_around(best: int, delta: Fraction) -> tuple[Fraction, ...]:
    weights = [Fraction(1, (place - best) ** 2) if place != best else Fraction(0) for place in range(len(ORDERS))]
    weights[best] = sum(weights, Fraction(0))
    return tuple(delta * weight / (2 * weights[best]) for weight in weights)


@memoize(4096)
def charge_of(kind: FilterKind, event: Event) -> Ticks:
    """What an event costs in the currency of every gate of this kind, whatever its limit."""
    loss = total_loss(event, accounting_for(kind))
    amounts: tuple[Amount, ...] = loss if isinstance(loss, tuple) else (loss,)
    if _is_infinite(loss):
        unpriced = (part for part in leaves(event) if _is_infinite(total_loss(part, accounting_for(kind))))
        culprit = next(unpriced, "these events together")
        raise BudgetExceeded(f"a {kind} gate has no price for {culprit}; nothing was spent. {_ADVICE[kind]}")
    return tuple(_ticks_up(amount) for amount in amounts)


def _is_infinite(loss: Amount | tuple[Amount, ...]) -> bool:
    return all(amount == inf for amount in (loss if isinstance(loss, tuple) else (loss,)))


def _ticks_up(amount: Amount) -> int:
    return FULL_TICKS if amount == inf else min(FULL_TICKS, -int(-Fraction(amount) // TICK))


def _ticks_down(amount: Fraction) -> int:
    return min(FULL_TICKS - 1, int(amount // TICK))

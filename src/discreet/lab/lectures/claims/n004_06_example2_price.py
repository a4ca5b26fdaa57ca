"""The best price of a download, found privately from what people would pay."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import numpy as np

from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.lectures.laws import at_most
from discreet.lab.lectures.worst import shown, worst_loss
from discreet.lab.random import normals
from discreet.mechanism import best_price, price_effects
from discreet.mechanism.protocol import Law
from discreet.report.plot import Line, plot
from discreet.schema.unit import Unit
from discreet.verify import Interval

EPSILON, CONFIDENCE, PEOPLE = Fraction(1), 0.95, 1000
PRICES = range(1, 100)
UNIT = Unit(neighbors="replace_one")


def market() -> list[int]:
    """The revenue at each price, in cents, from a thousand made-up people."""
    willing = np.clip(np.rint(45 + 18 * normals(PEOPLE)), 0, 100).astype(np.int64)
    return [int(earned) for earned in price_effects(list(PRICES), willing.tolist()).sum(axis=1)]


def measure_loss(epsilon: Fraction) -> Interval:
    """The exact loss with prices of 1, 2 and 3 cents, over all exchanges of one of three people."""
    effects = price_effects([1, 2, 3], [0, 1, 2, 3]).T
    pairs = []
    for others in product(range(4), repeat=2):
        base = effects[list(others)].sum(axis=0)
        pairs += [((base + a).tolist(), (base + b).tolist()) for a in effects for b in effects if (a != b).any()]
    return worst_loss(best_price([1, 2, 3], epsilon=epsilon, unit=UNIT), pairs)


def miss(revenue: Sequence[int], law: Law, bound: float) -> float:
    """The exact probability that the chosen price earns less than the best by more than the bound."""
    chances = {price: float(chance.upper()) for price, chance in law.probabilities.items()}
    return sum(chances[price] for price, earned in zip(PRICES, revenue, strict=True) if max(revenue) - earned > bound)


def judge(loss: Interval, missed: float, bound: float, best: int) -> tuple[Finding, ...]:
    """The loss is at most ε; the revenue misses the bound seldom enough."""
    return (
        Finding("loss for three prices", f"at most {EPSILON}", f"{shown(loss)}, exactly", at_most(loss, 1.0)),
        Finding(
            f"the price earns more than ${bound / 100:.2f} below the best, ${best / 100:.2f}",
            f"with probability at most {1 - CONFIDENCE:.2f}",
            f"{missed:.2g}, exactly, on a made-up market",
            missed <= 1 - CONFIDENCE,
        ),
    )


def run() -> Outcome:
    """A market study of a thousand people, and prices of 1 to 99 cents."""
    revenue = market()
    choose = best_price(list(PRICES), epsilon=EPSILON, unit=UNIT)
    bound, law = choose.error(CONFIDENCE), choose.law(revenue)
    chances = [float(law.probabilities[price].mid()) for price in PRICES]
    highest = max(revenue) / max(chances) / 100
    figure = plot(
        "What each price would earn, and how likely it is to be chosen",
        [
            Line("revenue, dollars", [(p / 100, r / 100) for p, r in zip(PRICES, revenue, strict=True)], "ours"),
            Line("chance, scaled", [(p / 100, c * highest) for p, c in zip(PRICES, chances, strict=True)], "second"),
        ],
        x="price, dollars",
        y="revenue",
    )
    return Outcome(judge(measure_loss(EPSILON), miss(revenue, law, bound), bound, max(revenue)), figure)


CLAIM = Claim(
    name="best-price",
    source="004 Example 2",
    title="The price of a digital good",
    statement="Revenue q(p; s) = p·#{i : xᵢ ≥ p} moves by at most the highest price, so a noisy maximum over the 99 "
    "prices finds, with ε-DP, a price that earns nearly as much as the best.",
    run=run,
)

"""What a mechanism did, as a value: the algebra of events.

An event says what was done to the table, never what it cost; the cost in any currency is a function of it (`loss.py`).
All parameters are exact rationals (other numbers are read by `discreet.parameter`), and nonsense is refused here: a
negative scale or count would be a negative price. An L2 sensitivity may be the square root of two: it is kept squared.
"""

from dataclasses import dataclass
from fractions import Fraction

from discreet.errors import BadParameter
from discreet.parameter import rational, whole


def _read(event: object, *, above_zero: tuple[str, ...] = (), at_least_zero: tuple[str, ...] = ()) -> None:
    """Make the parameters of a new event exact, and refuse those that mean nothing."""
    for name in (*above_zero, *at_least_zero):
        value = getattr(event, name)
        exact = value if type(value) is Fraction else rational(name, value)
        if exact < 0 or (exact == 0 and name in above_zero):
            raise BadParameter(
                f"{name} is {value}; it must be {'above' if name in above_zero else 'at least'} 0. "
                f"Check how this {type(event).__name__} was calibrated."
            )
        if exact is not value:
            object.__setattr__(event, name, exact)


@dataclass(frozen=True, slots=True)
class Nothing:
    """Nothing was read: post-processing, or an answer already known."""


@dataclass(frozen=True, slots=True)
class Laplace:
    """Discrete Laplace noise, Pr[k] ∝ exp(−|k|/scale), on integers with this L1 sensitivity: sensitivity/scale-DP."""

    scale: Fraction
    sensitivity: Fraction

    def __post_init__(self) -> None:
        _read(self, above_zero=("scale",), at_least_zero=("sensitivity",))


@dataclass(frozen=True, slots=True)
class Gaussian:
    """Rounded Gaussian noise, round(N(0, sigma²)), on integers with this squared L2 sensitivity.

    Rounding an integer plus a real is the integer plus the rounded real, so this is post-processing of the continuous
    Gaussian mechanism and costs exactly what that costs: mu² = squared_sensitivity/sigma².
    """

    sigma: Fraction
    squared_sensitivity: Fraction

    def __post_init__(self) -> None:
        _read(self, above_zero=("sigma",), at_least_zero=("squared_sensitivity",))


@dataclass(frozen=True, slots=True)
class DiscreteGaussian:
    """Discrete Gaussian noise, Pr[k] ∝ exp(−k²/2sigma²), on integers with this squared L2 sensitivity: zCDP [CKS20].

    It is not post-processing of a continuous Gaussian, so it has no Gaussian-DP value of its own.
    """

    sigma: Fraction
    squared_sensitivity: Fraction

    def __post_init__(self) -> None:
        _read(self, above_zero=("sigma",), at_least_zero=("squared_sensitivity",))


@dataclass(frozen=True, slots=True)
class Selection:
    """The exponential mechanism: epsilon-DP and of bounded range epsilon [DDR20], so about half the price of `Pure`."""

    epsilon: Fraction

    def __post_init__(self) -> None:
        _read(self, at_least_zero=("epsilon",))


@dataclass(frozen=True, slots=True)
class AboveThreshold:
    """A whole run of the sparse vector technique: epsilon-DP, however long the stream."""

    epsilon: Fraction

    def __post_init__(self) -> None:
        _read(self, at_least_zero=("epsilon",))


@dataclass(frozen=True, slots=True)
class Coin:
    """Any number of coin tosses with `hits` heads; one person moves the log-odds of each by at most `log_odds`.

    Tails cost nothing, at the Rényi orders a with a·(1 − e^−log_odds) < 1. At larger orders, and in every other
    currency, even tails have no price: so a session pays `hits=0` when it opens, which closes those orders for good,
    and `hits=1` for each hit. Proof: mechanism/model_coin.md
    """

    log_odds: Fraction
    hits: int

    def __post_init__(self) -> None:
        _read(self, above_zero=("log_odds",))
        # Events are read back with every number a fraction.
        hits = self.hits.numerator if isinstance(self.hits, Fraction) and self.hits.denominator == 1 else self.hits
        object.__setattr__(self, "hits", whole("hits", hits, next_step="Say how often it was heads."))


@dataclass(frozen=True, slots=True)
class Pure:
    """Any epsilon-DP mechanism of which nothing more is known: randomized response, permute-and-flip."""

    epsilon: Fraction

    def __post_init__(self) -> None:
        _read(self, at_least_zero=("epsilon",))


@dataclass(frozen=True, slots=True)
class Approximate:
    """Any (epsilon, delta)-DP mechanism of which nothing more is known; name-and-shame is (0, delta)."""

    epsilon: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        _read(self, at_least_zero=("epsilon", "delta"))
        if self.delta > 1:
            raise BadParameter(f"delta is {self.delta}; it must be a probability, at most 1. Give one, say 1e-9.")


@dataclass(frozen=True, slots=True)
class Compose:
    """Adaptive composition: one event after the other, each chosen after seeing the results of those before."""

    events: "tuple[Event, ...]"


@dataclass(frozen=True, slots=True)
class Repeat:
    """The same event, `times` times."""

    event: "Event"
    times: int

    def __post_init__(self) -> None:
        whole("times", self.times, next_step="Say how often it happens.")


Single = Nothing | Laplace | Gaussian | DiscreteGaussian | Selection | AboveThreshold | Coin | Pure | Approximate
Event = Single | Compose | Repeat

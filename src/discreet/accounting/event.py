"""What a mechanism did, as a value: the algebra of events.

An event says what was done to the table, never what it cost; the cost in any currency is a function of it (filter.py).
All parameters are exact rationals (other numbers are read by `discreet.numeric`), and nonsense is refused here: a
negative scale or count would be a negative price. An L2 sensitivity may be the square root of two: it is kept squared.

An `Accounting` is a currency for privacy losses: a small tuple of functions. Composition is written here, once, for all
of them: no formula of a single event ever sees a `Compose` or a `Repeat`.

`event_to_plain` writes events as plain values for logs and other programs: exact, and the same after a round trip. The
names of events are written here only, so that renaming a class changes no record. Format 1 is one name and its content:
{"Laplace": {"scale": "10", "sensitivity": "1"}}. It carries no number, because ledgers hash it as it is; a later format
is written as {"format": 2, "event": …}. All formats are read.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from math import inf
from typing import Any, Generic, NamedTuple, TypeVar, cast

from discreet.errors import BadData, BadParameter
from discreet.numeric import rational, whole


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
    """Any epsilon-DP mechanism about which nothing more is known: randomized response, permute-and-flip."""

    epsilon: Fraction

    def __post_init__(self) -> None:
        _read(self, at_least_zero=("epsilon",))


@dataclass(frozen=True, slots=True)
class Approximate:
    """Any (epsilon, delta)-DP mechanism about which nothing more is known; name-and-shame is (0, delta)."""

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


_Loss = TypeVar("_Loss")

# An exact rational, or infinite where the currency cannot price the event.
Amount = Fraction | float


class Accounting(NamedTuple, Generic[_Loss]):
    """A currency: the loss of a single event, how losses add up, and what a total means as (epsilon, delta).

    `epsilon(loss, delta)` and `delta(loss, epsilon)` are upper bounds; the one is infinite, the other 1, where the
    currency has no price. `times(loss, n)` must equal `loss` added n times, exactly.
    """

    name: str
    single: Callable[[Single], _Loss]
    zero: _Loss
    add: Callable[[_Loss, _Loss], _Loss]
    times: Callable[[_Loss, int], _Loss]
    epsilon: Callable[[_Loss, Fraction], Amount]
    delta: Callable[[_Loss, Fraction], Amount]


def total_loss(event: Event, accounting: Accounting[_Loss]) -> _Loss:
    """The loss of an event, simple or composed, in one currency."""
    match event:
        case Compose(events):
            return reduce(accounting.add, (total_loss(part, accounting) for part in events), accounting.zero)
        case Repeat(part, times):
            return accounting.times(total_loss(part, accounting), times) if times else accounting.zero
        case _:
            return accounting.single(event)


def leaves(event: Event) -> Iterator[Single]:
    """The single events that an event is composed of, each once for every place where it occurs."""
    match event:
        case Compose(events):
            for part in events:
                yield from leaves(part)
        case Repeat(part, times):
            if times:
                yield from leaves(part)
        case _:
            yield event


def add_amounts(one: Amount, other: Amount) -> Amount:
    """The sum; infinite if either is."""
    return inf if inf in (one, other) else one + other


def multiply_amount(amount: Amount, times: int) -> Amount:
    """The amount times a whole number."""
    return inf if amount == inf else amount * times


def pure_epsilon(event: Single) -> Amount:
    """The smallest epsilon for which an event is known to be epsilon-DP; infinite if there is none.

    >>> pure_epsilon(Laplace(scale=Fraction(10), sensitivity=Fraction(1)))
    Fraction(1, 10)
    """
    match event:
        case Nothing():
            return Fraction(0)
        case Laplace(scale, sensitivity):
            return sensitivity / scale
        case Selection(epsilon) | AboveThreshold(epsilon) | Pure(epsilon) | Approximate(epsilon, 0):
            return epsilon
        case _ if getattr(event, "squared_sensitivity", None) == 0:
            return Fraction(0)
        case _:
            return inf


EVENT_FORMAT = 1
# A deeper event would exhaust the stack of its reader.
DEEPEST_EVENT = 30

# By name: the class of a single event, and its parameters in the order in which they are written.
_SINGLE: dict[str, tuple[Any, tuple[str, ...]]] = {
    "Nothing": (Nothing, ()),
    "Laplace": (Laplace, ("scale", "sensitivity")),
    "Gaussian": (Gaussian, ("sigma", "squared_sensitivity")),
    "DiscreteGaussian": (DiscreteGaussian, ("sigma", "squared_sensitivity")),
    "Selection": (Selection, ("epsilon",)),
    "AboveThreshold": (AboveThreshold, ("epsilon",)),
    "Coin": (Coin, ("log_odds", "hits")),
    "Pure": (Pure, ("epsilon",)),
    "Approximate": (Approximate, ("epsilon", "delta")),
}
_NAMES = {kind: name for name, (kind, _) in _SINGLE.items()}


def event_to_plain(event: Event, depth: int = 0) -> dict[str, Any]:
    """An event as a dict of texts, numbers and lists. Fractions are texts, so that nothing is rounded.

    >>> event_to_plain(Repeat(Laplace(10, 1), 3))
    {'Repeat': {'event': {'Laplace': {'scale': '10', 'sensitivity': '1'}}, 'times': 3}}
    """
    if depth > DEEPEST_EVENT:
        raise BadParameter(
            f"an event is nested more than {DEEPEST_EVENT} deep. Write Compose((a, b, …)) and Repeat(a, n)."
        )
    match event:
        case Compose(parts):
            return {"Compose": [event_to_plain(part, depth + 1) for part in parts]}
        case Repeat(part, times):
            return {"Repeat": {"event": event_to_plain(part, depth + 1), "times": times}}
        case _:
            name = _NAMES[type(event)]
            return {name: {field: str(getattr(event, field)) for field in _SINGLE[name][1]}}


def event_from_plain(plain: Any) -> Event:
    """The event that `event_to_plain` wrote, now or in an earlier version.

    >>> event_from_plain({"Pure": {"epsilon": "1/3"}})
    Pure(epsilon=Fraction(1, 3))
    >>> event_from_plain({"format": 1, "event": {"Pure": {"epsilon": "1/3"}}})
    Pure(epsilon=Fraction(1, 3))
    """
    match plain:
        case {"format": number, **rest} if number == EVENT_FORMAT and list(rest) == ["event"]:
            return event_from_plain(rest["event"])
    try:
        ((name, content),) = plain.items()
        if name == "Compose":
            return Compose(tuple(event_from_plain(part) for part in content))
        if name == "Repeat":
            return Repeat(event_from_plain(content["event"]), content["times"])
        return cast(Event, _SINGLE[name][0](**{field: Fraction(value) for field, value in content.items()}))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BadData(
            f"{str(plain)[:80]!r} is not an event of format {EVENT_FORMAT} or earlier; it must be one that a ledger "
            "wrote. It may come from a newer version of discreet."
        ) from error

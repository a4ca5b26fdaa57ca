"""Events as plain values, for logs and other programs: exact, and the same after a round trip.

Names are written here and nowhere else, so that renaming a class changes no record. Format 1 is one name and its
content: {"Laplace": {"scale": "10", "sensitivity": "1"}}. It carries no number, because ledgers hash it as it is; a
later format is written as {"format": 2, "event": …}. All formats are read.
"""

from fractions import Fraction
from typing import Any, cast

from discreet.errors import BadData, BadParameter
from discreet.privacy import event as events
from discreet.privacy.event import Compose, Event, Repeat

EVENT_FORMAT = 1
# A deeper event would exhaust the stack of its reader.
DEEPEST_EVENT = 30

# By name: the class of a single event, and its parameters in the order in which they are written.
_SINGLE: dict[str, tuple[Any, tuple[str, ...]]] = {
    "Nothing": (events.Nothing, ()),
    "Laplace": (events.Laplace, ("scale", "sensitivity")),
    "Gaussian": (events.Gaussian, ("sigma", "squared_sensitivity")),
    "DiscreteGaussian": (events.DiscreteGaussian, ("sigma", "squared_sensitivity")),
    "Selection": (events.Selection, ("epsilon",)),
    "AboveThreshold": (events.AboveThreshold, ("epsilon",)),
    "Coin": (events.Coin, ("log_odds", "hits")),
    "Pure": (events.Pure, ("epsilon",)),
    "Approximate": (events.Approximate, ("epsilon", "delta")),
}
_NAMES = {kind: name for name, (kind, _) in _SINGLE.items()}


def event_to_plain(event: Event, depth: int = 0) -> dict[str, Any]:
    """An event as a dict of texts, numbers and lists. Fractions are texts, so that nothing is rounded.

    >>> event_to_plain(Repeat(events.Laplace(10, 1), 3))
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

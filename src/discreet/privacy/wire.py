"""Events as plain values, for logs and other programs: exact, and the same after a round trip."""

from dataclasses import fields
from fractions import Fraction
from typing import Any, cast

from discreet.errors import BadData, BadParameter
from discreet.privacy import event as events
from discreet.privacy.event import Compose, Event, Repeat

# Whoever reads an event must not run out of stack.
DEEPEST_EVENT = 30

_SINGLE: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        events.Nothing,
        events.Laplace,
        events.Gaussian,
        events.DiscreteGaussian,
        events.Selection,
        events.AboveThreshold,
        events.Coin,
        events.Pure,
        events.Approximate,
    )
}


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
            return {type(event).__name__: {field.name: str(getattr(event, field.name)) for field in fields(event)}}


def event_from_plain(plain: Any) -> Event:
    """The event that `event_to_plain` wrote.

    >>> event_from_plain({"Pure": {"epsilon": "1/3"}})
    Pure(epsilon=Fraction(1, 3))
    """
    try:
        ((name, content),) = plain.items()
        if name == "Compose":
            return Compose(tuple(event_from_plain(part) for part in content))
        if name == "Repeat":
            return Repeat(event_from_plain(content["event"]), content["times"])
        return cast(Event, _SINGLE[name](**{field: Fraction(value) for field, value in content.items()}))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BadData(
            f"{str(plain)[:80]!r} is not an event; it must be one that a ledger wrote. "
            "It may come from a newer version of discreet."
        ) from error

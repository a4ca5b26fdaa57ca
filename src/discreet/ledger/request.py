"""What somebody asks a ledger for, read with care: a mistake is told before anything is decided or written."""

from json import dumps
from typing import Any, get_args

from discreet.cache import memoize
from discreet.errors import BadParameter
from discreet.ledger.scope import EACH
from discreet.parameter import text
from discreet.privacy.event import Compose, Event, Repeat, Single
from discreet.privacy.wire import event_to_plain


def request_of(event: Event, why: str, table: str, analyst: str) -> dict[str, Any]:
    """What an entry says of a spend or a hold, as plain values."""
    if analyst == EACH:
        raise BadParameter(f'analyst is "{EACH}", which means each of them in a cap; it cannot be a name.')
    said = {"table": text("table", table), "analyst": text("analyst", analyst), "why": text("why", why)}
    return {**said, "event": _plain(event)}


def require(name: str, value: Any, kind: type, next_step: str) -> None:
    """Refuse what is of another type. The value is not shown: it may be anything, also a row.

    >>> require("released", "1207", bytes, "Encode it first.")
    Traceback (most recent call last):
    discreet.errors.BadParameter: released is a str; it must be bytes. Encode it first.
    """
    if not isinstance(value, kind):
        a = "" if kind is bytes else "a "
        raise BadParameter(f"{name} is a {type(value).__name__}; it must be {a}{kind.__name__}. {next_step}")


def _plain(event: Event) -> Any:
    try:
        return _written(event)
    except BadParameter:
        raise
    except (KeyError, TypeError, ValueError):
        raise BadParameter(
            f"event is a {type(event).__name__}; it must be an event, in all its parts, with numbers that can be "
            "printed. Give one, say Laplace(scale=10, sensitivity=1)."
        ) from None


@memoize(4096)
def _written(event: Event) -> Any:
    plain = event_to_plain(event)
    if not _is_event(event):
        raise TypeError
    # Python does not print, nor read, a number of more than some thousand digits.
    dumps(plain)
    return plain


def _is_event(value: Any) -> bool:
    match value:
        case Compose(tuple() as parts):
            return all(map(_is_event, parts))
        case Repeat(part, int()):
            return _is_event(part)
        case _:
            return type(value) in get_args(Single)

"""The ledger for other programs: JSON lines, and events for Google's dp-accounting.

In `event_lines` everything is exact: fractions are texts, charges are whole ticks of 10^-15. dp-accounting computes in
floating point, so there noise is rounded down and everything else up.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from math import inf
from typing import Any, Literal, get_args

from discreet.accounting.concentrated_dp import rho
from discreet.accounting.event import DiscreteGaussian, Event, Gaussian, Single, pure_epsilon, total_loss
from discreet.accounting.pld import PLD
from discreet.cache import memoize
from discreet.errors import BadParameter, did_you_mean
from discreet.ledger.history import is_failed, recorded_event
from discreet.ledger.store import Entry
from discreet.numeric import float_above, float_below, lower_bound

# Which of dp-accounting's accountants is to read the events. Neither knows all of what the other knows.
Accountant = Literal["pld", "rdp"]

_SPEND = ("at", "table", "analyst", "why", "event", "charge")
_CAP = ("at", "owner", "tables", "analyst", "gate", "epsilon", "delta", "limit", "spent")


def event_fields(entries: Callable[[], Iterable[Entry]]) -> Iterator[dict[str, Any]]:
    """What was spent, and the caps it had to fit, in order, as plain values: see `event_lines`."""
    # An answer comes after its spend, so the entries are read twice.
    with_answer = (entry for entry in entries() if entry.released is not None and not is_failed(entry.released))
    records = (json.loads(entry.body).get("records") for entry in with_answer)
    answered = {spend for spend in records if spend is not None}
    for entry in entries():
        fields = json.loads(entry.body)
        said = {"is": fields["is"], "sequence": entry.sequence}
        match fields["is"]:
            case "spend":
                yield said | {name: fields[name] for name in _SPEND} | {"answered": entry.sequence in answered}
            case "cap" | "raise":
                yield said | {name: fields[name] for name in _CAP if name in fields}


def event_lines(entries: Callable[[], Iterable[Entry]]) -> Iterator[str]:
    """One line of JSON for each spend, cap and raise: all that another program needs to repeat the accounting.

    `entries` is the method of a ledger. A spend has its number ("sequence"), "at", "table", "analyst", "why", the
    "event", what it was charged in each currency ("charge"), and whether an answer was kept ("answered"). A cap has
    its "tables" and "analyst" (null: all of them, "*": each), the "gate", "epsilon", "delta" and the "limit" in
    ticks; "spent" is the sum with which it began, of each analyst where each has an account. What was released is
    left out.

    >>> import tempfile
    >>> from discreet.ledger import Budget, Ledger
    >>> with tempfile.TemporaryDirectory() as folder, Ledger(f"{folder}/budget.sqlite") as ledger:
    ...     ledger.cap(Budget(epsilon=1), table="people")
    ...     [json.loads(line)["is"] for line in event_lines(ledger.entries)]
    ['cap']
    """
    return map(json.dumps, event_fields(entries))


def dp_event_lines(entries: Callable[[], Iterable[Entry]], *, accountant: Accountant = "pld") -> Iterator[str]:
    """One line of JSON for each spend, with its `dp_event` as dp-accounting's own `to_named_tuple` lays it out.

    docs/ledger.md reads them back with nothing but dp-accounting.
    """
    for entry in entries():
        fields = json.loads(entry.body)
        if fields["is"] == "spend":
            event = _laid_out(recorded_event(entry, fields), accountant)
            said = {name: fields[name] for name in ("table", "analyst")}
            yield json.dumps({"sequence": entry.sequence, **said, "event": event})


def dp_event(event: Event, *, accountant: Accountant = "pld") -> Any:
    """An event as dp-accounting's `DpEvent`, for its PLDAccountant() or its RdpAccountant(): never cheaper than ours.

    | ours | for "pld" | for "rdp" |
    |---|---|---|
    | Gaussian | GaussianDpEvent(sigma/sensitivity) | the same |
    | Laplace, Pure, AboveThreshold | DiscreteLaplaceDpEvent(epsilon, 1) | ZCDpEvent(epsilon²/2) |
    | Selection | DiscreteLaplaceDpEvent(epsilon, 1) | ZCDpEvent(epsilon²/8) |
    | DiscreteGaussian | ZCDpEvent, which PLDAccountant refuses | ZCDpEvent(squared_sensitivity/2sigma²) |
    | Approximate, with a delta | NonPrivateDpEvent: no price | the same |

    Discrete Laplace noise with sensitivity 1 is randomized response with that epsilon, the worst of all that is
    epsilon-DP. LaplaceDpEvent would promise too much: it is about noise on real numbers, which reveals less than ours
    on integers. RandomizedResponseDpEvent is not used: version 0.6.0 forgets its `count` in one accountant.

    The sensitivities are those of our events, so the accountants must keep their default neighboring relation: with
    REPLACE_ONE one of them would double what is doubled already. "pld" is the tight one; "rdp" adds up what zCDP adds
    up, which is more than `epsilon(…, by="renyi")` where a few pure events are large.
    """
    if accountant not in get_args(Accountant):
        hint = did_you_mean(str(accountant), get_args(Accountant))
        raise BadParameter(f"accountant is {accountant!r}; it must be one of dp-accounting's: {hint}")
    library = _library()
    # Sums are multisets of single events, so that composition is written in one place for all currencies.
    counts = ((_single(single, accountant), times) for single, times in total_loss(event, PLD))
    parts = [
        one if times == 1 else library.SelfComposedDpEvent(one, times)
        for one, times in counts
        if not isinstance(one, library.NoOpDpEvent)
    ]
    if not parts:
        return library.NoOpDpEvent()
    return parts[0] if len(parts) == 1 else library.ComposedDpEvent(parts)


def _single(event: Single, accountant: Accountant) -> Any:
    library = _library()
    epsilon = pure_epsilon(event)
    match event:
        case _ if epsilon == 0:
            return library.NoOpDpEvent()
        case Gaussian(sigma, squared_sensitivity):
            return library.GaussianDpEvent(_root_below(sigma**2 / squared_sensitivity))
        case DiscreteGaussian():
            return library.ZCDpEvent(float_above(rho(event)))
        case _ if epsilon == inf:
            return library.NonPrivateDpEvent()
        case _ if accountant == "pld":
            return library.DiscreteLaplaceDpEvent(float_above(epsilon), 1)
        case _:
            return library.ZCDpEvent(float_above(rho(event)))


def _root_below(square: Fraction) -> float:
    from discreet.numeric import ball

    return float_below(lower_bound(lambda: ball(square).sqrt()))


@memoize(1024)
def _laid_out(event: Event, accountant: Accountant) -> Any:
    return _plain(dp_event(event, accountant=accountant).to_named_tuple())


def _plain(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        return {name: _plain(field) for name, field in value._asdict().items()}
    return [_plain(part) for part in value] if isinstance(value, list) else value


def _library() -> Any:
    try:
        from dp_accounting import dp_event as library
    except ImportError as missing:
        raise BadParameter(
            "events for dp-accounting need the package dp-accounting, and it is not installed. "
            "Install discreet[pld], or export as JSON."
        ) from missing
    return library

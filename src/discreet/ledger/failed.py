"""A spend whose rows could not be read: it is written down that nothing came of it, and its key may be used again."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from discreet.errors import DiscreetError, SourceFailed
from discreet.ledger.record import FAILED
from discreet.privacy.event import Event, Nothing

if TYPE_CHECKING:
    from discreet.ledger.ledger import Ledger, Receipt


@contextmanager
def reading_for(ledger: "Ledger", receipt: "Receipt", event: Event, key: str | None) -> Iterator[None]:
    """While rows are read for what was paid: if the source fails, write that down and say that it was charged.

    Whatever was drawn by then is gone with the error; so what is drawn at a repetition is the only thing that is told.
    """
    try:
        yield
    except SourceFailed as error:
        # If not even this can be written, a repetition is told that the answer was lost.
        with suppress(DiscreetError):
            ledger.record(receipt, FAILED)
        raise SourceFailed(f"{error} {_charged(receipt, event, key)}") from None


def _charged(receipt: "Receipt", event: Event, key: str | None) -> str:
    if receipt.is_repeated or event == Nothing():
        return "Nothing more was charged."
    said = f"It was charged all the same (entry {receipt.sequence} of the ledger), for it failed after the payment"
    if key is None:
        return f"{said}; a request with a key could now be repeated at no further cost."
    return f'{said}. Repeat it with the same key "{key}": that costs nothing more.'

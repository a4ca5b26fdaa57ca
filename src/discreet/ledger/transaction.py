"""Pay, read, add noise, record, and only then know: every release of every part of Discreet goes through `transact`.

Nothing else in Discreet spends from a ledger or records in it. So the order, what happens when a source or a process
fails, and what a repeated key is given, are the same for all of them. Why this order keeps the promise: ledger.md.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import Generic, NamedTuple

from discreet.errors import BadParameter, DiscreetError, KeyReused, SourceFailed
from discreet.ledger.keys import FAILED
from discreet.ledger.ledger import ANYONE, Ledger, Receipt
from discreet.ledger.record import Codec, Told, record_of
from discreet.privacy.event import Event, Nothing
from discreet.schema.identity import Identity
from discreet.source.table import Table


@dataclass(frozen=True, slots=True)
class Payment:
    """What is paid, why, for which table and by whom.

    `key` makes it safe to repeat: the same key with the same `body` (what was asked, in its wire form) is charged once;
    `older` are the bodies that earlier versions wrote for the same request. `hold` pays from what was set aside, and
    `error` is the half-width that the event gives, so that a refusal can say which error would fit.
    """

    event: Event
    why: str
    table: str | Identity | Table
    analyst: str = ANYONE
    key: str | None = None
    body: bytes | None = None
    older: tuple[bytes, ...] = ()
    hold: int | None = None
    error: float | None = None


def _nothing() -> None:
    """Nothing to see before paying, and nobody to tell afterwards."""


class Access(NamedTuple):
    """How the rows are reached, and who learns of what was released.

    `touch` sees before anything is paid that the rows can be read, and raises SourceFailed if not. `reading` is around
    every reading of rows and the noise for it. `know` is called when all is recorded.
    """

    touch: Callable[[], None] = _nothing
    reading: Callable[[], AbstractContextManager[object]] = nullcontext
    know: Callable[[], None] = _nothing


# Nothing is read: what is recorded was paid for, and read, before.
NO_ROWS = Access()


class Transacted(NamedTuple, Generic[Told]):
    """What was released, the number of its spend in the ledger and when that was; `repeated` if nothing was drawn."""

    told: Told
    sequence: int = 0
    at: str = ""
    repeated: bool = False


def transact(
    ledger: Ledger | None,
    payment: Payment,
    measure: Callable[[], Told],
    codec: Codec[Told],
    access: Access = NO_ROWS,
    *,
    settle: Callable[[], int] | None = None,
) -> Transacted[Told]:
    """What `measure` releases, after it was paid for, and recorded; or what was recorded when its key was used before.

    `measure` reads rows and adds noise: it is called once, after the payment is durable, and nobody hears of what it
    gives before that is recorded. With `settle` the record depends on what is known: it is written only if nothing was
    appended after the entry that `settle` gives, and otherwise made anew. Without a ledger nobody keeps the account but
    the caller.

    Raises BudgetExceeded, and changes nothing, if it does not fit; KeyReused if the key came with another request.
    """
    if ledger is None:
        access.touch()
        with access.reading():
            return Transacted(measure())
    if not isinstance(ledger, Ledger):
        raise BadParameter(f"ledger is a {type(ledger).__name__}; it must be a Ledger. Open one: dp.Ledger(path).")
    if payment.key is None or not ledger.is_answered(payment.key, analyst=payment.analyst):
        access.touch()
    # Pay before reading: a crash now wastes budget; the other order would hide a loss.
    receipt = _paid(ledger, payment)
    if receipt.released is not None:
        told = _kept(receipt.released, codec)
        access.know()
        return Transacted(told, receipt.sequence, receipt.at, repeated=True)
    with access.reading(), _failing(ledger, receipt, payment):
        told = measure()
    _recorded(ledger, receipt, told, codec, settle)
    access.know()
    return Transacted(told, receipt.sequence, receipt.at)


def _paid(ledger: Ledger, payment: Payment) -> Receipt:
    return ledger.spend(
        payment.event,
        payment.why,
        # Looked at now, as late as can be: the source may have changed since the request was made.
        table=payment.table.identity if isinstance(payment.table, Table) else payment.table,
        analyst=payment.analyst,
        key=payment.key,
        body=payment.body,
        older=payment.older,
        hold=payment.hold,
        error=payment.error,
    )


def _recorded(
    ledger: Ledger, receipt: Receipt, told: Told, codec: Codec[Told], settle: Callable[[], int] | None
) -> None:
    """Keep what was released, durably, before anybody hears of it."""
    recorded = False
    while not recorded:
        # Another process may append at any time; a record that follows from what is known must follow from all of it.
        after = None if settle is None else settle()
        recorded = ledger.record(receipt, codec.to_record(told).to_bytes(), after=after)


def _kept(released: bytes, codec: Codec[Told]) -> Told:
    record = record_of(released)
    if record is None or record.kind not in codec.kinds:
        raise KeyReused("this key came before with a request of another kind. Use a new key for every new question.")
    return codec.from_record(record)


@contextmanager
def _failing(ledger: Ledger, receipt: Receipt, payment: Payment) -> Iterator[None]:
    """If the source fails while rows are read, write that down and say that it was charged.

    Whatever was drawn by then is gone with the error; so what is drawn at a repetition is the only thing that is heard.
    """
    try:
        yield
    except SourceFailed as error:
        # If not even this can be written, a repetition is told that the answer was lost.
        with suppress(DiscreetError):
            ledger.record(receipt, FAILED)
        raise SourceFailed(f"{error} {_charged(receipt, payment)}") from None


def _charged(receipt: Receipt, payment: Payment) -> str:
    if receipt.is_repeated or payment.event == Nothing():
        return "Nothing more was charged."
    said = f"It was charged all the same (entry {receipt.sequence} of the ledger), for it failed after the payment"
    if payment.key is None:
        return f"{said}; a request with a key could now be repeated at no further cost."
    return f'{said}. Repeat it with the same key "{payment.key}": that costs nothing more.'

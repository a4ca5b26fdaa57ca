"""The transaction: pay, read, add noise, record, and only then know. Every release in Discreet goes through `transact`.

Nothing else in Discreet spends from a ledger or records in it. So the order, what happens when a source or a process
fails, and what a repeated key is given, are the same everywhere. Why this order keeps the promise: ledger.md

Records have one format:

    discreet record 2            the format, and its version
    {"kind": "steps", …}         a line of JSON: what it is a record of, and what that needs
    …                            bytes that belong to it, say the numbers

Records of the first version had a name of their own for each kind in the first line; `record_of` reads them too.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from discreet.accounting.event import Event, Nothing
from discreet.errors import BadParameter, DiscreetError, KeyReused, LedgerDamaged, SourceFailed
from discreet.ledger.history import FAILED
from discreet.ledger.ledger import ANYONE, Ledger, Receipt
from discreet.schema.unit import Identity
from discreet.source.table import Table

# The first line: the name of the format, and its version.
_NAME, RECORD_VERSION = b"discreet record ", 2
_FIRST_LINE = b"%s%d\n" % (_NAME, RECORD_VERSION)

# The first lines of version 1, and the kinds of their records. A curator's record said its kind in its header.
_VERSION_1 = {
    b"discreet curator 1\n": None,
    b"discreet answers 1\n": "answers",
    b"discreet release 1\n": "synthetic",
    b"discreet kmeans 1\n": "kmeans",
    b"discreet weights 1\n": "pmw",
    b"discreet holdout 1\n": "holdout",
}

Result = TypeVar("Result")


class Record(NamedTuple):
    """What a record is of, what it says as plain values, and bytes that belong to it.

    >>> written = Record("kmeans", {"centers": [[0, 1]]}).to_bytes()
    >>> written
    b'discreet record 2\\n{"kind": "kmeans", "centers": [[0, 1]]}\\n'
    >>> record_of(written)
    Record(kind='kmeans', fields={'centers': [[0, 1]]}, payload=b'')
    """

    kind: str
    fields: Mapping[str, Any]
    payload: bytes = b""

    def to_bytes(self) -> bytes:
        """The bytes to record."""
        return _FIRST_LINE + json.dumps({"kind": self.kind, **self.fields}).encode() + b"\n" + self.payload


class Codec(NamedTuple, Generic[Result]):
    """How a value is written as a record and read again, and the kinds of records that it can be read from."""

    kinds: tuple[str, ...]
    to_record: Callable[[Result], Record]
    from_record: Callable[[Record], Result]


def record_of(released: bytes | None) -> Record | None:
    """The record in an entry; None if there is none, or if it was not written by Discreet."""
    if released is None or not released.startswith(b"discreet "):
        return None
    first, _, rest = released.partition(b"\n")
    if first + b"\n" == _FIRST_LINE:
        fields, payload = _read(rest)
        return Record(fields.pop("kind"), fields, payload)
    if first.startswith(_NAME):
        raise LedgerDamaged(
            f"a record of the ledger has format {first.removeprefix(_NAME).decode(errors='replace')} and this program "
            f"knows {RECORD_VERSION}. A newer discreet wrote it: upgrade discreet."
        )
    if first + b"\n" not in _VERSION_1:
        return None
    fields, payload = _read(rest)
    kind = _VERSION_1[first + b"\n"]
    if isinstance(fields, list):
        # What was said to a request with a key was a list.
        fields = {"answers": fields}
    return Record(fields.pop("is", "steps") if kind is None else kind, fields, payload)


def _read(rest: bytes) -> tuple[Any, bytes]:
    header, _, payload = rest.partition(b"\n")
    return json.loads(header), payload


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
    """Nothing to check before paying, and nothing to update afterwards."""


class Access(NamedTuple):
    """How the rows are read, and what happens after a release.

    `touch` checks before anything is paid that the rows can be read, and raises SourceFailed if not. `reading` is
    around every reading of rows and the noise for it. `know` is called when all is recorded.
    """

    touch: Callable[[], None] = _nothing
    reading: Callable[[], AbstractContextManager[object]] = nullcontext
    know: Callable[[], None] = _nothing


# Nothing is read: what is recorded was paid for, and read, before.
NO_ROWS = Access()


class Transacted(NamedTuple, Generic[Result]):
    """What was released, the number of its spend in the ledger and when that was; `repeated` if nothing was drawn."""

    result: Result
    sequence: int = 0
    at: str = ""
    repeated: bool = False


def transact(
    ledger: Ledger | None,
    payment: Payment,
    measure: Callable[[], Result],
    codec: Codec[Result],
    access: Access = NO_ROWS,
    *,
    settle: Callable[[], int] | None = None,
) -> Transacted[Result]:
    """Pay, `measure` and record: returns what was released, or what was recorded when its key was used before.

    `measure` reads rows and adds noise. It is called once, after the payment is durable; its result is returned only
    after it is recorded. With `settle` the record depends on what is known: it is written only if nothing was
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
    receipt = _pay(ledger, payment)
    if receipt.released is not None:
        result = _result_of(receipt.released, codec)
        access.know()
        return Transacted(result, receipt.sequence, receipt.at, repeated=True)
    # Around all of it: that the rows were changed meanwhile is seen when the reading ends.
    with _record_failure(ledger, receipt, payment), access.reading():
        result = measure()
    _record(ledger, receipt, result, codec, settle)
    access.know()
    return Transacted(result, receipt.sequence, receipt.at)


def _pay(ledger: Ledger, payment: Payment) -> Receipt:
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


def _record(
    ledger: Ledger, receipt: Receipt, result: Result, codec: Codec[Result], settle: Callable[[], int] | None
) -> None:
    """Record what was released, durably, before it is returned."""
    recorded = False
    while not recorded:
        # Another process may append at any time; a record that follows from what is known must follow from all of it.
        after = None if settle is None else settle()
        recorded = ledger.record(receipt, codec.to_record(result).to_bytes(), after=after)


def _result_of(released: bytes, codec: Codec[Result]) -> Result:
    record = record_of(released)
    if record is None or record.kind not in codec.kinds:
        raise KeyReused("this key came before with a request of another kind. Use a new key for every new question.")
    return codec.from_record(record)


@contextmanager
def _record_failure(ledger: Ledger, receipt: Receipt, payment: Payment) -> Iterator[None]:
    """If the source fails while rows are read, write that down and say that it was charged.

    What was drawn by then is dropped with the error, so only what a repetition draws is ever returned.
    """
    try:
        yield
    except SourceFailed as error:
        # If not even this can be written, a repeated request fails: its answer was lost.
        with suppress(DiscreetError):
            ledger.record(receipt, FAILED)
        raise SourceFailed(f"{error} {_charge_note(receipt, payment)}") from None


def _charge_note(receipt: Receipt, payment: Payment) -> str:
    if receipt.is_repeated or payment.event == Nothing():
        return "Nothing more was charged."
    said = f"It was charged all the same (entry {receipt.sequence} of the ledger), for it failed after the payment"
    if payment.key is None:
        return f"{said}; a request with a key could now be repeated at no further cost."
    return f'{said}. Repeat it with the same key "{payment.key}": that costs nothing more.'

"""The ledger: spend or refuse, durably; remember what was released. The promises, and why they hold: ledger.md."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import takewhile
from json import dumps, loads
from types import TracebackType
from typing import Any

from discreet.accounting.event import Event, Nothing
from discreet.errors import BadParameter
from discreet.ledger.accounts import Balance, Budget, Scope, balances, budget_of, charge_for
from discreet.ledger.declarations import bind_draft, cap_draft, raise_draft, scope_of
from discreet.ledger.history import Spend, is_failed, spends
from discreet.ledger.idempotency import bound_request, last_attempt, paid_before, repeated_receipt, same_request
from discreet.ledger.log import Head, Log, head_of
from discreet.ledger.refusal import refusal
from discreet.ledger.state import Hold, State, adds, misfits, replayed, request_of, require, require_bound, require_hold
from discreet.ledger.store import Appended, Draft, Entry, answer_key_hash, key_hash, stamp
from discreet.numeric import positive, text, whole
from discreet.schema.unit import Identity

# An analyst without a name.
ANYONE = "anyone"

_A_BUDGET = "Give one, say Budget(epsilon=1, delta=1e-9)."
_A_HOLD = "Give what `reserve` returned."
# The largest number that an entry can have in a database.
_LAST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Receipt:
    """Proof that a spend is durable: only then may a row be read.

    `released` is set when the same request was answered before: these bytes are the answer, and nothing is drawn anew.
    If the source failed then, `is_repeated` is set: that payment covers this request, and an answer is drawn.
    """

    head: Head
    at: str
    released: bytes | None = None
    is_repeated: bool = False

    @property
    def sequence(self) -> int:
        """The number of the spend in the ledger."""
        return self.head.sequence


class Ledger:
    """A durable record of what was paid for and what was revealed: it never overspends and never forgets.

    `address` is a path (SQLite) or postgresql://host/database. `head` is a small file that remembers the last entry,
    best on another disk, so that a ledger restored from a backup is noticed and does not serve; for SQLite it lies
    beside the ledger if you do not say where. Threads and processes may share a ledger; each process opens its own.

    >>> import tempfile
    >>> from discreet.accounting.event import Laplace
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger(f"{folder.name}/budget.sqlite")
    >>> ledger.cap(Budget(epsilon=1), table="people")
    >>> receipt = ledger.spend(Laplace(scale=4, sensitivity=1), "how many smoke?", table="people", analyst="ana")
    >>> ledger.record(receipt, b"1207")
    True
    >>> ledger.remaining(table="people")
    Budget(epsilon=0.75)
    >>> ledger.close()
    """

    def __init__(
        self, address: str | os.PathLike[str], *, head: str | os.PathLike[str] | None = None, create: bool = True
    ) -> None:
        self._log = Log(address, head=head, create=create)

    def cap(
        self,
        budget: Budget,
        *,
        table: str | None = None,
        tables: tuple[str, ...] = (),
        analyst: str | None = None,
        by: str = "owner",
    ) -> None:
        """Set a cap. Every spend must fit each cap that covers it, and a table needs one over all its analysts.

        `table` or `tables` say whose spends are added up (tables that share people belong together); without them it
        is all tables. `analyst` caps one analyst, "*" each of them on their own; without it all are added up, which
        is what protects against analysts who put their answers together. What was spent before counts, and setting
        the same cap again changes nothing.
        """
        scope = scope_of(table, tables, analyst)
        require("budget", budget, Budget, _A_BUDGET)
        self._log.submit(lambda state: cap_draft(state, scope, budget, text("by", by), self.entries), durable=True)

    def raise_cap(
        self,
        budget: Budget,
        *,
        table: str | None = None,
        tables: tuple[str, ...] = (),
        analyst: str | None = None,
        by: str = "owner",
    ) -> None:
        """Raise a cap that is there. The log keeps who did it and when. Only the owner of the table should."""
        scope = scope_of(table, tables, analyst)
        require("budget", budget, Budget, _A_BUDGET)
        self._log.submit(lambda state: raise_draft(state, scope, budget, text("by", by)))

    def bind(self, identity: Identity, *, by: str = "owner", confirm: bool = False) -> None:
        """Bind a table to its unit and its version, or declare a new version of it, for all who use this ledger.

        `spend` and `reserve` do it by themselves. Refuses another unit (BadSchema), and a version that was replaced or
        a source that has changed under its version (TableChanged); with `confirm` the owner says that the rows of a
        source that looks different are the same. Binding what is bound changes nothing.
        """
        require("identity", identity, Identity, "Give table.identity.")
        self._log.submit(lambda state: bind_draft(state, identity, text("by", by), confirm=confirm))

    def look(self, identity: Identity) -> Head:
        """The last entry, if this table still is what is bound here; TableChanged or BadSchema otherwise."""
        state = self._log.now()
        require_bound(state.tables, identity)
        return head_of(state)

    def since(self, table: str) -> int:
        """The entry after which what was paid for is about the current version of a table."""
        return self._log.now().since(table)

    @property
    def tables(self) -> Mapping[str, Identity]:
        """The tables that are bound here, as they are now."""
        return {name: bound.identity for name, bound in self._log.now().tables.items()}

    def sharing(self, table: str) -> tuple[str, ...]:
        """This table and all that share people with it, as declared in this ledger."""
        return tuple(sorted(self._log.now().people_of(table)))

    def spend(
        self,
        event: Event,
        why: str,
        *,
        table: str | Identity,
        analyst: str = ANYONE,
        key: str | None = None,
        body: bytes | None = None,
        hold: int | None = None,
        error: float | None = None,
        older: Sequence[bytes] = (),
    ) -> Receipt:
        """Pay for an event, durably, or raise `BudgetExceeded` and change nothing. Read rows only after it returns.

        `table` is `table.identity` of a table that has a schema; a name will do for one that was never bound (`bind`).
        `key` makes a request safe to repeat: the same key with the same `body` (what was asked; the event, the reason
        and the table if you do not say) is charged once. `hold` pays from what a session has set aside. `error` is
        the half-width that the event gives, so that a refusal can say which error would fit. `older` are the bodies
        that earlier versions gave for the same request.
        """
        name = self._bound(table)
        request = request_of(event, why, name, analyst)
        if error is not None:
            positive("error", error, next_step="Give the half-width of the answer, or leave it out.")
        if hold is not None:
            request["hold"] = whole("hold", hold, least=1, next_step=_A_HOLD)
        if body is not None:
            require("body", body, bytes, "Encode it first.")
        if key is not None:
            asked = dumps(request).encode() if body is None else body
            request |= {"key": text("key", key), "asked": sha256(asked).hexdigest()}

        def propose(state: State) -> Draft | Receipt:
            require_bound(state.tables, table)
            again: dict[str, Any] = {}
            if key is not None and (found := last_attempt(self._log.store, analyst, key)):
                attempt, before = found
                receipt = Receipt(*repeated_receipt(self._log.store, state, before, request, older))
                if not is_failed(receipt.released):
                    return receipt
                again = {"attempt": attempt + 1}
                if paid := paid_before(self._log.store, before, request, older):
                    free = request_of(Nothing(), why, name, analyst) | {"key": key, "asked": request["asked"]} | again
                    free |= {"paid": paid, "charge": charge_for(state, Nothing(), name, analyst)}
                    return Draft({**stamp(state.at, "spend"), **free})
            if hold is not None:
                require_hold(state, hold, name, analyst)
            charge = charge_for(state, event, name, analyst)
            if full := list(misfits(state, name, analyst, charge, hold)):
                raise refusal(full, event, charge, error)
            return Draft({**stamp(state.at, "spend"), **request, **again, "charge": charge})

        outcome: Appended | Receipt = self._log.submit(propose)
        if isinstance(outcome, Receipt):
            return outcome
        head = Head(self._log.name, outcome.entry.sequence, outcome.entry.hash)
        return Receipt(head, outcome.fields["at"], is_repeated="paid" in outcome.fields)

    def has(self, key: str, *, analyst: str = ANYONE) -> bool:
        """Whether something was paid under this key, so that repeating it costs nothing."""
        return self._log.find(key_hash(analyst, text("key", key))) is not None

    def used(self, key: str, *, analyst: str = ANYONE) -> bool:
        """Whether this key was ever paid with, or has an answer."""
        label = text("key", key)
        return self._log.find(answer_key_hash(analyst, label)) is not None or self.has(key, analyst=analyst)

    def kept(
        self, key: str, *, table: str, analyst: str = ANYONE, body: bytes, older: Sequence[bytes] = ()
    ) -> bytes | None:
        """The answer that was kept for a request under this key; None if there is none yet.

        Raises `KeyReused` if the key came before with another request or table.
        """
        request = bound_request(key, table, analyst, body)
        if (paid := self._log.find(key_hash(analyst, key))) is not None:
            same_request(paid, request, older, since=self.since(table))
        if (before := self._log.find(answer_key_hash(analyst, key))) is None:
            return None
        same_request(before, request, older, since=self.since(table))
        return before.released

    def keep(self, answer: bytes, key: str, *, table: str | Identity, analyst: str = ANYONE, body: bytes) -> bytes:
        """Keep the answer to a request about the current version; returns the first one kept. Send only that."""
        name = table.table if isinstance(table, Identity) else table
        request = bound_request(key, name, analyst, body)
        require("answer", answer, bytes, "Encode it first.")

        def propose(state: State) -> Draft | Entry:
            require_bound(state.tables, table)
            if (before := self._log.store.find(key=answer_key_hash(analyst, key))) is not None:
                same_request(before, request, since=state.since(name))
                return before
            return Draft({**stamp(state.at, "answer"), **request}, answer)

        outcome: Appended | Entry = self._log.submit(propose)
        return answer if isinstance(outcome, Appended) else outcome.released or b""

    def is_answered(self, key: str, *, analyst: str = ANYONE) -> bool:
        """Whether the answer to a request with this key is kept, so that repeating it reads no row."""
        text("key", key)

        def find_answer(_: State) -> bool:
            found = last_attempt(self._log.store, analyst, key)
            record = None if found is None else self._log.store.find(records=found[1].sequence)
            return record is not None and not is_failed(record.released)

        answered: bool = self._log.submit(find_answer)
        return answered

    def record(self, receipt: Receipt, released: bytes, *, after: int | None = None) -> bool:
        """Keep what was released for a spend, durably. Send it only after this returns True.

        With `after` it is kept only if that is the number of the last entry: False if another process was faster.
        """
        require("receipt", receipt, Receipt, "Give what `spend` returned.")
        require("released", released, bytes, "Encode it first.")

        def propose(state: State) -> Draft | bool:
            if after is not None and after != state.sequence:
                return False
            if receipt.head.ledger != state.ledger:
                raise BadParameter("this receipt is of another ledger. Use the ledger that gave it.")
            paid = self._log.store.find(sequence=receipt.sequence)
            if paid is None or paid.hash != receipt.head.hash or loads(paid.body)["is"] != "spend":
                raise BadParameter(f"this receipt ({receipt.head}) is not of a spend in this ledger.")
            if self._log.store.find(records=receipt.sequence):
                raise BadParameter(f"spend {receipt.sequence} has its answer already; an answer is recorded once.")
            return Draft({**stamp(state.at, "record"), "records": receipt.sequence}, released)

        return self._log.submit(propose) is not False

    def reserve(
        self, event: Event, why: str, *, table: str | Identity, analyst: str = ANYONE, stake: bool = False
    ) -> int:
        """Set budget aside for a session, so that its spends cannot be refused: the number of the hold.

        The event is what the session may do at most, in the parts in which it will be paid, say `Repeat(one, 20)`.

        Nothing of it is spent: what the session does is paid when it happens (`spend(…, hold=)`), and the rest is given
        back by `close_hold`. It outlives a crash; a later process may go on with it (see `holds`), or close it.

        A `stake` is set aside for one step whose outcome may be seen before it can be paid, say the toss of a coin.
        Closing a stake pays it, unless its process says that no such step was taken (`close_hold(…, unused=True)`).
        """
        name = self._bound(table)
        request = request_of(event, why, name, analyst)

        def propose(state: State) -> Draft:
            require_bound(state.tables, table)
            charge = charge_for(state, event, name, analyst, by_parts=True)
            if full := list(misfits(state, name, analyst, charge)):
                raise refusal(full, event, charge, None)
            return Draft({**stamp(state.at, "stake" if stake else "hold"), **request, "charge": charge})

        outcome: Appended = self._log.submit(propose)
        return outcome.entry.sequence

    def close_hold(self, hold: int, *, unused: bool = False) -> None:
        """Give back what a session did not use. If the session still runs, its next spend is refused.

        A stake from which nothing was paid is spent instead, because its step may have been seen, unless the process
        that set it aside says that it is `unused`.
        """
        whole("hold", hold, least=1, next_step=_A_HOLD)

        def propose(state: State) -> Draft | None:
            found = state.holds.get(hold)
            if found is None:
                return None
            if found.stake and not unused:
                return self._paid_out(state, hold, found)
            return Draft({**stamp(state.at, "close"), "hold": hold})

        self._log.submit(propose)

    @property
    def caps(self) -> Mapping[Scope, Budget]:
        """The current caps: the budget of each scope."""
        return {scope: budget_of(gate) for scope, gate in self._log.now().caps.items()}

    @property
    def holds(self) -> Mapping[int, tuple[str, str]]:
        """The open holds: of each number, the table and the analyst."""
        return {number: (hold.table, hold.analyst) for number, hold in self._log.now().holds.items()}

    @property
    def stakes(self) -> frozenset[int]:
        """Those of the open holds that are stakes: closing one pays it."""
        return frozenset(number for number, hold in self._log.now().holds.items() if hold.stake)

    def holds_for(self, why: str, *, table: str, analyst: str = ANYONE) -> list[int]:
        """The open holds that were set aside for this reason."""
        wanted = (table, analyst, text("why", why))
        return [number for number, hold in self._log.now().holds.items() if (*hold[:2], hold.why) == wanted]

    @property
    def head(self) -> Head:
        """The last entry, for you to keep elsewhere."""
        return head_of(self._log.now())

    def balances(self, *, table: str | None = None, analyst: str | None = None, at: int | None = None) -> list[Balance]:
        """What each account may spend, has spent, has set aside and has left; now, or after the entry `at`."""
        if at is None:
            return balances(self._log.now(), table, analyst)
        last = whole("at", at, least=1, most=_LAST, next_step="Give the number of an entry.")
        then = replayed(State(), takewhile(lambda entry: entry.sequence <= last, self.entries()))
        return balances(then, table, analyst)

    def remaining(self, *, table: str, analyst: str = ANYONE) -> Budget:
        """What this analyst can still spend on this table: what is left of the tightest cap over it."""
        state = self._log.now()
        charge_for(state, Nothing(), text("table", table), text("analyst", analyst))
        return min((one.remaining for one in balances(state, table, analyst)), key=lambda left: left.epsilon)

    def history(self, *, table: str | None = None, analyst: str | None = None) -> list[Spend]:
        """Every spend so far, in order, with what was released for it."""
        found = spends(self.entries())
        return [spend for spend in found if table in (None, spend.table) and analyst in (None, spend.analyst)]

    def entries(self, after: int = 0) -> Iterator[Entry]:
        """The entries after this number, as they are stored."""
        return self._log.store.entries(whole("after", after, most=_LAST, next_step="Give the number of an entry."))

    def close(self) -> None:
        """Give back the connections and the files."""
        self._log.close()

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _bound(self, table: str | Identity) -> str:
        """The name of a table, which is bound now if its identity says something new."""
        if not isinstance(table, Identity):
            return table
        bound = self._log.seen.tables.get(table.table)
        if bound is None or (adds(bound, table) and table.version not in bound.versions[:-1]):
            self.bind(table)
        return table.table

    def _paid_out(self, state: State, number: int, stake: Hold) -> Draft:
        """A spend of a whole stake, which closes it: the outcome of its step may have been seen."""
        entry = self._log.store.find(sequence=number)
        assert entry is not None, "a hold that is open is in the log"
        event = loads(entry.body)["event"]
        said = {"table": stake.table, "analyst": stake.analyst, "why": stake.why, "event": event}
        return Draft({**stamp(state.at, "spend"), **said, "hold": number, "closes": True, "charge": stake.left})

"""The ledger: spend or refuse, durably; remember what was released. The promises, and why they hold: ledger.md."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from json import dumps, loads
from types import TracebackType
from typing import Any

from discreet.errors import AnswerLost, BadParameter, KeyReused
from discreet.ledger.balance import Balance, balances
from discreet.ledger.budget import Budget, budget_of
from discreet.ledger.cap import cap_draft, raise_draft, scope_of
from discreet.ledger.entry import Appended, Draft, Entry, key_of
from discreet.ledger.head import Head
from discreet.ledger.history import Spend, spends
from discreet.ledger.log import Log, head_of
from discreet.ledger.moment import stamp
from discreet.ledger.refusal import refusal
from discreet.ledger.request import request_of, require
from discreet.ledger.scope import Scope
from discreet.ledger.state import Charge, State, damaged, misfits
from discreet.parameter import positive, text, whole
from discreet.privacy.event import Event, Nothing
from discreet.privacy.gate import Grains

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
    """

    head: Head
    at: str
    released: bytes | None = None

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
    >>> from discreet.privacy.event import Laplace
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger(f"{folder.name}/budget.sqlite")
    >>> ledger.cap(Budget(epsilon=1), table="people")
    >>> receipt = ledger.spend(Laplace(scale=4, sensitivity=1), "how many smoke?", table="people", analyst="ana")
    >>> ledger.record(receipt, b"1207")
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

    def spend(
        self,
        event: Event,
        why: str,
        *,
        table: str,
        analyst: str = ANYONE,
        key: str | None = None,
        body: bytes | None = None,
        hold: int | None = None,
        error: float | None = None,
    ) -> Receipt:
        """Pay for an event, durably, or raise `BudgetExceeded` and change nothing. Read rows only after it returns.

        `key` makes a request safe to repeat: the same key with the same `body` (what was asked; the event, the reason
        and the table if you do not say) is charged once. `hold` pays from what a session has set aside. `error` is
        the half-width that the event gives, so that a refusal can say which error would fit.
        """
        request = request_of(event, why, table, analyst)
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
            if key is not None and (before := self._log.store.find(key=key_of(analyst, key))):
                return self._answered(state, before, request)
            if hold is not None:
                _require_hold(state, hold, table, analyst)
            charge = _charge(state, event, table, analyst)
            if full := list(misfits(state, table, analyst, charge, hold)):
                raise refusal(full, event, charge, error)
            return Draft({**stamp(state, "spend"), **request, "charge": charge})

        outcome: Appended | Receipt = self._log.submit(propose)
        if isinstance(outcome, Receipt):
            return outcome
        return Receipt(Head(self._log.name, outcome.entry.sequence, outcome.entry.hash), outcome.fields["at"])

    def has(self, key: str, *, analyst: str = ANYONE) -> bool:
        """Whether something was paid under this key, so that repeating it costs nothing."""
        return self._log.store.find(key=key_of(analyst, text("key", key))) is not None

    def record(self, receipt: Receipt, released: bytes) -> None:
        """Keep what was released for a spend, durably. Send it only after this returns."""
        require("receipt", receipt, Receipt, "Give what `spend` returned.")
        require("released", released, bytes, "Encode it first.")

        def propose(state: State) -> Draft:
            if receipt.head.ledger != state.ledger:
                raise BadParameter("this receipt is of another ledger. Use the ledger that gave it.")
            paid = self._log.store.find(sequence=receipt.sequence)
            if paid is None or paid.hash != receipt.head.hash or loads(paid.body)["is"] != "spend":
                raise BadParameter(f"this receipt ({receipt.head}) is not of a spend in this ledger.")
            if self._log.store.find(records=receipt.sequence):
                raise BadParameter(f"spend {receipt.sequence} has its answer already; an answer is recorded once.")
            return Draft({**stamp(state, "record"), "records": receipt.sequence}, released)

        self._log.submit(propose)

    def reserve(self, event: Event, why: str, *, table: str, analyst: str = ANYONE) -> int:
        """Set budget aside for a session, so that its spends cannot be refused: the number of the hold.

        The event is what the session may do at most, in the parts in which it will be paid, say `Repeat(one, 20)`.

        Nothing of it is spent: what the session does is paid when it happens (`spend(…, hold=)`), and the rest is given
        back by `close_hold`. It outlives a crash; whoever finds it in `holds` may go on with it, or close it.
        """
        request = request_of(event, why, table, analyst)

        def propose(state: State) -> Draft:
            charge = _charge(state, event, table, analyst, by_parts=True)
            if full := list(misfits(state, table, analyst, charge)):
                raise refusal(full, event, charge, None)
            return Draft({**stamp(state, "hold"), **request, "charge": charge})

        outcome: Appended = self._log.submit(propose)
        return outcome.entry.sequence

    def close_hold(self, hold: int) -> None:
        """Give back what a session did not use. If the session still runs, its next spend is refused."""
        whole("hold", hold, least=1, next_step=_A_HOLD)

        def propose(state: State) -> Draft | None:
            return Draft({**stamp(state, "close"), "hold": hold}) if hold in state.holds else None

        self._log.submit(propose)

    @property
    def caps(self) -> Mapping[Scope, Budget]:
        """The caps as they stand: of each scope, its budget."""
        return {scope: budget_of(gate) for scope, gate in self._log.now().caps.items()}

    @property
    def holds(self) -> Mapping[int, tuple[str, str]]:
        """The open holds: of each number, the table and the analyst."""
        return {number: (hold.table, hold.analyst) for number, hold in self._log.now().holds.items()}

    def holds_for(self, why: str, *, table: str, analyst: str = ANYONE) -> list[int]:
        """The open holds that were set aside for this reason."""
        wanted = (table, analyst, text("why", why))
        return [number for number, hold in self._log.now().holds.items() if (*hold[:2], hold.why) == wanted]

    @property
    def head(self) -> Head:
        """The last entry, for you to keep elsewhere."""
        return head_of(self._log.now())

    def balances(self, *, table: str | None = None, analyst: str | None = None) -> list[Balance]:
        """What each account may spend, has spent, has set aside and has left."""
        return balances(self._log.now(), table, analyst)

    def remaining(self, *, table: str, analyst: str = ANYONE) -> Budget:
        """What this analyst can still spend on this table: what is left of the tightest cap over it."""
        state = self._log.now()
        _charge(state, Nothing(), text("table", table), text("analyst", analyst))
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

    def _answered(self, state: State, before: Entry, request: Mapping[str, Any]) -> Receipt:
        """The receipt of the same request, with its answer; its key was found."""
        said = loads(before.body)
        if (said.get("analyst"), said.get("key")) != (request["analyst"], request["key"]):
            raise damaged(before.sequence, "is found by another key than it says")
        if said["asked"] != request["asked"]:
            raise KeyReused(
                f'key "{request["key"]}" came before with another request, at {said["at"]}. '
                "Use a new key for every new question."
            )
        record = self._log.store.find(records=before.sequence)
        if record is None:
            raise AnswerLost(
                f'the request with key "{request["key"]}" was charged at {said["at"]} and its answer is not recorded. '
                "If it is still being computed, repeat it in a moment; otherwise the answer was lost in a crash, and "
                "a new key asks, and pays, again."
            )
        if loads(record.body).get("records") != before.sequence:
            raise damaged(record.sequence, "is found as the answer to another spend than it says")
        return Receipt(Head(state.ledger, before.sequence, before.hash), said["at"], record.released)


def _require_hold(state: State, number: int, table: str, analyst: str) -> None:
    hold = state.holds.get(number)
    if hold is None:
        raise BadParameter(f"hold {number} is not open; it was closed, perhaps by another process. Reserve anew.")
    if (hold.table, hold.analyst) != (table, analyst):
        raise BadParameter(f"hold {number} is of another analyst or table. Pay from a hold of your own.")


def _charge(state: State, event: Event, table: str, analyst: str, *, by_parts: bool = False) -> Charge:
    """What an event costs in the currency of each cap over it. There must be one that counts all analysts together.

    `by_parts` rounds each part up on its own, as it will be when the parts are paid one by one.
    """
    accounts = state.caps.over(table, analyst)
    if not any(scope.analyst is None for scope, _ in accounts):
        raise BadParameter(
            f'table "{table}" has no budget for all analysts together. '
            f'Set one: ledger.cap(Budget(epsilon=1, delta=1e-9), table="{table}").'
        )
    # Most caps count in the same currency, and looking up a price takes longer than comparing names.
    charge: dict[str, Grains] = {}
    for _, gate in accounts:
        if gate.kind not in charge:
            charge[gate.kind] = gate.charge_parts(event) if by_parts else gate.charge(event)
    return charge

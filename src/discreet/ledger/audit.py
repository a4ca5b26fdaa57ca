"""An audit reads a whole ledger again and trusts none of it: it checks the hash chain, caps, answers and prices."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import takewhile
from os import PathLike
from typing import Any

from discreet.accounting.filter import charge_of, raised_gate
from discreet.errors import BudgetExceeded, LedgerDamaged
from discreet.ledger.accounts import Budget, Caps, Scope, gate_of
from discreet.ledger.declarations import spent_before
from discreet.ledger.history import recorded_event
from discreet.ledger.log import FORK_LOCK, Head
from discreet.ledger.state import UNREADABLE, State, damaged, fields_of, folded, require
from discreet.ledger.store import Entry, Store, index_columns


@dataclass(frozen=True, slots=True)
class Audit:
    """What was found in a ledger that holds."""

    head: Head
    entries: int
    spends: int
    answered: int
    state: State = field(repr=False)


def verify(
    address: str | PathLike[str],
    *,
    head: Head | None = None,
    prices: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Audit:
    """Read every entry and raise `LedgerDamaged` at the first fault.

    Checked: every hash follows from the one before; no cap was passed at any moment; limits follow from their budgets;
    an answer belongs to a spend and is the only one; the indexed columns agree with the entries; an earlier `head` is
    among the entries. With `prices` every event is priced again, which takes longer if many are different.
    """
    if head is not None:
        require("head", head, Head, "Give Head.parse(line).")
    with FORK_LOCK:
        store = Store(address, create=False)
        try:
            return _verified(store, head, prices, progress or (lambda _: None))
        finally:
            store.close()


def _verified(store: Store, head: Head | None, prices: bool, progress: Callable[[int], None]) -> Audit:
    state, found = State(), head is None
    spends: set[int] = set()
    answered: set[int] = set()
    for sequence, body, released, digest, *labels in store.rows():
        entry = Entry(sequence, body, released, digest)
        before, fields = state, fields_of(state, entry)
        state = folded(before, entry, fields)
        found = found or (head is not None and (sequence, digest) == head[1:])
        try:
            if index_columns(fields) != tuple(labels):
                raise damaged(sequence, "is stored under another key than it names")
            match fields["is"]:
                case "spend":
                    spends.add(sequence)
                    if prices:
                        _check_price(entry, fields)
                case "record":
                    if fields["records"] not in spends or fields["records"] in answered:
                        raise damaged(sequence, "records an answer to an entry that is no spend, or that has one")
                    answered.add(fields["records"])
                case "cap" | "raise":
                    _check_limit(entry, fields, before.caps, store)
        except (*UNREADABLE, BudgetExceeded) as error:
            # The hash is right, so the entry was forged with care; an impossible price or budget is found only here.
            raise damaged(sequence, f"has impossible content ({error})") from None
        progress(sequence)
    if not found or (head is not None and head.ledger != state.ledger):
        raise LedgerDamaged(
            f"the head that you kept ({head}) is not in this ledger: entries were lost or changed since, or it is of "
            "another ledger. Nothing should be served from it. Bring back the newest file."
        )
    if store.integrity() != "ok":
        raise LedgerDamaged(f'"{store.name}" is not a whole SQLite database. Nothing should be served from it.')
    return Audit(Head(state.ledger, state.sequence, state.hash), state.sequence, len(spends), len(answered), state)


def _check_limit(entry: Entry, fields: Mapping[str, Any], caps: Caps, store: Store) -> None:
    gate = gate_of(Budget(Fraction(fields["epsilon"]), Fraction(fields["delta"]), fields["gate"]))
    scope = Scope(None if fields["tables"] is None else tuple(fields["tables"]), fields["analyst"])
    # Older versions shared delta anew at a raise.
    allowed = {gate.limit} if fields["is"] == "cap" else {gate.limit, raised_gate(caps[scope], gate).limit}
    if tuple(fields["limit"]) not in allowed:
        raise damaged(entry.sequence, "has a limit that does not follow from its budget")
    if fields["is"] == "cap":
        earlier = takewhile(lambda other: other.sequence < entry.sequence, store.entries())
        if {who: tuple(amount) for who, amount in fields["spent"]} != spent_before(scope, gate, caps, earlier):
            raise damaged(entry.sequence, "begins a cap with another sum than what was spent before it")


def _check_price(entry: Entry, fields: Mapping[str, Any]) -> None:
    event = recorded_event(entry, fields)
    for kind, amount in fields["charge"].items():
        if any(have < true for have, true in zip(amount, charge_of(kind, event), strict=True)):
            raise damaged(entry.sequence, "was charged less than its event costs")

"""What follows from the log: a pure fold over its entries. Nothing about money is stored anywhere else.

Every process folds the entries that it has not seen yet before it appends one, and checks on the way that the chain
holds and that no cap was ever passed. Why that keeps the promises: ledger.md.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from operator import add
from typing import Any, NamedTuple

from discreet.errors import LedgerDamaged
from discreet.ledger.entry import FORMAT, GENESIS, Entry, seal
from discreet.ledger.scope import Scope
from discreet.privacy.gate import Gate, Grains

# What an event costs in each currency that some cap over it counts in.
Charge = Mapping[str, Grains]


class Hold(NamedTuple):
    """Budget that a session has set aside and not yet used."""

    table: str
    analyst: str
    left: Charge


@dataclass(frozen=True, slots=True)
class State:
    """All that follows from the entries up to `sequence`."""

    sequence: int = 0
    hash: bytes = GENESIS
    at: str = ""
    ledger: str = ""
    caps: Mapping[Scope, Gate] = field(default_factory=dict)
    spent: Mapping[Scope, Grains] = field(default_factory=dict)
    holds: Mapping[int, Hold] = field(default_factory=dict)

    @property
    def analysts(self) -> set[str]:
        """Whose spends or holds are in the log, as far as an account tells them apart; somebody nameless if none."""
        named = {account.analyst or "" for account in self.spent}
        return (named | {hold.analyst for hold in self.holds.values()}) or {""}

    def accounts(self, table: str, analyst: str) -> Iterator[tuple[Scope, Gate]]:
        """Every account that a spend must fit. What an analyst was given in person stands for what each is given."""
        for scope, gate in self.caps.items():
            if scope.covers(table, analyst):
                account = scope.of(analyst)
                if account is scope or account not in self.caps:
                    yield account, gate

    def total(self, account: Scope, gate: Gate, *, without: int | None = None) -> Grains:
        """What is spent or set aside in an account; one hold can be left out."""
        total = self.spent.get(account, gate.nothing)
        for number, hold in self.holds.items():
            if number != without and account.covers(hold.table, hold.analyst):
                total = plus(total, hold.left[gate.kind])
        return total


def plus(one: Grains, other: Grains) -> Grains:
    """The sum, order by order. Nothing is rounded or cut off, so what was set aside can be given back exactly."""
    return tuple(map(add, one, other))


def rest_of(hold: Hold, charge: Charge) -> Hold:
    """What stays set aside after a spend was paid from it. What it lacks is paid like any other spend."""
    left = {
        kind: tuple(max(0, have - need) for have, need in zip(amount, charge[kind], strict=True))
        for kind, amount in hold.left.items()
    }
    return hold._replace(left=left)


def misfits(
    state: State, table: str, analyst: str, charge: Charge, hold: int | None = None
) -> Iterator[tuple[Scope, Gate, Grains]]:
    """The accounts that cannot take this charge, each with its gate and the room that is left in it."""
    rest = None if hold is None else rest_of(state.holds[hold], charge).left
    for account, gate in state.accounts(table, analyst):
        total = state.total(account, gate, without=hold)
        if rest is not None:
            total = plus(total, rest[gate.kind])
        if not gate.fits(total, charge[gate.kind]):
            yield account, gate, tuple(most - have for most, have in zip(gate.limit, total, strict=True))


def after(state: State, entry: Entry) -> State:
    """The state after one more entry of a stored log, if the chain holds and no cap is passed."""
    if entry.sequence != state.sequence + 1:
        raise _damaged(state.sequence + 1, "is missing")
    if seal(state.hash, entry.body, entry.released) != entry.hash:
        raise _damaged(entry.sequence, "or the one before it was changed: its hash does not follow")
    try:
        return folded(state, entry, json.loads(entry.body))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise _damaged(entry.sequence, "cannot be read; it may come from a newer version of discreet") from error


def replayed(state: State, entries: Iterable[Entry]) -> State:
    """The state after all these."""
    for entry in entries:
        state = after(state, entry)
    return state


def folded(state: State, entry: Entry, fields: Mapping[str, Any]) -> State:
    """The state after an entry whose hash is known to be right."""
    caps, spent, holds = state.caps, state.spent, state.holds
    ledger = state.ledger
    match fields["is"]:
        case "record":
            pass
        case "spend":
            spent, holds = _paid(state, entry.sequence, fields)
        case "hold":
            charge = _charge(fields)
            if any(misfits(state, fields["table"], fields["analyst"], charge)):
                raise _damaged(entry.sequence, "sets aside more than a cap allows")
            holds = {**holds, entry.sequence: Hold(fields["table"], fields["analyst"], charge)}
        case "close":
            holds = {number: hold for number, hold in holds.items() if number != fields["hold"]}
        case "cap" | "raise":
            caps, spent = _capped(state, entry.sequence, fields)
        case "open" if entry.sequence == 1 and fields["format"] <= FORMAT:
            ledger = fields["ledger"]
        case _:
            raise _damaged(entry.sequence, "cannot be read; it may come from a newer version of discreet")
    return State(entry.sequence, entry.hash, max(state.at, fields["at"]), ledger, caps, spent, holds)


def _paid(state: State, sequence: int, fields: Mapping[str, Any]) -> tuple[Mapping[Scope, Grains], Mapping[int, Hold]]:
    table, analyst, number, charge = fields["table"], fields["analyst"], fields.get("hold"), _charge(fields)
    if number is not None and number not in state.holds:
        raise _damaged(sequence, "pays from a hold that is not open")
    if any(misfits(state, table, analyst, charge, number)):
        raise _damaged(sequence, "passes a cap")
    spent = dict(state.spent)
    for account, gate in state.accounts(table, analyst):
        spent[account] = plus(spent.get(account, gate.nothing), charge[gate.kind])
    if number is None:
        return spent, state.holds
    return spent, {**state.holds, number: rest_of(state.holds[number], charge)}


def _capped(
    state: State, sequence: int, fields: Mapping[str, Any]
) -> tuple[Mapping[Scope, Gate], Mapping[Scope, Grains]]:
    tables = fields["tables"]
    scope = Scope(None if tables is None else tuple(tables), fields["analyst"])
    gate = Gate(fields["gate"], Fraction(fields["epsilon"]), Fraction(fields["delta"]), tuple(fields["limit"]))
    if (scope in state.caps) != (fields["is"] == "raise"):
        raise _damaged(sequence, "sets a cap that was set before, or raises one that was not")
    caps = {**state.caps, scope: gate}
    spent = {**state.spent, **{scope.of(who or ""): tuple(amount) for who, amount in fields.get("spent", [])}}
    changed = State(state.sequence, state.hash, state.at, state.ledger, caps, spent, state.holds)
    for account in over(changed, scope):
        raise _damaged(sequence, f"sets a cap below what was spent ({account})")
    return caps, spent


def over(state: State, scope: Scope) -> Iterator[Scope]:
    """The accounts under one cap that hold more than it allows."""
    gate = state.caps[scope]
    for account in {scope.of(analyst) for analyst in state.analysts}:
        if not gate.fits(state.total(account, gate), gate.nothing):
            yield account


def _charge(fields: Mapping[str, Any]) -> Charge:
    charge = {kind: tuple(amount) for kind, amount in fields["charge"].items()}
    if any(type(grains) is not int or grains < 0 for amount in charge.values() for grains in amount):
        raise ValueError("a charge is a whole number of grains, at least 0")
    return charge


def _damaged(sequence: int, what: str) -> LedgerDamaged:
    return LedgerDamaged(
        f"entry {sequence} of the ledger {what}. Nothing is served from it. "
        "Bring back the file as it was, or start a new ledger with what is certainly left."
    )

"""What follows from the log: a pure fold over its entries. Nothing about money is stored anywhere else.

Every process folds the entries that it has not seen yet before it appends one, and checks on the way that the chain
holds and that no cap was ever passed. Why that keeps the promises: ledger.md.
"""

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from operator import add, sub
from typing import Any, NamedTuple

from discreet.errors import BadParameter, LedgerDamaged, LedgerFailed
from discreet.ledger.bound import Bound, bound_after
from discreet.ledger.caps import Caps, Charge, covered
from discreet.ledger.entry import FORMAT, GENESIS, Entry, decoded, seal
from discreet.ledger.scope import Scope
from discreet.privacy.gate import ORDERS_OF, Gate, Grains
from discreet.schema.identity import people_groups

# What happens to whoever believes that an entry says what it should, if it does not.
UNREADABLE = (AttributeError, KeyError, TypeError, ValueError, ArithmeticError)


class Hold(NamedTuple):
    """Budget that a session has set aside and not yet used.

    A `stake` is set aside for a step whose outcome may be seen before it is paid. Only the process that takes the step
    knows whether it was; so for everybody else a stake is as good as spent.
    """

    table: str
    analyst: str
    left: Charge
    why: str = ""
    stake: bool = False


class State(NamedTuple):
    """All that follows from the entries up to `sequence`. The mappings are never changed, only replaced."""

    sequence: int = 0
    hash: bytes = GENESIS
    at: str = ""
    ledger: str = ""
    caps: Caps = Caps()
    spent: Mapping[Scope, Grains] = {}
    holds: Mapping[int, Hold] = {}
    tables: Mapping[str, Bound] = {}
    people: Mapping[str, frozenset[str]] = {}

    def since(self, table: str) -> int:
        """The entry after which what was paid for is about the current version of a table."""
        return 0 if table not in self.tables else self.tables[table].since

    def people_of(self, table: str) -> frozenset[str]:
        """This table and all that share people with it, as far as anybody has said so."""
        return self.people.get(table) or frozenset((table,))

    def under(self, scope: Scope) -> set[Scope]:
        """The accounts that a cap limits, as far as anything was spent or set aside in them."""
        named = {account.analyst or "" for account in self.spent} | {hold.analyst for hold in self.holds.values()}
        return {scope.of(analyst) for analyst in named if self.caps.stands_for(scope, analyst)}

    def total(self, account: Scope, gate: Gate, *, without: int | None = None) -> Grains:
        """What is spent or set aside in an account; one hold can be left out."""
        total = self.spent.get(account) or gate.nothing
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
    return hold._replace(left=left, stake=False)


def require_hold(state: State, number: int, table: str, analyst: str) -> None:
    """Refuse a hold that is closed, or somebody else's."""
    hold = state.holds.get(number)
    if hold is None:
        raise BadParameter(f"hold {number} is not open; it was closed, perhaps by another process. Reserve anew.")
    if (hold.table, hold.analyst) != (table, analyst):
        raise BadParameter(f"hold {number} is of another analyst or table. Pay from a hold of your own.")


def misfits(
    state: State, table: str, analyst: str, charge: Charge, hold: int | None = None
) -> Iterator[tuple[Scope, Gate, Grains]]:
    """The accounts that cannot take this charge, each with its gate and the room that is left in it."""
    rest = None if hold is None else rest_of(state.holds[hold], charge).left
    for account, gate in state.caps.over(table, analyst):
        total = state.total(account, gate, without=hold)
        if rest is not None:
            total = plus(total, rest[gate.kind])
        if not gate.fits(total, charge[gate.kind]):
            yield account, gate, tuple(map(sub, gate.limit, total))


def after(state: State, entry: Entry) -> State:
    """The state after one more entry of a stored log, if the chain holds and no cap is passed."""
    return folded(state, entry, fields_of(state, entry))


def fields_of(state: State, entry: Entry) -> Any:
    """What the next entry of a stored log says, if it is the next and its hash follows."""
    if entry.sequence != state.sequence + 1:
        raise damaged(state.sequence + 1, "is missing")
    try:
        if seal(state.hash, entry.body, entry.released) == entry.hash:
            return decoded(entry.body)
    except (AttributeError, TypeError, ValueError, RecursionError):
        # SQLite keeps whatever it is given in a column of texts.
        raise damaged(entry.sequence, "cannot be read") from None
    raise damaged(entry.sequence, "or the one before it was changed: its hash does not follow")


def replayed(state: State, entries: Iterable[Entry]) -> State:
    """The state after all these."""
    for entry in entries:
        state = after(state, entry)
    return state


def folded(state: State, entry: Entry, fields: Mapping[str, Any], *, fits: bool = False) -> State:
    """The state after an entry whose hash is known to be right, if no cap is passed; `fits` if that is known too."""
    try:
        caps, spent, holds, ledger = state.caps, state.spent, state.holds, state.ledger
        tables, people = state.tables, state.people
        match fields["is"]:
            case "record" | "answer":
                pass
            case "spend":
                spent, holds = _paid(state, entry.sequence, fields, fits)
            case "hold" | "stake":
                holds = {**holds, entry.sequence: _held(state, entry.sequence, fields)}
            case "close":
                holds = {number: hold for number, hold in holds.items() if number != fields["hold"]}
            case "cap" | "raise":
                caps, spent = _capped(state, entry.sequence, fields)
            case "table":
                name = fields["table"]
                tables = {**tables, name: bound_after(tables.get(name), entry.sequence, fields)}
                people = people_groups({each: bound.identity.shares_people_with for each, bound in tables.items()})
            case "open" if entry.sequence == 1:
                _require_format(fields["format"])
                ledger = fields["ledger"]
            case _:
                raise damaged(entry.sequence, "is of a kind that we do not know; upgrade discreet")
        return State(
            entry.sequence, entry.hash, max(state.at, fields["at"]), ledger, caps, spent, holds, tables, people
        )
    except UNREADABLE as error:
        raise damaged(entry.sequence, f"does not say what it should ({error!r}); upgrade discreet") from None


def _require_format(found: Any) -> None:
    """Amounts mean what they mean in our format only, so no other one is read."""
    if type(found) is not int:
        raise ValueError("a format is a whole number")
    if found != FORMAT:
        older = "An older discreet wrote it, in other grains: read it with that, and begin anew with what it has left"
        raise LedgerFailed(
            f"the entries of this ledger have format {found} and this program knows {FORMAT}. "
            f"{older if found < FORMAT else 'A newer discreet wrote it: upgrade discreet'}."
        )


def _paid(
    state: State, sequence: int, fields: Mapping[str, Any], fits: bool
) -> tuple[Mapping[Scope, Grains], Mapping[int, Hold]]:
    table, analyst, number, charge = fields["table"], fields["analyst"], fields.get("hold"), _charge(fields)
    if number is not None and state.holds[number][:2] != (table, analyst):
        raise damaged(sequence, "pays from a hold of somebody else")
    for account, _, _ in () if fits else misfits(state, table, analyst, charge, number):
        raise damaged(sequence, f"passes the cap ({account})")
    # From a hold it was set aside before, perhaps before anybody said that people are shared.
    alone = number is None and not fits and table in state.people
    if alone and not covered(state.people[table], state.caps.over(table, analyst)):
        raise damaged(sequence, "is about tables that share people, and no cap counts them together")
    spent = {**state.spent}
    for account, gate in state.caps.over(table, analyst):
        spent[account] = plus(spent.get(account) or gate.nothing, charge[gate.kind])
    if number is None:
        return spent, state.holds
    if fields.get("closes"):
        return spent, {other: hold for other, hold in state.holds.items() if other != number}
    return spent, {**state.holds, number: rest_of(state.holds[number], charge)}


def _held(state: State, sequence: int, fields: Mapping[str, Any]) -> Hold:
    hold = Hold(fields["table"], fields["analyst"], _charge(fields), fields["why"], fields["is"] == "stake")
    for account, _, _ in misfits(state, hold.table, hold.analyst, hold.left):
        raise damaged(sequence, f"sets aside more than the cap allows ({account})")
    return hold


def _capped(state: State, sequence: int, fields: Mapping[str, Any]) -> tuple[Caps, Mapping[Scope, Grains]]:
    tables = fields["tables"]
    scope = Scope(None if tables is None else tuple(tables), fields["analyst"])
    gate = Gate(fields["gate"], Fraction(fields["epsilon"]), Fraction(fields["delta"]), tuple(fields["limit"]))
    if len(gate.limit) != ORDERS_OF[gate.kind]:
        raise ValueError("a limit has a number for each order")
    if (scope in state.caps) != (fields["is"] == "raise"):
        raise damaged(sequence, "sets a cap that was set before, or raises one that was not")
    before = {scope.of(who or ""): tuple(amount) for who, amount in fields.get("spent", [])}
    capped = state._replace(caps=state.caps.with_cap(scope, gate), spent={**state.spent, **before})
    for account in capped.under(scope):
        if not gate.fits(capped.total(account, gate), gate.nothing):
            raise damaged(sequence, f"sets a cap below what was spent ({account})")
    return capped.caps, capped.spent


def _charge(fields: Mapping[str, Any]) -> Charge:
    charge = {kind: tuple(amount) for kind, amount in fields["charge"].items()}
    for kind, amount in charge.items():
        if len(amount) != ORDERS_OF[kind] or min(amount) < 0 or type(sum(amount)) is not int:
            raise ValueError("a charge has a whole number of at least 0 for each order")
    return charge


def damaged(sequence: int, what: str) -> LedgerDamaged:
    """The error for an entry that cannot be."""
    return LedgerDamaged(
        f"entry {sequence} of the ledger {what}. Nothing is served from it. "
        "Bring back the file as it was, or start a new ledger with what is certainly left."
    )

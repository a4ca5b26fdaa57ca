"""The state of a ledger: a pure fold over the entries of its log. Nothing about budgets is stored anywhere else.

Before a process appends an entry, it folds those that it has not seen. On the way it checks that the hash chain holds,
that no cap was ever passed, and that each table is the one in the log (`require_same`): its unit never changes, and its
versions never come back. Why that keeps the promises: ledger.md
"""

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from json import dumps
from operator import add, sub
from typing import Any, NamedTuple, get_args

from discreet.accounting.event import Compose, Event, Repeat, Single, event_to_plain
from discreet.accounting.filter import ORDERS_OF, Gate, Ticks
from discreet.cache import memoize
from discreet.errors import BadParameter, BadSchema, LedgerDamaged, LedgerFailed, TableChanged
from discreet.ledger.accounts import EACH, Caps, Charge, Scope, any_covers
from discreet.ledger.store import FORMAT, GENESIS, Entry, decoded, seal
from discreet.numeric import text
from discreet.schema.unit import FIRST_VERSION, Identity, Unit, people_groups


class Bound(NamedTuple):
    """A table in the log: its identity now, with every table that it was ever said to share people with.

    Spends up to the entry `since` are of earlier versions. `versions` has all that were declared, the current one last.
    """

    identity: Identity
    since: int
    versions: tuple[str, ...]
    at: str


def bound_after(before: Bound | None, sequence: int, fields: Mapping[str, Any]) -> Bound:
    """A table after an entry about it; a ValueError if no right program would have written the entry."""
    unit, at = Unit(**fields["unit"]), fields["at"]
    versions: tuple[str, ...]
    version, shared, seen = fields["version"], fields["shares_people_with"], fields["fingerprint"]
    if not all(isinstance(word, str) and word for word in (fields["table"], version, *shared)):
        raise ValueError("names and versions are texts")
    if before is None:
        # What was released before versions were declared belongs to the first.
        since, versions = (0 if version == FIRST_VERSION else sequence), (version,)
    elif version == before.identity.version:
        since, versions, at = before.since, before.versions, before.at
        seen = before.identity.fingerprint if seen is None else seen
    else:
        since, versions = sequence, (*before.versions, version)
    if before is not None and (unit != before.identity.unit or version in before.versions[:-1]):
        raise ValueError("a unit never changes, and a version never comes back")
    every = {*shared, *(() if before is None else before.identity.shares_people_with)}
    return Bound(Identity(fields["table"], unit, version, tuple(sorted(every)), seen), since, versions, at)


def adds(bound: Bound, identity: Identity, *, confirm: bool = False) -> bool:
    """Whether an identity says something that the log does not have: a version, tables that share people, a source."""
    mine, seen = identity.fingerprint, bound.identity.fingerprint
    return (
        identity.version != bound.identity.version
        or not set(identity.shares_people_with) <= set(bound.identity.shares_people_with)
        or (mine is not None and mine != seen and (confirm or seen is None))
    )


def require_same(bound: Bound, identity: Identity, *, confirm: bool = False) -> None:
    """Refuse a table that is not the one that the log has: another unit, an older version, another source."""
    require_unit(bound, identity)
    current, table = bound.identity, identity.table
    if identity.version != current.version:
        raise TableChanged(
            f'version "{current.version}" of table "{table}" was declared at {bound.at}, and this is version '
            f'"{identity.version}", which is over. Nothing was charged. The owner opens the table again, also on a '
            "server, with its newest schema; versions never come back."
        )
    mine, seen = identity.fingerprint, current.fingerprint
    if mine is not None and seen is not None and mine != seen and not confirm:
        raise table_changed(table, current.version)


def require_bound(tables: Mapping[str, Bound], table: str | Identity) -> None:
    """Refuse to pay for a table that is not the one in the log.

    Its name alone does not say for which unit is paid: it will do only for a table that was never bound.
    """
    name = table.table if isinstance(table, Identity) else table
    bound = tables.get(name)
    if isinstance(table, Identity):
        if bound is None:
            raise BadParameter(
                f'table "{name}" is not bound in this ledger. Bind it first: ledger.bind(table.identity).'
            )
        require_same(bound, table)
    elif bound is not None:
        raise BadParameter(
            f'table "{name}" is bound to its unit and its version in this ledger, and its name alone does not say for '
            "which it is paid. Give table.identity instead of the name."
        )


def table_changed(table: str, version: str) -> TableChanged:
    """The refusal when the source is no longer what was asked. The sentence is the same whatever has changed."""
    return TableChanged(
        f'the data of table "{table}" is no longer what was asked as version "{version}", and its owner has not '
        "declared a new version. Nothing was charged, and what was spent stays spent. The owner writes a new version "
        f"into the schema (version: {_next(version)}) and opens it again, or brings back the data; if the rows are "
        "the same: discreet schema confirm SCHEMA (with --ledger if you gave one). Then everybody who has the "
        "table open, also a server, opens it again."
    )


def require_unit(bound: Bound, identity: Identity) -> None:
    """Refuse a table whose unit is not the one that was paid for."""
    if identity.unit != bound.identity.unit:
        raise BadSchema(
            f'table "{identity.table}" was asked in this ledger for the unit: {bound.identity.unit.describe}. Now its '
            f"unit is: {identity.unit.describe}. Earlier answers were priced for the first, and would be promised for "
            "the second. Declare the unit as it was; or give the table another name: its promise then begins anew, and "
            "does not cover earlier answers."
        )


def _next(version: str) -> str:
    """The next version, for an example."""
    return str(int(version) + 1) if version.isascii() and version.isdigit() else f"{version}-2"


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


# The errors of code that relies on the form of an entry, if the entry does not have it.
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
    spent: Mapping[Scope, Ticks] = {}
    holds: Mapping[int, Hold] = {}
    tables: Mapping[str, Bound] = {}
    people: Mapping[str, frozenset[str]] = {}

    def since(self, table: str) -> int:
        """The entry after which what was paid for is about the current version of a table."""
        return 0 if table not in self.tables else self.tables[table].since

    def people_of(self, table: str) -> frozenset[str]:
        """This table and all that share people with it, as declared so far."""
        return self.people.get(table) or frozenset((table,))

    def under(self, scope: Scope) -> set[Scope]:
        """The accounts under a cap in which something was spent or set aside."""
        named = {account.analyst or "" for account in self.spent} | {hold.analyst for hold in self.holds.values()}
        return {scope.of(analyst) for analyst in named if self.caps.limits(scope, analyst)}

    def total(self, account: Scope, gate: Gate, *, without: int | None = None) -> Ticks:
        """What is spent or set aside in an account; one hold can be left out."""
        total = self.spent.get(account) or gate.nothing
        for number, hold in self.holds.items():
            if number != without and account.covers(hold.table, hold.analyst):
                total = plus(total, hold.left[gate.kind])
        return total


def plus(one: Ticks, other: Ticks) -> Ticks:
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
    """Refuse a hold that is closed, or of another analyst or table."""
    hold = state.holds.get(number)
    if hold is None:
        raise BadParameter(f"hold {number} is not open; it was closed, perhaps by another process. Reserve anew.")
    if (hold.table, hold.analyst) != (table, analyst):
        raise BadParameter(f"hold {number} is of another analyst or table. Pay from a hold of your own.")


def misfits(
    state: State, table: str, analyst: str, charge: Charge, hold: int | None = None
) -> Iterator[tuple[Scope, Gate, Ticks]]:
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
                spent, holds = _fold_spend(state, entry.sequence, fields, fits)
            case "hold" | "stake":
                holds = {**holds, entry.sequence: _fold_hold(state, entry.sequence, fields)}
            case "close":
                holds = {number: hold for number, hold in holds.items() if number != fields["hold"]}
            case "cap" | "raise":
                caps, spent = _fold_cap(state, entry.sequence, fields)
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
        older = "An older discreet wrote it, in other ticks: read it with that, and begin anew with what it has left"
        raise LedgerFailed(
            f"the entries of this ledger have format {found} and this program knows {FORMAT}. "
            f"{older if found < FORMAT else 'A newer discreet wrote it: upgrade discreet'}."
        )


def _fold_spend(
    state: State, sequence: int, fields: Mapping[str, Any], fits: bool
) -> tuple[Mapping[Scope, Ticks], Mapping[int, Hold]]:
    table, analyst, number, charge = fields["table"], fields["analyst"], fields.get("hold"), _charge(fields)
    if number is not None and state.holds[number][:2] != (table, analyst):
        raise damaged(sequence, "pays from a hold of somebody else")
    for account, _, _ in () if fits else misfits(state, table, analyst, charge, number):
        raise damaged(sequence, f"passes the cap ({account})")
    # From a hold it was set aside before, perhaps before anybody said that people are shared.
    alone = number is None and not fits and table in state.people
    if alone and not any_covers(state.people[table], state.caps.over(table, analyst)):
        raise damaged(sequence, "is about tables that share people, and no cap counts them together")
    spent = {**state.spent}
    for account, gate in state.caps.over(table, analyst):
        spent[account] = plus(spent.get(account) or gate.nothing, charge[gate.kind])
    if number is None:
        return spent, state.holds
    if fields.get("closes"):
        return spent, {other: hold for other, hold in state.holds.items() if other != number}
    return spent, {**state.holds, number: rest_of(state.holds[number], charge)}


def _fold_hold(state: State, sequence: int, fields: Mapping[str, Any]) -> Hold:
    hold = Hold(fields["table"], fields["analyst"], _charge(fields), fields["why"], fields["is"] == "stake")
    for account, _, _ in misfits(state, hold.table, hold.analyst, hold.left):
        raise damaged(sequence, f"sets aside more than the cap allows ({account})")
    return hold


def _fold_cap(state: State, sequence: int, fields: Mapping[str, Any]) -> tuple[Caps, Mapping[Scope, Ticks]]:
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

"""Declarations of an owner: caps, which are never lowered, and tables with their units and versions."""

from collections.abc import Callable, Iterable
from json import loads
from typing import Any

from discreet.accounting.event import Event
from discreet.accounting.filter import Gate, Ticks, raised_gate
from discreet.errors import BadParameter, BudgetExceeded
from discreet.ledger.accounts import EACH, Budget, Caps, Scope, budget_of, gate_of
from discreet.ledger.history import recorded_event
from discreet.ledger.state import State, adds, plus, require_same, require_unit
from discreet.ledger.store import Draft, Entry, stamp
from discreet.numeric import text
from discreet.schema.unit import Identity


def scope_of(table: str | None, tables: tuple[str, ...], analyst: str | None) -> Scope:
    """The scope that somebody names; the order of the tables does not matter."""
    if table is not None and tables:
        raise BadParameter("give `table` for one table or `tables` for several that share people, not both.")
    if isinstance(tables, str) or not isinstance(tables, Iterable):
        raise BadParameter(f"tables is {tables!r}; it must be a tuple of names. For one table, give `table`.")
    names = sorted({text("table", name) for name in ((table,) if table is not None else tables)})
    return Scope(tuple(names) or None, None if analyst is None else text("analyst", analyst))


def cap_draft(
    state: State, scope: Scope, budget: Budget, by: str, entries: Callable[[], Iterable[Entry]]
) -> Draft | None:
    """A new cap, or nothing if it is there already."""
    gate, before = gate_of(budget), state.caps.get(scope)
    if before is not None:
        # Not the limits: those of a cap that was raised have the shares with which it began.
        if budget_of(before) != budget:
            raise BadParameter(
                f"the cap ({scope}) is {_words(budget_of(before))} already, and not {_words(budget)}. "
                "To raise it: discreet ledger raise, or the page of the owner."
            )
        return None
    if any(scope.covers(hold.table, hold.analyst) for hold in state.holds.values()):
        raise BadParameter(f"sessions under this cap ({scope}) are open, and were not counted in it. Close them first.")
    spent = spent_before(scope, gate, state.caps, entries()) if state.sequence > 1 else {}
    for who, amount in spent.items():
        _require_room(scope.of(who or ""), gate, amount)
    return Draft({**_fields(state, "cap", scope, gate, by), "spent": list(spent.items())})


def raise_draft(state: State, scope: Scope, budget: Budget, by: str) -> Draft:
    """A higher limit for a cap that is there."""
    asked, before = gate_of(budget), state.caps.get(scope)
    if before is None:
        raise BadParameter(f"there is no cap to raise ({scope}). Set one first.")
    if before.kind != asked.kind or asked.epsilon < before.epsilon or asked.delta < before.delta:
        raise BadParameter(
            f"the cap ({scope}) is {_words(budget_of(before))}; it can be raised, and {_words(budget)} would lower "
            "it or count it otherwise. What was released cannot be taken back."
        )
    # With shares of its own the new budget could have a lower limit at some order: ledger.md §2, Raising.
    gate = raised_gate(before, asked)
    for account in state.under(scope):
        _require_room(account, gate, state.total(account, gate))
    return Draft(_fields(state, "raise", scope, gate, by))


def spent_before(scope: Scope, gate: Gate, caps: Caps, entries: Iterable[Entry]) -> dict[str | None, Ticks]:
    """What the spends under a scope cost in the currency of a gate; for each analyst, if each has an account."""
    spent: dict[str | None, Ticks] = {}
    for entry in entries:
        fields = loads(entry.body)
        if fields["is"] != "spend" or not scope.covers(fields["table"], fields["analyst"]):
            continue
        if caps.limits(scope, fields["analyst"]):
            who = fields["analyst"] if scope.analyst == EACH else None
            charge = fields["charge"].get(gate.kind) or _priced(gate, recorded_event(entry, fields), scope)
            spent[who] = plus(spent.get(who, gate.nothing), tuple(charge))
    return spent


def _priced(gate: Gate, event: Event, scope: Scope) -> Ticks:
    try:
        return gate.charge(event)
    except BudgetExceeded:
        raise BadParameter(
            f"a {gate.kind} gate has no price for {type(event).__name__}, which was paid for before ({scope}). "
            "Give the cap another gate."
        ) from None


def _fields(state: State, kind: str, scope: Scope, gate: Gate, by: str) -> dict[str, Any]:
    return {
        **stamp(state.at, kind),
        "owner": by,
        "tables": scope.tables,
        "analyst": scope.analyst,
        "gate": gate.kind,
        "epsilon": str(gate.epsilon),
        "delta": str(gate.delta),
        "limit": gate.limit,
    }


def _words(budget: Budget) -> str:
    return f"{budget}, {budget.gate} gate"


def _require_room(account: Scope, gate: Gate, amount: Ticks) -> None:
    if not gate.fits(amount, gate.nothing):
        raise BadParameter(f"more than {budget_of(gate)} was spent already ({account}). Give a larger budget.")


def bind_draft(state: State, identity: Identity, by: str, *, confirm: bool = False) -> Draft | None:
    """An entry that binds a table, or declares a new version of it; None if all of that is in the log already.

    With `confirm` the owner says that the rows are the same, although the source looks different.
    """
    bound = state.tables.get(identity.table)
    if bound is not None:
        require_unit(bound, identity)
        if identity.version in bound.versions:
            require_same(bound, identity, confirm=confirm)
            if not adds(bound, identity, confirm=confirm):
                return None
    unit = identity.unit
    said = {
        "owner": by,
        "table": identity.table,
        "unit": {"key": unit.key, "contributions": unit.contributions, "neighbors": unit.neighbors},
        "version": identity.version,
        "shares_people_with": sorted(identity.shares_people_with),
        "fingerprint": identity.fingerprint,
    }
    return Draft({**stamp(state.at, "table"), **said})

"""Binding a table in the log, and what must be so before anything is spent on it."""

from discreet.errors import BadParameter
from discreet.ledger.bound import adds, covered, require_same, require_unit
from discreet.ledger.caps import Accounts
from discreet.ledger.entry import Draft
from discreet.ledger.moment import stamp
from discreet.ledger.state import State
from discreet.schema.identity import Identity


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
    return Draft({**stamp(state, "table"), **said})


def require_bound(state: State, table: str | Identity) -> None:
    """Refuse to pay for a table that is not the one in the log.

    Its name alone does not say for which unit is paid: it will do only for a table that was never bound.
    """
    name = table.table if isinstance(table, Identity) else table
    bound = state.tables.get(name)
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


def require_joint(state: State, table: str, accounts: Accounts) -> None:
    """Refuse to spend on tables that share people until one cap counts all of them, and all analysts, together."""
    people = state.people_of(table)
    if covered(people, accounts):
        return
    if len(people) == 1:
        raise BadParameter(
            f'table "{table}" has no budget for all analysts together. '
            f'Set one: ledger.cap(Budget(epsilon=1, delta=1e-9), table="{table}").'
        )
    names = sorted(people)
    others = ", ".join(f'"{name}"' for name in names if name != table)
    raise BadParameter(
        f'table "{table}" shares people with {others}, and no budget in this ledger counts all of them together. '
        f"Set one: ledger.cap(Budget(epsilon=1, delta=1e-9), tables={tuple(names)}), or discreet ledger cap LEDGER "
        f"--epsilon 1 --delta 1e-9 {' '.join(f'--table {name}' for name in names)}. All of them belong in one ledger."
    )

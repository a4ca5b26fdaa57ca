"""What an event costs an analyst, in the currency of each cap over a table."""

from typing import Protocol

from discreet.errors import BadParameter
from discreet.ledger.caps import Accounts, Caps, Charge, covered
from discreet.privacy.event import Event
from discreet.privacy.gate import Grains


class Capped(Protocol):
    """What a charge follows from: the caps, and which tables share people."""

    @property
    def caps(self) -> Caps:
        """The caps as they are."""
        ...

    def people_of(self, table: str) -> frozenset[str]:
        """This table and all that share people with it."""
        ...


def charge_for(state: Capped, event: Event, table: str, analyst: str, *, by_parts: bool = False) -> Charge:
    """What an event costs in the currency of each cap over it. One must count all analysts, and all who share people.

    `by_parts` rounds each part up on its own, as it will be when the parts are paid one by one.
    """
    accounts = state.caps.over(table, analyst)
    require_joint(state, table, accounts)
    # Most caps count in the same currency, and looking up a price takes longer than comparing names.
    charge: dict[str, Grains] = {}
    for _, gate in accounts:
        if gate.kind not in charge:
            charge[gate.kind] = gate.charge_parts(event) if by_parts else gate.charge(event)
    return charge


def require_joint(state: Capped, table: str, accounts: Accounts) -> None:
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

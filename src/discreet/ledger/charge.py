"""What an event costs an analyst, in the currency of each cap over a table."""

from discreet.errors import BadParameter
from discreet.ledger.binding import require_joint
from discreet.ledger.state import Charge, State
from discreet.privacy.event import Event
from discreet.privacy.gate import Grains


def charge_for(state: State, event: Event, table: str, analyst: str, *, by_parts: bool = False) -> Charge:
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


def require_hold(state: State, number: int, table: str, analyst: str) -> None:
    """Refuse a hold that is closed, or somebody else's."""
    hold = state.holds.get(number)
    if hold is None:
        raise BadParameter(f"hold {number} is not open; it was closed, perhaps by another process. Reserve anew.")
    if (hold.table, hold.analyst) != (table, analyst):
        raise BadParameter(f"hold {number} is of another analyst or table. Pay from a hold of your own.")

"""What a ledger from before tables were bound tells of the unit for which it was paid: the prices of its answers."""

from json import loads

from discreet.curator.released import Prints, from_bytes
from discreet.errors import BadSchema
from discreet.known.steps import GaussianQuery, GaussianResiduals, Step
from discreet.ledger import Ledger
from discreet.plan.plan import Steps
from discreet.plan.probe import counted
from discreet.privacy.loss import loss
from discreet.privacy.wire import event_from_plain
from discreet.query.linear import Linear
from discreet.schema.domain import Domain
from discreet.source.table import Table

# Another unit multiplies a price by two at least; what else may differ from version to version is rounding.
_MORE = 1.5


def _plain(step: Step, domain: Domain) -> bool:
    """Whether a step is of pieces or of a count: what one person moves of them follows from the unit alone."""
    if isinstance(step, GaussianQuery) and isinstance(step.question, Linear):
        return counted(domain, step.question)
    return isinstance(step, GaussianResiduals)


def require_priced(ledger: Ledger, table: Table) -> None:
    """Refuse to bind a table for whose unit earlier answers would have cost more than was paid for them.

    A unit for which they would have cost the same, or less, cannot be told from the one of then.
    """
    prints, events = Prints(table.domain), {}
    for entry in ledger.entries():
        fields = loads(entry.body)
        if fields["is"] == "spend" and fields["table"] == table.name:
            events[entry.sequence] = fields["event"]
        booked = events.pop(fields.get("records"), None)
        released = None if entry.released is None else from_bytes(entry.released, table.name, prints)
        if booked is None or released is None or released.kind != "steps" or not released.steps:
            continue
        if not all(_plain(step, table.domain) for step in released.steps):
            continue
        now = loss(Steps(released.steps).event(table.domain, table.unit))
        if now > _MORE * loss(event_from_plain(booked)):
            raise BadSchema(
                f'answers about table "{table.name}" in this ledger were paid for another unit than the one that its '
                f"schema has now: {table.unit.describe}. For this unit they would have cost more. Declare the unit as "
                "it was; or give the table another name: its promise then begins anew."
            )

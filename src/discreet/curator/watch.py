"""Whether a table still is the one that its ledger has: looked at before anything is known, told or paid."""

from json import loads
from time import monotonic

from discreet.curator.earlier import require_priced
from discreet.curator.released import Prints, Released, from_bytes
from discreet.ledger import Budget, Ledger
from discreet.ledger.entry import Entry
from discreet.schema.identity import Identity
from discreet.source.table import Table

# Whoever only looks takes the source for what it was so many seconds ago; whoever pays looks again.
LOOK_AGAIN = 1.0


class Watch:
    """A table and its ledger: bound when it is first needed, and compared ever after."""

    def __init__(self, table: Table, ledger: Ledger, prints: Prints) -> None:
        self._table, self._ledger, self._prints = table, ledger, prints
        self._identity: Identity | None = None
        # What was paid for up to this entry is about earlier versions of the table.
        self._since, self._looked = 0, 0.0

    def open(self, budget: Budget | None, analyst: str) -> None:
        """Bind the table and cap it, together with those that share people with it; refuse what would be refused."""
        self.bind()
        if budget is not None:
            self._ledger.cap(budget, tables=self._ledger.sharing(self._table.name))
        self._ledger.remaining(table=self._table.name, analyst=analyst)

    def bind(self) -> Identity:
        """Bind the table in the ledger, or raise what is wrong with it."""
        self._identity, self._looked = self._table.identity, monotonic()
        if self._table.name not in self._ledger.tables:
            require_priced(self._ledger, self._table)
        self._ledger.bind(self._identity)
        self._since = self._ledger.since(self._table.name)
        return self._identity

    def head(self) -> int:
        """The number of the ledger's last entry, if the table still is the one that is bound there."""
        identity = self._identity
        if identity is None:
            identity = self.bind()
        elif monotonic() - self._looked > LOOK_AGAIN:
            self._identity = identity = self._table.identity
            self._looked = monotonic()
        return self._ledger.look(identity).sequence

    def released(self, entry: Entry) -> Released | None:
        """What an entry records, if that is about this table and was paid for in its current version."""
        if entry.released is None or (self._since and loads(entry.body).get("records", 0) <= self._since):
            return None
        return from_bytes(entry.released, self._table.name, self._prints)

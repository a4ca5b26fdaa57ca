"""The registry of a worker: its ledger, its tokens, a curator for each table, the spending history and release jobs."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from discreet.cache import memoize
from discreet.curator import Curator
from discreet.data import load_adult
from discreet.errors import BadParameter, NotFound, did_you_mean
from discreet.ledger import Ledger
from discreet.ledger.accounts import covers
from discreet.serve.jobs import Jobs
from discreet.serve.settings import READING, Settings
from discreet.serve.spending_history import SpendingHistory
from discreet.serve.tokens import Token, Tokens
from discreet.source.table import Table
from discreet.source.table import open as open_table

# The bundled table, by its name instead of the path of a schema.
BUNDLED = "adult"
# Curators of analysts that are cached.
_READY = 4096
# Threads for paid questions, per table. One pays at a time; the others wait there, where they block nobody else.
_PAYERS = 4


class Registry:
    """Everything that the routes work on. Tables are opened before a ledger is created."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        tables = [_opened(schema, in_memory=settings.in_memory) for schema in settings.schemas]
        names = [table.name for table in tables]
        if len(set(names)) < len(names):
            raise BadParameter(f"two schemas declare one table: {', '.join(names)}. Each has a name of its own.")
        self.ledger = Ledger(settings.ledger)
        try:
            self.tokens = Tokens(settings.ledger)
            # All of them first: one may say that another shares people with it.
            for table in tables:
                self.ledger.bind(table.identity, by="the start of the server")
            self.curators: Mapping[str, Curator] = {table.name: self._curator(table) for table in tables}
        except BaseException:
            self.ledger.close()
            raise
        self.books = SpendingHistory(self.ledger)
        self.jobs = Jobs(settings.releases, self.desk)
        self.payers = {name: ThreadPoolExecutor(_PAYERS, thread_name_prefix="payer") for name in names}
        self._desk = memoize(_READY)(self._seen_by)

    def desk(self, table: str, analyst: str) -> Curator:
        """The curator of a table for an analyst."""
        return self._desk(table, analyst)

    def of(self, table: str, who: Token) -> Curator:
        """The curator of a table for the owner of a token."""
        return self._desk(table, who.name)

    def close(self) -> None:
        """Close everything, without waiting for requests."""
        self.jobs.close()
        for payers in self.payers.values():
            payers.shutdown(wait=False, cancel_futures=True)
        for curator in self.curators.values():
            curator.close()
        self.tokens.close()
        self.ledger.close()

    def _seen_by(self, table: str, analyst: str) -> Curator:
        if table not in self.curators:
            raise NotFound(f'no table "{table[:60]}" here; {did_you_mean(table, self.curators)}')
        return self.curators[table].seen_by(analyst)

    def _curator(self, table: Table) -> Curator:
        budget = self.settings.budget
        people = frozenset(self.ledger.sharing(table.name))
        caps = [cap for scope, cap in self.ledger.caps.items() if covers(scope, people)]
        if budget is None and not caps:
            raise BadParameter(
                f'nothing may be spent on table "{table.name}" yet: it has no budget in {self.settings.ledger}'
                f"{' together with all tables that share its people' * (len(people) > 1)}. "
                "Say --budget 1 --delta 1e-9 when you start the server."
            )
        # The owner may have raised it since; a start does not lower it, and does not raise it either.
        if budget is not None and caps and all(budget.epsilon > cap.epsilon for cap in caps):
            raise BadParameter(
                f'table "{table.name}" has a smaller budget already: {caps[0]}. Start without --budget, and raise it '
                "on the page or with discreet ledger raise."
            )
        given = None if caps else budget
        return Curator(table, budget=given, ledger=self.ledger, quantum=READING * self.settings.quantum)


def _opened(schema: str, *, in_memory: bool) -> Table:
    if schema == BUNDLED and not Path(schema).exists():
        return load_adult()
    return open_table(schema, in_memory=in_memory)

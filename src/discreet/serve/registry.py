"""What a worker of the server has open: its settings, its ledger, its tokens, and a curator for each table.

Every worker process gets the same settings.
"""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from socket import gethostname

from discreet.cache import memoize
from discreet.curator import Curator
from discreet.data import load_adult
from discreet.errors import BadParameter, NotFound, did_you_mean
from discreet.ledger import Budget, Ledger
from discreet.ledger.accounts import covers
from discreet.serve.jobs import Jobs
from discreet.serve.spending_history import SpendingHistory
from discreet.serve.tokens import Token, Tokens
from discreet.source.table import Table
from discreet.source.table import open as open_table

# Replies for which rows may be read leave after a multiple of this time, in seconds.
QUANTUM = 0.05
# The share of a quantum for reading rows, more than a GROUP BY of a usual table takes. The rest is for the ledger.
READING = 0.6
# Requests per second of one token: on average, and in a burst.
RATE, BURST = 100.0, 200.0
# Limits of a request body: bytes, and depth of nested brackets.
MOST_BYTES, MOST_DEPTH = 2**20, 40

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_EVERY = ("0.0.0.0", "::", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The tables, their ledger, and how the server is reached.

    `schemas` are schema files; "adult" is the bundled table. `releases` is the folder in which releases are kept, and
    `scratch` one for the workers of this start, and `supervisor` the process that started them. A `rate` of 0 is no
    limit.
    """

    schemas: tuple[str, ...]
    ledger: str
    releases: Path
    scratch: Path | None = None
    budget: Budget | None = None
    host: str = "127.0.0.1"
    port: int = 8711
    workers: int = 1
    quantum: float = QUANTUM
    rate: float = RATE
    burst: float = BURST
    in_memory: bool = False
    certificate: Path | None = None
    key: Path | None = None
    behind_proxy: bool = False
    supervisor: int | None = None

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise BadParameter("TLS needs a certificate and its key; one of them is missing. Give both files, or none.")
        if not self.is_local and self.certificate is None and not self.behind_proxy:
            raise BadParameter(
                f'"{self.host}" can be reached from other machines, and tokens would cross the network unprotected. '
                "Give --certificate and --key for TLS, or say --behind-proxy if a proxy in front does that."
            )
        for name, least in (("workers", 1), ("quantum", 0), ("rate", 0), ("burst", 0), ("port", 0)):
            if not getattr(self, name) >= least:
                raise BadParameter(f"{name} is {getattr(self, name):g}; it must be at least {least}.")

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the server."""
        return self.host in _LOOPBACK or self.host.startswith("127.")

    @property
    def address(self) -> str:
        """The URL of the page, as a person would type it."""
        scheme = "https" if self.is_secure else "http"
        # The address that means every interface is none that a person would type.
        named = gethostname() if self.host in _EVERY else self.host
        host = f"[{named}]" if ":" in named else named
        return f"{scheme}://{host}:{self.port}"

    @property
    def is_secure(self) -> bool:
        """Whether browsers reach it by TLS, so that cookies are sent over TLS only."""
        return self.certificate is not None

    def is_called(self, name: str) -> bool:
        """Whether a browser may call it by this name: a page elsewhere must not point its own name at this machine.

        With TLS browsers compare the name with the certificate; behind a proxy, the proxy checks it.
        """
        return self.is_secure or self.behind_proxy or name in (*_LOOPBACK, "[::1]", self.host)


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
        tables = [_open_table(schema, in_memory=settings.in_memory) for schema in settings.schemas]
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


def _open_table(schema: str, *, in_memory: bool) -> Table:
    if schema == BUNDLED and not Path(schema).exists():
        return load_adult()
    return open_table(schema, in_memory=in_memory)

"""The settings of a server. Every worker process gets the same ones."""

from dataclasses import dataclass
from pathlib import Path
from socket import gethostname

from discreet.errors import BadParameter
from discreet.ledger import Budget

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
    """The tables, their ledger, and how the server meets the world.

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
        # Every address of this machine is none that a person would type.
        named = gethostname() if self.host in _EVERY else self.host
        host = f"[{named}]" if ":" in named else named
        return f"{scheme}://{host}:{self.port}"

    @property
    def is_secure(self) -> bool:
        """Whether browsers reach it by TLS, so that cookies are sent over TLS only."""
        return self.certificate is not None

    def is_called(self, name: str) -> bool:
        """Whether a browser may call it by this name: a page elsewhere must not point its own name at this machine.

        With TLS the certificate says what it is called, and browsers see to it; behind a proxy, the proxy does.
        """
        return self.is_secure or self.behind_proxy or name in (*_LOOPBACK, "[::1]", self.host)

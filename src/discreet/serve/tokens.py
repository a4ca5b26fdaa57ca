"""Access tokens of 256 random bits. Only their hashes are stored, in a table beside the ledger."""

import re
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from threading import Lock
from time import monotonic
from typing import Any, Literal, get_args

import sqlalchemy as sa

from discreet.errors import BadParameter, did_you_mean
from discreet.ledger import EACH
from discreet.ledger.connection import engine_for, file_of, translated, url_of
from discreet.noise.sample import secret
from discreet.numeric import text

Role = Literal["owner", "analyst", "auditor"]
ROLES: tuple[Role, ...] = get_args(Role)

# The prefix of every token, so that people and secret scanners recognise one.
MARK = "discreet_"
# Length of the part that names a token without revealing it.
PREFIX = 8
# Seconds for which tokens are cached, so a token revoked elsewhere lives at most this long; and the least time between
# two reads of the table for tokens that are not in the cache.
FRESH, SOON = 1.0, 0.005
LONGEST_NAME = 80
_NAME = re.compile(r"[\w.@+\- ]+")

_TABLE = sa.Table(
    "discreet_token",
    sa.MetaData(),
    sa.Column("hash", sa.Text, primary_key=True),
    sa.Column("prefix", sa.Text, nullable=False, unique=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("created", sa.Text, nullable=False),
    sa.Column("created_by", sa.Text, nullable=False),
    sa.Column("expires", sa.Text),
    sa.Column("revoked", sa.Text),
    sa.Column("revoked_by", sa.Text),
)


@dataclass(frozen=True, slots=True)
class Token:
    """A stored token: everything but the secret itself. Times are ISO texts in UTC."""

    prefix: str
    name: str
    role: Role
    created: str
    created_by: str
    expires: str | None = None
    revoked: str | None = None
    revoked_by: str | None = None

    def is_valid(self, now: datetime) -> bool:
        """Whether it is neither revoked nor expired."""
        return self.revoked is None and (self.expires is None or now.isoformat() < self.expires)


# A request without a token is compared with this one, so that it takes as long.
_NOBODY = Token("", "", "analyst", "", "", revoked="always")


class Tokens:
    """The tokens of a server. All workers, and the command `discreet token`, see the same ones."""

    def __init__(self, address: str) -> None:
        url = url_of(address)
        file_of(url, create=True)
        self._engine, self._where = engine_for(url), url.render_as_string(hide_password=True)
        self._lock, self._read_at = Lock(), -FRESH
        self._found: Mapping[str, Token] = {}
        self._run(lambda connection: _TABLE.create(connection, checkfirst=True))

    def create(self, name: str, role: str, *, by: str = "owner", days: float | None = None) -> str:
        """Create a token and return it; it cannot be read again."""
        if len(text("name", name)) > LONGEST_NAME or not _NAME.fullmatch(name) or name == EACH or name != name.strip():
            raise BadParameter(
                f"name is {name[:LONGEST_NAME]!r}; it has up to {LONGEST_NAME} letters, digits and . @ + - _ in it, "
                'like "ana" or "ana@example.org".'
            )
        if role not in ROLES:
            raise BadParameter(f"role is {role!r}; {did_you_mean(str(role), ROLES)}")
        if days is not None and not 0 < days <= 36_525:
            raise BadParameter(f"days is {days!r}; it must be above 0 and at most 36525. Leave it out for no end.")
        token = MARK + urlsafe_b64encode(secret(32)).decode().rstrip("=")
        now = datetime.now(UTC)
        row = {
            "hash": _hash(token),
            "prefix": token[len(MARK) :][:PREFIX],
            "name": name,
            "role": role,
            "created": now.isoformat(timespec="seconds"),
            "created_by": by,
            "expires": None if days is None else (now + timedelta(days=days)).isoformat(),
        }
        self._run(lambda connection: connection.execute(sa.insert(_TABLE).values(row)))
        self._forget()
        return token

    def revoke(self, prefix: str, *, by: str = "owner") -> Token:
        """Revoke a token for good: at once here, within a second in other workers."""
        found = next((token for token in self.list() if token.prefix == prefix), None)
        if found is None:
            raise BadParameter(f"no token begins with {MARK}{prefix[:PREFIX]}. List them: discreet token list.")
        now = datetime.now(UTC).isoformat(timespec="seconds")
        change = sa.update(_TABLE).where(_TABLE.c.prefix == prefix, _TABLE.c.revoked.is_(None))
        self._run(lambda connection: connection.execute(change.values(revoked=now, revoked_by=by)))
        self._forget()
        return next(token for token in self.list() if token.prefix == prefix)

    def list(self) -> list[Token]:
        """All of them, the newest last."""
        return sorted(self._read().values(), key=lambda token: (token.created, token.prefix))

    def find(self, presented: str | None) -> Token | None:
        """The token that was presented, if it is valid. Every failure reads the table again, whatever was wrong."""
        digest, now = _hash(presented or ""), datetime.now(UTC)
        with self._lock:
            age = monotonic() - self._read_at
            # An unknown token may be new; but guesses must not keep the database busy.
            if age > FRESH or (age > SOON and not self._found.get(digest, _NOBODY).is_valid(now)):
                self._found, self._read_at = self._read(), monotonic()
            found = self._found.get(digest, _NOBODY)
        return found if found.is_valid(now) else None

    def close(self) -> None:
        """Give back the connections."""
        self._engine.dispose()

    def _read(self) -> dict[str, Token]:
        rows = self._run(lambda connection: connection.execute(sa.select(_TABLE)).fetchall())
        return {row[0]: Token(*row[1:]) for row in rows}

    def _forget(self) -> None:
        with self._lock:
            self._read_at = -FRESH

    def _run(self, what: Any) -> Any:
        try:
            with self._engine.connect() as connection:
                return what(connection)
        except (sa.exc.SQLAlchemyError, OSError) as error:
            raise translated(error, self._where) from None


def _hash(token: str) -> str:
    return sha256(token.encode("utf-8", "surrogatepass")).hexdigest()

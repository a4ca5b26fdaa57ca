"""What a database says when it fails, in our words: what happened, that nothing was released, what to do."""

import errno
import sqlite3
from typing import Any

from discreet.errors import DiscreetError, LedgerDamaged, LedgerFailed
from discreet.ledger.migration import ENTRY, gone

# The first word of SQLite's name of an error that begins like this.
_SQLITE = {
    "SQLITE_FULL": "the disk is full. Make room; then ask again",
    "SQLITE_READONLY": "it may not be written. Give this user the right to write the file and its folder",
    "SQLITE_CANTOPEN": "it cannot be opened. Check that the folder is there and may be written",
    "SQLITE_BUSY": "another program keeps it locked. Ask again when that is done",
    "SQLITE_LOCKED": "another program keeps it locked. Ask again when that is done",
    "SQLITE_IOERR": "the disk failed to store or to read it. Check the disk; then ask again",
}
_SYSTEM = {
    errno.ENOSPC: _SQLITE["SQLITE_FULL"],
    errno.EDQUOT: _SQLITE["SQLITE_FULL"],
    errno.EROFS: _SQLITE["SQLITE_READONLY"],
    errno.EACCES: _SQLITE["SQLITE_READONLY"],
    errno.EPERM: _SQLITE["SQLITE_READONLY"],
    errno.ENOENT: _SQLITE["SQLITE_CANTOPEN"],
    errno.EISDIR: _SQLITE["SQLITE_CANTOPEN"],
    errno.ENOTDIR: _SQLITE["SQLITE_CANTOPEN"],
}


def translated(error: BaseException, where: str) -> DiscreetError:
    """Our error for the database's: a failure that may pass, or damage."""
    cause: Any = getattr(error, "orig", None) or error
    name = getattr(cause, "sqlite_errorname", None) or ""
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")) or _is_no_text(cause):
        return LedgerDamaged(
            f'"{where}" is not a whole SQLite database. Nothing is served from it. '
            "Bring back the file as it was, or start a new ledger with what is certainly left."
        )
    if _is_changed(cause):
        return gone("the table of entries", where)
    if isinstance(cause, OSError):
        reason = _SYSTEM.get(cause.errno or 0, "the system refused it. Check the disk; then ask again")
    elif name:
        reason = next((text for start, text in _SQLITE.items() if name.startswith(start)), f"{name}. Ask again")
    elif getattr(cause, "sqlstate", None) == "42501":
        reason = "this user may not write it. GRANT SELECT, INSERT, UPDATE on it (updates are refused all the same)"
    elif "password" in str(cause) or "authentication" in str(cause):
        reason = "the server does not let this user in with this password. Check both"
    elif _lost(cause):
        reason = "the connection was lost, or the server is not there. Ask again in a moment"
    else:
        reason = f"the database refused ({type(cause).__name__}). Ask again, or look into its log"
    return LedgerFailed(f'the ledger in "{where}" failed: {reason}. Nothing was released.')


def _is_changed(cause: Any) -> bool:
    """The table of entries, or a column of it, is not there."""
    said = str(cause)
    missing = getattr(cause, "sqlstate", None) in ("42P01", "42703") or (
        isinstance(cause, sqlite3.OperationalError)
        and any(words in said for words in ("no such table", "no such column", "has no column"))
    )
    return missing and ENTRY.name in said


def _is_no_text(cause: Any) -> bool:
    """What should be a text is none: the sqlite3 module says so in a sentence, or fails to say what SQLite said."""
    return isinstance(cause, UnicodeDecodeError) or "decode to UTF-8" in str(cause)


def _lost(cause: Any) -> bool:
    # Postgres gives every error of its own a code; what has none, or one of class 08 or 57, is about the connection.
    code = getattr(cause, "sqlstate", None)
    return (type(cause).__name__ == "OperationalError" and code is None) or str(code)[:2] in ("08", "57")

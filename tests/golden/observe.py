"""What a golden ledger or release says, as plain values: written down once, and compared ever after."""

import json
from hashlib import sha256
from math import isclose
from pathlib import Path
from typing import Any

import numpy as np

import discreet as dp
from discreet.ledger.audit import verify
from discreet.ledger.export import event_lines
from golden.work import FREE, KEYED, LOST, REFUSED, Place, Plain, event, plain

ANALYSTS = ("anyone", "ana", "ben", "cleo", "somebody new")


def observed(name: str, tables: Path, ledger: Path) -> Plain:
    """All that today's code says of a ledger for nothing: it is read, and nothing is added to it."""
    audit = verify(ledger, prices=True)
    with Place(tables, ledger) as at:
        said = {
            "audit": [str(audit.head), audit.entries, audit.spends, audit.answered],
            "books": books(at.ledger),
            "history": [_spend(each) for each in at.ledger.history()],
            "lines": [_short(line.encode()) for line in event_lines(at.ledger.entries)],
            "answers": {table: [free(at, table, each) for each in asked] for table, asked in FREE[name].items()},
            "known": {table: [_known(each) for each in at.desk(table).known()] for table in FREE[name]},
            "left": {table: {who: left(at, table, who) for who in ANALYSTS} for table in FREE[name]},
        }
        assert str(at.ledger.head) == str(audit.head), "looking adds nothing"
        said["refused"] = {label: refused(at, each) for label, each in (REFUSED[name] | LOST.get(name, {})).items()}
    return said


def repeated(name: str, at: Place) -> Plain:
    """What is answered under the keys that were used."""
    return {label: plain(request(at)) for label, request in KEYED[name].items()}


def books(ledger: dp.Ledger) -> Plain:
    """Every account to the last grain, what is set aside, and the tables."""
    accounts = [
        [_scope(one), plain([one.cap, one.spent, one.held, one.remaining]), _short(plain([one.spent_ticks, one.room]))]
        for one in ledger.balances()
    ]
    tables = {
        name: [one.table, one.unit.describe, one.version, list(one.shares_people_with), one.fingerprint]
        for name, one in ledger.tables.items()
    }
    holds = {str(number): list(who) for number, who in ledger.holds.items()}
    return {"accounts": accounts, "holds": holds, "stakes": sorted(ledger.stakes), "tables": tables}


def spent(ledger: dp.Ledger) -> Plain:
    """What was spent in each account, exactly; not what is set aside: a repeated release does that again."""
    return {str(_scope(one)): plain(one.spent_ticks) for one in ledger.balances()}


def free(at: Place, table: str, question: str) -> Plain:
    """An answer as well as it is known, or the refusal where nothing is."""
    try:
        return plain(at.desk(table).ask(question))
    except dp.DiscreetError as error:
        return type(error).__name__


def refused(at: Place, request: Any) -> Plain:
    """The error by its name. What it says to people may be said better one day."""
    try:
        return ["answered", plain(request(at))]
    except dp.DiscreetError as error:
        return type(error).__name__


def left(at: Place, table: str, analyst: str) -> Plain:
    """What an analyst may still spend, and what was spent on the table."""
    desk = at.desk(table, analyst)
    return plain([desk.remaining, desk.spent])


def differences(found: Plain, expected: Plain, where: str = "", *, exact: bool) -> list[str]:
    """Where two plain values differ: in any bit of a float, or, if not `exact`, in more than its last digits."""
    match found, expected:
        case dict(), dict() if found.keys() == expected.keys():
            parts = [(str(key), found[key], expected[key]) for key in expected]
            return [each for at, *both in parts for each in differences(*both, f"{where}/{at}", exact=exact)]
        case list(), list() if len(found) == len(expected):
            parts = [(str(at), *both) for at, both in enumerate(zip(found, expected, strict=True))]
            return [each for at, *both in parts for each in differences(*both, f"{where}/{at}", exact=exact)]
        case str(), str() if not exact and found != expected:
            one, other = _number(found), _number(expected)
            near = one is not None and other is not None and isclose(one, other, rel_tol=1e-6, abs_tol=1e-6)
            return [] if near else [f"{where}: {found} and not {expected}"]
    return [] if found == expected else [f"{where}: {str(found)[:300]} and not {str(expected)[:300]}"]


def arithmetic() -> str:
    """Tells a machine whose libraries round otherwise: there answers agree in all digits but the last."""
    numbers = np.linspace(0.1, 7.3, 1000)
    square = np.outer(numbers, np.sin(numbers))
    parts = [
        np.exp(numbers),
        np.log(numbers),
        np.sqrt(numbers),
        square @ square,
        square.sum(axis=0),
        np.cumsum(numbers),
    ]
    return sha256(b"".join(part.tobytes() for part in parts)).hexdigest()


def _number(text: str) -> float | None:
    try:
        return float.fromhex(text) if "0x" in text else None
    except ValueError:
        return None


def _spend(spend: Any) -> Plain:
    said = [spend.sequence, spend.at, spend.table, spend.analyst, spend.why, event(spend.event), spend.key]
    return [*said, None if spend.released is None else _short(spend.released)]


def _scope(account: Any) -> Plain:
    return [None if account.scope.tables is None else list(account.scope.tables), account.scope.analyst]


def _known(free: Any) -> Plain:
    return [list(free.columns), free.cells, plain(free.error), plain(free.confidence)]


def _short(content: Any) -> str:
    """A few letters that tell one content from others."""
    return sha256(content if isinstance(content, bytes) else json.dumps(content).encode()).hexdigest()[:16]

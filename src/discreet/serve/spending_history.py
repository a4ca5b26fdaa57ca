"""Reports from the ledger: the history with receipts, and spending over time and by analyst."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from json import loads
from threading import Lock
from typing import Any

from discreet.accounting.filter import Gate, Ticks
from discreet.answer import error_text
from discreet.ledger import EACH, Balance, Budget, Head, Ledger, Spend
from discreet.ledger.accounts import as_budget, narrowest
from discreet.ledger.history import is_failed, recorded_event
from discreet.ledger.state import plus
from discreet.ledger.store import Entry
from discreet.meaning import explain
from discreet.wire.answer_json import Plain, budget_to_plain, spend_to_plain

# At most: points of the chart of spending over time, and lines on a page of history.
MOST_POINTS, MOST_LINES = 200, 1000


@dataclass(slots=True)
class HistoryLine:
    """A spend in the ledger, with its hash, its charge in each currency, and the recorded answer."""

    spend: Spend
    receipt: Head
    charge: dict[str, Ticks]
    released: bytes | None = field(default=None, repr=False)


class SpendingHistory:
    """The spends of a ledger. Each entry is read once; later calls read only new ones."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self._lines: dict[int, HistoryLine] = {}
        self._seen, self._lock = 0, Lock()

    def lines(self, table: str, analyst: str | None = None) -> list[HistoryLine]:
        """The spends on a table, by one analyst or by all, in order."""
        with self._lock:
            for entry in self.ledger.entries(self._seen):
                self._read(entry)
                self._seen = entry.sequence
            found = [line for line in self._lines.values() if line.spend.table == table]
        return [line for line in found if analyst in (None, line.spend.analyst)]

    def balance(self, table: str, analyst: str) -> Balance:
        """The balance of the table's own account, or of the narrowest that covers it."""
        return narrowest(self.ledger.balances(table=table, analyst=analyst))

    def _read(self, entry: Entry) -> None:
        fields = loads(entry.body)
        match fields["is"]:
            case "spend":
                said = {name: fields[name] for name in ("at", "table", "analyst", "why")}
                spend = Spend(entry.sequence, **said, event=recorded_event(entry, fields), key=fields.get("key"))
                charge = {kind: tuple(amount) for kind, amount in fields["charge"].items()}
                head = Head(self.ledger.head.ledger, entry.sequence, entry.hash)
                self._lines[entry.sequence] = HistoryLine(spend, head, charge)
            case "record" if fields["records"] in self._lines and not is_failed(entry.released):
                self._lines[fields["records"]].released = entry.released


def line_to_plain(line: HistoryLine, gate: Gate, *, released: bool) -> Plain:
    """A line as JSON: the spend, its price by itself, its receipt, and whether an answer was recorded."""
    plain = spend_to_plain(replace(line.spend, released=line.released if released else None))
    plain["answered"] = line.released is not None
    plain["price"] = float(as_budget(gate, line.charge[gate.kind]).epsilon)
    plain["receipt"] = str(line.receipt)
    return plain


def over_time(lines: Iterable[HistoryLine], gate: Gate) -> list[Plain]:
    """The running total after each spend: as epsilon, and as a share of the cap in the additive currency."""
    total, sums = gate.nothing, []
    for line in lines:
        total = plus(total, line.charge[gate.kind])
        sums.append((line, total))
    step = max(1, -(-len(sums) // MOST_POINTS))
    chosen = [sums[place] for place in range(len(sums)) if (len(sums) - 1 - place) % step == 0]
    return [
        {
            "sequence": line.spend.sequence,
            "at": line.spend.at,
            "epsilon": float(as_budget(gate, amount).epsilon),
            "share": share_of(gate, amount),
        }
        for line, amount in chosen
    ]


def by_analyst(lines: Iterable[HistoryLine], gate: Gate) -> list[Plain]:
    """What each analyst has spent, and how often."""
    totals: dict[str, Ticks] = {}
    times: dict[str, int] = {}
    for line in lines:
        name = line.spend.analyst
        totals[name] = plus(totals.get(name, gate.nothing), line.charge[gate.kind])
        times[name] = times.get(name, 0) + 1
    ordered = sorted(totals, key=lambda name: (-share_of(gate, totals[name]), name))
    return [
        {
            "analyst": name,
            "spends": times[name],
            "epsilon": float(as_budget(gate, totals[name]).epsilon),
            "share": share_of(gate, totals[name]),
        }
        for name in ordered
    ]


def share_of(gate: Gate, amount: Ticks) -> float:
    """An amount as a share of a cap, at the order at which that is least: from 0 to 1."""
    return min((have / most for have, most in zip(amount, gate.limit, strict=True) if most > 0), default=0.0)


def account_to_plain(account: Balance, *, error: float, contributions: int) -> Plain:
    """An account: its cap, what is spent, set aside and left."""
    return {
        "scope": str(account.scope),
        "tables": None if account.scope.tables is None else list(account.scope.tables),
        "analyst": account.scope.analyst,
        "each": account.scope.analyst == EACH,
        "cap": budget_to_plain(account.cap),
        "spent": budget_to_plain(account.spent),
        "held": budget_to_plain(account.held),
        "remaining": budget_to_plain(account.remaining),
        "share_left": account.share_left,
        "counts_left": account.counts_left(error=error, contributions=contributions),
    }


def in_words(accounts: Iterable[Balance], *, error: float, contributions: int) -> str:
    """What is left, in words, by the account that has least."""
    left = min(one.counts_left(error=error, contributions=contributions) for one in accounts)
    if not left:
        return f"not even one more count at ± {error_text(error)}; what is known is still answered for free"
    return f"about {_round(left):,} more count{'s' * (left > 1)} at ± {error_text(error)}"


def meaning_of(cap: Budget) -> list[Plain]:
    """What the cap means to a person in the table."""
    meaning = explain(epsilon=cap.epsilon, delta=cap.delta)
    found = [{"title": title, "sentence": sentence} for title, sentence in meaning.sentences]
    return found + [{"title": "Warning", "sentence": warning} for warning in meaning.warnings]


def csv_of(rows: Iterable[Plain]) -> Iterator[str]:
    """The history for a spreadsheet."""
    import csv
    from io import StringIO

    names = ("sequence", "at", "analyst", "why", "price", "answered", "key", "receipt")
    for row in [{name: name for name in names}, *rows]:
        line = StringIO()
        csv.writer(line, lineterminator="\n").writerow([_cell(row[name]) for name in names])
        yield line.getvalue()


def _cell(value: Any) -> Any:
    """Quote a text that a spreadsheet would take for a formula."""
    return f"'{value}" if isinstance(value, str) and value[:1] in "=+-@\t\r" else value


def _round(count: int) -> int:
    """An estimate, rounded down to two significant digits."""
    step: int = 10 ** max(0, len(str(count)) - 2)
    return count // step * step

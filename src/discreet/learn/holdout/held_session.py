"""The common base of holdout and leaderboard: a session on held rows that is paid at the start and has a secret."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

from discreet.accounting.event import Event, Nothing
from discreet.accounting.filter import Gate, gate_for, gaussian_gate, pure_gate, renyi_gate
from discreet.errors import BadParameter, Refusal
from discreet.learn.holdout.comparison_design import ComparisonDesign
from discreet.learn.holdout.comparisons import Comparisons
from discreet.learn.holdout.generalization import Population, PopulationBound
from discreet.learn.holdout.scores import GRID, UNIT, RowParts, Statistic, held_sums
from discreet.ledger import Ledger
from discreet.ledger.accounts import narrowest
from discreet.ledger.ledger import ANYONE
from discreet.ledger.transaction import Codec, Payment, Record, record_of, transact
from discreet.numeric import Number, positive, probability, text, whole
from discreet.schema.unit import Identity
from discreet.source.source import Exact

# Each row of a failed call is scored again in a call of the same size, so a limit bounds the work.
MOST_ROWS_PER_CALL = 10_000

# What is recorded of a session.
HOLDOUT_KIND = "holdout"
_CODEC: Codec[dict[str, Any]] = Codec(
    (HOLDOUT_KIND,), lambda fields: Record(HOLDOUT_KIND, fields), lambda record: dict(record.fields)
)


def read_rows_per_call(given: int) -> int:
    """The number of held rows that a statistic is given at once."""
    return whole("rows_per_call", given, least=1, most=MOST_ROWS_PER_CALL)


class Account:
    """Pays for a session from a table's budget in a ledger; without a ledger nothing is recorded."""

    def __init__(self, ledger: Ledger | str | os.PathLike[str] | None, table: str, analyst: str = ANYONE) -> None:
        self.table, self.analyst = text("table", table), text("analyst", analyst)
        # One held row is replaced by another: all spends of this table must have the same neighbours.
        self._identity = Identity(self.table, UNIT)
        self._owned = ledger is not None and not isinstance(ledger, Ledger)
        self.ledger = ledger if ledger is None or isinstance(ledger, Ledger) else Ledger(ledger)

    def gates(self, epsilon: Number, delta: Number | None) -> tuple[Gate, ...]:
        """The currencies in which the price may be paid: on a ledger, that of the table's narrowest budget."""
        price = positive("epsilon", epsilon)
        if self.ledger is None:
            if delta is None:
                return (pure_gate(price),)
            chance = probability("delta", delta)
            return pure_gate(price), gaussian_gate(price, chance), renyi_gate(price, chance)
        if delta is not None:
            raise BadParameter(f"delta is {delta}, and the ledger has its own. Leave it out.")
        accounts = self.ledger.balances(table=self.table, analyst=self.analyst)
        if all(one.scope.analyst is not None for one in accounts):
            # Raises, and says how to set a budget.
            self.ledger.remaining(table=self.table, analyst=self.analyst)
        return (gate_for(narrowest(accounts).gate, price),)

    def carried(self, reopen: bool) -> float:
        """ln of the number of possible transcripts of earlier sessions on the same rows, as they recorded it."""
        if self.ledger is None:
            if reopen:
                raise BadParameter(
                    "reopen is True and there is no ledger, which would know earlier sessions. Give the ledger, or "
                    "leave out reopen=True."
                )
            return 0.0
        opened = [said for said in self._recorded(self.ledger) if "nats" in said]
        if opened and not reopen:
            raise Refusal(
                f'the held rows "{self.table}" were used before, in {len(opened)} session(s); what was learnt there '
                "makes every interval wider. Give reopen=True to pay for a new session with wider intervals, or hold "
                "out fresh rows under another name."
            )
        if reopen and not opened:
            raise BadParameter(f'no session on "{self.table}" is in this ledger. Leave out reopen=True.')
        return float(opened[-1]["nats"]) if opened else 0.0

    @contextmanager
    def opening(self) -> Iterator[None]:
        """Closes the ledger's files if designing or paying for a session fails."""
        try:
            yield
        except BaseException:
            self.close()
            raise

    def open(self, design: ComparisonDesign, why: str, nats: float) -> None:
        """Pay for everything, durably; only then may a held row be read."""
        self._transact(design.event, why, {"opened": why, "nats": nats})

    def keep(self, why: str, **said: object) -> None:
        """Record what is about to be released; it was paid for when the session opened."""
        self._transact(Nothing(), why, said)

    def close(self) -> None:
        """Close the ledger's files if they were opened here."""
        if self._owned and self.ledger is not None:
            self.ledger.close()

    def _transact(self, event: Event, why: str, said: dict[str, Any]) -> None:
        payment = Payment(event, why, self._identity, self.analyst)
        transact(self.ledger, payment, lambda: {"table": self.table, **said}, _CODEC)

    def _recorded(self, ledger: Ledger) -> list[dict[str, Any]]:
        """The records of earlier sessions on these rows, in order."""
        records = [record_of(entry.released) for entry in ledger.entries()]
        ours = [dict(record.fields) for record in records if record is not None and record.kind == HOLDOUT_KIND]
        return [fields for fields in ours if fields["table"] == self.table]


class HeldSession:
    """A session on held rows: its design, who pays for it, and its secret comparisons."""

    confidence: float
    design: ComparisonDesign
    population: Population
    _held: RowParts
    _account: Account
    _checks: Comparisons
    _rows_per_call: int

    @property
    def bound(self) -> PopulationBound:
        """The theorem by which the intervals hold for the population: the one with the smallest worst error."""
        return self.population.bound

    @property
    def cost(self) -> Event:
        """The event that was paid for when it opened."""
        return self.design.event

    @property
    def neighbors(self) -> str:
        """The privacy unit, in words."""
        return UNIT.describe

    def close(self) -> None:
        """Forget the threshold, and close the ledger's files if they were opened here."""
        self._checks.close()
        self._account.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __reduce__(self) -> Any:
        return self._checks.__reduce__()

    def _sums(self, statistic: Statistic, rows: RowParts) -> tuple[Exact, Exact]:
        """The sealed sums over held rows. A signal that interrupts it ends the session, and nothing is released."""
        with self._checks.reading():
            return held_sums(statistic, rows, self._rows_per_call)

    @property
    def _whole(self) -> int:
        """An upper bound of every sum."""
        return self._held.size * GRID

    @property
    def _value_error(self) -> float:
        """The error of a released value against the held rows: by noise, and by rounding to the grid."""
        return self.design.value_error / self._whole + 0.5 / self.population.values

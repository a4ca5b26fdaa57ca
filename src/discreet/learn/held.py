"""What a holdout and a leaderboard share: held rows behind one payment and one secret, and an end."""

from types import TracebackType
from typing import Any, Self

from discreet.learn.checks import Account, Checks
from discreet.learn.design import Design
from discreet.learn.population import Bound, Population
from discreet.learn.statistic import GRID, UNIT, Rows, Statistic, held_sums
from discreet.parameter import whole
from discreet.privacy.event import Event
from discreet.source.exact import Exact

# Rows that fail are judged again in calls of this size, one for each: so the work is bounded.
MOST_ROWS_PER_CALL = 10_000


def read_rows_per_call(given: int) -> int:
    """How many held rows a statistic is given at once."""
    return whole("rows_per_call", given, least=1, most=MOST_ROWS_PER_CALL)


class Held:
    """Held rows that are compared with guesses: how it was designed, who paid, and what is secret."""

    confidence: float
    design: Design
    population: Population
    _held: Rows
    _account: Account
    _checks: Checks
    _rows_per_call: int

    @property
    def bound(self) -> Bound:
        """The theorem by which the intervals hold for the population: the one with the smallest worst error."""
        return self.population.bound

    @property
    def cost(self) -> Event:
        """All that was paid for when it opened."""
        return self.design.event

    @property
    def neighbors(self) -> str:
        """Whom the privacy protects."""
        return UNIT.describe

    def close(self) -> None:
        """Forget the threshold, and give back the ledger's files if they were opened here."""
        self._checks.close()
        self._account.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __reduce__(self) -> Any:
        return self._checks.__reduce__()

    def _sums(self, statistic: Statistic, rows: Rows) -> tuple[Exact, Exact]:
        """The sealed sums over held rows. If a signal ends this early, the session is over before anyone hears."""
        with self._checks.reading():
            return held_sums(statistic, rows, self._rows_per_call)

    @property
    def _whole(self) -> int:
        """As large as any sum."""
        return self._held.size * GRID

    @property
    def _off_told(self) -> float:
        """How far a value that is told may be from the mean of the held rows: by noise, and by the grid of values."""
        return self.design.value_error / self._whole + 0.5 / self.population.values

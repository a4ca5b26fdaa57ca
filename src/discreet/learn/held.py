"""What a holdout and a leaderboard share: held rows behind one payment and one secret, and an end."""

from types import TracebackType
from typing import Any, Self

from discreet.learn.checks import Account, Checks
from discreet.learn.design import Design
from discreet.learn.population import Bound, Population
from discreet.learn.statistic import GRID, UNIT, Rows
from discreet.privacy.event import Event


class Held:
    """Held rows that are compared with guesses: how it was designed, who paid, and what is secret."""

    confidence: float
    design: Design
    population: Population
    _held: Rows
    _account: Account
    _checks: Checks

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

    @property
    def _whole(self) -> int:
        """As large as any sum."""
        return self._held.size * GRID

    @property
    def _off_told(self) -> float:
        """How far a value that is told may be from the mean of the held rows: by noise, and by the grid of values."""
        return self.design.value_error / self._whole + 0.5 / self.population.values

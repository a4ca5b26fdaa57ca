"""Points that can be measured: the rows of an array, or columns of a table."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from discreet.privacy.sensitivity import Sensitivity
from discreet.query.body import Body, Grid
from discreet.query.clusters import Boxes, Clusters
from discreet.schema.unit import Unit
from discreet.source.effect import sensitivity_of
from discreet.source.exact import Exact
from discreet.source.points import Points
from discreet.source.table import Table


@dataclass(frozen=True, slots=True)
class PrivatePoints:
    """Points on a grid: where they lie, who is protected, and the array or table that holds the rows."""

    grid: Grid
    columns: tuple[str, ...]
    unit: Unit
    held: Points | Table

    @property
    def body(self) -> Body:
        """Where the integer points lie."""
        return self.grid.body

    def sensitivity(self, question: Boxes | Clusters) -> Sensitivity:
        """How far one person can move the answer: no row is read."""
        if isinstance(self.held, Points):
            return self.held.sensitivity(question)
        return sensitivity_of(question, self.held.domain, self.held.unit)

    def touch(self) -> None:
        """See before paying that the rows can be read; an array is always there."""
        if isinstance(self.held, Table):
            self.held.touch()

    def snapshot(self) -> AbstractContextManager[None]:
        """All that is evaluated within is read from one state of the rows."""
        return self.held.snapshot() if isinstance(self.held, Table) else nullcontext()

    def evaluate(self, question: Boxes | Clusters) -> Exact:
        """The true integers, sealed."""
        return self.held.evaluate(question)

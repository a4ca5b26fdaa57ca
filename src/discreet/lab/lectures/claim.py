"""A claim of the lecture notes, and what was measured: claim beside measurement."""

from collections.abc import Callable
from dataclasses import dataclass

from discreet.report.chart import Chart


@dataclass(frozen=True, slots=True)
class Finding:
    """One line: what it is about, what the notes say, what was measured, and whether that agrees."""

    what: str
    claimed: str
    measured: str
    holds: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of trying a claim, with a `figure` where one helps and a `note` for the reader."""

    findings: tuple[Finding, ...]
    figure: Chart | None = None
    note: str = ""

    @property
    def holds(self) -> bool:
        """Whether there is a line, and every line agrees."""
        return bool(self.findings) and all(finding.holds for finding in self.findings)


@dataclass(frozen=True, slots=True)
class Claim:
    """A theorem, example, exercise or figure that can be computed.

    `name` is what one types; `source` is its place in the notes ("000 Prop. 7"; 000 to 004 are the five lecture notes);
    `statement` is the claim in words and symbols. A `correction` is a claim that the notes are wrong about something.
    A randomized `run` says that a true claim fails with probability below 10⁻⁶ at most.
    """

    name: str
    source: str
    title: str
    statement: str
    run: Callable[[], Outcome]
    correction: bool = False

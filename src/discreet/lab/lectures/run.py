"""Trying claims: one after the other or in parallel, each timed; a claim that raises does not hold."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from time import perf_counter, process_time

from discreet.errors import BadParameter
from discreet.lab.lectures.catalogue import claims, find
from discreet.lab.lectures.claim import Claim, Finding
from discreet.numeric import whole


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a claim: its findings, its figure as SVG, and the processor time that it took."""

    claim: str
    findings: tuple[Finding, ...]
    figure: str
    note: str
    seconds: float
    failure: str = ""

    @property
    def holds(self) -> bool:
        """Whether it did not raise, has a finding, and every line agrees."""
        return not self.failure and bool(self.findings) and all(finding.holds for finding in self.findings)


@dataclass(frozen=True, slots=True)
class Results:
    """The results of all claims that were tried, in the order of the notes, and the elapsed time."""

    results: tuple[Result, ...]
    seconds: float

    def __iter__(self) -> Iterator[Result]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    @property
    def holding(self) -> int:
        """How many hold."""
        return sum(result.holds for result in self.results)

    @property
    def holds(self) -> bool:
        """Whether all do."""
        return self.holding == len(self.results)


def claims_named(names: Sequence[str]) -> tuple[Claim, ...]:
    """The claims of these names, in the order of the notes; "002" is every claim of that note.

    >>> {claim.source[:3] for claim in claims_named(["000"])}
    {'000'}
    """
    notes = {claim.source.split()[0] for claim in claims()}
    wanted = {find(name).name for name in names if name not in notes}
    return tuple(claim for claim in claims() if claim.name in wanted or claim.source.split()[0] in names)


def try_claim(name: str) -> Result:
    """Run one claim."""
    claim, start = find(name), process_time()
    try:
        outcome = claim.run()
        figure = outcome.figure.svg() if outcome.figure is not None else ""
    except Exception as error:  # One claim that fails must not keep the others from being shown.
        return Result(name, (), "", "", process_time() - start, f"{type(error).__name__}: {error}")
    # Long notes are written over several lines.
    return Result(name, outcome.findings, figure, " ".join(outcome.note.split()), process_time() - start)


def try_claims(
    wanted: Sequence[Claim], *, jobs: int = 1, watch: Callable[[Result], object] = lambda _: None
) -> Results:
    """Run claims in `jobs` processes; `watch` is called with each result as it comes."""
    if not wanted:
        raise BadParameter("no claim was named; name one at least. See them all: discreet reproduce --list.")
    start, number = perf_counter(), min(whole("jobs", jobs, least=1, most=64), len(wanted))
    found: dict[str, Result] = {}
    for result in _results([claim.name for claim in wanted], number):
        found[result.claim] = result
        watch(result)
    return Results(tuple(found[claim.name] for claim in wanted), perf_counter() - start)


def _results(names: Sequence[str], jobs: int) -> Iterator[Result]:
    if jobs == 1:
        yield from map(try_claim, names)
        return
    # A fresh process has no threads of ours; a fork would have their locks.
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for done in as_completed([pool.submit(try_claim, name) for name in names]):
            yield done.result()

"""A histogram in one release beats d separate counts by d/2: 002 Exercise 1.5."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from discreet import verify
from discreet.accounting.event import Laplace
from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.mechanism import histogram, split_scale
from discreet.mechanism.protocol import Mechanism
from discreet.report.plot import Line, plot
from discreet.schema.unit import Unit

UNIT = Unit(neighbors="replace_one")


def run() -> Outcome:
    """The exact loss of the joint release, and the two scales."""
    sizes = (2, 5, 10, 20, 50, 100)
    joint = [float(scale_of(histogram(epsilon=1, cells=d, unit=UNIT))) for d in sizes]
    apart = [float(split_scale(epsilon=1, cells=d, unit=UNIT)) for d in sizes]
    lines = [
        Line("d separate counts", list(zip(sizes, apart, strict=True)), "third", dots=True),
        Line("one joint release", list(zip(sizes, joint, strict=True)), "ours", dots=True),
    ]
    title = "The scale of the noise in each cell of a histogram, over the number of cells"
    return Outcome(findings(), plot(title, lines, x="cells d", y="scale of the noise, ε = 1", log_x=True, log_y=True))


def findings(make: Callable[..., Mechanism[Any]] = histogram) -> tuple[Finding, ...]:
    """The sensitivity of both views, exactly, and the factor between them."""
    found = []
    for cells in (2, 3):
        identity = [[int(a == b) for b in range(cells)] for a in range(cells)]
        verdict = verify.check(lambda _, d=cells: make(epsilon=1, cells=d, unit=UNIT), identity, UNIT, rows=3)  # type: ignore[misc]
        found.append(
            Finding(
                f"loss of a joint histogram of {cells} cells with noise Lap(2/ε), ε = 1",
                "1: the sensitivity is 2",
                f"{verdict.exact.upper:.9g}, exactly, over {verdict.pairs} pairs",
                abs(verdict.exact.upper - 1) < 1e-9,
            )
        )
    for cells in (10, 1000):
        joint = scale_of(make(epsilon=1, cells=cells, unit=UNIT))
        apart = split_scale(epsilon=1, cells=cells, unit=UNIT)
        found.append(
            Finding(
                f"noise of d = {cells:,} separate counts beside the joint release",
                f"{cells:,}/ε beside 2/ε: times d/2 = {cells / 2:,g}",
                f"{float(apart):,g} beside {float(joint):g}: times {float(apart / joint):,g}",
                apart / joint == cells / 2,
            )
        )
    return tuple(found)


def scale_of(mechanism: Mechanism[Any]) -> Fraction:
    """Of the noise that it adds to each count."""
    assert isinstance(mechanism.event, Laplace), "a histogram has Laplace noise"
    return mechanism.event.scale


CLAIM = Claim(
    name="joint-histogram",
    source="002 Ex. 1.5",
    title="A histogram of any size costs as much as two counts",
    statement="As one function the histogram of d cells has sensitivity 2, so noise Lap(2/ε) is enough. As d counts on "
    "a shared budget each needs Lap(d/ε): d/2 times as much.",
    run=run,
)

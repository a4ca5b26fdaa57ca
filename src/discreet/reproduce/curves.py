"""A chart of a few curves over one axis: bounds beside what was measured."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10

from discreet.page.chart import Chart, Point, Scale, Tick

WIDTH, HEIGHT, LEFT, RIGHT, TOP, FLOOR = 880, 360, 84, 190, 24, 306
# Names at the right are at least so far apart.
_LINE = 17


@dataclass(frozen=True, slots=True)
class Curve:
    """Some points under a name, as a line, or as dots if `dots`. Styles are those of the page: ours, second, third…"""

    name: str
    points: Sequence[Point]
    style: str = "ours"
    dots: bool = False


def chart_of(
    title: str, curves: Iterable[Curve], *, across: str, up: str, log_x: bool = False, log_y: bool = False
) -> Chart:
    """Curves with their names at the end, an axis for each direction, evenly or by powers of ten.

    >>> line = Curve("n²", [(n, n * n) for n in range(1, 11)])
    >>> "n²" in chart_of("squares", [line], across="n", up="its square").svg()
    True
    """
    shown = [_shown(curve, log_x, log_y) for curve in curves]
    points = [point for curve in shown for point in curve.points]
    low_x, high_x, ticks_x = _span([x for x, _ in points], log_x)
    low_y, high_y, ticks_y = _span([y for _, y in points], log_y)
    chart = Chart(WIDTH, HEIGHT, title)
    x = Scale(low_x, high_x, LEFT, WIDTH - RIGHT, log=log_x)
    y = Scale(low_y, high_y, FLOOR, TOP, log=log_y)
    chart.across(y, ticks_y, LEFT, WIDTH - RIGHT)
    chart.below(x, ticks_x, FLOOR)
    chart.text((LEFT + WIDTH - RIGHT) / 2, FLOOR + 44, across, "label", "middle")
    chart.text(LEFT - 60, TOP - 10, up, "label")
    ends = []
    for curve in shown:
        places = [(x(at), y(value)) for at, value in curve.points]
        if curve.dots:
            for place, (at, value) in zip(places, curve.points, strict=True):
                chart.dot(*place, curve.style, 4, f"{curve.name}: {value:.4g} at {at:.4g}")
        else:
            chart.line(places, curve.style)
        ends.append((places[-1][1], curve))
    _name(chart, ends)
    return chart


def _shown(curve: Curve, log_x: bool, log_y: bool) -> Curve:
    """The points that have a place on the axes."""
    points = [
        (float(x), float(y))
        for x, y in curve.points
        if isfinite(x) and isfinite(y) and (x > 0 or not log_x) and (y > 0 or not log_y)
    ]
    return Curve(curve.name, points, curve.style, curve.dots)


def _span(values: Sequence[float], log: bool) -> tuple[float, float, list[Tick]]:
    """From where to where an axis goes, and its ticks."""
    low, high = min(values), max(values)
    if log:
        first, last = floor(log10(low)), max(ceil(log10(high)), floor(log10(low)) + 1)
        every = ceil((last - first) / 7)
        return 10.0**first, 10.0**last, [(10.0**power, _power(power)) for power in range(first, last + 1, every)]
    low = min(low, 0.0) if low < (high - low) else low
    step = _step((high - low) or 1.0)
    first, last = floor(low / step), ceil(high / step) if high > low else floor(low / step) + 1
    return first * step, last * step, [(tick * step, f"{tick * step:.10g}") for tick in range(first, last + 1)]


def _step(width: float) -> float:
    """A round number of which some four to eight make the width."""
    unit = 10.0 ** floor(log10(width / 4))
    return next(unit * factor for factor in (1, 2, 5, 10) if width / (unit * factor) <= 8)


def _power(power: int) -> str:
    if -3 <= power <= 4:
        return f"{10.0**power:,g}"
    return "10" + str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _name(chart: Chart, ends: Sequence[tuple[float, Curve]]) -> None:
    """The names beside the ends of the curves, none over another."""
    lowest = float(TOP - _LINE)
    placed: list[tuple[float, Curve]] = []
    for height, curve in sorted(ends, key=lambda end: end[0]):
        lowest = max(height + 4, lowest + _LINE)
        placed.append((lowest, curve))
    # What would fall below the floor moves up, and what is in its way too.
    highest = float(FLOOR + _LINE)
    for height, curve in reversed(placed):
        highest = min(height, highest - _LINE)
        word = f"{curve.style} strong" if curve.style in ("ours", "second", "third") else "muted"
        chart.text(WIDTH - RIGHT + 10, highest, curve.name, word)

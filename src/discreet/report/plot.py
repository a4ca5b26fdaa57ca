"""A plot of a few lines with their names at their ends, for any page: axes and ticks are chosen automatically."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, isfinite, log10
from math import floor as floor_of

from discreet.report.chart import Chart, Point, Scale, Tick

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 880, 330, 78, 190, 26, 56
# The least distance between two names at the ends of lines.
LABEL_GAP = 17


@dataclass(frozen=True, slots=True)
class Line:
    """Points under a name, `joined` by a line and marked by `dots`, or both.

    The `style` is ours, second, third, cap (dashed) or law (thin).
    """

    name: str
    points: Sequence[Point]
    style: str = "ours"
    dots: bool = False
    joined: bool = True


def plot(
    title: str,
    lines: Sequence[Line],
    *,
    x: str,
    y: str,
    log_x: bool = False,
    log_y: bool = False,
    floor: float | None = None,
    ceiling: float | None = None,
) -> Chart:
    """Lines over two axes. `floor` and `ceiling` bound the vertical axis where the lines themselves should not.

    >>> drawn = plot("squares", [Line("x²", [(1, 1), (2, 4)])], x="x", y="square")
    >>> drawn.svg().count("<path") > 2
    True
    """
    drawn = [replace(line, points=_placed(line.points, log_x, log_y)) for line in lines]
    across = [at for line in drawn for at, _ in line.points]
    up = [value for line in drawn for _, value in line.points]
    low, high = _room(min(up), max(up), log_y)
    low, high = low if floor is None else floor, high if ceiling is None else ceiling
    chart = Chart(WIDTH, HEIGHT, title)
    bottom = HEIGHT - BOTTOM
    place_x = Scale(min(across), max(across), LEFT, WIDTH - RIGHT, log=log_x)
    place_y = Scale(low, high, bottom, TOP, log=log_y)
    chart.across(place_y, _ticks(low, high, log_y), LEFT, WIDTH - RIGHT)
    chart.below(place_x, _ticks(min(across), max(across), log_x), bottom)
    chart.text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, x, "label", "middle")
    chart.text(LEFT - 8, TOP - 12, y, "label")
    for line in drawn:
        if line.joined:
            chart.line([(place_x(at), place_y(value)) for at, value in line.points], line.style)
        for at, value in line.points if line.dots else ():
            chart.dot(place_x(at), place_y(value), line.style, 3.5, f"{line.name}: {value:.4g} at {at:.4g}")
    _name(chart, [(place_y(line.points[-1][1]), line) for line in drawn if line.name], bottom)
    return chart


def _placed(points: Sequence[Point], log_x: bool, log_y: bool) -> list[Point]:
    """The points that have a place on the axes."""
    finite = [(float(at), float(value)) for at, value in points if isfinite(at) and isfinite(value)]
    return [(at, value) for at, value in finite if (at > 0 or not log_x) and (value > 0 or not log_y)]


def _name(chart: Chart, ends: list[tuple[float, Line]], bottom: float) -> None:
    """Each name beside the end of its line, moved apart where they are close, and never below the axis."""
    ordered = sorted(ends, key=lambda end: end[0])
    places: list[float] = []
    for wanted, _ in ordered:
        places.append(max(wanted, places[-1] + LABEL_GAP if places else wanted))
    over = max(0.0, (places[-1] if places else 0.0) - bottom)
    for at in reversed(range(len(places))):
        limit = bottom if at == len(places) - 1 else places[at + 1] - LABEL_GAP
        places[at] = min(places[at], limit) if over else places[at]
    for place, (_, line) in zip(places, ordered, strict=True):
        style = line.style.split()[-1] if line.style.split()[-1] in ("ours", "second", "third") else "muted"
        chart.text(WIDTH - RIGHT + 10, place + 4, line.name, f"name {style}")


def _room(low: float, high: float, log: bool) -> tuple[float, float]:
    """From a round number to a little above the highest."""
    if log:
        return low * 0.8, max(high * 1.25, low * 2)
    start = min(0.0, low) if low > -0.6 * high else low
    return start, high + 0.06 * (high - start) if high > start else start + 1


def _ticks(low: float, high: float, log: bool) -> list[Tick]:
    """A few round numbers between two ends.

    >>> [label for _, label in _ticks(0, 1, False)], [label for _, label in _ticks(1, 1000, True)]
    (['0', '0.2', '0.4', '0.6', '0.8', '1'], ['1', '10', '100', '1,000'])
    """
    if log:
        return _powers(low, high)
    unit = 10.0 ** floor_of(log10((high - low) / 4))
    step = next(unit * each for each in (1, 2, 5, 10) if (high - low) / (unit * each) <= 6)
    first = ceil(low / step - 1e-9)
    return [
        (place * step, _number(place * step)) for place in range(first, int((high + 1e-9 * step) / step + 1e-9) + 1)
    ]


def _powers(low: float, high: float) -> list[Tick]:
    least, most = ceil(log10(low) - 1e-9), floor_of(log10(high) + 1e-9)
    if most - least < 2:
        marks = [each * 10.0**power for power in range(least - 1, most + 1) for each in (1, 2, 5)]
        return [(mark, _number(mark)) for mark in marks if low * 0.999 <= mark <= high * 1.001]
    stride = max(1, ceil((most - least) / 6))
    # One way of writing for all of an axis.
    plain = least >= -3 and most <= 6
    return [
        (10.0**power, _number(10.0**power) if plain or abs(power) <= 2 else _power(power))
        for power in range(least, most + 1, stride)
    ]


_SUPER = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def _number(value: float) -> str:
    if value != 0 and not 1e-3 <= abs(value) < 1e7:
        power = floor_of(log10(abs(value)) + 1e-9)
        head = value / 10.0**power
        return _power(power) if abs(head - 1) < 1e-6 else f"{head:g}·{_power(power)}"
    return f"{round(value):,}" if abs(value - round(value)) < 1e-9 * max(1.0, abs(value)) else f"{value:.6g}"


def _power(power: int) -> str:
    return f"10{str(power).translate(_SUPER)}"

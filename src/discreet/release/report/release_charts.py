"""The figures on the page of a release: bars, heat maps, a matrix and a curve.

Names and categories come from outside: `visible` replaces what does not print, and `Chart` escapes the rest.
"""

from collections.abc import Callable, Sequence
from math import ceil

import numpy as np

from discreet.answer import error_text, visible
from discreet.report.chart import Chart, Scale
from discreet.types import Numbers

# Widths on paper: of a figure in half a page and of one across it; of a letter; the height of a row.
HALF_PAGE, FULL_PAGE, LETTER_WIDTH, ROW_HEIGHT = 440, 900, 7.0, 19.0
# The least distance between labels, and between turned labels; and the width of a cell that has room for a number.
LABEL_SPACING, TURNED_LABEL_SPACING, NUMBERED_CELL_WIDTH = 14.0, 17.0, 34.0
# The colour scale of a matrix ends at its largest value, or here if that is smaller: then no cell is strongly coloured.
LEAST_SCALE = 0.1
# A cell with a weaker colour than this is left empty.
WEAKEST_COLOUR = 0.02
# Letters of a label that are shown.
LONGEST_LABEL = 20
# A curve has no more points than a screen shows.
MOST_CURVE_POINTS = 400


def bars_figure(title: str, labels: Sequence[str], values: Numbers, write: Callable[[float], str]) -> str:
    """A horizontal bar for each label, and its number in the words of `write`."""
    texts = [write(value) for value in values.tolist()]
    left = LETTER_WIDTH * _longest(labels) + 8
    right = HALF_PAGE - LETTER_WIDTH * max(map(len, texts), default=0) - 8
    most = max(float(values.max(initial=0.0)), 1e-300)
    chart = _chart(HALF_PAGE, ROW_HEIGHT * len(texts) + 2, title)
    for row, (label, value, number_shown) in enumerate(zip(labels, values.tolist(), texts, strict=True)):
        top, end = row * ROW_HEIGHT, left + (right - left) * max(value, 0.0) / most
        chart.text(left - 8, top + 14, short(label), "name", "end")
        chart.bar(left, top + 3, end, top + ROW_HEIGHT - 3, "bar", f"{visible(label)}: {number_shown}")
        chart.text(HALF_PAGE, top + 14, number_shown, "number", "end")
    chart.line([(left, 0), (left, ROW_HEIGHT * len(texts))], "axis")
    return chart.svg()


def heat_figure(
    title: str, names: tuple[str, str], labels: tuple[Sequence[str], Sequence[str]], counts: Numbers
) -> str:
    """A cell for each pair of labels, the stronger the more rows are in it; the longer labels are at the side."""
    if _longest(labels[0]) < _longest(labels[1]):
        names, labels, counts = names[::-1], labels[::-1], counts.T
    left = LETTER_WIDTH * max(_longest(labels[0]), 4) + 36
    wide = min((HALF_PAGE - left) / counts.shape[1], 64.0)
    high = min(max(wide, LABEL_SPACING), 26.0)
    numbered = wide >= NUMBERED_CELL_WIDTH
    cells = np.maximum(counts, 0.0)
    most, whole = max(float(cells.max(initial=0.0)), 1e-300), max(float(cells.sum()), 1e-300)
    bottom = high * counts.shape[0]
    under = bottom + _label_height(labels[1])
    chart = _chart(HALF_PAGE, under + 18, title)
    for (row, column), count in np.ndenumerate(cells):
        # The eye sees areas: the root shows small cells too.
        strength = float(np.sqrt(count / most))
        hint = f"{visible(labels[0][row])}, {visible(labels[1][column])}: {count:,.0f} ({count / whole:.1%})"
        number_shown = f"{100 * count / whole:.1f}" if numbered else ""
        _cell(chart, left + column * wide, row * high, wide, high, strength, hint, number_shown)
    _side(chart, labels[0], left, high)
    _below(chart, labels[1], left, bottom, wide)
    chart.text(12, bottom / 2, short(names[0]), "label", "middle", degrees=-90)
    chart.text(left + wide * counts.shape[1] / 2, under + 12, short(names[1]), "label", "middle")
    return chart.svg()


def matrix_figure(title: str, names: Sequence[str], values: Numbers) -> str:
    """Half a square of all pairs of names; NaN where nothing is known of a pair."""
    number = len(names)
    left = LETTER_WIDTH * _longest(names) + 14
    side = min((FULL_PAGE - left - 60) / max(number - 1, 1), 46.0)
    high, numbered = min(side, 28.0), side >= 28
    most = max(float(np.nanmax(values, initial=0.0)), LEAST_SCALE)
    bottom = high * (number - 1)
    chart = _chart(FULL_PAGE, bottom + _label_height(names), title)
    for row in range(1, number):
        chart.text(left - 8, (row - 0.5) * high + 4, short(names[row]), "name", "end")
        for column in range(row):
            value = float(values[row, column])
            if np.isnan(value):
                continue
            hint = f"{visible(names[row])}, {visible(names[column])}: {value:.3f}"
            number_shown = f"{value:.2f}".removeprefix("0") if numbered else ""
            place = (left + column * side, (row - 1) * high)
            _cell(chart, *place, side, high, max(value / most, 0.03), hint, number_shown)
    _below(chart, names[:-1], left, bottom, side)
    return chart.svg()


def curve_figure(title: str, errors: Numbers, mean: float) -> str:
    """Errors from the smallest to the largest, and their mean."""
    left, right, top, floor = 52.0, FULL_PAGE - 92.0, 12.0, 200.0
    ordered = np.sort(errors)
    places = np.unique(np.linspace(0, len(ordered) - 1, min(len(ordered), MOST_CURVE_POINTS)).round().astype(int))
    most = float(ordered[-1]) * 1.05 or 1.0
    x, y = Scale(0, max(len(ordered) - 1, 1), left, right), Scale(0, most, floor, top)
    points = [(x(float(place)), y(float(ordered[place]))) for place in places]
    chart = _chart(FULL_PAGE, floor + 24, title)
    chart.across(y, [(value, f"{value:g}") for value in _ticks(most)], left, right)
    chart.area(points, floor, "ours")
    chart.line(points, "ours")
    chart.line([(left, y(mean)), (right, y(mean))], "mean")
    chart.text(right + 6, y(mean) + 4, f"mean {error_text(mean)}", "tick")
    chart.line([(left, floor), (right, floor)], "axis")
    chart.text(left, floor + 18, "the best", "tick")
    chart.text(right, floor + 18, "the worst", "tick", "end")
    chart.text((left + right) / 2, floor + 18, f"{len(ordered):,} marginals", "tick", "middle")
    return chart.svg()


def short(label: str) -> str:
    """The beginning of a label, safe to show."""
    shown = visible(label)
    return shown if len(shown) <= LONGEST_LABEL else shown[: LONGEST_LABEL - 1] + "…"


def _longest(labels: Sequence[str]) -> int:
    return max((len(short(label)) for label in labels), default=0)


def _label_height(labels: Sequence[str]) -> float:
    """The height of turned labels."""
    return 18 + 0.71 * LETTER_WIDTH * _longest(labels)


def _chart(width: int, height: float, title: str) -> Chart:
    """An empty figure that is never wider than this."""
    chart = Chart(width, round(height), title)
    chart.root.set("style", f"max-width:{width}px")
    return chart


def _cell(
    chart: Chart, left: float, top: float, wide: float, high: float, strength: float, hint: str, number_shown: str
) -> None:
    """A cell of a heat map or matrix. Under a number the colour is never so strong that it cannot be read."""
    if strength >= WEAKEST_COLOUR:
        style = "cell" if number_shown else "bar"
        chart.bar(left, top, left + wide - 1, top + high - 1, style, hint, opacity=strength)
    if number_shown:
        chart.text(left + wide / 2, top + high / 2 + 4, number_shown, "small number", "middle")


def _side(chart: Chart, labels: Sequence[str], left: float, high: float) -> None:
    """The labels of rows, as many as do not touch."""
    every = ceil(LABEL_SPACING / high)
    for row, label in enumerate(labels):
        if row % every == 0:
            chart.text(left - 6, (row + 0.5) * high + 4, short(label), "name", "end")


def _below(chart: Chart, labels: Sequence[str], left: float, top: float, wide: float) -> None:
    """The labels of columns, turned, as many as do not touch."""
    every = ceil(TURNED_LABEL_SPACING / wide)
    for place, label in enumerate(labels):
        if place % every == 0:
            chart.text(left + (place + 0.5) * wide + 3, top + 12, short(label), "name", "end", degrees=-45)


def _ticks(most: float) -> list[float]:
    """Round numbers up to the largest: three to seven of them."""
    step = 10.0 ** np.floor(np.log10(most))
    step = next(step * share for share in (1.0, 0.5, 0.2, 0.1) if most / (step * share) >= 3)
    return [float(f"{step * each:.10g}") for each in range(int(most / step) + 1)]

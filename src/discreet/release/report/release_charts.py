"""The figures on the page of a release: bars, heat maps, a matrix and a curve, as SVG that a style sheet colours.

Every text is escaped here and nowhere else, because names and categories come from outside. A figure scales with its
width, and its title is what a screen reader reads.
"""

from collections.abc import Callable, Sequence
from html import escape
from math import ceil

import numpy as np

from discreet.answer import error_text, visible
from discreet.types import Numbers

# Widths on paper: of a figure in half a page and of one across it; of a letter; the height of a row.
HALF_PAGE, FULL_PAGE, LETTER_WIDTH, ROW_HEIGHT = 440.0, 900.0, 7.0, 19.0
# The least distance between labels, and between turned labels; and the width of a cell that has room for a number.
LABEL_SPACING, TURNED_LABEL_SPACING, NUMBERED_CELL_WIDTH = 14.0, 17.0, 34.0
# The colour scale of a matrix ends at its largest value, or here if that is smaller: then no cell looks strong.
LEAST_SCALE = 0.1
# Letters of a label that are shown.
LONGEST_LABEL = 20
# A curve has no more points than a screen shows.
MOST_CURVE_POINTS = 400


def drawing(width: float, height: float, title: str, shapes: Sequence[str]) -> str:
    """An SVG with a title."""
    return (
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" role="img" class="chart" style="max-width:{width:.0f}px" '
        f'aria-label="{escape(title)}">\n' + "\n".join(shapes) + "\n</svg>"
    )


def text_element(x: float, y: float, words: str, style: str = "", anchor: str = "start", turn: float = 0.0) -> str:
    """Some words; `anchor` says which end of them is at x."""
    turned = f' transform="rotate({turn:g} {x:.1f} {y:.1f})"' if turn else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{f"text {style}".strip()}"{turned}>'
        f"{escape(words)}</text>"
    )


def filled_rectangle(
    left: float, top: float, wide: float, high: float, style: str, hint: str = "", strength: float = 1.0
) -> str:
    """A filled rectangle of this opacity, with its meaning as a tooltip."""
    faint = f' fill-opacity="{strength:.2f}"' if strength < 1 else ""
    return (
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{max(wide, 0):.1f}" height="{max(high, 0):.1f}" '
        f'class="{style}"{faint}><title>{escape(hint)}</title></rect>'
    )


def line(points: Sequence[tuple[float, float]], style: str) -> str:
    """A line through these points."""
    path = "L".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<path d="M{path}" class="line {style}"/>'


def bars_figure(title: str, labels: Sequence[str], values: Numbers, write: Callable[[float], str]) -> str:
    """A horizontal bar for each label, and its number as `write` says it."""
    texts = [write(value) for value in values.tolist()]
    left = LETTER_WIDTH * max((len(short(label)) for label in labels), default=0) + 8
    right = HALF_PAGE - LETTER_WIDTH * max(map(len, texts), default=0) - 8
    most = max(float(values.max(initial=0.0)), 1e-300)
    shapes = []
    for row, (label, value, number_shown) in enumerate(zip(labels, values.tolist(), texts, strict=True)):
        top = row * ROW_HEIGHT
        shapes += [
            text_element(left - 8, top + 14, short(label), "name", "end"),
            filled_rectangle(
                left,
                top + 3,
                (right - left) * max(value, 0.0) / most,
                ROW_HEIGHT - 6,
                "bar",
                f"{visible(label)}: {number_shown}",
            ),
            text_element(HALF_PAGE, top + 14, number_shown, "number", "end"),
        ]
    shapes.append(line([(left, 0), (left, ROW_HEIGHT * len(texts))], "axis"))
    return drawing(HALF_PAGE, ROW_HEIGHT * len(texts) + 2, title, shapes)


def heat_figure(
    title: str, names: tuple[str, str], labels: tuple[Sequence[str], Sequence[str]], counts: Numbers
) -> str:
    """A cell for each pair of labels, the stronger the more rows are in it; the longer labels are at the side."""
    if _longest(labels[0]) < _longest(labels[1]):
        names, labels, counts = names[::-1], labels[::-1], counts.T
    left = LETTER_WIDTH * max(_longest(labels[0]), 4) + 36
    wide = min((HALF_PAGE - left) / counts.shape[1], 64.0)
    high = min(max(wide, LABEL_SPACING), 26.0)
    # Under a number a colour is never so strong that it cannot be read.
    numbered = wide >= NUMBERED_CELL_WIDTH
    cells = np.maximum(counts, 0.0)
    most, whole = max(float(cells.max(initial=0.0)), 1e-300), max(float(cells.sum()), 1e-300)
    shapes = []
    for (row, column), count in np.ndenumerate(cells):
        # The eye sees areas: the root shows small cells too.
        strength = float(np.sqrt(count / most))
        place = (left + column * wide, row * high)
        hint = f"{visible(labels[0][row])}, {visible(labels[1][column])}: {count:,.0f} ({count / whole:.1%})"
        if strength >= 0.02:
            shapes.append(filled_rectangle(*place, wide - 1, high - 1, "cell" if numbered else "bar", hint, strength))
        if numbered:
            number_shown = f"{100 * count / whole:.1f}"
            shapes.append(
                text_element(place[0] + wide / 2, place[1] + high / 2 + 4, number_shown, "small number", "middle")
            )
    bottom = high * counts.shape[0]
    shapes += _side(labels[0], left, high)
    shapes += _below(labels[1], left, bottom, wide)
    under = bottom + _depth(labels[1])
    shapes += [
        text_element(12, bottom / 2, short(names[0]), "label", "middle", -90),
        text_element(left + wide * counts.shape[1] / 2, under + 12, short(names[1]), "label", "middle"),
    ]
    return drawing(HALF_PAGE, under + 18, title, shapes)


def matrix_figure(title: str, names: Sequence[str], values: Numbers) -> str:
    """Half a square of all pairs of names; NaN where nothing is said of a pair."""
    number = len(names)
    left = LETTER_WIDTH * _longest(names) + 14
    side = min((FULL_PAGE - left - 60) / max(number - 1, 1), 46.0)
    high, numbered = min(side, 28.0), side >= 28
    most = max(float(np.nanmax(values, initial=0.0)), LEAST_SCALE)
    shapes = []
    for row in range(1, number):
        shapes.append(text_element(left - 8, (row - 0.5) * high + 4, short(names[row]), "name", "end"))
        for column in range(row):
            value = float(values[row, column])
            if np.isnan(value):
                continue
            strength = max(value / most, 0.03)
            place = (left + column * side, (row - 1) * high)
            hint = f"{visible(names[row])}, {visible(names[column])}: {value:.3f}"
            shapes.append(filled_rectangle(*place, side - 1, high - 1, "cell" if numbered else "bar", hint, strength))
            if numbered:
                number_shown = f"{value:.2f}".removeprefix("0")
                shapes.append(
                    text_element(place[0] + side / 2, place[1] + high / 2 + 4, number_shown, "small number", "middle")
                )
    bottom = high * (number - 1)
    shapes += _below(names[:-1], left, bottom, side)
    return drawing(FULL_PAGE, bottom + _depth(names), title, shapes)


def curve_figure(title: str, errors: Numbers, mean: float) -> str:
    """Errors from the smallest to the largest, and their mean."""
    left, right, top, floor = 52.0, FULL_PAGE - 92.0, 12.0, 200.0
    ordered = np.sort(errors)
    places = np.unique(np.linspace(0, len(ordered) - 1, min(len(ordered), MOST_CURVE_POINTS)).round().astype(int))
    most = float(ordered[-1]) * 1.05 or 1.0

    def at(place: float, error: float) -> tuple[float, float]:
        return left + (right - left) * place / max(len(ordered) - 1, 1), floor - (floor - top) * error / most

    points = [at(float(place), float(ordered[place])) for place in places]
    area = "L".join(f"{x:.1f},{y:.1f}" for x, y in [(left, floor), *points, (points[-1][0], floor)])
    shapes = []
    for value in _ticks(most):
        y = at(0, value)[1]
        shapes += [line([(left, y), (right, y)], "grid"), text_element(left - 8, y + 4, f"{value:g}", "tick", "end")]
    level = at(0, mean)[1]
    shapes += [
        f'<path d="M{area}Z" class="area"/>',
        line(points, "ours"),
        line([(left, level), (right, level)], "mean"),
        text_element(right + 6, level + 4, f"mean {error_text(mean)}", "tick"),
        line([(left, floor), (right, floor)], "axis"),
        text_element(left, floor + 18, "the best", "tick"),
        text_element(right, floor + 18, "the worst", "tick", "end"),
        text_element((left + right) / 2, floor + 18, f"{len(ordered):,} marginals", "tick", "middle"),
    ]
    return drawing(FULL_PAGE, floor + 24, title, shapes)


def short(label: str) -> str:
    """The beginning of a label, safe to show."""
    shown = visible(label)
    return shown if len(shown) <= LONGEST_LABEL else shown[: LONGEST_LABEL - 1] + "…"


def _longest(labels: Sequence[str]) -> int:
    return max((len(short(label)) for label in labels), default=0)


def _depth(labels: Sequence[str]) -> float:
    """How far down turned labels reach."""
    return 18 + 0.71 * LETTER_WIDTH * _longest(labels)


def _side(labels: Sequence[str], left: float, high: float) -> list[str]:
    """The labels of rows, as many as do not touch."""
    every = ceil(LABEL_SPACING / high)
    return [
        text_element(left - 6, (row + 0.5) * high + 4, short(label), "name", "end")
        for row, label in enumerate(labels)
        if row % every == 0
    ]


def _below(labels: Sequence[str], left: float, top: float, wide: float) -> list[str]:
    """The labels of columns, turned, as many as do not touch."""
    every = ceil(TURNED_LABEL_SPACING / wide)
    return [
        text_element(left + (place + 0.5) * wide + 3, top + 12, short(label), "name", "end", -45)
        for place, label in enumerate(labels)
        if place % every == 0
    ]


def _ticks(most: float) -> list[float]:
    """Round numbers up to the largest: three to seven of them."""
    step = 10.0 ** np.floor(np.log10(most))
    step = next(step * share for share in (1.0, 0.5, 0.2, 0.1) if most / (step * share) >= 3)
    return [float(f"{step * each:.10g}") for each in range(int(most / step) + 1)]

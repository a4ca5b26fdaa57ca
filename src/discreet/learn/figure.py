"""Figure 2 of the lecture: the centres of Lloyd's algorithm and of its private variant, round by round."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from discreet.page.chart import Chart, Scale

Floats = NDArray[np.float64]

_PANEL, _GAP, _HEAD, _ARM = 220, 16, 26, 5.0
_ACROSS, _MOST_DOTS = 3, 400


def lloyd_path(rows: Floats, centers: Floats, rounds: int) -> Floats:
    """The centres of Algorithm 1, exact and not private, from given ones on: rounds + 1 of them.

    >>> lloyd_path(np.array([[0.0], [1.0], [9.0]]), np.array([[0.0], [5.0]]), 1)[-1].tolist()
    [[0.5], [9.0]]

    [002 Alg. 1]
    """
    path = [np.asarray(centers, dtype=np.float64)]
    for _ in range(rounds):
        now = path[-1]
        labels = np.argmin(((rows[:, None, :] - now[None, :, :]) ** 2).sum(axis=2), axis=1)
        means = [
            rows[labels == place].mean(axis=0) if (labels == place).any() else old for place, old in enumerate(now)
        ]
        path.append(np.array(means))
    return np.array(path)


def figure_two(
    rows: Floats, plain: Sequence[Floats] | Floats, private: Sequence[Floats] | Floats, *, low: float, high: float
) -> Chart:
    """A panel for each round: some of the rows, crosses of the exact algorithm (second) and of the private one (ours).

    The rows are shown as they are: draw this for made-up rows, not for people.
    """
    panels = min(len(plain), len(private))
    lines = -(-panels // _ACROSS)
    width, height = _ACROSS * (_PANEL + _GAP), lines * (_PANEL + _GAP + _HEAD)
    chart = Chart(width, height, "centres of k-means, exact and private, round by round")
    for place in range(panels):
        left = (place % _ACROSS) * (_PANEL + _GAP)
        top = (place // _ACROSS) * (_PANEL + _GAP + _HEAD) + _HEAD
        across, up = Scale(low, high, left, left + _PANEL), Scale(low, high, top + _PANEL, top)
        chart.text(left, top - 8, f"t = {place}", "label")
        edge = [(left, top), (left + _PANEL, top), (left + _PANEL, top + _PANEL), (left, top + _PANEL), (left, top)]
        chart.line([(float(x), float(y)) for x, y in edge], "grid")
        for x, y in rows[:: max(1, len(rows) // _MOST_DOTS)]:
            chart.dot(across(x), up(y), "muted", 1.2)
        for centers, style in ((plain[place], "second"), (private[place], "ours")):
            for x, y in centers:
                _cross(chart, across(float(x)), up(float(y)), style)
    return chart


def _cross(chart: Chart, x: float, y: float, style: str) -> None:
    chart.line([(x - _ARM, y - _ARM), (x + _ARM, y + _ARM)], style)
    chart.line([(x - _ARM, y + _ARM), (x + _ARM, y - _ARM)], style)

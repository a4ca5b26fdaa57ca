"""Small charts as SVG: trees of elements, so that every text is escaped and every chart is well-formed.

Colours and sizes of letters come from the page's style sheet, by class; a chart scales with the width it is given.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log10
from xml.etree.ElementTree import Element, SubElement, indent, tostring

Point = tuple[float, float]
Tick = tuple[float, str]


@dataclass(frozen=True, slots=True)
class Scale:
    """From numbers to places on paper, evenly or by powers of ten.

    >>> Scale(0, 10, 100, 200)(5), Scale(1, 100, 0, 10, log=True)(10)
    (150.0, 5.0)
    """

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Where a number is; what is off the scale is at its end."""
        low, high, at = (log10(max(each, 1e-300)) if self.log else each for each in (self.low, self.high, value))
        share = min(max((at - low) / (high - low), 0.0), 1.0)
        return round(self.start + share * (self.end - self.start), 2)


class Chart:
    """An SVG drawing with a title for those who cannot see it."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.width, self.height = width, height
        self.root = Element(
            "svg", {"viewBox": f"0 0 {width} {height}", "role": "img", "aria-label": title, "class": "chart"}
        )

    def svg(self) -> str:
        """The drawing as text."""
        indent(self.root, space=" ")
        return tostring(self.root, encoding="unicode")

    def text(
        self, x: float, y: float, text: str, style: str = "", anchor: str = "start", *, degrees: float = 0.0
    ) -> None:
        """Some words; `anchor` says which end of them is at x: start, middle or end. They are turned about it."""
        at = {"x": f"{x:g}", "y": f"{y:g}", "text-anchor": anchor, "class": f"text {style}".strip()}
        if degrees:
            at["transform"] = f"rotate({degrees:g} {x:g} {y:g})"
        SubElement(self.root, "text", at).text = text

    def line(self, points: Iterable[Point], style: str) -> None:
        """A line through these points."""
        SubElement(self.root, "path", {"d": _path(points), "class": f"line {style}"})

    def area(self, points: Sequence[Point], floor: float, style: str) -> None:
        """What lies between a line and the floor."""
        if points:
            closed = [*points, (points[-1][0], floor), (points[0][0], floor)]
            SubElement(self.root, "path", {"d": f"{_path(closed)}Z", "class": f"area {style}"})

    def bar(
        self, left: float, top: float, right: float, bottom: float, style: str, hint: str = "", *, opacity: float = 1.0
    ) -> None:
        """A filled rectangle, with its meaning as a tooltip."""
        at = {"x": left, "y": top, "width": max(right - left, 0), "height": max(bottom - top, 0)}
        drawn = SubElement(self.root, "rect", {**{name: f"{value:g}" for name, value in at.items()}, "class": style})
        if opacity < 1:
            drawn.set("fill-opacity", f"{opacity:.2f}")
        _hint(drawn, hint)

    def dot(self, x: float, y: float, style: str, radius: float = 4, hint: str = "") -> None:
        """A round mark."""
        at = {"cx": f"{x:g}", "cy": f"{y:g}", "r": f"{radius:g}", "class": f"dot {style}"}
        _hint(SubElement(self.root, "circle", at), hint)

    def across(self, scale: Scale, ticks: Iterable[Tick], left: float, right: float) -> None:
        """Lines from left to right with the numbers of a vertical axis."""
        for value, label in ticks:
            self.line([(left, scale(value)), (right, scale(value))], "grid")
            self.text(left - 8, scale(value) + 4, label, "tick", "end")

    def below(self, scale: Scale, ticks: Iterable[Tick], floor: float) -> None:
        """The numbers of a horizontal axis."""
        for value, label in ticks:
            self.line([(scale(value), floor), (scale(value), floor + 5)], "axis")
            self.text(scale(value), floor + 19, label, "tick", "middle")
        self.line([(scale.start, floor), (scale.end, floor)], "axis")


def _path(points: Iterable[Point]) -> str:
    return "M" + "L".join(f"{x:g},{y:g}" for x, y in points)


def _hint(element: Element, hint: str) -> None:
    if hint:
        SubElement(element, "title").text = hint

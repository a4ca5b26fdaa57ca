"""Numbers with error bars for people: as text, as bars on a terminal, as a small SVG in a notebook.

What an analyst gets: numbers with error bars that hold, and what they cost.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from math import ceil, floor, inf, isfinite, log10
from typing import Any, Literal

import numpy as np

from discreet.accounting.event import Event
from discreet.errors import BadParameter
from discreet.ledger.accounts import Budget
from discreet.types import Numbers

# A terminal of 80 letters holds the labels, the bars and the numbers.
_WIDTH, _NARROWEST, _WIDEST, _LONGEST = 80, 8, 28, 28
# In a notebook: the height of a row, the width of the bars and of a letter, in pixels.
_ROW, _BARS, _LETTER = 20, 220, 6.7
# Outside these, digits are too many to read.
_TINY, _HUGE = 1e-6, 1e9


@dataclass(frozen=True, slots=True)
class Series:
    """One number for each row, and its error."""

    name: str
    values: Sequence[Any]
    errors: Sequence[float]

    def texts(self) -> list[str]:
        """Each number with its error, the ± one below the other."""
        pairs = list(map(_pair, self.values, self.errors))
        value, error = (max((len(pair[side]) for pair in pairs), default=0) for side in (0, 1))
        return [
            left.rjust(value) + (f" ± {right.rjust(error)}" if right else " " * (3 + error)) for left, right in pairs
        ]

    @property
    def axis(self) -> tuple[float, float]:
        """From zero, or the lowest value below it, to the end of the longest bar."""
        known = [(value, error) for value, error in zip(self.values, self.errors, strict=True) if _drawn(value, error)]
        low = min([0.0, *(value for value, _ in known)])
        high = max([0.0, *(value + error for value, error in known)])
        return float(low), float(high if high > low else low + 1)


@dataclass(frozen=True, slots=True)
class Picture:
    """The rows of an answer: what they are of, and their numbers."""

    labels: Mapping[str, Sequence[Any]]
    series: tuple[Series, ...]

    @property
    def rows(self) -> int:
        """How many there are."""
        return len(self.series[0].values)

    def first(self, rows: int) -> "Picture":
        """The beginning of it."""
        return Picture(
            {name: values[:rows] for name, values in self.labels.items()},
            tuple(Series(each.name, each.values[:rows], each.errors[:rows]) for each in self.series),
        )


def picture_of(columns: Mapping[str, Sequence[Any]]) -> Picture:
    """The picture of a table in which the column `name_error` has the errors of `name`."""
    series = [name for name in columns if f"{name}_error" in columns]
    beside = {f"{name}_error" for name in series}
    labels = {name: values for name, values in columns.items() if name not in beside and name not in series}
    return Picture(labels, tuple(Series(name, columns[name], columns[f"{name}_error"]) for name in series))


def error_text(error: float) -> str:
    """A half-width to three digits, rounded up, so that what is shown still holds.

    >>> error_text(199.9999999), error_text(16_612.3), error_text(0.84961), error_text(2e9)
    ('200', '16,700', '0.85', '2e+09')
    """
    if not isfinite(error):
        return "∞"
    if 0 < error < _TINY:
        return f"{error:.3g}"
    if error < _HUGE and abs(error - round(error)) <= 1e-6 * error:
        return f"{round(error):,}"
    digits = 2 - floor(log10(error))
    up = ceil(error * 10.0**digits * (1 - 1e-9)) / 10.0**digits
    return f"{up:.3g}" if error >= _HUGE else _short(f"{up:,.{max(digits, 0)}f}")


def _short(number: str) -> str:
    return number.rstrip("0").rstrip(".") if "." in number else number


def number_text(value: Any, error: float) -> str:
    """A number with its error, in as many digits as say something.

    >>> number_text(526.34, 199.99999), number_text(37.2901, 0.91702), number_text(None, 3.0)
    ('526 ± 200', '37.290 ± 0.918', 'none')
    """
    left, right = _pair(value, error)
    return f"{left} ± {right}" if right else left


def _pair(value: Any, error: float) -> tuple[str, str]:
    if not _drawn(value, error):
        return ("unknown" if error == inf else "none"), ""
    shown = error_text(error)
    if error >= 5 or value == int(value):
        # Rounding must not add a sign to nothing: -0.3 is 0.
        return f"{round(value):,}", shown
    if error < _TINY:
        return f"{float(value):,}", shown
    decimals = max(len(shown.partition(".")[2]), 2 if error < 1 else 1)
    return f"{round(float(value), decimals) + 0.0:,.{decimals}f}", shown


def _drawn(value: Any, error: float) -> bool:
    return value is not None and isfinite(value) and isfinite(error)


def visible(label: Any) -> str:
    """The label of a cell: shortened, and with control characters written out.

    >>> visible(None), visible("a\\x1b[2J"), visible(True)
    ('missing', 'a\\\\x1b[2J', 'True')
    """
    text = "missing" if label is None else str(label)
    text = "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def draw_text(picture: Picture, rows: int) -> str:
    """The table on a terminal: of one number with bars, of several without."""
    shown = picture.first(rows)
    columns = [_column(name, values) for name, values in shown.labels.items()]
    numbers = [each.texts() for each in shown.series]
    if len(shown.series) == 1 and shown.labels:
        (series,), (texts,) = shown.series, numbers
        taken = sum(len(column[0]) + 2 for column in columns) + max(map(len, texts), default=0) + 1
        width = min(max(_WIDTH - taken, _NARROWEST), _WIDEST)
        bars = [bar_text(*pair, series.axis, width) for pair in zip(series.values, series.errors, strict=True)]
        columns += [
            [visible(series.name), *(f"{bar} {text}" for bar, text in zip(bars, texts, strict=True))],
        ]
    else:
        for series, texts in zip(shown.series, numbers, strict=True):
            wide = max(map(len, [visible(series.name), *texts]))
            columns.append([text.rjust(wide) for text in [visible(series.name), *texts]])
    lines = ["  ".join(line).rstrip() for line in zip(*columns, strict=True)]
    return "\n".join([*lines, *_more(picture, rows)])


def _column(name: str, values: Sequence[Any]) -> list[str]:
    """The labels of one column under its name: numbers to the right."""
    texts = [visible(name), *map(visible, values)]
    wide, left = max(map(len, texts)), any(isinstance(value, (str, bool)) for value in values)
    return [text.ljust(wide) if left else text.rjust(wide) for text in texts]


def _more(picture: Picture, rows: int) -> list[str]:
    hidden = picture.rows - rows
    return [f"… and {hidden:,} more row{'s' * (hidden > 1)}"] if hidden > 0 else []


def bar_text(value: Any, error: float, axis: tuple[float, float], width: int) -> str:
    """A bar from zero to the value, and the error around its end.

    >>> bar_text(60, 20, (0, 100), 10), bar_text(60, 0, (0, 100), 10), bar_text(-5, 20, (-50, 50), 10)
    ('████▒┼─┤  ', '█████▏    ', '  ├─┼─┤   ')
    """
    if not _drawn(value, error):
        return " " * width

    def place(number: float) -> int:
        return min(max(round((number - axis[0]) / (axis[1] - axis[0]) * (width - 1)), 0), width - 1)

    zero, here, low, high = place(0), place(value), place(value - error), place(value + error)
    letters = [" "] * width
    for cell in range(low, high + 1):
        letters[cell] = "─"
    letters[low], letters[high] = "├", "┤"
    for cell in range(min(zero, here), max(zero, here)):
        letters[cell] = "▒" if low <= cell <= high else "█"
    letters[here] = "┼" if low < here or here < high else "▏"
    return "".join(letters)


def draw_html(picture: Picture, rows: int, foot: str) -> str:
    """The table in a notebook: an SVG of bars with error bars, readable on light and on dark."""
    shown = picture.first(rows)
    labels = [" · ".join(map(visible, row)) for row in zip(*shown.labels.values(), strict=True)]
    labels = labels or [""] * shown.rows
    head = " · ".join(map(visible, shown.labels))
    left = _LETTER * max(map(len, [head, *labels])) + 12
    drawn = [_text(0, 0, head, "fill-opacity='.65'")]
    drawn += [_text(0, row + 1, label) for row, label in enumerate(labels)]
    for series in shown.series:
        texts = [text.strip() for text in series.texts()]
        drawn += _panel(series, texts, left)
        left += _BARS + _LETTER * max(map(len, ["", *texts])) + 24
    height = _ROW * (shown.rows + 1) + 4
    svg = (
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{left:.0f}' height='{height}' role='img' "
        "style='fill:currentColor;max-width:none'>"
        f"{''.join(drawn)}</svg>"
    )
    lines = "".join(f"<div>{escape(line)}</div>" for line in [*_more(picture, rows), foot])
    return f"<div style='overflow-x:auto;font:12px system-ui,sans-serif'>{svg}{lines}</div>"


def _panel(series: Series, texts: Sequence[str], left: float) -> list[str]:
    low, high = series.axis

    def place(number: float) -> float:
        return left + _BARS * (min(max(number, low), high) - low) / (high - low)

    zero = place(0)
    drawn = [_text(left, 0, visible(series.name), "fill-opacity='.65'"), _axis(zero, len(texts))]
    for row, (value, error, text) in enumerate(zip(series.values, series.errors, texts, strict=True)):
        drawn.append(_text(left + _BARS + 8, row + 1, text))
        if _drawn(value, error):
            drawn += _bar(place, float(value), float(error), _ROW * (row + 1.5))
    return drawn


def _bar(place: Callable[[float], float], value: float, error: float, middle: float) -> list[str]:
    """A bar, and its error with a stop at each end."""
    begin, end = sorted((place(0), place(value)))
    low, high = place(value - error), place(value + error)
    stops = f"M{low:.1f} {middle:.0f}H{high:.1f}" + "".join(f"M{x:.1f} {middle - 4:.0f}v8" for x in (low, high))
    return [
        f"<rect x='{begin:.1f}' y='{middle - 6:.0f}' width='{end - begin:.1f}' height='12' fill='#4c8bf5' "
        "fill-opacity='.7'/>",
        f"<path d='{stops}' stroke='currentColor' stroke-width='1.3' fill='none'/>",
    ]


def _axis(x: float, rows: int) -> str:
    return f"<path d='M{x:.1f} {_ROW}v{_ROW * rows}' stroke='currentColor' stroke-opacity='.4' fill='none'/>"


def _text(x: float, row: int, text: str, more: str = "") -> str:
    return f"<text x='{x:.1f}' y='{_ROW * row + 14}' {more}>{escape(text)}</text>"


# As many rows as `print(answer)` shows, and as a notebook does.
_SHOWN, _SHOWN_IN_NOTEBOOK = 12, 40


@dataclass(frozen=True, slots=True)
class Answer:
    """A private answer: the true value is within `error` of `value` with probability `confidence`.

    For a question with groups both are arrays with an entry for each row shown, and for several aggregates tuples of
    such. Each error holds by itself; where HAVING or LIMIT choose rows by the released numbers, all of them hold
    together, so that the choice does not spoil them.

    `origin` says where it comes from: "known" follows from earlier answers and was free, "measured" topped up what is
    known of its columns, "direct" was measured by itself, "model" is what a model says: checked against the rows and
    within the error like all others; or, if the error is infinite, a guess without any guarantee. Of a release it is
    "bounded" if the error is guaranteed and "estimated" if it is thought to hold about that often. `remaining` is what
    is left of the budget afterwards.

    `cost` is what was done to the table, from which its price in any currency follows; `price` is what that alone is,
    as an epsilon at the table's delta; `neighbors` says whom it protects; `columns` is the answer as a table, with the
    error of each number beside it.
    """

    value: Any
    error: Any
    confidence: float
    cost: Event
    neighbors: str
    columns: Mapping[str, Sequence[Any]] = field(default_factory=dict, repr=False, compare=False)
    origin: str = "direct"
    remaining: Budget | None = None
    price: float | None = None

    def to_arrow(self) -> Any:
        """The answer as a pyarrow Table."""
        import pyarrow as pa

        return pa.table({name: pa.array(list(values)) for name, values in self.columns.items()})

    def to_frame(self, library: Literal["pandas", "polars"] = "pandas") -> Any:
        """The answer as a DataFrame of pandas or polars."""
        if library == "pandas":
            return self.to_arrow().to_pandas()
        if library == "polars":
            import polars

            return polars.from_arrow(self.to_arrow())
        raise BadParameter(f'library is {library!r}; it must be "pandas" or "polars". For others use to_arrow().')

    def __str__(self) -> str:
        """One number with its error; otherwise a table with bars, or its beginning.

        >>> print(Answer(692, 30.0, 0.95, cost=None, neighbors="one row is added or removed"))
        692 ± 30 (95 %)
        >>> left = Budget(epsilon=0.9, delta=1e-9)
        >>> print(Answer(692.3, 200.0, 0.95, cost=None, neighbors="", origin="measured", remaining=left))
        692 ± 200 (95 %), measured; epsilon 0.9 left
        """
        if np.ndim(self.value) == 0:
            if self._guessed:
                return f"{self.value:,.0f}, {self._foot}"
            return f"{number_text(self.value, self.error)} {self._foot}"
        return f"{draw_text(self._picture, _SHOWN)}\n{self._foot}"

    def _repr_html_(self) -> str:
        """The same in a notebook, with a chart."""
        if np.ndim(self.value) == 0:
            return f"<span>{escape(str(self))}</span>"
        return draw_html(self._picture, _SHOWN_IN_NOTEBOOK, self._foot)

    @property
    def _picture(self) -> Picture:
        if self.columns:
            return picture_of(self.columns)
        values = np.ravel(self.value)
        return Picture({}, (Series("value", values.tolist(), np.broadcast_to(self.error, values.shape).tolist()),))

    @property
    def _guessed(self) -> bool:
        return self.origin == "model" and bool(np.isinf(self.error).all())

    @property
    def _foot(self) -> str:
        """How sure it is, where it comes from, and what is left."""
        sure = f"({100 * self.confidence:g} %)"
        if self.origin == "estimated":
            return f"(about {100 * self.confidence:g} %: an estimate)"
        if self.remaining is None:
            return sure
        if self.origin == "known":
            return f"{sure}, known: free"
        if self._guessed:
            return "a model's guess, without any guarantee"
        how = {"direct": "measured directly", "mixed": "measured"}.get(self.origin, self.origin)
        return f"{sure}, {how}; epsilon {float(self.remaining.epsilon):.3g} left"


def mean_of(
    total: float, total_error: float, values: float, values_error: float, lowest: float, highest: float
) -> tuple[float | None, float]:
    """A mean from its released parts: a total, how many values it adds up, and the error of each.

    If both errors hold, the true mean is within the returned error of the returned value. It is between the lowest and
    the highest value that the column declares, whatever the noise. Of no values there is no mean.

    >>> mean_of(4000, 0, 100, 20, 1, 99)
    (40.0, 10.0)
    >>> mean_of(7, 50, 0, 2, 1, 99)
    (None, 98.0)
    """
    parts = np.array([[total], [total_error], [values], [values_error]], dtype=np.float64)
    means, errors = means_of(parts, lowest, highest)
    return None if np.isnan(means[0]) else float(means[0]), float(errors[0])


def means_of(parts: Numbers, lowest: float, highest: float) -> tuple[Numbers, Numbers]:
    """`mean_of` each column of totals, their errors, numbers of values and theirs; nan where there are no values."""
    totals, total_errors, values, values_errors = parts
    fewest, most = values - values_errors, values + values_errors
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        means = np.where(values > 0, np.clip(totals / values, lowest, highest), np.nan)
        ends = [end / number for end in (totals - total_errors, totals + total_errors) for number in (fewest, most)]
        low, high = np.maximum(np.min(ends, axis=0), lowest), np.minimum(np.max(ends, axis=0), highest)
        within = np.maximum(np.maximum(high - means, means - low), 0.0)
        # Any mean at all is possible where the number of values may be zero.
        errors = np.where(fewest > 0, within, np.maximum(highest - means, means - lowest))
    return means, np.where(values > 0, errors, highest - lowest)

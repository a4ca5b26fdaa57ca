"""What an analyst gets: numbers with error bars that hold, and what they cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, Literal

import numpy as np

from discreet.accounting.event import Event
from discreet.errors import BadParameter
from discreet.ledger.accounts import Budget
from discreet.report.rendering import Picture, Series, draw_html, draw_text, number_text, picture_of
from discreet.types import Numbers

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

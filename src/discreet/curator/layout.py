"""Numbers as the answer shows them: one number, an array, or columns of a table."""

from collections.abc import Sequence
from math import isnan
from typing import Any

import numpy as np

from discreet.curator.asked import ParsedQuestion
from discreet.known.bars import Bars
from discreet.query.linear import Marginal
from discreet.query.statement import shown_values
from discreet.schema.domain import Domain
from discreet.types import Numbers


def laid_out(parsed: ParsedQuestion, bars: Sequence[Bars], domain: Domain) -> tuple[Any, Any, dict[str, list[Any]]]:
    """The value, the error, and the answer as a table."""
    if parsed.select is None:
        (bar,) = bars
        question = parsed.parts[0].total
        # A marginal of no columns is one number.
        if not isinstance(question, Marginal) or not question.columns:
            value, error = _number(bar.values[0]), float(bar.errors[0])
            return value, error, {"value": [value], "value_error": [error]}
        shape = question.shape(domain)
        return bar.values.reshape(shape), bar.errors.reshape(shape), _table(question, bar, domain)
    if len(bars) == 1 and not parsed.group and not parsed.chosen:
        (part,), (bar,) = parsed.parts, bars
        value, error = _number(bar.values[0]), float(bar.errors[0])
        return value, error, {part.name: [value], f"{part.name}_error": [error]}
    numbers = [[_number(value) for value in bar.values.tolist()] for bar in bars]
    columns = parsed.select.tabulate(domain, numbers, [bar.errors for bar in bars])
    value, error = (_shaped(parsed, columns, suffix) for suffix in ("", "_error"))
    return value, error, columns


def _number(value: float) -> float | None:
    return None if isnan(value) else float(value)


def _shaped(parsed: ParsedQuestion, columns: dict[str, list[Any]], suffix: str) -> Any:
    """One number, an array, or a tuple of those."""
    each = [columns[part.name + suffix] for part in parsed.parts]
    shaped = [values[0] if not parsed.group and values else np.array(values) for values in each]
    return shaped[0] if len(shaped) == 1 else tuple(shaped)


def _table(question: Marginal, bar: Bars, domain: Domain) -> dict[str, list[Any]]:
    shape = question.shape(domain)
    cells = np.unravel_index(np.arange(len(bar.values)), shape) if shape else ()
    columns: dict[str, list[Any]] = {}
    for name, codes in zip(question.columns, cells, strict=True):
        shown = shown_values(domain[name])
        columns[name] = [shown[code] for code in codes.tolist()]
    values: Numbers = bar.values
    return {**columns, "value": values.tolist(), "value_error": bar.errors.tolist()}

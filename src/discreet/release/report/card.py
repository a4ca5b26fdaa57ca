"""The card of a release: what it is, whom it protects and how much, and its estimated error. Plain facts only."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from html import escape
from math import isfinite
from textwrap import TextWrapper
from typing import Any

from discreet.accounting.filter import TICK, Ticks
from discreet.answer import error_text, number_text, visible
from discreet.errors import BadData
from discreet.ledger.accounts import Budget
from discreet.numeric import float_above
from discreet.release.report.privacy_statement import estimated, guaranteed, not_promised
from discreet.schema.column import Bins, Categories, Column, Integers
from discreet.schema.domain import Domain
from discreet.schema.unit import Unit

# The form of the file; a reader refuses one that it does not know.
CARD_FORMAT = "discreet card 1"
_WIDTH, _LABEL = 88, 13
_WORDS = ("guaranteed", "estimated", "not_promised")
TITLES = ("Guaranteed", "Estimated", "Not promised")


@dataclass(frozen=True, slots=True)
class CardColumn:
    """A column: its name, what its cells are, and how many there are, the extra ones included."""

    name: str
    kind: str
    cells: int


@dataclass(frozen=True, slots=True)
class MarginalError:
    """The estimated L1 error of one marginal, as a share of the rows, and how much the marginal matters."""

    columns: tuple[str, ...]
    error: float
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A privacy statement that programs and people can read.

    `budget` is the limit that was requested, which the release by itself keeps; `spent` is the part of it that was
    used, as an epsilon and in `grains` of the gate's currency. `cap` limits everything that is ever released about the
    table, `table_spent` is what was spent on the table when the release was made, the release included, and `earlier`
    is 1 if anything was released before it (older cards have the number of spends). The release wrote the `entries` of
    the ledger. The number of `rows` is within `rows_error` with probability `rows_confidence`; an error of 0 says that
    it is public, None that it was not counted. `forecast` is the mean error that was forecast before anything was
    spent. No number is infinite: an unknown one is None, and 2 is the largest error.

    >>> card = Card(
    ...     table="people", columns=(CardColumn("old", "boolean", 2),), unit=Unit(), budget=Budget(0.5, 1e-9),
    ...     spent=Budget(0.5, 1e-9), grains=(3 * 10**14,), cap=Budget(1, 1e-9), table_spent=Budget(0.6, 1e-9),
    ...     earlier=2, method="direct", describe="every marginal by itself", forecast=0.02, goal="all 1-way marginals",
    ...     rows=1000.0, rows_error=12.0, errors=(MarginalError(("old",), 0.015, 1.0),), entries=(3, 4),
    ...     version="0.1.0", made="2026-01-31T12:00:00+00:00",
    ... )
    >>> Card.from_json(card.to_json()) == card, card.error, card.units
    (True, 0.015, (0.3,))
    """

    table: str
    columns: tuple[CardColumn, ...]
    unit: Unit
    budget: Budget
    spent: Budget
    grains: Ticks
    cap: Budget
    table_spent: Budget
    earlier: int
    method: str
    describe: str
    forecast: float | None
    goal: str
    rows: float
    rows_error: float | None
    rows_confidence: float = 0.95
    errors: tuple[MarginalError, ...]
    entries: tuple[int, ...]
    version: str
    made: str

    def __post_init__(self) -> None:
        # A file has doubles: other numbers are rounded up, so that a card that is read again is the same card.
        for name in ("budget", "spent", "cap", "table_spent"):
            object.__setattr__(self, name, _decimal(getattr(self, name)))
        for name in ("forecast", "rows_error"):
            value = getattr(self, name)
            object.__setattr__(self, name, float(value) if value is not None and isfinite(value) else None)
        errors = (MarginalError(each.columns, _bounded(each.error), float(each.weight)) for each in self.errors)
        object.__setattr__(self, "errors", tuple(errors))
        object.__setattr__(self, "rows", float(self.rows))

    @property
    def error(self) -> float:
        """The estimated L1 error of the marginals as a share of the rows: their mean, weighted as the goal says."""
        whole = sum(each.weight for each in self.errors)
        return sum(each.weight * each.error for each in self.errors) / whole if whole else 0.0

    @property
    def gate(self) -> str:
        """The gate that counted what was spent."""
        return str(self.spent.gate)

    @property
    def units(self) -> tuple[float, ...]:
        """What was spent in the currency of the gate: epsilon, squared mu, or the divergence at each order."""
        return tuple(float(each * TICK) for each in self.grains)

    @property
    def guaranteed(self) -> tuple[str, ...]:
        """What holds whatever the table is, in sentences."""
        return guaranteed(
            neighbors=self.unit.describe,
            budget=self.budget,
            cap=self.cap,
            earlier=self.earlier,
            rows_error=self.rows_error,
            rows_confidence=self.rows_confidence,
        )

    @property
    def estimated(self) -> tuple[str, ...]:
        """What is only estimated, in sentences."""
        return estimated(error=self.error if self.errors else None, forecast=self.forecast)

    @property
    def not_promised(self) -> tuple[str, ...]:
        """What a reader might think and should not, in sentences."""
        return not_promised(unit=self.unit, earlier=self.earlier, table_spent=self.table_spent)

    @property
    def summary(self) -> tuple[tuple[str, str], ...]:
        """The facts that a reader wants first: titles and texts."""
        before = "other answers were released before" if self.earlier else "nothing was released before"
        return (
            ("Table", f"{self.table}: {self._rows}, {_number(len(self.columns), 'column')}"),
            ("Protected", f"neighbours: {self.unit.describe}"),
            ("Budget", f"{self.budget}; {self.spent} spent, {self.gate} gate"),
            ("Whole table", f"{self.table_spent} spent up to this release, of at most {self.cap}; {before}"),
            ("Method", f"{self.method}: {self.describe}"),
            ("Made for", self.goal),
            ("Errors", self._errors),
            ("Ledger", _runs(self.entries)),
            ("Made", f"{self.made[:16].replace('T', ' ')} UTC by discreet {self.version}"),
        )

    @property
    def _rows(self) -> str:
        if self.rows_error:
            return f"{number_text(self.rows, self.rows_error)} ({100 * self.rows_confidence:g} %) rows"
        return f"{self.rows:,.0f} rows (public)" if self.rows_error == 0 else f"about {self.rows:,.0f} rows"

    @property
    def _errors(self) -> str:
        forecast = "" if self.forecast is None else f"; forecast {error_text(self.forecast)}"
        if not self.errors:
            return f"not estimated{forecast}"
        low, high = (pick(each.error for each in self.errors) for pick in (min, max))
        spread = "" if len(self.errors) == 1 else f", from {error_text(low)} to {error_text(high)}"
        return f"mean L1 error about {error_text(self.error)} of the rows{spread}{forecast}"

    def to_json(self) -> str:
        """The card as JSON, one field to a line, with its sentences; reading it again gives the same card."""
        plain = {"is": CARD_FORMAT} | {each.name: _to_plain(getattr(self, each.name)) for each in fields(self)}
        words = {name: list(getattr(self, name)) for name in _WORDS}
        lines = ",\n".join(
            f"  {json.dumps(name)}: {json.dumps(value, ensure_ascii=False, allow_nan=False)}"
            for name, value in (plain | words).items()
        )
        return f"{{\n{lines}\n}}\n"

    @classmethod
    def from_json(cls, text: str) -> "Card":
        """The card that was written; its sentences are made anew from its facts."""
        try:
            plain = json.loads(text)
        except json.JSONDecodeError as error:
            raise BadData(
                f"the card is not JSON ({error.msg}, line {error.lineno}). Take the file as it was."
            ) from None
        if not isinstance(plain, dict) or plain.get("is") != CARD_FORMAT:
            raise BadData(f'this is no card: it must say "is": "{CARD_FORMAT}". A newer discreet may have written it.')
        try:
            return cls(**{each.name: _from_plain(each.name, plain[each.name]) for each in fields(cls)})
        except (KeyError, TypeError, ValueError) as error:
            raise BadData(f"the card is incomplete or was changed: {error}. Take the file as it was.") from None

    def __str__(self) -> str:
        """All of it for a terminal."""
        promises = [
            (title if place == 0 else "", sentence)
            for title, sentences in zip(TITLES, self.sentences, strict=True)
            for place, sentence in enumerate(sentences)
        ]
        return f"{self.short}\n{_lines(promises)}"

    @property
    def short(self) -> str:
        """Its facts for a terminal, without the sentences."""
        return _lines(self.summary)

    @property
    def sentences(self) -> tuple[tuple[str, ...], ...]:
        """What is guaranteed, what is estimated, and what is not promised."""
        return self.guaranteed, self.estimated, self.not_promised

    def _repr_html_(self) -> str:
        """The same in a notebook."""
        rows = [(title, escape(text)) for title, text in self.summary]
        rows += [
            (title, "<br/>".join(map(escape, sentences)))
            for title, sentences in zip(TITLES, self.sentences, strict=True)
        ]
        style = "text-align:left;vertical-align:top;white-space:normal;max-width:70ch"
        cells = "".join(
            f"<tr><th style='{style}'>{title}</th><td style='{style}'>{text}</td></tr>" for title, text in rows
        )
        return f"<table>{cells}</table>"


def card_columns(domain: Domain) -> tuple[CardColumn, ...]:
    """The columns as a card lists them.

    >>> from discreet.schema.column import Boolean
    >>> card_columns(Domain({"old": Boolean(), "age": Integers(0, 99)}))
    (CardColumn(name='old', kind='boolean', cells=2), CardColumn(name='age', kind='integers', cells=101))
    """
    return tuple(CardColumn(name, _kind(column), column.size) for name, column in domain.columns)


def _kind(column: Column) -> str:
    match column:
        case Integers():
            return "integers"
        case Bins():
            return "dates" if column.kind == "date" else "bins"
        case Categories():
            truths = all(kind == "boolean" for kind, _ in column.readings[: column.inside])
            return "boolean" if truths else "ordered categories" if column.ordered else "categories"


def _decimal(budget: Budget) -> Budget:
    """The same budget in doubles, as a file has them, rounded up."""
    return Budget(_rounded(budget.epsilon), _rounded(budget.delta), budget.gate)


def _bounded(error: float) -> float:
    """An L1 error as a share of the rows; an unknown one counts as the largest, 2."""
    return float(error) if isfinite(error) else 2.0


def _rounded(value: Fraction) -> float:
    nearest = float(value)
    return nearest if Fraction(repr(nearest)) >= value else float_above(value)


def _to_plain(value: Any) -> Any:
    match value:
        case Budget():
            return {"epsilon": float(value.epsilon), "delta": float(value.delta), "gate": value.gate}
        case Unit():
            parts = {"key": value.key, "contributions": value.contributions, "neighbors": value.neighbors}
            return parts | {"describe": value.describe}
        case CardColumn() | MarginalError():
            return {each.name: _to_plain(getattr(value, each.name)) for each in fields(value)}
        case tuple():
            return [_to_plain(each) for each in value]
    return value


def _from_plain(name: str, plain: Any) -> Any:
    match name:
        case "budget" | "spent" | "cap" | "table_spent":
            return Budget(plain["epsilon"], plain["delta"], plain["gate"])
        case "unit":
            return Unit(plain["key"], plain["contributions"], plain["neighbors"])
        case "columns":
            return tuple(CardColumn(each["name"], each["kind"], each["cells"]) for each in plain)
        case "errors":
            return tuple(MarginalError(tuple(each["columns"]), each["error"], each["weight"]) for each in plain)
        case "grains" | "entries":
            return tuple(plain)
    return plain


def _lines(facts: Iterable[tuple[str, str]]) -> str:
    """Titles and texts on a terminal, the texts one below the other."""
    wrap = TextWrapper(_WIDTH, subsequent_indent=" " * _LABEL, break_long_words=False, break_on_hyphens=False)
    return "\n".join(wrap.fill(f"{title:{_LABEL}}{_safe(text)}") for title, text in facts)


def _safe(text: str) -> str:
    """An untrusted text, on one line of a terminal."""
    return "".join(letter if letter.isprintable() else visible(letter) for letter in text)


def _number(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _runs(numbers: Iterable[int]) -> str:
    """Sequence numbers in words.

    >>> _runs([3, 4, 5, 9]), _runs([])
    ('entries 3–5, 9', 'no entry')
    """
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    listed = ", ".join(str(first) if first == last else f"{first}–{last}" for first, last in runs)
    return f"entries {listed}" if listed else "no entry"


def errors_of(
    estimates: Mapping[tuple[str, ...], float], weights: Iterable[tuple[tuple[str, ...], float]]
) -> tuple[MarginalError, ...]:
    """The errors of a goal's marginals, in its order."""
    return tuple(MarginalError(columns, float(estimates[columns]), float(weight)) for columns, weight in weights)

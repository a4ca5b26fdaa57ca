"""Questions as analysts ask them of a census table: generated, realistic, and the same every time.

There is no seedable randomness in this program. What looks random here is SHA-256 of a counter, so everybody sees the
same stream. Some columns, values and ranges are more popular than others, and now and then somebody asks again.
"""

from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import accumulate, count
from typing import Any, Literal, TypeVar

from discreet.cache import memoize
from discreet.lab.demo.topics import CATEGORIES, NATURAL, RANGES, SHORT, TOGETHER, TOPICS, UNKNOWN

Operator = Literal["=", "<>", ">", ">=", "<", "IN", "BETWEEN", "IS NULL"]
KINDS = ("one column", "two columns", "three columns", "GROUP BY")
# How often each is asked, and how often a question is an earlier one, word for word.
OFTEN, AGAIN = (0.1, 0.32, 0.38, 0.2), 0.08
# How much more often the first of a list is taken than the n-th: n to this power. Zipf's law would be 1.
STEEP = 0.5
# Errors that are asked for, as multiples of a usual one, and how often.
ERRORS = ((0.5, 0.2), (1, 0.5), (2, 0.3))

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Condition:
    """What a question asks of one column.

    >>> Condition("age", "BETWEEN", (25, 34)).sql, Condition("sex", "=", ("Female",)).sql
    ('age BETWEEN 25 AND 34', "sex = 'Female'")
    """

    column: str
    operator: Operator
    values: tuple[Any, ...] = ()

    @property
    def sql(self) -> str:
        """The condition in SQL, as after WHERE."""
        texts = [str(value) if isinstance(value, int) else f"'{value}'" for value in self.values]
        match self.operator:
            case "BETWEEN":
                return f"{self.column} BETWEEN {texts[0]} AND {texts[1]}"
            case "IN":
                return f"{self.column} IN ({', '.join(texts)})"
            case "IS NULL":
                return f"{self.column} IS NULL"
        return f"{self.column} {self.operator} {texts[0]}"

    def holds(self, value: Any) -> bool:
        """Whether SQL selects a row with this value; computed without our SQL code."""
        if value is None or self.operator == "IS NULL":
            return value is None and self.operator == "IS NULL"
        match self.operator:
            case "=" | "IN":
                return value in self.values
            case "<>":
                return value not in self.values
            case "BETWEEN":
                return bool(self.values[0] <= value <= self.values[1])
            case "<":
                return bool(value < self.values[0])
            case ">":
                return bool(value > self.values[0])
        return bool(value >= self.values[0])


@dataclass(frozen=True, slots=True)
class Question:
    """A count, or a table of counts, with the error that the analyst accepts.

    >>> Question((Condition("age", ">=", (65,)),), ("sex",), 500).sql
    'SELECT sex, COUNT(*) FROM adult WHERE age >= 65 GROUP BY sex'
    """

    conditions: tuple[Condition, ...]
    groups: tuple[str, ...]
    error: int

    @property
    def sql(self) -> str:
        """As the analyst writes it; the same question is always the same text."""
        where = " WHERE " + " AND ".join(condition.sql for condition in self.conditions) if self.conditions else ""
        if not self.groups:
            return f"SELECT COUNT(*) FROM adult{where}"
        names = ", ".join(self.groups)
        return f"SELECT {names}, COUNT(*) FROM adult{where} GROUP BY {names}"

    @property
    def kind(self) -> str:
        """One of `KINDS`."""
        return KINDS[3] if self.groups else KINDS[len(self.conditions) - 1]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it depends on, sorted."""
        return tuple(sorted({*self.groups, *(condition.column for condition in self.conditions)}))


def questions(number: int, *, error: int = 400) -> list[Question]:
    """The first questions of the stream; their errors are half of `error`, `error`, and twice `error`.

    >>> questions(2) == questions(3)[:2]
    True
    """
    draws, asked = Draws(), list[Question]()
    while len(asked) < number:
        if asked and draws.share() < AGAIN:
            # The last ones come back most: a dashboard is opened again, a colleague runs the same script.
            asked.append(draws.popular(asked[-500:][::-1]))
        else:
            asked.append(_new(draws, error))
    return asked


class Draws:
    """Numbers that look random and are not: SHA-256 of a counter."""

    def __init__(self) -> None:
        self._counter = count()

    def share(self) -> float:
        """A number from 0 to 1."""
        digest = sha256(f"discreet demo {next(self._counter)}".encode()).digest()
        return int.from_bytes(digest[:6], "big") / 2**48

    def choice(self, items: Sequence[Item], weights: Sequence[float]) -> Item:
        """One of these, as often as its weight says."""
        sums = list(accumulate(weights))
        return items[bisect(sums, self.share() * sums[-1])]

    def popular(self, items: Sequence[Item]) -> Item:
        """One of these, the first ones most: as in Zipf's law, a little flatter."""
        sums = _sums(len(items))
        return items[bisect(sums, self.share() * sums[-1])]

    def several(self, items: Sequence[Item], number: int) -> tuple[Item, ...]:
        """Distinct items, popular ones more often, in the order of the list."""
        chosen = set[int]()
        while len(chosen) < min(number, len(items)):
            chosen.add(self.popular(range(len(items))))
        return tuple(items[place] for place in sorted(chosen))


@memoize(256)
def _sums(number: int) -> tuple[float, ...]:
    return tuple(accumulate(rank**-STEEP for rank in range(1, number + 1)))


def _new(draws: Draws, error: int) -> Question:
    kind = draws.choice(range(4), OFTEN)
    columns = draws.popular(TOPICS[kind if kind < 3 else draws.choice(range(3), (0.2, 0.5, 0.3))])
    groups = _groups(draws, columns) if kind == 3 else ()
    conditions = tuple(condition(draws, name) for name in columns if name not in groups)
    question = Question(conditions, groups, error)
    return Question(conditions, groups, round(error * _multiple(question.sql)))


def _groups(draws: Draws, columns: Sequence[str]) -> tuple[str, ...]:
    """One of the columns, or two if one of them is short: a table that somebody would read."""
    first = draws.popular(columns)
    pairs = [(name, first) for name in columns if name != first and (name in SHORT or first in SHORT)]
    chosen = draws.popular([(first,), *pairs])
    return tuple(name for name in columns if name in chosen)


def _multiple(sql: str) -> float:
    """Chosen by the text, so that the same question always has the same error."""
    share = int.from_bytes(sha256(sql.encode()).digest()[:6], "big") / 2**48
    sums = list(accumulate(weight for _, weight in ERRORS))
    return ERRORS[bisect(sums, share * sums[-1])][0]


def condition(draws: Draws, column: str) -> Condition:
    """A condition on this column."""
    if column in CATEGORIES:
        return _of_category(draws, column)
    operator, *values = draws.popular(NATURAL[column]) if draws.share() < 0.5 else _free(draws, column)
    return Condition(column, operator, tuple(values))


def _of_category(draws: Draws, column: str) -> Condition:
    values = CATEGORIES[column]
    form = draws.choice(("=", "together", "IN", "<>", "IS NULL"), (0.6, 0.14, 0.14, 0.08, 0.04))
    if form == "together" and column in TOGETHER:
        return Condition(column, "IN", draws.popular(TOGETHER[column]))
    if form == "IN" and len(values) > 3:
        return Condition(column, "IN", draws.several(values, draws.choice((2, 3, 4), (0.5, 0.3, 0.2))))
    if form == "IS NULL" and column in UNKNOWN:
        return Condition(column, "IS NULL")
    return Condition(column, "<>" if form == "<>" and len(values) > 2 else "=", (draws.popular(values),))


def _free(draws: Draws, column: str) -> tuple[Any, ...]:
    """An arbitrary range; a column that is kept in bins has none."""
    if column not in RANGES:
        return draws.popular(NATURAL[column])
    low, high = RANGES[column]
    start = low + int(draws.share() * (high - low))
    if draws.share() < 0.3:
        return draws.choice((">=", "<"), (1, 1)), start
    return "BETWEEN", start, min(start + draws.choice((4, 9, 14, 19), (3, 4, 2, 1)), high)

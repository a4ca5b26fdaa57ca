"""A question, parsed once and passed on: the query, the accuracy that is wanted, the analyst and the idempotency key.

It also has the shape in which the answer is shown: one number, an array, or the columns of a table.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from json import dumps
from math import inf, isnan, prod
from typing import Any, Literal, NamedTuple

import numpy as np

from discreet.cache import ById, LruCache, memoize
from discreet.errors import BadParameter, BadQuery, TooLarge
from discreet.estimate.measurements import Intervals, Question
from discreet.estimate.separable import room_of
from discreet.ledger import legacy
from discreet.ledger.idempotency import key_body, own_key, part_of
from discreet.numeric import Number, confidence_of, positive
from discreet.plan.steps import Target
from discreet.query.aggregates import AggregateQuery, count, shared_work
from discreet.query.linear import Linear, Marginal, Ratio
from discreet.query.predicate import Predicate, everyone
from discreet.query.query_wire import condition_to_plain, query_to_plain
from discreet.query.sql import parse_predicate
from discreet.query.statement import (
    MOST_ANSWER_NUMBERS,
    MOST_ANSWER_ROWS,
    Aggregate,
    Select,
    check_statement,
    require_numbers,
    shown_values,
)
from discreet.schema.column import Integers
from discreet.schema.domain import Domain
from discreet.source.query_sensitivity import require_light_rows
from discreet.types import Numbers
from discreet.values import readable

Askable = str | Predicate | Select | Linear | Marginal | Ratio


@dataclass(frozen=True, slots=True)
class Part:
    """One number, or one for each group: a total, or a total over the number of its values.

    The total of a mean is taken of the distances from `centre`, the middle of the column's range, which one person
    moves by half as much as the sum of the values. `ends` are the lowest and the highest mean there can be.
    """

    name: str
    total: Question
    values: Question | None = None
    centre: int = 0
    ends: tuple[float, float] = (0.0, 1.0)

    @property
    def questions(self) -> tuple[Question, ...]:
        """What is measured for it."""
        return (self.total,) if self.values is None else (self.total, self.values)

    def never_negative(self, domain: Domain) -> bool:
        """Whether it cannot be below zero, whatever the rows are: no row weighs less, or no mean is less."""
        if self.values is not None:
            return self.ends[0] >= 0
        weight = self.total.weight if isinstance(self.total, Marginal) else self.total
        return weight is None or weight.range(domain)[0] >= 0


# Parsing takes time before anything is paid, so a batch is limited: the letters of all its questions, the letters that
# each question counts as besides, and the numbers that its weights hold.
_MOST_LETTERS, _TEXT, _QUERY, _MOST_ROOM = 2**16, 32, 4, 2**21
# Texts and what they ask, in numbers of eight bytes: 32 MB.
_READ: "LruCache[tuple[str, ById[Domain], str], ParsedQuestion]" = LruCache(2**22)


@dataclass(frozen=True, slots=True, eq=False)
class ParsedQuestion:
    """A question as the curator sees it: its parts, its groups, its text, and how the answer is laid out."""

    parts: tuple[Part, ...]
    group: tuple[str, ...]
    text: str
    select: Select | None = None

    @property
    def chosen(self) -> bool:
        """Whether the numbers decide which rows are shown, so that all intervals must hold together."""
        return self.select is not None and (self.select.limit is not None or self.select.having != everyone)

    def size(self, domain: Domain) -> int:
        """How many numbers the answer has, before any are chosen."""
        return prod(domain[name].size for name in self.group) * len(self.parts)


@dataclass(frozen=True, slots=True)
class Accuracy:
    """An error and how often it must hold; or a price; or neither: answer from what is known."""

    error: float | None
    confidence: float
    epsilon: float | None
    joint: bool

    @property
    def nothing(self) -> bool:
        """Whether nothing may be paid."""
        return self.error is None and self.epsilon is None

    @property
    def target(self) -> Target:
        """What one number must reach."""
        return Target(inf if self.error is None else self.error, self.confidence)

    def joint_of(self, parsed: ParsedQuestion, domain: Domain) -> int:
        """How many intervals must hold together: all if `joint`, or if the numbers decide which rows are shown."""
        if not (self.joint or parsed.chosen):
            return 1
        return parsed.size(domain)


class Keyed(NamedTuple):
    """A key, the request that it is bound to, and the bytes of the same request in older versions."""

    key: str
    body: bytes
    older: tuple[bytes, ...] = ()

    def part(self, what: Literal["round", "question"], place: int) -> "Keyed":
        """The key and body for a further payment of the request."""
        return self if not place else self._replace(key=part_of(self.key, what, place + 1))


@dataclass(frozen=True, eq=False)
class PreparedQuestion:
    """What is asked, how good the answer must be, who asks, and the key if there is one: made once, and passed on.

    `nonnegative` lifts negative estimates of numbers that cannot be negative to zero.
    """

    parsed: ParsedQuestion
    accuracy: Accuracy
    analyst: str
    nonnegative: bool = False
    key: str | None = None

    @cached_property
    def keyed(self) -> Keyed | None:
        """The key and the request that it is bound to. Made when first needed: with many weights it takes long."""
        if self.key is None:
            return None
        return keyed(self.key, "ask", [self.parsed], self.accuracy, nonnegative=self.nonnegative)

    @property
    def single(self) -> Linear | None:
        """The query that a model might answer: one number, with an error that holds by itself; None for any other."""
        return None if self.accuracy.error is None or self.accuracy.joint else single(self.parsed)

    def joint(self, domain: Domain) -> int:
        """How many intervals must hold together."""
        return self.accuracy.joint_of(self.parsed, domain)


class Unpaid(NamedTuple):
    """A question that was not known at this `version` of the estimator; `looked` says whether that was checked."""

    asked: PreparedQuestion
    version: int = -1
    looked: bool = True


def single(parsed: ParsedQuestion) -> Linear | None:
    """The query of a question that is one number and not a mean; None for any other."""
    if len(parsed.parts) != 1 or parsed.group or parsed.chosen or parsed.parts[0].values is not None:
        return None
    total = parsed.parts[0].total
    return total if isinstance(total, Linear) else None


def read_question(question: Askable, domain: Domain, table: str) -> ParsedQuestion:
    """The parts of a question; raises BadQuery if it makes no sense for this table."""
    match question:
        case str():
            return _read_text(question, domain, table)
        case Predicate():
            counted = Part("count", count(domain, question))
            return ParsedQuestion((counted,), (), legacy.version_1_text(question), _counted(table, question))
        case Select():
            return _of_select(question, domain, legacy.version_1_text(question))
        case Linear():
            require_light_rows([question], domain)
            return ParsedQuestion((Part("value", question),), (), legacy.version_1_text(question))
        case Marginal():
            require_numbers(question.size(domain), MOST_ANSWER_ROWS)
            if question.weight is not None:
                require_light_rows([question.weight], domain)
            return ParsedQuestion((Part("value", question),), question.columns, legacy.version_1_text(question))
        case Ratio(numerator, denominator):
            require_light_rows([numerator, denominator], domain)
            if denominator.range(domain)[1] <= 0:
                raise BadQuery("the denominator is never above 0, so there is no quotient. Change the signs of both.")
            return ParsedQuestion(
                (Part("value", numerator, denominator, 0, (-inf, inf)),), (), legacy.version_1_text(question)
            )
    raise BadQuery(
        f'a {type(question).__name__} is not a question. Give SQL, a condition such as "age >= 65", a predicate made '
        "with col(), or a query such as Marginal(['age', 'sex'])."
    )


def read_questions(questions: Iterable[Askable], domain: Domain, table: str) -> list[ParsedQuestion]:
    """The same of a batch, which has no more numbers than one answer may have, and takes no longer to parse."""
    batch: list[ParsedQuestion] = []
    numbers = letters = weights = 0
    with shared_work():
        for each in questions:
            letters += _QUERY if isinstance(each, (Linear, Marginal, Ratio)) else _TEXT
            letters += len(each) if isinstance(each, str) else 0
            if letters > _MOST_LETTERS:
                raise _too_much(f"more than {len(batch)} questions of this length")
            batch.append(read_question(each, domain, table))
            numbers += batch[-1].size(domain)
            require_numbers(numbers, MOST_ANSWER_ROWS if len(batch) == 1 else MOST_ANSWER_NUMBERS)
            weights += sum(room_of(question) for part in batch[-1].parts for question in part.questions)
            if weights > _MOST_ROOM and len(batch) > 1:
                raise _too_much(f"{len(batch)} questions with this many weights")
    return batch


def _too_much(what: str) -> TooLarge:
    return TooLarge(f"{what} are too much for one batch. Nothing was measured. Ask in several batches.")


def _read_text(text: str, domain: Domain, table: str) -> ParsedQuestion:
    """SQL, or a condition as after WHERE. Parsed texts are cached, because the same ones come again."""
    key = text, ById(domain), table
    found = _READ.get(key)
    if found is None:
        readable(text, "the question")
        shown = " ".join(text.split())
        if text.lstrip()[:6].lower() == "select":
            # sqlglot is loaded by the first statement and not by the first import.
            from discreet.query.sql.select import read_select

            found = _of_select(read_select(text, domain, table), domain, shown)
        else:
            found = _of_select(_counted(table, parse_predicate(text, domain)), domain, shown)
        questions = [question for part in found.parts for question in part.questions]
        _READ.put(key, found, size=len(text) + sum(map(room_of, questions)))
    return found


def _counted(table: str, where: Predicate) -> Select:
    return Select(table, (Aggregate("count", None, "count"),), where)


def _of_select(select: Select, domain: Domain, text: str) -> ParsedQuestion:
    # Everything that could fail after the payment must fail here.
    check_statement(select, domain)
    questions = zip(select.aggregates, select.questions(domain), strict=True)
    parts = tuple(_part(aggregate, question, domain) for aggregate, question in questions)
    return ParsedQuestion(parts, select.group, text, select)


def _part(aggregate: Aggregate, question: AggregateQuery, domain: Domain) -> Part:
    match question:
        case Linear() | Marginal():
            return Part(aggregate.name, question)
        case Ratio(total, values):
            centre, ends = _middle(domain, aggregate.column)
            return Part(aggregate.name, total - centre * values, values, centre, ends)
        case (Marginal(columns, Linear() as total), Marginal(_, Linear() as values) as counted):
            centre, ends = _middle(domain, aggregate.column)
            return Part(aggregate.name, Marginal(columns, total - centre * values), counted, centre, ends)
    raise BadQuery(f"a {type(question).__name__} cannot be measured. Give one of select.questions(domain).")


def _middle(domain: Domain, name: str | None) -> tuple[int, tuple[float, float]]:
    column: Any = domain[name or ""]
    assert isinstance(column, Integers), "only integers have a mean"
    return (column.lower + column.upper) // 2, (float(column.lower), float(column.upper))


def read_accuracy(*, error: Number | None, confidence: Number, epsilon: Number | None, joint: bool) -> Accuracy:
    """How good an answer must be, if that makes sense."""
    try:
        return _read(error, confidence, epsilon, bool(joint))
    except TypeError:
        # A value that cannot be hashed is not a number: the check refuses it.
        return _checked(error, confidence, epsilon, bool(joint))


def _checked(error: Number | None, confidence: Number, epsilon: Number | None, joint: bool) -> Accuracy:
    if error is not None and epsilon is not None:
        raise BadParameter(
            f"error is {error!r} and epsilon is {epsilon!r}; give one of them: how good the answer must be, or what it "
            "may cost."
        )
    chance = confidence_of(confidence)
    half = None if error is None else float(positive("error", error, next_step="Give a half-width, say 100."))
    price = None if epsilon is None else float(positive("epsilon", epsilon, next_step="Give a price, say 0.01."))
    return Accuracy(half, chance, price, joint)


_read = memoize(1024, typed=True)(_checked)


def keyed(
    key: str, kind: str, batch: Sequence[ParsedQuestion], accuracy: Accuracy, *, nonnegative: bool = False
) -> Keyed:
    """A request under a key. What matters is what was asked and how it is shown, not how it was written."""
    # Each part by itself: two totals and a quotient may be the same three queries as a quotient and a total.
    parts = [[[query_to_plain(each) for each in part.questions] for part in parsed.parts] for parsed in batch]
    how = [accuracy.error, accuracy.confidence, accuracy.epsilon, bool(accuracy.joint), bool(nonnegative)]
    body = key_body(kind, [parts, [_layout(parsed, condition_to_plain) for parsed in batch], how])
    # As version 1 wrote it: all queries in one list, the layout with conditions as texts; and before that the accuracy,
    # as it was represented.
    asked = [each for one in parts for part in one for each in part]
    first = dumps([kind, asked, [_layout(parsed, legacy.version_1_text) for parsed in batch], how])
    fields = {name: getattr(accuracy, name) for name in ("error", "confidence", "epsilon", "joint")}
    old = legacy.named("Wish", **fields)
    return Keyed(own_key(key), body, (first.encode(), dumps([asked, old]).encode()))


def _layout(parsed: ParsedQuestion, condition: Callable[[Predicate], Any]) -> Any:
    """How an answer is shown: names, groups, and which rows in which order."""
    select = parsed.select
    if not isinstance(select, Select):
        return [list(parsed.group)]
    items = [[each.kind if isinstance(each, Aggregate) else "group", each.column, each.name] for each in select.items]
    order = [[each.name, each.descending] for each in select.order]
    return [list(select.group), items, condition(select.having), order, select.limit]


def lay_out_answer(
    parsed: ParsedQuestion, bars: Sequence[Intervals], domain: Domain
) -> tuple[Any, Any, dict[str, list[Any]]]:
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


def _table(question: Marginal, bar: Intervals, domain: Domain) -> dict[str, list[Any]]:
    shape = question.shape(domain)
    cells = np.unravel_index(np.arange(len(bar.values)), shape) if shape else ()
    columns: dict[str, list[Any]] = {}
    for name, codes in zip(question.columns, cells, strict=True):
        shown = shown_values(domain[name])
        columns[name] = [shown[code] for code in codes.tolist()]
    values: Numbers = bar.values
    return {**columns, "value": values.tolist(), "value_error": bar.errors.tolist()}

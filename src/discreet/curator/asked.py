"""What somebody asks, in whatever form, as parts that are counted or added up."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf, prod
from typing import Any

from discreet.cache import ById, LruCache
from discreet.errors import BadQuery, TooLarge
from discreet.known.family import room_of
from discreet.known.steps import Question
from discreet.ledger import legacy
from discreet.query.ask import AggregateQuery, count
from discreet.query.box import shared_work
from discreet.query.check import MOST_ANSWER_NUMBERS, MOST_ANSWER_ROWS, check_statement, require_numbers
from discreet.query.linear import Linear, Marginal, Ratio
from discreet.query.normal import readable
from discreet.query.predicate import Predicate, everyone
from discreet.query.sql import parse, parse_predicate
from discreet.query.statement import Aggregate, Select
from discreet.schema.column import Integers
from discreet.schema.domain import Domain
from discreet.source.effect import require_light_rows

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


# Reading takes time before anything is paid. So a batch has so many letters, where each question counts as so many
# more; and its weights take so much room, in numbers.
_MOST_LETTERS, _TEXT, _QUERY, _MOST_ROOM = 2**16, 32, 4, 2**21
# Texts and what they ask, in numbers of eight bytes: 32 MB.
_READ: "LruCache[tuple[str, ById[Domain], str], Reading]" = LruCache(2**22)


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """A question as the curator sees it: its parts, its groups, its text, and how the answer is laid out."""

    parts: tuple[Part, ...]
    group: tuple[str, ...]
    text: str
    select: Select | None = None

    @property
    def chosen(self) -> bool:
        """Whether rows of the answer are chosen by looking at the numbers, so that all bars must hold together."""
        return self.select is not None and (self.select.limit is not None or self.select.having != everyone)

    def size(self, domain: Domain) -> int:
        """How many numbers the answer has, before any are chosen."""
        return prod(domain[name].size for name in self.group) * len(self.parts)


def single(reading: Reading) -> Linear | None:
    """The query of a question that is one number and not a mean; None of any other."""
    if len(reading.parts) != 1 or reading.group or reading.chosen or reading.parts[0].values is not None:
        return None
    total = reading.parts[0].total
    return total if isinstance(total, Linear) else None


def read_question(question: Askable, domain: Domain, table: str) -> Reading:
    """The parts of a question; raises BadQuery if it makes no sense for this table."""
    match question:
        case str():
            return _read_text(question, domain, table)
        case Predicate():
            counted = Part("count", count(domain, question))
            return Reading((counted,), (), legacy.text(question), _counted(table, question))
        case Select():
            return _of_select(question, domain, legacy.text(question))
        case Linear():
            require_light_rows([question], domain)
            return Reading((Part("value", question),), (), legacy.text(question))
        case Marginal():
            require_numbers(question.size(domain), MOST_ANSWER_ROWS)
            if question.weight is not None:
                require_light_rows([question.weight], domain)
            return Reading((Part("value", question),), question.columns, legacy.text(question))
        case Ratio(numerator, denominator):
            require_light_rows([numerator, denominator], domain)
            if denominator.range(domain)[1] <= 0:
                raise BadQuery("the denominator is never above 0, so there is no quotient. Change the signs of both.")
            return Reading((Part("value", numerator, denominator, 0, (-inf, inf)),), (), legacy.text(question))
    raise BadQuery(
        f'a {type(question).__name__} is not a question. Give SQL, a condition such as "age >= 65", a predicate made '
        "with col(), or a query such as Marginal(['age', 'sex'])."
    )


def read_questions(questions: Iterable[Askable], domain: Domain, table: str) -> list[Reading]:
    """The same of a batch, which has no more numbers together than one answer may have, and takes no more reading."""
    readings: list[Reading] = []
    numbers = letters = weights = 0
    with shared_work():
        for each in questions:
            letters += _QUERY if isinstance(each, (Linear, Marginal, Ratio)) else _TEXT
            letters += len(each) if isinstance(each, str) else 0
            if letters > _MOST_LETTERS:
                raise _too_much(f"more than {len(readings)} questions of this length")
            readings.append(read_question(each, domain, table))
            numbers += readings[-1].size(domain)
            require_numbers(numbers, MOST_ANSWER_ROWS if len(readings) == 1 else MOST_ANSWER_NUMBERS)
            weights += sum(room_of(question) for part in readings[-1].parts for question in part.questions)
            if weights > _MOST_ROOM and len(readings) > 1:
                raise _too_much(f"{len(readings)} questions with weights for so many cells")
    return readings


def _too_much(what: str) -> TooLarge:
    return TooLarge(f"{what} are too many together. Nothing was measured for them. Ask in several batches.")


def _read_text(text: str, domain: Domain, table: str) -> Reading:
    """SQL, or a condition as after WHERE. The same texts come back, so what they say is kept for a while."""
    key = text, ById(domain), table
    found = _READ.get(key)
    if found is None:
        readable(text, "the question")
        shown = " ".join(text.split())
        if text.lstrip()[:6].lower() == "select":
            found = _of_select(parse(text, domain, table=table), domain, shown)
        else:
            found = _of_select(_counted(table, parse_predicate(text, domain)), domain, shown)
        questions = [question for part in found.parts for question in part.questions]
        _READ.put(key, found, size=len(text) + sum(map(room_of, questions)))
    return found


def _counted(table: str, where: Predicate) -> Select:
    return Select(table, (Aggregate("count", None, "count"),), where)


def _of_select(select: Select, domain: Domain, text: str) -> Reading:
    # All that could fail once it is paid for fails here.
    check_statement(select, domain)
    questions = zip(select.aggregates, select.questions(domain), strict=True)
    parts = tuple(_part(aggregate, question, domain) for aggregate, question in questions)
    return Reading(parts, select.group, text, select)


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

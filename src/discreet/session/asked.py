"""What somebody asks a session: a count, in whatever form."""

from discreet.errors import BadQuery
from discreet.query.ask import count
from discreet.query.linear import Linear
from discreet.query.predicate import Predicate, everyone
from discreet.query.sql import parse, parse_predicate
from discreet.query.statement import Aggregate, Select
from discreet.schema.domain import Domain

Countable = str | Predicate | Linear

_ONLY = 'A session answers counts: give a condition such as "age >= 65", a predicate made with col(), or a count().'


def read_count(question: Countable, domain: Domain, table: str) -> Linear:
    """The question as a linear query in which every row weighs 0 or 1.

    >>> from discreet.schema.column import Integers
    >>> people = Domain({"age": Integers(0, 99)})
    >>> read_count("age >= 65", people, "people") == read_count(
    ...     "SELECT COUNT(*) FROM people WHERE age >= 65", people, "people")
    True
    >>> read_count(2 * count(people), people, "people")
    Traceback (most recent call last):
    discreet.errors.BadQuery: a row weighs from 2 to 2 in this query; in a session it must weigh 0 or 1. …
    """
    match question:
        case str() if question.lstrip()[:6].lower() == "select":
            query = _of_select(parse(question, domain, table=table), domain)
        case str():
            query = count(domain, parse_predicate(question, domain))
        case Predicate():
            query = count(domain, question)
        case Linear():
            query = question
        case _:
            raise BadQuery(f"a {type(question).__name__} is not a question for a session. {_ONLY}")
    lowest, highest = query.range(domain)
    if lowest < 0 or highest > 1:
        raise BadQuery(
            f"a row weighs from {lowest} to {highest} in this query; in a session it must weigh 0 or 1. {_ONLY}"
        )
    return query


def _of_select(select: Select, domain: Domain) -> Linear:
    match select.aggregates:
        case (Aggregate("count", None),) if not select.group and select.having == everyone and select.limit is None:
            (query,) = select.questions(domain)
            if isinstance(query, Linear):
                return query
    raise BadQuery(f"the statement asks for more than one count. {_ONLY}")

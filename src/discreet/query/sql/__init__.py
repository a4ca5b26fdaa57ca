"""SQL: a text becomes our own tree (`Select`), and never reaches a database.

    text ─ words.py → tokens of our grammar ─ sqlglot → its tree ─ select.py, condition.py → Select, checked

There are two checks, one after the other. Tokens outside the grammar are refused before anything is parsed. Of the
parsed tree only nodes of known types are read, and each may have only the parts that we understand (node.py).
"""

from discreet.errors import BadQuery
from discreet.query.predicate import Predicate
from discreet.query.statement import Select
from discreet.schema.domain import Domain

__all__ = ["parse", "parse_predicate"]

# sqlglot is loaded by the first statement and not by the first import.


def parse(text: str, domain: Domain, *, table: str | None = None) -> Select:
    """The statement, checked against a domain; `table` is the name that FROM must give (any, if None).

    Raises BadQuery, or TooLarge past a limit, and nothing else.

    >>> from discreet.schema.column import Integers
    >>> parse("SELECT COUNT(*) FROM people WHERE NOT age >= 65", Domain({"age": Integers(0, 99)})).where
    col('age') < 65
    >>> parse("SELECT * FROM people", Domain({"age": Integers(0, 99)}))
    Traceback (most recent call last):
    discreet.errors.BadQuery: "*" is supported in COUNT(*) only, because rows are never shown. …
    """
    from discreet.query.sql.select import read_select

    return read_select(text, _checked(domain), table)


def parse_predicate(text: str, domain: Domain) -> Predicate:
    """A condition as it is written after WHERE, as a predicate, checked against a domain.

    >>> from discreet.schema.column import Integers
    >>> parse_predicate("age BETWEEN 18 AND 64", Domain({"age": Integers(0, 99)}))
    (col('age') >= 18) & (col('age') <= 64)
    """
    from discreet.query.sql.condition import read_predicate

    return read_predicate(text, _checked(domain))


def _checked(domain: Domain) -> Domain:
    if not isinstance(domain, Domain):
        raise BadQuery(f"a statement is read for a Domain, not for a {type(domain).__name__}. Give table.domain.")
    return domain

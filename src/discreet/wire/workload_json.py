"""What a release is for, as JSON.

{"marginals": 3}                          all marginals of three columns; {"marginals": 2, "of": ["age", "sex", …]}
{"prefixes": "age"}, {"ranges": "age"}, {"subsets": "city"}
{"questions": […]}                        marginals, lists of columns or questions as in `question_json.py`
{"weights": [[["age", "sex"], 3], …]}     some marginals, and how much each matters
"""

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from discreet.errors import BadParameter, BadQuery, TooLarge, did_you_mean
from discreet.numeric import whole
from discreet.query.linear import Linear, Marginal
from discreet.query.product import column_of
from discreet.query.query_wire import query_to_plain
from discreet.query.workload import Workload, all_subsets, marginals, prefixes, ranges
from discreet.release.task import Wanted
from discreet.schema.domain import Domain
from discreet.wire.question_json import parts_of, question_from_plain

# More questions than this are not sent one by one.
MOST_SENT = 2000
# At most: parts of all questions together.
MOST_PARTS_SENT = 10 * MOST_SENT
_FAMILIES = {"prefixes": prefixes, "ranges": ranges, "subsets": all_subsets}
_FORMS = ("marginals", *_FAMILIES, "questions", "weights")


def workload_to_plain(wanted: Wanted) -> dict[str, Any]:
    """A workload for JSON.

    >>> from discreet.schema.column import Boolean
    >>> workload_to_plain(marginals(Domain({name: Boolean() for name in ("old", "ill", "rich")}), 2))
    {'marginals': 2, 'of': ['old', 'ill', 'rich']}
    """
    if isinstance(wanted, Mapping):
        return {"weights": [[list(columns), float(weight)] for columns, weight in wanted.items()]}
    if isinstance(wanted, Workload):
        if wanted.family is not None:
            return {wanted.family[0]: wanted.family[1]}
        first = wanted[0] if wanted.size else None
        if isinstance(first, Marginal) and wanted == marginals(wanted.domain, len(first.columns)):
            return {"marginals": len(first.columns), "of": list(wanted.domain)}
    if isinstance(wanted, str) or not isinstance(wanted, Iterable):
        raise BadQuery(
            f"the workload is a {type(wanted).__name__}; it is a workload, a list of marginals or of lists of columns, "
            "or a dict of their weights. Give dp.marginals(domain, 3)."
        )
    listed = list(islice(wanted, MOST_SENT + 1))
    if len(listed) > MOST_SENT:
        raise BadQuery(
            f"the workload has more than {MOST_SENT} questions, which are not sent one by one. "
            "Give the marginals that they are asked of: dp.marginals(domain, 3)."
        )
    return {
        "questions": [query_to_plain(each) if isinstance(each, Linear | Marginal) else list(each) for each in listed]
    }


def workload_from_plain(plain: Any, domain: Domain, *, table: str) -> Wanted:
    """The workload that JSON says; raises BadQuery if it says none."""
    if not isinstance(plain, Mapping) or not plain:
        raise BadQuery('the workload must be an object, say {"marginals": 2}.')
    match plain:
        case {"marginals": ways, **others} if not set(others) - {"of"}:
            return marginals(_projected(others.get("of"), domain), whole("marginals", ways, least=1))
        case {"questions": list(questions), **others} if not others:
            parts = sum(parts_of(each) for each in questions if isinstance(each, Mapping))
            if parts > MOST_PARTS_SENT:
                raise TooLarge(
                    f"the workload has {parts:,} parts of questions; the limit is {MOST_PARTS_SENT:,}. Give the "
                    'marginals that they are asked of: {"marginals": 2}.'
                )
            return [_scope(each, table) for each in questions]
        case {"weights": list(weights), **others} if not others:
            return dict(map(_weighed, weights))
    for form, make in _FAMILIES.items():
        if list(plain) == [form]:
            name = plain[form]
            if not isinstance(name, str):
                raise BadQuery(f"{form} is {str(name)[:60]!r}; it must be the name of a column.")
            column_of(domain, name)
            return make(domain, name)
    (form, *_) = plain
    raise BadQuery(f'no workload is made of "{str(form)[:60]}" like this; {did_you_mean(str(form), _FORMS)}')


def _projected(names: Any, domain: Domain) -> Domain:
    if names is None:
        return domain
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise BadQuery('"of" must be a list of names of columns.')
    for name in names:
        column_of(domain, name)
    return domain.project(names)


def _scope(plain: Any, table: str) -> Any:
    if isinstance(plain, list) and all(isinstance(name, str) for name in plain):
        return tuple(plain)
    question = question_from_plain(plain, table=table)
    if isinstance(question, Linear | Marginal):
        return question
    raise BadQuery('a workload lists columns, marginals and linear queries, and no SQL. Write [["age", "sex"]].')


def _weighed(pair: Any) -> tuple[tuple[str, ...], float]:
    match pair:
        case [list(columns), int() | float() as weight] if all(isinstance(name, str) for name in columns):
            return tuple(columns), weight
    raise BadParameter(f'{str(pair)[:80]!r} is no weight; write [["age", "sex"], 3].')

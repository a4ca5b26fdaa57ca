"""The whole way of an answer, from numbers to a reply, tried on made-up numbers before anything is paid."""

from dataclasses import replace
from json import dumps
from math import inf, nan

import numpy as np

from discreet.answer import Answer
from discreet.curator.asked import ParsedQuestion
from discreet.curator.layout import laid_out
from discreet.errors import BadQuery, DiscreetError
from discreet.known.bars import Bars
from discreet.ledger.budget import Budget
from discreet.privacy.event import Nothing
from discreet.query.predicate import everyone
from discreet.schema.domain import Domain

# An answer of more numbers is tried without its groups, which do not change how it is written.
MOST_TRIED = 2**10
# What may be released: all is there, or nothing.
_TRIED = (((-1.5, 0.0, 7.0), (0.3, 1.0, inf)), ((nan,), (inf,)))
_LEFT = Budget(1)


def rehearse(parsed: ParsedQuestion, domain: Domain) -> None:
    """Raise BadQuery unless the answer to a question can be laid out, shown and sent, whatever is released for it."""
    if parsed.size(domain) > MOST_TRIED:
        if parsed.select is None:
            return
        select = replace(parsed.select, items=parsed.select.aggregates, group=(), having=everyone, order=(), limit=None)
        parsed = replace(parsed, group=(), select=select)
    size = parsed.size(domain) // len(parsed.parts)
    for values, errors in _TRIED:
        bar = Bars(np.resize(values, size), np.resize(errors, size))
        try:
            _say(parsed, bar, domain)
        except DiscreetError:
            raise
        except Exception as error:
            raise BadQuery(
                f"the answer could not be written down ({type(error).__name__}), so nothing was asked. Ask with plain "
                "names, or as SQL."
            ) from None


def _say(parsed: ParsedQuestion, bar: Bars, domain: Domain) -> None:
    """Lay out an answer, show it as a text and as a page would, and encode all of it."""
    value, error, columns = laid_out(parsed, [bar] * len(parsed.parts), domain)
    answer = Answer(value, error, 0.95, Nothing(), "", columns, remaining=_LEFT)
    shown = [list(columns.items()), str(answer), answer._repr_html_(), parsed.text]
    dumps(shown, ensure_ascii=False, default=float).encode()

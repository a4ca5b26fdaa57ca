"""Public questions like those that were asked: how wrong a model is on them tells how wrong it will be."""

import numpy as np

from discreet.model.protocol import Model
from discreet.model.uniform import roots_of_primes
from discreet.plan.forecast import Stream
from discreet.query.linear import Linear
from discreet.query.product import Factor, Product
from discreet.schema.domain import Domain
from discreet.types import Columns, Numbers


def probes(stream: Stream, columns: Columns, model: Model, count: int) -> tuple[Linear, ...]:
    """So many conjunctions, each on as many columns as a question has on average, with weights that were asked for.

    A column of which no weights were asked for is asked for its most common cell. Which columns go together follows
    from a sequence that fills their space evenly; it depends on nothing but the arguments.
    """
    width = min(max(1, round(stream.width)), len(columns))
    choices = [_choices(stream, name, model) for name in columns]
    spread = _spread(count, len(columns) + 1)
    found = []
    for row in spread:
        chosen = np.sort(np.argsort(row[:-1], kind="stable")[:width])
        turn = int(row[-1] * 2**20)
        factors = []
        for place in chosen.tolist():
            # The low bits of such a sequence hardly vary.
            turn = (turn * 1_103_515_245 + 12_345) % 2**31
            factors.append(choices[place][(turn >> 16) % len(choices[place])])
        found.append(Linear([Product(tuple(factors))]))
    return tuple(found)


def _choices(stream: Stream, name: str, model: Model) -> list[Factor]:
    seen = list(stream.factors.get(name, ()))
    if seen:
        return seen
    cells = model.marginal((name,))
    return [Factor((name,), (np.arange(cells.size) == int(np.argmax(cells))).astype(np.int64))]


def _spread(count: int, dimensions: int) -> Numbers:
    """Points that fill a cube evenly: multiples of the roots of primes, modulo 1."""
    points: Numbers = np.mod(np.outer(np.arange(1, count + 1), roots_of_primes(dimensions) % 1.0), 1.0)
    return points


def counted(domain: Domain, query: Linear) -> bool:
    """Whether a question counts rows: every row weighs 0 or 1."""
    low, high = query.range(domain)
    return low >= 0 and high <= 1

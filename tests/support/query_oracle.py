"""What a JSON query means, read by a second program that shares nothing with ours; and JSON of every kind.

The oracle looks at plain values only: a product weighs its coefficient times the entry of each of its tables at the
row's cell. From the weights of all cells it computes how far any person can move the answer, by trying everybody.
"""

import copy
import json
from fractions import Fraction
from itertools import chain, combinations_with_replacement, product
from math import prod

import numpy as np
from hypothesis import strategies as st

from discreet.schema import Categories, Domain

# Not in alphabetical order, and two of one size: then a table with its axes exchanged still fits.
SIZES = {"c": 2, "a": 3, "b": 2}
KEEPING = Domain(
    {
        "c": Categories(["n", "y"], outside="n"),
        "a": Categories(list("xyz"), outside="z"),
        "b": Categories([0, 1], outside=1),
    }
)
NAMES = sorted(SIZES)
DROPPING = Domain(
    {
        "c": Categories(["n", "y"], outside="drop"),
        "a": Categories(list("xyz"), outside="z"),
        "b": Categories([0, 1], outside=1),
    }
)
CELLS = list(product(*(range(size) for size in SIZES.values())))


def cell_weight(products, cell):
    """The weight of one cell (a code for each column of SIZES) in a list of products."""
    code = dict(zip(SIZES, cell, strict=True))
    # A table on cells that the domain does not have may be accepted if it makes no difference: at its first cell, and
    # at its last.
    first, last = (sum(_weight(each, code, end) for each in products) for end in (0, -1))
    assert first == last, "the query depends on a column that is not there"
    return first


def _weight(product, code, end):
    weight, tables = product
    assert type(weight) is int, "only whole numbers may be accepted"
    for columns, shape, weights in tables:
        assert all(type(each) is int for each in [*shape, *weights]), "only whole numbers may be accepted"
        place = 0
        for name, size in zip(columns, shape, strict=True):
            place = place * size + (code[name] if SIZES.get(name) == size else end % size)
        weight *= weights[place]
    return weight


def linear_effects(products):
    return [[cell_weight(products, cell)] for cell in CELLS]


def effects(plain):
    """What a row of each cell adds to each number of the answer, of an accepted body or a list of them."""
    if isinstance(plain, list):
        return [list(chain(*rows)) for rows in zip(*(effects(each) for each in plain), strict=True)]
    if "numerator" in plain:
        return effects([plain["numerator"], plain["denominator"]])
    if "products" in plain:
        return linear_effects(plain["products"])
    columns, weight = plain["columns"], plain.get("weight")
    shape = [SIZES[name] for name in columns]
    found = []
    for cell in CELLS:
        code = dict(zip(SIZES, cell, strict=True))
        row, place = [0] * prod(shape), 0
        for name in columns:
            place = place * SIZES[name] + code[name]
        row[place] = 1 if weight is None else cell_weight(weight, cell)
        found.append(row)
    return found


def moves(rows, unit, *, droppable):
    """The largest L1, squared L2 and L∞ move over all neighbours: everybody who may be there is tried."""
    cells = sorted({tuple(row) for row in rows})
    wide = len(cells[0])
    largest = max(abs(each) for row in cells for each in row)
    kind = np.int64 if 16 * unit.contributions**2 * largest**2 * wide < 2**62 else object
    people = [
        [sum(column) for column in zip(*someone, strict=True)]
        for size in range(1, unit.contributions + 1)
        for someone in combinations_with_replacement(cells, size)
    ]
    nobody = [[0] * wide]
    if unit.neighbors == "add_remove":
        pairs = np.array(people, dtype=kind)
    else:
        someone = np.array(people + (nobody if droppable or unit.key is not None else []), dtype=kind)
        pairs = (someone[:, None, :] - someone[None, :, :]).reshape(-1, wide)
    sizes = np.abs(pairs)
    return (
        Fraction(int(sizes.sum(axis=1).max())),
        Fraction(int((sizes * sizes).sum(axis=1).max())),
        Fraction(int(sizes.max())),
    )


# JSON from the grammar.

# Mostly small; some so large that a query of them alone is still accepted, and some too large.
PALETTES = [[0, 1]] * 4 + [[-1, 0, 1, 2]] * 4 + [[0, 1, 2**31, -(2**31), 2**31 + 1]] * 2 + [[0, 1, 2**40, 2**62]]
COEFFICIENTS = st.sampled_from([1] * 6 + [-1, -1, 2, 2, 3, 0, -(2**20), 2**40])


@st.composite
def factors(draw):
    """A table on some columns, in any order; now and then a column is named twice."""
    names = draw(st.lists(st.sampled_from(sorted(SIZES)), max_size=3, unique=draw(st.integers(0, 9)) > 0))
    shape = [SIZES[name] for name in names]
    palette = draw(st.sampled_from(PALETTES))
    digits = draw(st.integers(0, len(palette) ** prod(shape) - 1))
    return [names, shape, [palette[digits // len(palette) ** place % len(palette)] for place in range(prod(shape))]]


PRODUCTS = st.lists(st.tuples(COEFFICIENTS, st.lists(factors(), max_size=3)).map(list), max_size=4)
LINEARS = st.builds(lambda products: {"products": products}, PRODUCTS)
MARGINALS = st.builds(
    lambda columns, weight: {"columns": columns, "weight": weight},
    st.lists(st.sampled_from(sorted(SIZES)), max_size=3, unique=True),
    st.none() | PRODUCTS,
)
RATIOS = st.builds(lambda one, other: {"numerator": one, "denominator": other}, LINEARS, LINEARS)
BODIES = LINEARS | LINEARS | MARGINALS | RATIOS


# JSON from noise.

JUNK = [
    True, False, None, 1.5, 1.0, -0.0, float("nan"), float("inf"), "1", "a", "ab", "", "\ud800", "b\x00", -1, 0, 1, 2,
    2**31, 2**63, -(2**63), 2**64, 10**40, [], {}, [[]], [0], ["a"], ["a", "a"], "products", {"products": []},
    {"columns": ["a"]}, [1, []], [["a"], [3], [0, 1, 0]], [["a"], [-1], [0, 1, 0]], [["b", "c"], [4], [0, 1, 0, 0]],
]  # fmt: skip


def nodes(plain, path=()):
    """The path of every list, object and number in a body."""
    yield path
    children = plain.items() if isinstance(plain, dict) else enumerate(plain) if isinstance(plain, list) else ()
    for key, child in children:
        yield from nodes(child, (*path, key))


def mutated(body, random, names=NAMES):
    """A body with one to three changes at random places: exchanged, repeated, left out, negated, nested, replaced."""
    body = copy.deepcopy(body)
    for _ in range(random.choice([1, 1, 1, 2, 3])):
        path = random.choice(list(nodes(body))[1:] or [()])
        if not path:
            return random.choice(JUNK)
        holder = body
        for key in path[:-1]:
            holder = holder[key]
        here = holder[path[-1]]
        change = random.randrange(12)
        if change <= 2 and isinstance(holder, list):
            other = random.randrange(len(holder))
            holder[path[-1]], holder[other] = holder[other], here
        elif change == 3 and isinstance(holder, list):
            holder.insert(path[-1], copy.deepcopy(here))
        elif change == 4:
            del holder[path[-1]]
        elif change <= 6 and isinstance(here, list):
            here.reverse()
        elif change <= 8 and type(here) is int:
            holder[path[-1]] = random.choice([-here, here + 1, 1 - here])
        elif change <= 8 and isinstance(here, str):
            holder[path[-1]] = random.choice(names)
        elif change == 9:
            holder[path[-1]] = [here]
        elif change == 10 and isinstance(here, dict):
            here[random.choice(["products", "columns", "weight", "x"])] = copy.deepcopy(random.choice(JUNK))
        elif change == 11:
            holder[path[-1]] = copy.deepcopy(random.choice(JUNK))
    return body


def sent(body):
    """What arrives at the other end."""
    return json.loads(json.dumps(body))

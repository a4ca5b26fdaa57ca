"""The targets of an attack: people whose public columns are known, and one secret bit of each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BadParameter
from discreet.lab.random import integers, shuffled
from discreet.numeric import whole
from discreet.query.linear import Linear
from discreet.schema.column import Categories
from discreet.schema.domain import Domain
from discreet.schema.schema import Schema
from discreet.schema.unit import Unit
from discreet.source.frame import Frame
from discreet.source.table import Table
from discreet.types import Bools

Codes = dict[str, NDArray[np.int64]]
# An independent fair coin for each person: for it the bounds of `limit` are theorems, for any prior.
COIN = "coin"


@dataclass(frozen=True, eq=False, repr=False)
class People:
    """Some rows of a table, no two with the same public columns, and the cell of the secret column that is asked about.

    `codes` are the cells of each row, by column, with the secret one: the truth by which an attack is scored.
    """

    domain: Domain
    public: tuple[str, ...]
    secret: str
    cell: int
    codes: Codes

    def __len__(self) -> int:
        return len(self.codes[self.secret])

    @property
    def bits(self) -> Bools:
        """The truth: who has the secret."""
        return np.asarray(self.codes[self.secret] == self.cell)

    @property
    def label(self) -> str:
        """The secret in words."""
        return f"{self.secret} = {self.domain[self.secret].label(self.cell)}"

    @property
    def table(self) -> Table:
        """These people alone as a table under protection; a person is replaced, so their number is public."""
        unit = Unit(neighbors="replace_one")
        rows = Frame.of_codes(
            [self.codes[name].astype(np.int32) for name in self.domain], domain=self.domain, unit=unit
        )
        return Table(Schema("people", self.domain, unit), rows)

    def exact(self, query: Linear) -> float:
        """The true answer."""
        return float(weights(query, self.codes).sum())

    def matrix(self, queries: Sequence[Linear]) -> NDArray[np.float64]:
        """What each person adds to each answer if they have the secret, beyond what they add without it.

        An attacker computes it: it needs the public columns alone.
        """
        with_it = self.codes | {self.secret: np.full(len(self), self.cell)}
        return np.array([weights(query, with_it) for query in queries], dtype=np.float64)

    def __repr__(self) -> str:
        return f"<{len(self)} people; known: {', '.join(self.public)}; secret: {self.label}>"


def weights(query: Linear, codes: Codes) -> NDArray[np.int64]:
    """What each row adds to a linear query.

    >>> from discreet.query.product import box
    >>> old = Linear([box({"age": np.array([False, True])})])
    >>> weights(old, {"age": np.array([0, 1, 1])}).tolist()
    [0, 1, 1]
    """
    rows = len(next(iter(codes.values())))
    total = np.zeros(rows, dtype=np.int64)
    for product in query.products:
        term = np.full(rows, product.coefficient, dtype=np.int64)
        for factor in product.factors:
            term *= factor.weights[tuple(codes[name] for name in factor.columns)]
        total += term
    return total


def rows_of(table: Table, columns: Sequence[str] | None = None) -> Codes:
    """The cells of every row of a table, for its owner, who may read it."""
    names = tuple(table.domain) if columns is None else tuple(columns)
    parts: list[list[NDArray[Any]]] = []
    for cells, times in table.source.cells(names):
        coded = [np.asarray(each, dtype=np.int64) for each in cells]
        parts.append(coded if times is None else [np.repeat(each, times) for each in coded])
    return {name: np.concatenate([part[place] for part in parts]) for place, name in enumerate(names)}


def all_people(table: Table, *, public: Sequence[str], secret: str, value: Any = None) -> People:
    """Every row of a table, to attack its own curator or server.

    >>> import discreet as dp
    >>> rows = {"age": [31, 40, 52], "smokes": [True, False, True]}
    >>> table = dp.open(rows, domain=dp.Domain({"age": dp.Integers(0, 99), "smokes": dp.Boolean()}))
    >>> all_people(table, public=["age"], secret="smokes")
    <3 people; known: age; secret: smokes = True>
    """
    rows = len(rows_of(table, public[:1])[public[0]]) if public else 0
    return choose_people(table, rows, public=public, secret=secret, value=value, balanced=False)


def choose_people(
    table: Table, number: int, *, public: Sequence[str], secret: str, value: Any = None, balanced: bool = True
) -> People:
    """Random people with different public columns; half of them have the secret if `balanced`.

    The secret is that column `secret` has this `value` (its last cell, if none is given). The secret "coin" is a fair
    coin for each person, beside the table, and independent of everything else.

    >>> import discreet as dp
    >>> choose_people(dp.load_adult(), 100, public=["age", "education", "sex"], secret="income", value=">50K")
    <100 people; known: age, education, sex; secret: income = >50K>
    """
    count, known = whole("people", number, least=2), tuple(dict.fromkeys(public))
    if not known or secret in known:
        raise BadParameter(
            f"public is {list(public)!r} and secret is {secret!r}; some columns are public and the secret is none of "
            'them. Give, say, --public age,sex --secret "income=>50K".'
        )
    if table.unit.contributions > 1:
        raise BadParameter(
            f"in this table {table.unit.describe}; these attacks are on tables in which a person has one row. Attack a "
            "table of one row for each person."
        )
    column = Categories((0, 1), outside="drop", missing="drop") if secret == COIN else table.domain[secret]
    cell = column.inside - 1 if value is None else column.locate(value)
    if cell < 0:
        raise BadParameter(f'column "{secret}" has no value {value!r}. Give one of its values.')
    codes = rows_of(table, known if secret == COIN else (*known, secret))
    rows = len(codes[known[0]])
    if secret == COIN:
        codes[COIN] = integers(2, rows)
    domain = Domain({**{name: table.domain[name] for name in known}, secret: column})
    order = shuffled(rows)
    # Of people with the same public columns only the first in this order is kept.
    profiles = np.stack([codes[name][order] for name in known], axis=1)
    order = order[np.sort(np.unique(profiles, axis=0, return_index=True)[1])]
    if balanced and secret != COIN:
        has = codes[secret][order] == cell
        order = np.concatenate([order[has][: count // 2], order[~has][: count - count // 2]])
    chosen = order[:count]
    if len(chosen) < count:
        raise BadParameter(
            f"{count} people are asked for, and {len(chosen)} can be found whose public columns differ"
            f"{', half of them with the secret' * balanced}. Ask for fewer, or name more public columns."
        )
    return People(domain, known, secret, cell, {name: codes[name][chosen] for name in domain})

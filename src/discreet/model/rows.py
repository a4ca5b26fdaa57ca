"""Rows in memory that may be public: synthetic ones, or a sample. They answer every question as a model does."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BadData, BadQuery
from discreet.model.interface import Coded, shape_of
from discreet.noise.sample import filler
from discreet.numeric import whole
from discreet.query.linear import Linear
from discreet.schema.domain import Domain
from discreet.types import Numbers


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """Public rows: for each column of the domain the cell of each row; each represents `scale` rows of a table.

    Never put private rows here: nothing that reads a model adds noise.

    >>> from discreet.query.aggregates import count
    >>> from discreet.query.predicate import col
    >>> from discreet.schema.column import Boolean
    >>> people = Domain({"old": Boolean(), "smoker": Boolean()})
    >>> rows = Rows(people, {"old": np.array([0, 1, 1]), "smoker": np.array([0, 0, 1])}, scale=10.0)
    >>> rows.total, rows.answer(count(people, col("old") == True)), rows.marginal(["smoker", "old"]).tolist()
    (30.0, 20.0, [[10.0, 10.0], [0.0, 10.0]])
    """

    domain: Domain
    codes: Mapping[str, NDArray[np.int64]]
    scale: float = 1.0

    def __post_init__(self) -> None:
        if sorted(self.codes) != sorted(self.domain):
            raise BadData(f"the rows have the columns {sorted(self.codes)}; the domain has {sorted(self.domain)}.")
        kept: Coded = {}
        for name, column in self.domain.columns:
            codes = np.array(self.codes[name], dtype=np.int64)
            if codes.ndim != 1 or len(codes) != len(self.codes[next(iter(self.domain))]):
                raise BadData(f'column "{name}" has the shape {codes.shape}; all columns are lists of one length.')
            if codes.size and not 0 <= int(codes.min()) <= int(codes.max()) < column.size:
                raise BadData(f'column "{name}" has a code outside 0 to {column.size - 1}. Code rows by the domain.')
            codes.setflags(write=False)
            kept[name] = codes
        object.__setattr__(self, "codes", kept)

    @property
    def number(self) -> int:
        """How many rows there are in memory."""
        return len(self.codes[next(iter(self.domain))])

    @property
    def total(self) -> float:
        """How many rows they represent."""
        return self.scale * self.number

    def marginal(self, columns: Sequence[str]) -> Numbers:
        """The number of rows in each cell of some columns, with an axis for each in the order given."""
        shape = shape_of(self.domain, columns)
        cell = np.zeros(self.number, dtype=np.int64)
        for name, size in zip(columns, shape, strict=True):
            cell = cell * size + self.codes[name]
        return self.scale * np.bincount(cell, minlength=prod(shape)).astype(np.float64).reshape(shape)

    def answer(self, query: Linear) -> float:
        """The value of a query: exact integers over the rows, times the scale."""
        found = 0
        for each in query.products:
            weight = np.full(self.number, each.coefficient, dtype=np.int64)
            for factor in each.factors:
                sizes = tuple(self.domain[name].size for name in factor.columns)
                if factor.weights.shape != sizes:
                    raise BadQuery(
                        f"the query was made for other columns: {factor.columns} has {sizes} cells in this domain and "
                        f"{factor.weights.shape} in the query. Make it again for this domain."
                    )
                weight *= factor.weights[tuple(self.codes[name] for name in factor.columns)]
            # Beyond 64 bits only Python's integers are exact.
            fits = each.magnitude * self.number < 2**63
            found += int(weight.sum()) if fits else sum(weight.tolist())
        return self.scale * found

    def rows(self, number: int) -> Coded:
        """Draw `number` rows from these, uniformly with replacement."""
        count = whole("number", number)
        if count and not self.number:
            raise BadData("there are no rows to draw from. Give at least one.")
        words = np.empty(count, dtype=np.int64)
        filler(count)(words)
        # 63 random bits modulo the number: no row is more likely than another by more than 1 in 2^30.
        drawn = (words & (2**63 - 1)) % max(self.number, 1)
        return {name: codes[drawn] for name, codes in self.codes.items()}

    def __repr__(self) -> str:
        return f"<Rows: {self.number} of {', '.join(self.domain)}, each for {self.scale:g}>"

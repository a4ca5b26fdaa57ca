"""Several models as one: p = Σ share · model. It is less wrong than each where their errors differ."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BadParameter
from discreet.model.protocol import Coded, Model
from discreet.model.uniform import uniform
from discreet.parameter import rational, whole
from discreet.query.linear import Linear
from discreet.schema.domain import Domain
from discreet.types import Numbers


@dataclass(frozen=True, eq=False, repr=False)
class Blend:
    """Σ share · model, over models of one domain. The shares are scaled to add up to 1.

    >>> from discreet.model.rows import Rows
    >>> from discreet.schema.column import Boolean
    >>> people = Domain({"old": Boolean()})
    >>> young, old = Rows(people, {"old": np.zeros(8)}), Rows(people, {"old": np.ones(8)})
    >>> blend = Blend([young, old], [3, 1])
    >>> blend.total, blend.marginal(["old"]).tolist(), sorted(blend.rows(4)["old"].tolist())
    (8.0, [6.0, 2.0], [0, 0, 0, 1])
    """

    models: Sequence[Model]
    shares: Sequence[float]

    def __post_init__(self) -> None:
        models, shares = tuple(self.models), tuple(float(rational("share", share)) for share in self.shares)
        if not models or len(models) != len(shares) or min(shares) < 0 or sum(shares) == 0:
            raise BadParameter(
                f"there are {len(models)} models and the shares {list(shares)}; there is at least one model, and a "
                "share for each that is not negative, not all of them 0. Leave out models that should not count."
            )
        if any(model.domain != models[0].domain for model in models):
            raise BadParameter("the models have different domains. Blend models of the same columns.")
        object.__setattr__(self, "models", models)
        object.__setattr__(self, "shares", tuple(share / sum(shares) for share in shares))

    @property
    def domain(self) -> Domain:
        """What a row may be."""
        return self.models[0].domain

    @cached_property
    def total(self) -> float:
        """How many rows there are thought to be: the mean of what the models think, by their shares."""
        return sum(share * model.total for model, share in self._parts)

    def marginal(self, columns: Sequence[str]) -> Numbers:
        """The expected number of rows in each cell of some columns, with an axis for each in the order given."""
        found = [share * model.marginal(columns) for model, share in self._parts]
        return np.asarray(sum(found[1:], start=found[0]))

    def answer(self, query: Linear) -> float:
        """The expected value of a query."""
        return sum(share * model.answer(query) for model, share in self._parts)

    def answers(self, queries: Iterable[Linear]) -> Numbers:
        """The expected values of many queries: at once of models that can, else one by one."""
        listed = list(queries)
        found: Numbers = np.zeros(len(listed))
        for model, share in self._parts:
            at_once = getattr(model, "answers", None)
            found += share * (at_once(listed) if at_once else np.array([model.answer(query) for query in listed]))
        return found

    def rows(self, number: int) -> Coded:
        """So many rows, of each model as many as its part of them; those of one model stand together."""
        drawn = [model.rows(int(each)) for model, each in zip(self.models, self.split(number), strict=True)]
        return {name: np.concatenate([rows[name] for rows in drawn]) for name in self.domain}

    def split(self, number: int) -> NDArray[np.int64]:
        """How many of so many rows come from each model: its expected number, rounded up or down at random."""
        count = whole("number", number)
        parts = np.array([share * model.total for model, share in zip(self.models, self.shares, strict=True)])
        if parts.sum() <= 0:
            parts = np.array(self.shares)
        return rounded(count * parts / parts.sum(), count)

    @property
    def _parts(self) -> list[tuple[Model, float]]:
        return [(model, share) for model, share in zip(self.models, self.shares, strict=True) if share]

    def __repr__(self) -> str:
        return f"<Blend: {' + '.join(f'{share:.3g} {model!r}' for model, share in self._parts)}>"


def rounded(expected: Numbers, number: int) -> NDArray[np.int64]:
    """Each number rounded up or down, on average right, so that they add up to `number` (systematic sampling).

    >>> rounded(np.array([1.0, 2.0, 3.0]), 6).tolist()
    [1, 2, 3]
    """
    # A sum of doubles that should be whole is nearly so: a start in the middle of the others would miss by one.
    ends = np.floor(np.cumsum(expected).round(9) + uniform(1)).clip(0, number)
    ends[-1] = number
    return np.diff(ends, prepend=0).astype(np.int64)

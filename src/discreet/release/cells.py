"""The cells of a goal's marginals, as counts that can be asked one by one."""

from itertools import product as every

import numpy as np

from discreet.query.linear import Linear
from discreet.query.product import Factor, Product
from discreet.release.goal import Goal


def number_of_cells(goal: Goal) -> int:
    """How many counts there are."""
    return sum(goal.cells(scope) for scope in goal.scopes)


def cells_of_goal(goal: Goal) -> tuple[Linear, ...]:
    """A count for each cell of each marginal, marginal after marginal, the last column varying fastest.

    >>> from discreet.release.goal import goal_of
    >>> from discreet.schema.column import Boolean
    >>> from discreet.schema.domain import Domain
    >>> people = Domain({"old": Boolean(), "ill": Boolean()})
    >>> [count.table(people).tolist() for count in cells_of_goal(goal_of([["old"]], people))]
    [[1, 0], [0, 1]]
    """
    ones = {
        name: [Factor((name,), row) for row in np.eye(goal.domain[name].size, dtype=np.int64)]
        for name in sorted({name for scope in goal.scopes for name in scope})
    }
    return tuple(
        Linear([Product(factors)]) for scope in goal.scopes for factors in every(*(ones[name] for name in scope))
    )

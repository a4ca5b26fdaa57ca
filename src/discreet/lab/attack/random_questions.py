"""Random questions: each splits people like coin flips, although it names values of a few columns only."""

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np

from discreet.lab.random import truths
from discreet.query.linear import Linear
from discreet.query.product import box
from discreet.schema.domain import Domain
from discreet.types import Bools


def random_questions(
    domain: Domain, columns: Sequence[str], number: int, *, also: Mapping[str, Bools] | None = None
) -> list[Linear]:
    """Counts of random halves of the people: of each column a random half of the values, and an even number outside.

    For two columns that is (a IN A AND b IN B) OR (a NOT IN A AND b NOT IN B), which SQL can ask; two people whose
    columns differ are on the same side of about half of the questions. `also` is a condition that all of them have.

    >>> from discreet.schema.column import Integers
    >>> people = Domain({"age": Integers(0, 99), "city": Integers(0, 9)})
    >>> random_questions(people, ["age", "city"], 2)
    [<Linear: 2 products on age, city>, <Linear: 2 products on age, city>]
    """
    condition = {} if also is None else dict(also)
    return [_parity({name: truths(0.5, domain[name].size) for name in columns}, condition) for _ in range(number)]


def cell_mask(domain: Domain, column: str, cell: int) -> Bools:
    """The condition that a column is in this cell."""
    mask = np.zeros(domain[column].size, dtype=np.bool_)
    mask[cell] = True
    return mask


def _parity(masks: Mapping[str, Bools], condition: Mapping[str, Bools]) -> Linear:
    """The rows outside an even number of the masks, as disjoint boxes."""
    boxes = []
    for outside in product((False, True), repeat=len(masks)):
        if sum(outside) % 2 == 0:
            sides = {name: mask != out for (name, mask), out in zip(masks.items(), outside, strict=True)}
            if all(side.any() for side in sides.values()):
                boxes.append(box({**sides, **condition}))
    return Linear(boxes)

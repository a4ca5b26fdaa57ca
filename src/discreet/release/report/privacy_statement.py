"""The sentences on the card of a release: what is guaranteed, what is estimated, what is not promised."""

from math import exp

from discreet.answer import error_text
from discreet.ledger.accounts import Budget
from discreet.schema.unit import Unit

# Beyond this, e^epsilon is better left as a power.
_READABLE = 14.0


def guaranteed(
    *, neighbors: str, budget: Budget, cap: Budget, earlier: int, rows_error: float | None, rows_confidence: float
) -> tuple[str, ...]:
    """What holds for every table, and for every other knowledge of a reader.

    A release is also fitted to answers that were released before, so its own guarantee is conditional on them.

    >>> said = guaranteed(
    ...     neighbors="one row is replaced",
    ...     budget=Budget(1),
    ...     cap=Budget(2),
    ...     earlier=0,
    ...     rows_error=0,
    ...     rows_confidence=0.95,
    ... )
    >>> said[0].endswith("becomes more than 2.72 times as likely."), said[-1]
    (True, 'The number of rows is public: no neighbour has another.')
    """
    given = "Given all earlier answers about the table, which this release uses too: if" if earlier else "If"
    rows = []
    if rows_error == 0:
        rows = ["The number of rows is public: no neighbour has another."]
    elif rows_error is not None:
        sure = f"{100 * rows_confidence:g} %"
        rows = [f"The number of rows is within {error_text(rows_error)} of the truth with probability {sure}."]
    return (
        f"{given} {neighbors}, nothing that this release says, and nothing that anyone concludes from it, becomes more "
        f"than {_likelier(budget)}.",
        f"The same holds with a factor of {_factor(cap)} for everything that is ever released about the table, this "
        "release included, as long as its owner does not raise that limit.",
        "Further rows, marginals and answers made from this release cost nothing more: they follow from the noisy "
        "numbers that it is made of.",
        *rows,
    )


def estimated(*, error: float | None, forecast: float | None) -> tuple[str, ...]:
    """What is only estimated: how accurate the release is."""
    said = []
    if error is not None:
        said.append(
            "The errors of the marginals are estimated from the released numbers alone. They are no bounds; that of a "
            "single marginal may be off by a factor of two."
        )
    if forecast is not None:
        said.append("The forecast of the error was computed from sizes and the budget, before anything was measured.")
    return tuple(said or ["Nothing."])


def not_promised(*, unit: Unit, earlier: int, table_spent: Budget) -> tuple[str, ...]:
    """What a reader might think and should not."""
    said = []
    if earlier:
        said.append(
            "This release is not all that was released about the table: together with what was released before, it "
            f"costs {table_spent}."
        )
    if unit.key is None:
        said.append("Single rows are protected: a person who has several rows in the table is protected less.")
    elif unit.contributions > 1:
        said.append(
            f'Of each "{unit.key}" at most {unit.contributions} rows were used; further ones are not in the release.'
        )
    said.append(
        "Facts about people in general are not hidden. No synthetic row belongs to a person: one that resembles "
        "somebody says no more about them than the guarantee allows."
    )
    return tuple(said)


def _likelier(budget: Budget) -> str:
    more = f", plus a probability of {float(budget.delta):g}" if budget.delta else ""
    return f"{_factor(budget, more=False)} times as likely{more}"


def _factor(budget: Budget, *, more: bool = True) -> str:
    """e^epsilon, rounded up, and delta."""
    epsilon = float(budget.epsilon)
    factor = error_text(exp(epsilon)) if epsilon <= _READABLE else f"e^{epsilon:g}"
    return factor + (f" (and {float(budget.delta):g})" if more and budget.delta else "")

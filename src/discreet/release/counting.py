"""Counting the rows before anything else is measured."""

from fractions import Fraction

from discreet.known.known import Known
from discreet.known.steps import Step
from discreet.model.looks import total_of
from discreet.plan.plan import Steps
from discreet.plan.request import Measure, Procedure, Request
from discreet.privacy.loss import loss
from discreet.query.linear import Marginal
from discreet.source.effect import sensitivity_of

# A first look at the number of rows gets this part of the budget.
FIRST = Fraction(1, 500)
TOTAL = Marginal(())


def counted(known: Known, units: Fraction) -> Procedure[Fraction]:
    """Count the rows for at most so many units, and say what it cost: nothing if they are known as well already."""
    step = count_step(known, units)
    if step is None:
        return Fraction(0)
    request = Measure(Steps((step,)), "the number of rows, for a release")
    yield request
    return paid(known, request)


def count_step(known: Known, units: Fraction) -> Step | None:
    """How the rows are counted for so many units; None if that would say no more than is known."""
    moves = sensitivity_of(TOTAL, known.domain, known.lattice.unit)
    if moves.l1 == 0 or units <= 0:
        return None
    return known.count_step(units, total_of(known.lattice)[1])


def paid(known: Known, request: Request) -> Fraction:
    """What a request costs, in the units of what is known: squared mu, or epsilon."""
    event = request.event(known.domain, known.lattice.unit)
    return Fraction(loss(event, by=known.accounting))

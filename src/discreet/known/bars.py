"""Values with half-widths: what every estimator answers with."""

from dataclasses import dataclass

from discreet.known.steps import Question
from discreet.query.linear import Marginal
from discreet.types import Numbers


@dataclass(frozen=True, slots=True, eq=False)
class Bars:
    """A value and the half-width of its error for each cell of the groups; nan where there is no value."""

    values: Numbers
    errors: Numbers


def weighs_nothing(question: Question) -> bool:
    """Whether no row can count: then the answer is 0, and everybody knows."""
    weight = question.weight if isinstance(question, Marginal) else question
    return weight is not None and not weight.products

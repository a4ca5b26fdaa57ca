"""The cost of a stream of questions: here, and where each new question is answered by itself.

The two baselines do what other tools do: one noisy answer for each new question, and a cache for the same question,
word for word. A GROUP BY is one release for them too, because one person is in one group only.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import log
from statistics import NormalDist
from typing import Literal, Protocol

from discreet.accounting.gaussian_dp import gaussian_epsilon, gaussian_limit
from discreet.cache import memoize
from discreet.ledger import Budget


class Wanted(Protocol):
    """A question as a cache sees it: its text, and the half-width of the answer that is wanted."""

    @property
    def sql(self) -> str: ...  # noqa: D102
    @property
    def error(self) -> float: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class Spending:
    """The part of a budget that was used after each question, in the currency in which it adds up; above 1 is too much.

    >>> Spending("Laplace", [0.4, 0.8, 0.8, 1.2], Budget(epsilon=1), adds="epsilon").answered
    3
    """

    name: str
    used: Sequence[float]
    budget: Budget
    adds: Literal["epsilon", "squares"]

    @property
    def answered(self) -> int:
        """The number of questions, from the start of the stream, that the budget is enough for."""
        return next((place for place, used in enumerate(self.used) if used > 1), len(self.used))

    def epsilon(self, place: int) -> float:
        """The epsilon, at the budget's delta, that was spent after `place` questions."""
        if self.adds == "epsilon":
            return self.used[place - 1] * float(self.budget.epsilon)
        return _epsilon_of_squares(self.used[place - 1], self.budget)


def laplace_spending(stream: Iterable[Wanted], budget: Budget, *, confidence: float) -> Spending:
    """One Laplace answer for each new question: epsilons add up.

    |Lap(b)| ≤ t with probability 1 − exp(−t/b), so an error t costs ε = 1/b = ln(1/(1 − confidence))/t.
    """
    missed = log(1 / (1 - confidence))
    each = float(budget.epsilon)
    return Spending("Laplace", _sums(stream, lambda error: missed / error / each), budget, "epsilon")


def gaussian_spending(stream: Iterable[Wanted], budget: Budget, *, confidence: float) -> Spending:
    """One Gaussian answer for each new question: squares μ² = 1/sigma² add up, and epsilon follows at the delta.

    Noise is rounded, and |round(Y)| ≤ t exactly when |Y| < t + 1/2, so an error t has sigma = (t + 1/2)/z.
    """
    quantile, limit = NormalDist().inv_cdf((1 + confidence) / 2), _limit(budget)
    used = _sums(stream, lambda error: (quantile / (error + 0.5)) ** 2 / limit)
    return Spending("Gaussian", used, budget, "squares")


def _sums(stream: Iterable[Wanted], price: Callable[[float], float]) -> list[float]:
    asked, total, sums = set[tuple[str, float]](), 0.0, []
    for question in stream:
        if (question.sql, question.error) not in asked:
            asked.add((question.sql, question.error))
            total += price(question.error)
        sums.append(total)
    return sums


@memoize(4096)
def _limit(budget: Budget) -> float:
    return float(gaussian_limit(budget.epsilon, budget.delta))


@memoize(4096)
def _epsilon_of_squares(used: float, budget: Budget) -> float:
    return float(gaussian_epsilon(Fraction(used * _limit(budget)), budget.delta))

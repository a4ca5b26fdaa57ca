"""The target of an attack: anything that answers a linear query with a number, or with nothing (NaN)."""

from collections.abc import Callable
from math import ceil, exp, isfinite, nan
from typing import Any

from discreet.errors import BadParameter, BadQuery, BudgetExceeded
from discreet.numeric import Number, positive
from discreet.query.linear import Linear

Answering = Callable[[Linear], float]


def answering(target: Any, *, epsilon: Number | None = None, error: Number | None = None) -> Answering:
    """Make a curator, a server or a release a function from a query to a number.

    A curator (or what `dp.connect` gives) is asked with this `epsilon` or `error` for each question until its budget is
    gone, and from then on for known answers. A release is asked for free. Where nothing is known the answer is NaN. A
    function is returned as it is.

    >>> answering(lambda query: 7.0)(Linear())
    7.0
    """
    if hasattr(target, "ask"):
        return _asking(target, epsilon, error)
    if hasattr(target, "answer"):
        return lambda query: float(target.answer(query).value)
    if callable(target):
        return target  # type: ignore[no-any-return]
    raise BadParameter(
        f"the target is a {type(target).__name__}; it must answer questions. Give a Curator, what dp.connect returns, "
        "a Release, or a function from a query to a number."
    )


def rounded(answer: Answering, to: Number) -> Answering:
    """The same answers, rounded to multiples of a number: what many offices do, and what protects nobody.

    >>> rounded(lambda query: 17.0, to=5)(Linear())
    15.0
    """
    step = float(positive("to", to, next_step="Give a number, say 5."))
    return lambda query: step * round(answer(query) / step)


def laplace_wish(epsilon: Number) -> dict[str, float]:
    """The error and the confidence that one Laplace count has at this price, or at half a percent less.

    To ask a curator for them is to pay that price, and it need not be searched for: a plan finds the scale of the noise
    to a fifth of a percent.

    >>> laplace_wish(0.5)["error"]
    6.0
    """
    loss = 0.995 * float(positive("epsilon", epsilon))
    error = float(max(1, ceil(2.9 / loss)))
    # Pr[|X| ≤ t] = 1 − 2a^(t+1)/(1 + a).
    beyond = 2 * exp(-loss * (error + 1)) / (1 + exp(-loss))
    # No confidence reaches 1, so a very large price is not spent in full.
    return {"error": error, "confidence": 1 - max(beyond, 1e-12)}


def _asking(desk: Any, epsilon: Number | None, error: Number | None) -> Answering:
    if (epsilon is None) == (error is None):
        raise BadParameter(
            f"epsilon is {epsilon!r} and error is {error!r}; a curator is asked with one of them. Give the epsilon "
            "that each question may cost, or the error that its answer may have."
        )
    price: dict[str, Any] = {"error": error}
    if epsilon is not None:
        price = {"epsilon": epsilon} if desk.remaining.delta else laplace_wish(epsilon)
    gone = False

    def ask(query: Linear) -> float:
        nonlocal gone
        if not gone:
            try:
                return _number(desk.ask(query, **price).value)
            except BudgetExceeded:
                gone = True
        try:
            return _number(desk.ask(query).value)
        except (BadParameter, BadQuery):
            # No released answer says anything about it.
            return nan

    return ask


def _number(value: Any) -> float:
    return float(value) if value is not None and isfinite(value) else nan

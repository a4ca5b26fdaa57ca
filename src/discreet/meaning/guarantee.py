"""What (epsilon, delta) alone promises to a person: odds, beliefs, utility, the best possible test, and families.

Every number here is a consequence of (epsilon, delta)-DP alone, for any attacker with any side knowledge. They are
ordinary doubles, for reading; nothing is charged by them. Definitions, and the proofs for delta > 0: docs/meaning.md.
"""

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from math import exp, expm1, inf, log, tanh
from typing import Any

from discreet.accounting.group import group_budget
from discreet.numeric import float_above, positive, probability, whole

GROUPS = (2, 5, 10)
FALSE_ALARM = 0.05
# With delta > 0 a release may exceed the loss epsilon; few exceed it by more than this.
LOSS_MARGIN = 0.1


@dataclass(frozen=True, slots=True)
class GroupGuarantee:
    """The guarantee that a group of this many people has together (group privacy)."""

    people: int
    epsilon: float
    delta: float


@dataclass(frozen=True, slots=True)
class Meaning:
    """What (epsilon, delta)-DP promises to one person whose data may be in the table.

    odds         for someone who knows all others, the results change the odds that you took part by at most this factor
    conclusions  what anyone concludes about you with your data and without it: within this factor of each other
    exception    the probability that a release breaks one of those two (0 when delta is 0)
    utility      expected utility with your data is at least this share of what it is without
    power        the best test of "were you in it?" finds you with at most this probability at 5 % false alarms
    advantage    the largest difference of hits and false alarms that any such test can reach
    groups       the guarantee for several people together
    warnings     reasons why this budget is unwise, if there are any
    """

    epsilon: float
    delta: float
    rows: int | None
    odds: float
    conclusions: float
    exception: float
    utility: float
    power: float
    advantage: float
    groups: tuple[GroupGuarantee, ...]
    warnings: tuple[str, ...]

    def posterior(self, prior: float) -> tuple[float, float]:
        """Bounds of the posterior probability that you took part, for one who knows everyone else's data.

        They hold as well for those who know less and think that your taking part is independent of the others. Not
        covered: releases that are exceptions, which happen with probability at most `exception`.

        >>> low, high = explain(epsilon=1).posterior(0.5)
        >>> round(low, 3), round(high, 3)
        (0.269, 0.731)
        """
        return _shift(prior, 1 / self.odds), _shift(prior, self.odds)

    @property
    def sentences(self) -> tuple[tuple[str, str], ...]:
        """Each consequence in plain words, with its title."""
        return _sentences(self)

    @property
    def text(self) -> str:
        """All of it as plain text."""
        parts = [f"{title}: {sentence}" for title, sentence in self.sentences]
        return "\n".join(parts + [f"Warning: {warning}" for warning in self.warnings])


def explain(*, epsilon: Any, delta: Any = 0, rows: int | None = None) -> Meaning:
    """What (epsilon, delta)-DP means, in numbers and in words.

    >>> meaning = explain(epsilon=1)
    >>> round(meaning.odds, 2), round(meaning.power, 3), round(meaning.advantage, 3)
    (2.72, 0.136, 0.462)

    [000 §2, Prop. 6; 002 Thm. 3.1; KS14; WZ10, KOV15 for the test]
    """
    exact, exact_delta = positive("epsilon", epsilon), probability("delta", delta, zero=True)
    count = None if rows is None else whole("rows", rows, least=1)
    e, d = float(exact), float(exact_delta)
    reach = _reach(e, d)
    exception = 0.0 if d == 0 else min(1.0, 2 * (1 + exp(-reach)) * d / -expm1(-LOSS_MARGIN * e))
    budgets = ((people, *group_budget(epsilon=exact, delta=exact_delta, people=people)) for people in GROUPS)
    return Meaning(
        epsilon=e,
        delta=d,
        rows=count,
        odds=_exp(reach),
        conclusions=_exp(2 * reach),
        exception=exception,
        utility=exp(-e),
        power=best_power(epsilon=e, delta=d, false_alarm=FALSE_ALARM),
        advantage=min(1.0, tanh(e / 2) + 2 * d * exp(-e) / (1 + exp(-e))),
        groups=tuple(
            GroupGuarantee(people, float_above(shared), float_above(spill)) for people, shared, spill in budgets
        ),
        warnings=_warnings(e, d, count),
    )


def best_power(*, epsilon: float, delta: float = 0.0, false_alarm: float) -> float:
    """The largest probability of detection of any test of "were you in it?" with this rate of false alarms.

    min(1, δ + e^ε α, 1 − e^{−ε}(1 − δ − α)): one minus the trade-off curve of (epsilon, delta)-DP.

    where α is `false_alarm`.

    >>> round(best_power(epsilon=1, false_alarm=0.05), 3)
    0.136

    [WZ10, Thm. 2.4; DRS22, Prop. 2.5]
    """
    rest = max(0.0, 1 - delta - false_alarm)
    return min(1.0, delta + _exp(epsilon) * false_alarm, 1 - exp(-epsilon) * rest)


def _warnings(epsilon: float, delta: float, rows: int | None) -> tuple[str, ...]:
    found = []
    if rows is not None and log(20) / epsilon >= rows:
        found.append(
            f"epsilon {epsilon:g} is too small for {rows:,} rows: one count would be off by ±{log(20) / epsilon:,.0f}. "
            f"Useful answers need epsilon far above 1/rows = {1 / rows:.2g}."
        )
    if rows is not None and delta * rows > 0.01:
        found.append(
            f"delta {delta:g} is too large for {rows:,} rows: publishing each row in full with probability delta would "
            f"be allowed. Take delta far below 1/rows = {1 / rows:.2g}."
        )
    if epsilon > 10:
        found.append(f"epsilon {epsilon:g} promises next to nothing in the worst case; 0.1 to 3 is usual.")
    return tuple(found)


def _sentences(meaning: Meaning) -> tuple[tuple[str, str], ...]:
    low, high = meaning.posterior(0.1)
    reach = _reach(meaning.epsilon, meaning.delta)
    never, lost = "", ""
    if meaning.delta:
        never = f" A release breaks this with probability at most {_number(meaning.exception, digits=1)}."
        lost = f", less {meaning.delta:g} of the largest"
    return (
        (
            "Odds",
            "Even to someone who knows everyone else's data, the results change the odds that you took part by a "
            f"factor of {_factor(reach)} at most: a belief of 10 % before ends between {_percent(low, up=False)} "
            f"and {_percent(high)}.{never}",
        ),
        (
            "Conclusions",
            "Compare what anyone concludes about you, with any other knowledge, to what they would conclude if your "
            f"data had not been used: no probability differs by more than a factor of {_factor(2 * reach)}.{never}",
        ),
        (
            "Consequences",
            "Of any benefit that the results may have for you, you keep on average at least "
            f"{_percent(meaning.utility, up=False)} if you take part{lost}.",
        ),
        (
            "The best test",
            'The best possible test of "were you in it?" that accuses 5 % of those who were not finds you with '
            f"probability {_percent(meaning.power)} at most. Hits never exceed false alarms by more than "
            f"{_percent(meaning.advantage)}.",
        ),
        ("Families", f"Together the promise is weaker: {_families(meaning)}."),
        (
            "Not hidden",
            "Facts about people in general. If the results show that smoking causes cancer, everyone learns that about "
            "every smoker, whether they took part or not.",
        ),
    )


def _families(meaning: Meaning) -> str:
    return "; ".join(
        f"{group.people} people, epsilon {_number(group.epsilon, digits=6)}"
        + (f" and delta {_number(group.delta, digits=1)}" if group.delta else "")
        for group in meaning.groups
    )


def _shift(prior: float, factor: float) -> float:
    p = float(probability("prior", prior))
    return 1.0 if factor == inf else p * factor / (1 - p + p * factor)


def _reach(epsilon: float, delta: float) -> float:
    """The largest privacy loss, up or down, except with the probability of an exception."""
    return (1 + LOSS_MARGIN) * epsilon if delta else epsilon


def _exp(value: float) -> float:
    return exp(value) if value < 700 else inf


def _number(value: float, *, up: bool = True, digits: int = 3) -> str:
    """A few digits of a number, rounded so that "at most" (or "at least") stays true."""
    context = Context(prec=digits, rounding=ROUND_CEILING if up else ROUND_FLOOR)
    return f"{float(context.create_decimal_from_float(value)):,g}"


def _factor(exponent: float) -> str:
    return _number(exp(exponent)) if exponent < 700 else f"e^{exponent:g}"


def _percent(share: float, *, up: bool = True) -> str:
    return f"{_number(100 * share, up=up)} %"

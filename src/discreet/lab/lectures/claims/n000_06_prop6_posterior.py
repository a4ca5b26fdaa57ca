"""Beliefs with and without me differ by e^{±2ε}: 000 Proposition 6."""

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.lectures.laws import at_most, equals
from discreet.meaning import attained_shift, possible_worlds, worst_shift
from discreet.mechanism import laplace, randomized_response
from discreet.mechanism.protocol import Mechanism
from discreet.report.chart import Chart
from discreet.report.plot import Line, plot

TABLES = list(product((0, 1), repeat=3))

Make = Callable[[Fraction], Mechanism[Any]]


def run() -> Outcome:
    """The worst prior over all tables of three people, in closed form."""
    return Outcome(findings(), figure=_figure(), note=NOTE)


NOTE = """Why 2ε and not ε: what is learnt about me may come from the others. The worst prior ties them to me: it gives
nearly all weight to "if I am a 1, so are they", and very little to "I am the only one". Randomized response reports
each person separately, and for it no prior goes beyond e^ε."""


def _counts(epsilon: Fraction) -> Mechanism[Any]:
    return laplace(epsilon=epsilon, sensitivity=1)


def findings(count: Make = _counts) -> tuple[Finding, ...]:
    """The largest shift of any belief under any prior, for some epsilons and two mechanisms."""
    found = []
    for epsilon in (Fraction(1, 10), Fraction(1), Fraction(3)):
        worlds = possible_worlds(count(epsilon), TABLES, person=0, default=0, query=lambda rows: [sum(rows)])
        shift = worst_shift(worlds)
        found.append(
            Finding(
                f"Laplace count, ε = {float(epsilon):g}: worst |ln ratio| over all priors",
                f"at most 2ε = {2 * float(epsilon):g}",
                f"{shift.reach.upper:.9g}, exactly, on releasing {shift.outcome[0]}",
                at_most(shift.reach, 2 * float(epsilon)) and shift.reach.lower > 0,
            )
        )
        attained = attained_shift(worlds, shift.prior(1e-9), shift.outcome)
        found.append(
            Finding(
                "the prior that gives 10⁻⁹ to one table and the rest to another",
                "comes close: no smaller bound is true",
                f"{attained:.9g}",
                attained > 2 * float(epsilon) * (1 - 1e-6),
            )
        )
    local = worst_shift(possible_worlds(randomized_response(epsilon=1), TABLES, person=0, default=0))
    found.append(
        Finding(
            "randomized response, ε = 1, the same",
            "at most 2",
            f"{local.reach.upper:.9g}, exactly: a local report stays at ε",
            equals(local.reach, 1.0),
        )
    )
    return tuple(found)


def _figure() -> Chart:
    """The shift that the prior attains, over the weight that it gives to the other table."""
    worlds = possible_worlds(_counts(Fraction(1)), TABLES, person=0, default=0, query=lambda rows: [sum(rows)])
    shift = worst_shift(worlds)
    shares = [10.0**-power for power in range(1, 7)] + [0.3]
    points = sorted((share, attained_shift(worlds, shift.prior(share), shift.outcome)) for share in shares)
    lines = [Line("this prior", points, "ours", dots=True), Line("2ε", [(points[0][0], 2), (points[-1][0], 2)], "cap")]
    lines.append(Line("ε", [(points[0][0], 1), (points[-1][0], 1)], "cap"))
    title = "The largest shift of a belief, over the weight of the unlikely table"
    return plot(title, lines, x="prior weight of the unlikely table", y="|ln ratio|, ε = 1", log_x=True, floor=0.0)


CLAIM = Claim(
    name="posterior",
    source="000 Prop. 6",
    title="What is believed of me is the same with and without me, within e^{±2ε}",
    statement="If M is ε-DP then for every prior, every release r and every table D the posterior P[D | r] is within "
    "e^{±2ε} of what it would be had M seen D without person i.",
    run=run,
)

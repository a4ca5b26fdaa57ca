"""Name and shame exposes people, and the posterior bound fails on it: 002 Exercise 3.3 (ii)."""

from fractions import Fraction
from itertools import product
from math import inf

import numpy as np

from discreet.lab.lectures.chance import often_enough, seldom_enough
from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.meaning import name_and_shame_exposure, possible_worlds, posteriors, worst_shift
from discreet.mechanism import label_sensitivity, name_and_shame
from discreet.report.plot import Line, plot
from discreet.schema.unit import Unit
from discreet.source.source import Exact

PEOPLE, TRIALS, DELTA = 1000, 400, Fraction(1, 250)
ONE = label_sensitivity(Unit(neighbors="replace_one"))


def run() -> Outcome:
    """How often somebody is published; what is then believed with the row and without."""
    factors = [0.1, 0.2, 0.5, 1, 2, 5, 10]
    points = [(f, name_and_shame_exposure(delta=f / PEOPLE, rows=PEOPLE).somebody) for f in factors]
    title = "Probability that somebody is published in the clear, over δn"
    figure = plot(title, [Line("somebody exposed", points, "third", dots=True)], x="δ·n", y="probability", log_x=True)
    return Outcome((exposure(), *beliefs()), figure)


def exposure(delta: Fraction = DELTA) -> Finding:
    """Runs in which somebody was published, beside 1 − (1 − δ)ⁿ at the δ that was declared."""
    shame, rows = name_and_shame(delta=delta), Exact(np.zeros(PEOPLE, dtype=np.int64), ONE)
    seen = sum(any(each is not None for each in shame.release(rows)) for _ in range(TRIALS))
    promised = name_and_shame_exposure(delta=DELTA, rows=PEOPLE).somebody
    return Finding(
        f"runs on {PEOPLE:,} people with δ = 4/n in which somebody is published",
        f"1 − (1 − δ)ⁿ = {promised:.4f}",
        f"{seen} of {TRIALS}",
        often_enough(seen, TRIALS, promised) and seldom_enough(seen, TRIALS, promised),
    )


def beliefs() -> tuple[Finding, ...]:
    """On a release that names somebody, beliefs with and without them differ as much as possible."""
    worlds = possible_worlds(name_and_shame(delta=DELTA), list(product((0, 1), repeat=2)), person=0, default=0)
    shift = worst_shift(worlds)
    prior = dict.fromkeys(worlds.with_row, 0.25)
    used, unused = posteriors(worlds, prior, (0, None))
    mine, theirs = (sum(weight for rows, weight in each.items() if rows[0] == 1) for each in (used, unused))
    quiet = posteriors(worlds, prior, (None, None))
    same = max(abs(quiet[0][rows] - quiet[1][rows]) for rows in prior)
    return (
        Finding(
            "worst |ln p₋ᵢ/p| over all priors and outputs",
            "infinite: (7) fails",
            f"{shift.reach.lower}",
            shift.reach.lower == inf,
        ),
        Finding(
            "belief that my bit is 1 after my row was published as 0, prior 1/2: with my row, and without",
            "0 and 1/2: no factor is enough",
            f"{mine:g} and {theirs:g}",
            mine == 0 and abs(theirs - 0.5) < 1e-12,
        ),
        Finding("and where nothing is published", "nothing is learnt", f"beliefs differ by {same:g}", same < 1e-12),
    )


CLAIM = Claim(
    name="name-and-shame-exposure",
    source="002 Ex. 3.3 (ii)",
    title="Additive secrecy lets somebody be exposed",
    statement="For δ ≫ 1/n name and shame publishes somebody's row with high probability; for such outputs no bound "
    "like p₋ᵢ(· | a) ≈ p(· | a) holds.",
    run=run,
)

"""SmallDB's table is off by about α: exactly how likely, for more and more people."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb, log

import numpy as np

from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.textbook.small_db import sample_size
from discreet.mechanism import imbalance_effects, small_table
from discreet.report.plot import Line, plot
from discreet.types import Numbers

EPSILON, ALPHA, BETA = Fraction(1), 0.25, 0.05
SHARES = (0.47, 0.31, 0.22)
EFFECTS: Sequence[Sequence[int]] = ((1, 0, 0), (0, 1, 0), (1, 1, 0), (1, 0, 1))
PEOPLE = (10, 20, 30, 50, 100, 200, 300, 1000)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The error of every table of m rows, and the exact probability (rounded up) with which it is chosen."""

    errors: Numbers
    chances: Numbers

    def beyond(self, error: float) -> float:
        """The probability of an error above this."""
        return float(self.chances[self.errors > error].sum())


def measure(people: int, epsilon: Fraction = EPSILON) -> Chosen:
    """The exact law for a table with fixed shares of three cells."""
    counts = np.array([round(people * share) for share in SHARES[:-1]])
    counts = np.append(counts, people - counts.sum())
    few, weights = sample_size(len(EFFECTS), ALPHA), np.array(EFFECTS)
    law = small_table(weights, epsilon=epsilon, sensitivity=few, rows=few).law(
        (imbalance_effects(weights, rows=few) @ counts).tolist()
    )
    tables = np.array(list(law.probabilities))
    chosen = np.stack([(tables == cell).sum(axis=1) for cell in range(counts.size)])
    errors = np.abs(weights @ chosen / few - (weights @ counts / people)[:, None]).max(axis=0)
    return Chosen(errors, np.array([float(chance.upper()) for chance in law.probabilities.values()]))


def slack(people: int) -> float:
    """What the exponential mechanism adds to the best table, with probability 1 − β: 2 ln(tables/β)/(εn)."""
    few = sample_size(len(EFFECTS), ALPHA)
    return 2 * log(comb(len(SHARES) + few - 1, few) / BETA) / (float(EPSILON) * people)


def judge_best(found: Chosen) -> Finding:
    """The sampling bound: a table within α exists."""
    best = float(found.errors.min())
    return Finding("the best table of m = ln k/α² rows", f"within α = {ALPHA:g}", f"{best:.4f}", best <= ALPHA)


def judge(people: int, found: Chosen) -> Finding:
    """The exponential mechanism's own bound, which makes “approximately” exact: α + 2 ln(tables/β)/(εn)."""
    bound = ALPHA + slack(people)
    failure = found.beyond(bound)
    return Finding(
        f"n = {people:,}: an error above α + {slack(people):.3g}",
        f"with probability at most {BETA:g}",
        f"{failure:.1e}, exactly; above α: {found.beyond(ALPHA):.1e}",
        failure <= BETA,
    )


def judge_falls(beyond: dict[int, float]) -> Finding:
    """With more people the chance of an error above α itself goes to nothing."""
    values = list(beyond.values())
    return Finding(
        f"the chance of an error above α, n = {', '.join(f'{n:,}' for n in beyond)}",
        "falls to nothing",
        ", ".join(f"{value:.0e}" for value in values),
        values == sorted(values, reverse=True) and values[0] > BETA > 1e-9 > values[-1],
    )


def run() -> Outcome:
    """Exact laws over all tables of m rows, for ten to a thousand people."""
    found = {people: measure(people) for people in PEOPLE}
    beyond = {people: each.beyond(ALPHA) for people, each in found.items()}
    findings = [judge_best(found[PEOPLE[-1]]), *(judge(n, found[n]) for n in (100, 1000)), judge_falls(beyond)]
    figure = plot(
        "The chance that SmallDB's table is off by more than α = 0.25",
        [Line("exact", [(n, value) for n, value in beyond.items() if value > 1e-30], "ours")],
        x="people n",
        y="probability",
        log_x=True,
        log_y=True,
    )
    return Outcome(tuple(findings), figure)


CLAIM = Claim(
    name="smalldb-accuracy",
    source="001 Alg. 5, accuracy",
    title="SmallDB is accurate",
    statement="SmallDB(D, Q, ε, α) outputs a table D′ with, approximately, max_q |q(D) − q(D′)| ≤ α.",
    run=run,
)

"""Smoking and cancer: the insurer learns the same about Alice with her row and without it. 002 §3."""

from collections.abc import Callable
from math import exp

from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.meaning import Study, largest_difference, learned, run_study, typical_beliefs, typical_difference
from discreet.report.plot import Line, plot

EPSILONS = (0.1, 0.5, 1.0)


def run() -> Outcome:
    """Exact beliefs over all that a study may say, and one study that is drawn."""
    epsilons = [0.1, 0.3, 1, 3]
    lines = [
        Line("promised: 2ε", [(e, 2 * e) for e in epsilons], "cap"),
        Line("worst study", [(e, largest_difference(Study(epsilon=e))) for e in epsilons], "ours", dots=True),
    ]
    title = "The largest shift of any of the insurer's beliefs by Alice's row, over epsilon"
    figure = plot(title, lines, x="ε", y="|ln ratio|", log_x=True, log_y=True)
    return Outcome((*findings(), drawn()), figure)


def findings(difference: Callable[[Study], float] = largest_difference) -> tuple[Finding, ...]:
    """For some epsilons: the worst study, and the average one, in which smoking is harmful."""
    found = []
    for epsilon in EPSILONS:
        study = Study(epsilon=epsilon)
        worst = difference(study)
        after = typical_beliefs(study, harmful=True, with_alice=False).ill
        apart = typical_difference(study, harmful=True)
        found += [
            Finding(
                f"ε = {epsilon:g}: largest |ln| between beliefs with and without her row, over all results",
                f"at most 2ε = {2 * epsilon:g}",
                f"{worst:.4f}",
                0 < worst <= 2 * epsilon * (1 + 1e-9),
            ),
            Finding(
                f"ε = {epsilon:g}: belief that Alice falls ill, on average where smoking is harmful",
                "from 0.20 to the rate of smokers, 0.30, without her row; with it, nearly the same",
                f"from {study.belief_before:.2f} to {after:.4f}; with her row {apart:.4f} away",
                abs(after - study.harmful) < 0.001 and apart < 0.02,
            ),
        ]
    return tuple(found)


def drawn() -> Finding:
    """One study, with Alice ill and in it."""
    study = Study(epsilon=1)
    count = run_study(study, harmful=True, alice_is_ill=True)
    used, unused = (learned(study, count, with_alice=each).ill for each in (True, False))
    return Finding(
        f"a study drawn just now says {count}; belief that Alice falls ill, with and without her row",
        "within e^±2 of each other",
        f"{used:.4f} and {unused:.4f}",
        exp(-2) <= used / unused <= exp(2),
    )


CLAIM = Claim(
    name="smoking-and-cancer",
    source="002 §3",
    title="The insurer learns about Alice, and not from Alice",
    statement="Two worlds: smoking is harmless, or harmful. After a private study the insurer's belief about Alice "
    "collapses to the true world; with her row or without it, it is the same within e^{±2ε}.",
    run=run,
)

"""Private and accurate on the sample means accurate on the population: 000 Theorem 17."""

from collections.abc import Callable
from math import log, sqrt

import numpy as np

from discreet.accounting.sensitivity import scalar_sensitivity
from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.random import truths
from discreet.learn.holdout.generalization import bassily, gaussian_answers, gaussian_mechanism_delta, jung
from discreet.mechanism import gaussian
from discreet.report.plot import Line, plot
from discreet.schema.unit import Unit
from discreet.source.source import Exact
from discreet.types import Bools

ROWS, QUESTIONS, SIGMA, FAILURE = 300_000, 120, 1800, 1e-7
ONE = scalar_sensitivity(0, 1, Unit(neighbors="replace_one"))


def run() -> Outcome:
    """An adaptive analyst against a private curator, and the published bounds."""
    counts = [10**power for power in (2, 3, 4, 5, 6)]
    promised = [(float(k), gaussian_answers(rows=10**6, queries=k, failure=0.05)) for k in counts]
    lines = [
        Line("exact, at worst: √(k/n)", [(float(k), sqrt(k / 10**6)) for k in counts], "third"),
        Line("private, promised", promised, "ours", dots=True),
        Line("fixed: √(ln k/n)", [(float(k), sqrt(log(40 * k) / 2 / 10**6)) for k in counts], "cap"),
    ]
    title = "The error on the population of k adaptive questions about a million rows"
    figure = plot(title, lines, x="questions k", y="error", log_x=True, log_y=True)
    return Outcome((*measured(), *theorems()), figure, NOTE)


NOTE = """The bound is that of [JLNRSS20], Thm. 3.5, with its constants, at its best choice of ε and δ. The theorem of
the notes hides constants: (α + ε) becomes α + (e^ε − 1) and what the failure costs."""


def measured(answer: "Callable[[Bools], float] | None" = None) -> tuple[Finding, ...]:
    """Each question depends on the answers before; every answer is compared with the population, which is known."""
    ask, labels = answer or private_answer, truths(0.5, ROWS)
    votes, worst = np.zeros(ROWS, dtype=np.int64), 0.0
    for _ in range(QUESTIONS // 2):
        bit = truths(0.5, ROWS)
        accuracy = ask(bit == labels)
        votes += np.where(bit, 1, -1) * (1 if accuracy >= 0.5 else -1)
        # The labels are fair coins that depend on nothing, so that in the population every fraction is one half.
        worst = max(worst, abs(accuracy - 0.5), abs(ask((votes > 0) == labels) - 0.5))
    promised = population_bound()
    return (
        Finding(
            f"largest error on the population of {QUESTIONS} adaptive answers, n = {ROWS:,}",
            f"at most {promised:.4f}, but for probability 10⁻⁷",
            f"{worst:.4f}",
            worst <= promised,
        ),
    )


def population_bound() -> float:
    """What the transfer theorem promises for Gaussian noise of `SIGMA` rows in each answer, at the best epsilon."""
    mu = sqrt(QUESTIONS) / SIGMA

    def accuracy(failure: float) -> float:
        # The tail of a Gaussian for all questions together, and half a row for rounding.
        return (SIGMA * sqrt(2 * log(QUESTIONS / failure)) + 0.5) / ROWS

    return min(
        jung(accuracy, epsilon=times * mu, delta=gaussian_mechanism_delta(times * mu, mu), failure=FAILURE)
        for times in (4.0, 5.0, 6.0, 7.0, 8.0, 9.0)
    )


def theorems() -> tuple[Finding, ...]:
    """The published transfer theorems for answers that are (ε, 0)-DP and accurate to α, beside α + ε."""
    found = []
    for epsilon, alpha in ((0.01, 0.01), (0.05, 0.02)):
        accuracy = lambda failure, a=alpha: a * log(1 / failure) / log(1 / 0.05)  # noqa: E731
        new, old = (theorem(accuracy, epsilon=epsilon, delta=0.0, failure=0.05) for theorem in (jung, bassily))
        found.append(
            Finding(
                f"error on the population, α = {alpha:g}, ε = {epsilon:g}",
                f"of the order of α + ε = {alpha + epsilon:g}",
                f"{new:.4f} [JLNRSS20]; {old:.2f} [BNSSSU16], which the notes cite",
                alpha + epsilon <= new <= 5 * (alpha + epsilon),
            )
        )
    return tuple(found)


def private_answer(query: Bools) -> float:
    """A fraction of the sample, with noise."""
    released = gaussian(sigma=SIGMA, sensitivity=ONE).release(Exact(np.array([query.sum()]), ONE))
    return float(released[0]) / ROWS


CLAIM = Claim(
    name="transfer-theorem",
    source="000 Thm. 17",
    title="Private answers about a sample are answers about the population",
    statement="If M is (ε, δ)-DP and answers k adaptive queries α-accurately on its sample, its answers are "
    "(α + ε)-accurate on the population, up to constants.",
    run=run,
)

"""Choosing one of d outputs needs noise that does not grow with d; releasing all d scores does."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import numpy as np

from discreet import noise
from discreet.lab.lectures.chance import hoeffding_margin
from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.lectures.laws import equals
from discreet.lab.lectures.worst import shown, worst_loss
from discreet.mechanism import exponential, laplace, noisy_max
from discreet.report.plot import Line, plot
from discreet.verify import Interval

EPSILON, BEHIND, TRIALS = Fraction(1), 20, 2_000
OUTPUTS = (2, 4, 8, 16, 32, 64)


def loss_of_all(scale: Fraction, outputs: int) -> Interval:
    """The exact loss of releasing all scores with this noise, if one person can move all of them by 1."""
    return worst_loss(laplace(epsilon=outputs / scale, sensitivity=outputs), [([0] * outputs, [1] * outputs)])


def loss_of_one(outputs: int) -> Interval:
    """The exact loss of releasing only the place of the noisy maximum, over all moves by at most 1."""
    scores = [0] * outputs
    moves = [list(move) for move in product((-1, 0, 1), repeat=outputs)]
    return worst_loss(noisy_max(epsilon=EPSILON, sensitivity=1), [(scores, move) for move in moves])


def gap_of_one(outputs: int) -> float:
    """The exact expected gap of the choice, where all others are `BEHIND` below the best."""
    law = exponential(epsilon=EPSILON, sensitivity=1).law([BEHIND] + [0] * (outputs - 1))
    return BEHIND * (1 - float(law.probabilities[0].mid()))


def gap_of_all(outputs: int, scale: Fraction) -> float:
    """The mean gap of the largest of all scores released with this noise, over many draws."""
    drawn = np.asarray(noise.discrete_laplace(scale, size=TRIALS * outputs)).reshape(TRIALS, outputs)
    drawn[:, 0] += BEHIND
    return float(BEHIND * np.mean(drawn.argmax(axis=1) != 0))


def judge(
    released: Sequence[Interval], chosen: Interval, gap_one: Sequence[float], gap_all: Sequence[float]
) -> list[Finding]:
    """All scores need noise d·Δ/ε; a choice is as private with less, and at d = 64 it is closer to the best."""
    margin = hoeffding_margin(TRIALS, BEHIND)
    return [
        Finding(
            f"releasing all of d = {', '.join(map(str, OUTPUTS[:3]))} scores with noise d·Δ/ε",
            f"loss {EPSILON}",
            ", ".join(shown(each) for each in released),
            all(equals(each, float(EPSILON)) for each in released),
        ),
        Finding(
            "releasing the place of a maximum of 4, noise of mean 2Δ/ε",
            f"loss at most {EPSILON}",
            f"{shown(chosen)}, exactly",
            chosen.upper <= float(EPSILON) * (1 + 1e-12),
        ),
        Finding(
            f"gap to the best, others {BEHIND} behind, d = {OUTPUTS[-1]}",
            "less by choosing than by releasing all",
            f"{gap_one[-1]:.3f} against {gap_all[-1]:.2f}",
            gap_one[-1] + margin < gap_all[-1],
        ),
    ]


def run() -> Outcome:
    """Losses for few outputs, gaps for many."""
    released = [loss_of_all(outputs / EPSILON, outputs) for outputs in OUTPUTS[:3]]
    gap_one = [gap_of_one(outputs) for outputs in OUTPUTS]
    gap_all = [gap_of_all(outputs, outputs / EPSILON) for outputs in OUTPUTS]
    figure = plot(
        "Expected gap to the best of d scores",
        [
            Line("release all scores", list(zip(OUTPUTS, gap_all, strict=True)), "third"),
            Line("choose one", list(zip(OUTPUTS, gap_one, strict=True)), "ours"),
        ],
        x="number of outputs d",
        y="expected gap",
        log_x=True,
    )
    note = "The notes say that the noise on each score is Δ/ε; by their own Algorithm 3 it is 2Δ/ε, whatever d."
    return Outcome(tuple(judge(released, loss_of_one(4), gap_one, gap_all)), figure, note)


CLAIM = Claim(
    name="noise-and-outputs",
    source="004 §1.2.2",
    title="The noise of a choice does not grow with d",
    statement="Report-noisy-max adds noise of the order Δ/ε to each score, independent of the number d of outputs. To "
    "release all noisy scores, the Laplace mechanism needs d·Δ/ε.",
    run=run,
)

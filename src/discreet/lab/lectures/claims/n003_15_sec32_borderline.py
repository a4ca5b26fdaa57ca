"""To show exactly whether the model was updated is not private at all; a noisy test is."""

from collections.abc import Callable
from fractions import Fraction

from flint import arb

from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.lectures.laws import at_most, loss
from discreet.lab.lectures.worst import shown, worst_loss
from discreet.mechanism import laplace, sparse_vector
from discreet.mechanism.protocol import Law
from discreet.numeric import precision
from discreet.verify import Interval, divergence

EPSILON, THRESHOLD, BITS = Fraction(1), 10, 192
Says = Callable[[int, int], Law]


def first_idea(count: int, beside: int) -> Law:
    """The model says 0. If the exact count is above τ, release it with Laplace noise for ε; if not, the model's 0."""
    if count <= THRESHOLD:
        return Law({"model": arb(1)}, arb(0))
    return laplace(epsilon=EPSILON, sensitivity=1).law([count], beside=[[beside]])


def noisy_test(count: int, beside: int) -> Law:
    """The same with a sparse vector: noise on the threshold, on the comparison, and fresh noise on the value."""
    test = sparse_vector(epsilon=EPSILON, epsilon_values=EPSILON / 3, sensitivity=1, threshold=THRESHOLD)
    return test.law([count], beside=[[beside]])


def measure(says: Says) -> tuple[Interval, float]:
    """The loss of the notes' example, counts of τ and τ + 1; and the δ that it needs at ε."""
    here, there = says(THRESHOLD, THRESHOLD + 1), says(THRESHOLD + 1, THRESHOLD)
    with precision(BITS):
        delta = max(divergence(here, there, EPSILON).lower, divergence(there, here, EPSILON).lower)
    return loss(here, there), delta


def judge(first: tuple[Interval, float], second: tuple[Interval, float], longer: Interval) -> tuple[Finding, ...]:
    """Infinite, with a δ of one; then at most ε, also over a longer stream."""
    return (
        Finding(
            "an exact test: loss between q(D) = τ and q(D′) = τ + 1/n",
            "infinite: the answer reveals which it was",
            f"{shown(first[0])}; it would need δ = {first[1]:g}",
            first[0].lower == float("inf") and first[1] >= 1 - 1e-12,
        ),
        Finding(
            "a noisy test, the same tables",
            f"at most {EPSILON}",
            f"{shown(second[0])}, exactly",
            at_most(second[0], float(EPSILON)),
        ),
        Finding(
            "a noisy test of four questions, all at the border",
            f"at most {EPSILON}, however many",
            f"{shown(longer)}, exactly",
            at_most(longer, float(EPSILON)),
        ),
    )


def stream() -> Interval:
    """The loss of four tests at the border, the threshold's noise being drawn once."""
    test = sparse_vector(epsilon=EPSILON, sensitivity=1, threshold=THRESHOLD)
    moves = [(1, 1, 1, 1), (1, 1, 1, -1), (1, 1, -1, -1), (-1, -1, -1, 1)]
    border = [THRESHOLD] * 4
    return worst_loss(test, [(border, [THRESHOLD + move for move in each]) for each in moves])


def run() -> Outcome:
    """The notes' example, and its repair."""
    return Outcome(judge(measure(first_idea), measure(noisy_test), stream()))


CLAIM = Claim(
    name="borderline-update",
    source="003 §3.2",
    title="Whether there was an update is a secret too",
    statement="If the model says 0 and q(D) = τ, there is no update; for a neighbour with q(D′) = τ + 1/n there is, "
    "which reveals that the input was D′. Noise in the test repairs it.",
    run=run,
)

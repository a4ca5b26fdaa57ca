"""Which way Algorithm 1 moves the weights: two slips of the notes, and what each does to the potential."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.random import truths, uniforms
from discreet.lab.textbook.multiplicative_weights import relative_entropy, updated
from discreet.types import Numbers

CELLS, CASES, RATE = 16, 400, 0.05
THRESHOLD = 2 * RATE


@dataclass(frozen=True, slots=True)
class Round:
    """A truth, a model, a query and by how much the model's answer is above the true one."""

    truth: Numbers
    model: Numbers
    query: Numbers
    above: float


def rounds() -> list[Round]:
    """Made-up rounds; the model is wrong in some, right in others."""
    return [_round() for _ in range(CASES)]


def _round() -> Round:
    truth, model = (uniforms(CELLS) ** 3 + 1e-3 for _ in range(2))
    truth, model = truth / truth.sum(), model / model.sum()
    query = truths(0.5, CELLS).astype(np.float64)
    return Round(truth, model, query, float(query @ model - query @ truth))


def printed(above: float) -> str:
    """Step 4 alone as it is printed: "if q(D^(t−1)) − q(D) < τ" up, "and finally if > τ" down."""
    return "up" if above < THRESHOLD else "down" if above > THRESHOLD else "stay"


def right(above: float) -> str:
    """Step 4 with the minus sign: up if < −τ, down if > τ."""
    return "up" if above < -THRESHOLD else "down" if above > THRESHOLD else "stay"


def worded(above: float) -> str:
    """The sentence below the algorithm, whose second "smaller" must be "larger": too small a guess, less weight."""
    return {"up": "down", "down": "down", "stay": "stay"}[right(above)]


def fall(each: Round, way: str) -> float:
    """How much the relative entropy to the truth falls by weighing with exp(±η q)."""
    if way == "stay":
        return 0.0
    # The product's update goes up for a target above the model's answer, and down for one below.
    target = 2.0 if way == "up" else -1.0
    moved = updated(each.model, each.query, target, error=THRESHOLD, rule="exponential")
    return relative_entropy(each.truth, each.model) - relative_entropy(each.truth, moved)


def judge(every: list[Round], step: Callable[[float], str] = printed) -> tuple[Finding, ...]:
    """Right: each update falls by η(gap − η). Printed without step 3, and worded: some make the model worse."""
    off = [each for each in every if abs(each.above) > THRESHOLD]
    within = [each for each in every if abs(each.above) < THRESHOLD]
    low = [each for each in off if each.above < 0]
    least = min(fall(each, right(each.above)) - RATE * (abs(each.above) - RATE) for each in off)
    agree = all(step(each.above) == right(each.above) for each in off)
    worse = sum(fall(each, step(each.above)) < 0 for each in within)
    rises = [-fall(each, worded(each.above)) - RATE * abs(each.above) for each in low]
    return (
        Finding(
            f"with the minus sign: fall of the potential less η(gap − η), smallest of {len(off)} updates",
            "at least 0",
            f"{least:.4f}",
            least >= -1e-12,
        ),
        Finding(
            "the printed condition after step 3, which lets only |gap| ≥ τ pass",
            "chooses the same side",
            "the same side each time" if agree else "another side",
            agree,
        ),
        Finding(
            f"the printed condition by itself, in {len(within)} rounds where the model is within τ",
            "updates all of them, and makes some models worse",
            f"{worse} models are worse",
            worse > 0 and all(step(each.above) != "stay" for each in within),
        ),
        Finding(
            f"the sentence, “if the guess is much smaller … we decrease”, in {len(low)} rounds with too small a guess",
            "the potential rises each time, by at least η·gap",
            f"it rises by at least η·gap + {min(rises):.1e}",
            min(rises) >= -1e-12,
        ),
    )


def run() -> Outcome:
    """Four hundred made-up rounds."""
    return Outcome(judge(rounds()), note=NOTE)


NOTE = (
    "Why the worded direction always hurts: lowering the weight of q by e^(−η q) changes the potential by "
    "η q(D) + ln Σ D̂(x)e^(−η q(x)) ≥ η(q(D) − q(D̂)), by convexity, and a guess that is too small makes that positive."
)

CLAIM = Claim(
    name="weights-direction",
    source="003 Alg. 1",
    title="A lost minus sign in Algorithm 1",
    statement="Step 4 must read: if q(D^(t−1)) − q(D) < −τ weigh by exp(η q), and if > τ by exp(−η q). The notes print "
    "the first with +τ, harmless only behind step 3, and their sentence about it has “smaller” twice.",
    run=run,
    correction=True,
)

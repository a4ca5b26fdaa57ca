"""Who knows how many like musicals and how many like tragedies is well-prepared for “musicals or tragedies”."""

from dataclasses import dataclass

import numpy as np

from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.random import uniforms
from discreet.lab.textbook.multiplicative_weights import multiplicative_weights

CASES, EXACT = 300, 1e-9
# Cells: neither, tragedies, musicals, both.
MUSICALS, TRAGEDIES, EITHER = (np.array(cells, dtype=float) for cells in ((0, 0, 1, 1), (0, 1, 0, 1), (0, 1, 1, 1)))


@dataclass(frozen=True, slots=True)
class Guess:
    """The true shares of both, the share of either, and what is guessed before and after the two answers."""

    musicals: float
    tragedies: float
    either: float
    before: float
    after: float

    @property
    def possible(self) -> tuple[float, float]:
        """What the two shares leave open for the third."""
        return max(self.musicals, self.tragedies), min(1.0, self.musicals + self.tragedies)


def guess() -> Guess:
    """Made-up people; the model learns the two answers by projection, and is asked the third question."""
    truth = uniforms(4) ** 2 + 1e-3
    truth = truth / truth.sum()
    # Projecting on one answer moves the other a little, so that they are asked more than once.
    learned = multiplicative_weights([MUSICALS, TRAGEDIES] * 20, truth, error=EXACT)
    musicals, tragedies, either = (float(query @ truth) for query in (MUSICALS, TRAGEDIES, EITHER))
    return Guess(musicals, tragedies, either, before=float(EITHER.mean()), after=float(EITHER @ learned.model))


def judge(found: list[Guess]) -> tuple[Finding, ...]:
    """The guess is one that the two answers allow, so that it is off by no more than what they leave open."""
    inside = sum(each.possible[0] - 1e-6 <= each.after <= each.possible[1] + 1e-6 for each in found)
    before, after = (
        float(np.mean([abs(getattr(each, when) - each.either) for each in found])) for when in ("before", "after")
    )
    return (
        Finding(
            "guesses between max(a, b) and min(1, a + b)", f"all of {len(found)}", f"{inside}", inside == len(found)
        ),
        Finding(
            "mean error of the guess, before and after the two answers",
            "less after",
            f"{before:.3f} and {after:.3f}",
            after < before,
        ),
    )


def run() -> Outcome:
    """Three hundred made-up audiences."""
    return Outcome(judge([guess() for _ in range(CASES)]))


CLAIM = Claim(
    name="musicals-or-tragedies",
    source="003 §3",
    title="Old answers guess new ones",
    statement="Having answered “what fraction likes musicals?” and “… tragedies?”, we are well-prepared to answer "
    "“what fraction likes musicals or tragedies?”",
    run=run,
)

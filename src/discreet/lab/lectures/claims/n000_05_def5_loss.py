"""Two ways to say it: over all sets, or by the privacy loss of each outcome. 000 Definition 5, remark 2."""

from fractions import Fraction

from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.lectures.laws import loss, loss_over_sets
from discreet.mechanism import laplace, name_and_shame, noisy_max, randomized_response
from discreet.mechanism.protocol import Law


def pairs() -> dict[str, tuple[Law, Law]]:
    """The laws of some mechanisms on two neighbours."""
    response = randomized_response(epsilon=1, categories=3)
    count = laplace(epsilon=Fraction(1, 2), sensitivity=1)
    chosen = noisy_max(epsilon=1, sensitivity=1)
    shame = name_and_shame(delta=0.01)
    one, other = [2, 5], [5, 2]
    return {
        "randomized response, 3 answers, 2 people": (response.law([0, 2]), response.law([1, 2])),
        "Laplace, counts 2 and 5 exchanged": (count.law(one, beside=[other]), count.law(other, beside=[one])),
        "report noisy max, 4 candidates": (chosen.law([3, 2, 0, 1]), chosen.law([2, 3, 1, 0])),
        "name and shame, 2 people": (shame.law([0, 1]), shame.law([1, 1])),
    }


def run() -> Outcome:
    """Every set of outcomes of every pair, enumerated."""
    return Outcome(tuple(finding(name, *laws) for name, laws in pairs().items()), note=NOTE)


NOTE = """Of the Laplace mechanism the outcomes beyond the two true values are one, because the ratio does not change
there; so there are finitely many sets."""


def finding(name: str, one: Law, other: Law) -> Finding:
    """The largest loss of an outcome beside the largest of a set, over all sets."""
    by_outcome, by_set = loss(one, other), loss_over_sets(one, other)
    sets = 2 ** len({*one.probabilities, *other.probabilities}) - 1
    equal = by_outcome.lower <= by_set.upper * (1 + 1e-12) and by_set.lower <= by_outcome.upper * (1 + 1e-12)
    return Finding(
        name, f"{by_outcome.upper:.9g}: the largest |L(r)|", f"{by_set.upper:.9g}: the largest of {sets:,} sets", equal
    )


CLAIM = Claim(
    name="privacy-loss",
    source="000 Def. 5",
    title="Bounded loss of each outcome is privacy for every set",
    statement="M is ε-DP, Pr[M(D) ∈ S] ≤ e^ε Pr[M(D′) ∈ S] for all S, if and only if the privacy loss "
    "L(r) = ln Pr[M(D) = r]/Pr[M(D′) = r] satisfies |L(r)| ≤ ε for all r.",
    run=run,
)

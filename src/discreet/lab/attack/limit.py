"""What (epsilon, delta)-DP permits: the success of the best possible attacker, and what luck can add in one experiment.

A measured success must be compared with these. Proofs of all of them: docs/attack.md.
"""

from math import exp, log1p

from scipy.stats import binom

from discreet.accounting.group import group_budget
from discreet.meaning import best_power
from discreet.numeric import Number, positive, probability, whole
from discreet.schema.unit import Unit


def best_guess(*, epsilon: Number, delta: Number = 0, prior: Number = 0.5) -> float:
    """The largest probability with which anyone guesses one bit of one person.

    max over false alarms α of π·power(α) + (1 − π)(1 − α), which is attained at a corner of the trade-off curve:
    max(1 − π + πδ, 1 − (1 − δ)/(1 + e^ε), π + (1 − π)δ).

    where π is `prior`, the probability that the bit is 1 to somebody who knows everything but this person's row.

    >>> round(best_guess(epsilon=1), 4), best_guess(epsilon=1, prior=0.9)
    (0.7311, 0.9)

    [WZ10, Thm. 2.4; KOV15]; proof: docs/attack.md
    """
    e, d = _read(epsilon, delta)
    p = float(probability("prior", prior, next_step="Give one, say 0.5."))
    corners = (0.0, (1 - d) * _lie(e), 1 - d)
    return max(p * best_power(epsilon=e, delta=d, false_alarm=alarm) + (1 - p) * (1 - alarm) for alarm in corners)


def largest_area(*, epsilon: Number, delta: Number = 0) -> float:
    """The largest area under the ROC curve of any test of "was this person in it?".

    The integral of `meaning.best_power` over all false alarms: 1 − (1 − δ)²/(1 + e^ε).

    >>> round(largest_area(epsilon=1), 4), round(largest_area(epsilon=1, delta=0.1), 4)
    (0.7311, 0.7822)

    [WZ10, Thm. 2.4; DRS22, Prop. 2.5]; proof: docs/attack.md
    """
    e, d = _read(epsilon, delta)
    return 1 - (1 - d) ** 2 * _lie(e)


def luckiest_share(
    people: int, *, epsilon: Number, delta: Number = 0, prior: Number = 0.5, confidence: Number = 0.999
) -> float:
    """The share of people's bits that an attacker guesses at most, with this probability, in one experiment.

    For bits that are independent coins to the attacker. The guesses may be dependent; the number W of right ones is
    still dominated by a binomial one: given the release and the other people's bits, a guess is right with at most p.
    Pr[W > v] ≤ Pr[Bin(n, p) > v] + 2nδ, with p = e^ε/(1 + e^ε) for fair coins. For others, of `prior` π > ½ or 1 − π,
    the odds start at π/(1 − π), so that p = πe^ε/(1 − π + πe^ε); with a delta, nothing is known of those (1).

    where n is `people`; the share is the smallest v/n for which this is at most 1 − `confidence`.

    >>> luckiest_share(300, epsilon=1), luckiest_share(3000, epsilon=1)
    (0.8066666666666666, 0.756)

    [SNJ23, Thm. 5.2]; proof for δ = 0: docs/attack.md
    """
    count = whole("people", people, least=1)
    e, d = _read(epsilon, delta)
    failure = 1 - float(probability("confidence", confidence, next_step="Give one, say 0.999."))
    left = failure - 2 * count * d
    fair = float(probability("prior", prior, next_step="Give one, say 0.5."))
    if left <= 0 or (d and fair != 0.5):
        return 1.0
    chance = 1 / (1 + exp(-e) * min(fair, 1 - fair) / max(fair, 1 - fair))
    return float(binom.isf(left, count, chance)) / count


def luckiest_area(people: int, *, epsilon: Number, delta: Number = 0, confidence: Number = 0.999) -> float:
    """The largest area under a ROC curve, of equally many people inside and outside, that luck may reach.

    The area is a mean over ways to pair those inside with those outside. In each way the right pairs are guessed
    coins: their share is above s with probability at most (1 − `confidence`)/10. So, by Markov's inequality, more than
    a tenth of the ways are that lucky with probability at most 1 − `confidence`; and else the area is at most
    s + (1 − s)/10.

    >>> round(luckiest_area(100, epsilon=1), 3)
    0.892

    Proof: docs/attack.md
    """
    rarer = 1 - (1 - float(probability("confidence", confidence, next_step="Give one, say 0.999."))) / 10
    share = luckiest_share(people, epsilon=epsilon, delta=delta, confidence=rarer)
    return share + (1 - share) / 10


def secret_budget(unit: Unit, *, epsilon: Number, delta: Number = 0) -> tuple[float, float]:
    """The guarantee for a change of one person's secret: the budget, or that of two people under `add_remove`.

    To change a bit of a row under `add_remove` is to remove one row and to add another.

    >>> secret_budget(Unit(), epsilon=1), secret_budget(Unit(neighbors="replace_one"), epsilon=1)
    ((2.0, 0.0), (1.0, 0.0))

    [000 Prop. 10]
    """
    people = 1 if unit.neighbors == "replace_one" else 2
    e, d = group_budget(epsilon=epsilon, delta=delta, people=people)
    return float(e), float(d)


def _lie(epsilon: float) -> float:
    """1/(1 + e^ε)."""
    return exp(-epsilon - log1p(exp(-epsilon)))


def _read(epsilon: Number, delta: Number) -> tuple[float, float]:
    return float(positive("epsilon", epsilon)), float(probability("delta", delta, zero=True))

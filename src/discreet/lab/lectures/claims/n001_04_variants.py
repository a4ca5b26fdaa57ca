"""Six published sparse vectors: two are ε-DP, four are not. Their true losses, from the exact laws."""

from fractions import Fraction
from itertools import pairwise, product
from math import inf

from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.lectures.laws import at_most, largest, loss
from discreet.lab.lectures.streams import Said, Variant, law, loss_of
from discreet.report.plot import Line, plot
from discreet.verify import Interval

EPSILON = 1
LENGTHS = (1, 2, 4, 7, 10)


def variants(hits: int) -> dict[int, Variant]:
    """[LSL17, Alg. 1 to 6] for ε = 1, by their numbers, with this number of answers “above”."""
    return {
        1: Variant("Alg. 1", Fraction(2), Fraction(4 * hits), hits),
        2: Variant("Alg. 2", Fraction(2 * hits), Fraction(4 * hits), hits, refresh=True),
        3: Variant("Alg. 3", Fraction(2), Fraction(2 * hits), hits),
        4: Variant("Alg. 4", Fraction(4), Fraction(4, 3), hits),
        5: Variant("Alg. 5", Fraction(2), None),
        6: Variant("Alg. 6", Fraction(2), Fraction(2)),
    }


def right(variant: Variant) -> Interval:
    """The exact loss over streams of three at the border, and all moves by 1."""
    here = law(variant, [0, 0, 0])
    return largest(loss(here, law(variant, move)) for move in product((-1, 1), repeat=3))


def broken(number: int, length: int) -> float:
    """A lower bound of the loss of a broken one, from one answer to a pair of streams."""
    if number == 3:
        # The number that was compared is released: the threshold was below it, and every “below” pays again.
        said: list[Said] = [False] * length + [0]
        return loss_of(variants(1)[3], [0] * length + [1], [1] * length + [0], said)
    if number == 5:
        return loss_of(variants(1)[5], [0, 1] * length, [1, 0] * length, [False, True] * length)
    down, up = [False] * length, [True] * length
    return loss_of(variants(length)[number], [0] * 2 * length, [1] * length + [-1] * length, down + up)


def judge_right(name: str, found: Interval) -> Finding:
    """At most ε."""
    return Finding(
        f"{name}: largest loss, three questions",
        f"at most {EPSILON}",
        f"{found.upper:.4f}, exactly",
        at_most(found, 1.0),
    )


def judge_broken(number: int, why: str, losses: list[float]) -> Finding:
    """More than ε. Algorithm 4 is at most (1 + 6c)/4·ε; the others grow with each question, or are infinite at once."""
    if number == 4:
        limits = [(1 + 6 * length) / 4 for length in LENGTHS]
        holds = losses[-1] > EPSILON and all(
            found <= limit * (1 + 1e-9) for found, limit in zip(losses, limits, strict=True)
        )
        claimed = f"more than {EPSILON}, at most (1 + 6c)/4 = {limits[-1]:g}"
    elif number == 5:
        claimed, holds = "infinite", losses[0] == inf
    else:
        # Each question more adds as much as the one before.
        steps = [(b - a) / (j - i) for (i, a), (j, b) in pairwise(zip(LENGTHS, losses, strict=True))]
        claimed, holds = "grows with the stream, past ε", losses[-1] > EPSILON and min(steps) > 0.1
    shown = "infinite" if losses[-1] == inf else f"{losses[-1]:.2f}"
    return Finding(
        f"Alg. {number}, {why}: loss of one answer to {LENGTHS[-1]} questions of a kind", claimed, shown, holds
    )


WHY = {
    3: "releases the number that was compared",
    4: "noise not scaled by c",
    5: "no noise on the queries",
    6: "no limit and too little noise",
}


def run() -> Outcome:
    """Exact laws of the right ones, and an answer of each broken one that refutes it."""
    findings = [judge_right(variants(2)[number].name, right(variants(2)[number])) for number in (1, 2)]
    losses = {number: [broken(number, length) for length in LENGTHS] for number in WHY}
    findings += [judge_broken(number, why, losses[number]) for number, why in WHY.items()]
    # The answer that breaks Algorithms 4 and 6, said by Algorithm 1.
    good = [broken(1, length) for length in LENGTHS]
    figure = plot(
        "Loss of one answer to a longer and longer stream, ε = 1",
        [
            *(
                Line(f"Alg. {number}", list(zip(LENGTHS, losses[number], strict=True)), style)
                for number, style in ((3, "second"), (4, "third"), (6, "faint third"))
            ),
            Line("Alg. 1, right", list(zip(LENGTHS, good, strict=True)), "ours"),
        ],
        x="questions of a kind",
        y="privacy loss",
    )
    return Outcome(tuple(findings), figure)


CLAIM = Claim(
    name="sparse-vector-variants",
    source="001 Sparse vector",
    title="Six published sparse vectors, four of them broken",
    statement="How can we achieve ε-DP by paying only for the queries above T? Not as four of six publications did: "
    "those of [LSL17, Alg. 3–6] lose more than ε, three of them without bound.",
    run=run,
)

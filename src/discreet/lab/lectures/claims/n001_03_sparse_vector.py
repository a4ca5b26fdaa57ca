"""Sparse vector pays only for what is above the threshold: a long stream costs no more, and errors grow with ln k."""

from fractions import Fraction
from itertools import pairwise, product
from math import log

from discreet.accounting.sensitivity import Sensitivity
from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.lectures.laws import at_most
from discreet.lab.lectures.worst import shown, worst_loss
from discreet.lab.random import integers, shuffled
from discreet.mechanism import laplace, run_stream, sparse_vector
from discreet.report.plot import Line, plot
from discreet.source.source import Exact
from discreet.verify import Interval

EPSILON, THRESHOLD, SURE = Fraction(1), 1000, 1 - 1e-8
LENGTHS = (1, 10, 100, 10**3, 10**4, 10**5, 10**6)
ONE = Sensitivity(l1=Fraction(1), l2_squared=Fraction(1), linf=Fraction(1))


def loss(epsilon: Fraction, length: int, hits: int) -> Interval:
    """The exact loss over streams at the threshold, for all moves by at most 1 of every value."""
    watch = sparse_vector(epsilon=epsilon, sensitivity=1, threshold=0, hits=hits)
    border = [0] * length
    return worst_loss(watch, [(border, list(move)) for move in product((-1, 1), repeat=length)])


def judge_loss(length: int, hits: int, found: Interval) -> Finding:
    """At most ε, whatever the length."""
    what = f"exact loss, a stream of {length}, until {hits} above"
    return Finding(what, f"at most {EPSILON}", shown(found), at_most(found, float(EPSILON)))


def errors(hits: int = 1) -> dict[int, float]:
    """What all of k answers are within, with 95 %."""
    watch = sparse_vector(epsilon=EPSILON, sensitivity=1, threshold=THRESHOLD, hits=hits)
    return {length: watch.error(0.95, queries=length) for length in LENGTHS}


def judge_growth(found: dict[int, float]) -> Finding:
    """Each factor ten adds the same, scale·ln 10, to the error; the price is ε for all of them."""
    values = list(found.values())
    steps = [after - before for before, after in pairwise(values)]
    # A split of 1 : 2^⅔ leaves 1 − 1/(1 + 2^⅔) of ε to the queries, whose noise is 2/ε₂.
    claimed = 2 / float(EPSILON) / (1 - 1 / (1 + 2 ** (2 / 3))) * log(10)
    return Finding(
        "each factor ten in the length of the stream adds to the error",
        f"{claimed:.1f}, and no ε",
        ", ".join(f"{step:.0f}" for step in steps),
        # The grid is whole numbers, and the cube root is rounded.
        all(abs(step - claimed) <= 1.1 for step in steps),
    )


def judge_cheaper(found: dict[int, float]) -> Finding:
    """Laplace noise for each of k answers needs k times the noise."""
    last = max(found)
    direct = laplace(epsilon=EPSILON / last, sensitivity=1).error(0.95, joint=last)
    return Finding(
        f"error for a stream of {last:,}",
        "less than that of Laplace noise with ε/k each",
        f"{found[last]:,.0f} against {direct:,.0f}",
        found[last] < direct,
    )


def stream(length: int, hits: int) -> tuple[int, int]:
    """How many answers of a made-up stream were wrong by more than the error, and how many came."""
    watch = sparse_vector(epsilon=EPSILON, sensitivity=1, threshold=THRESHOLD, hits=hits)
    error = watch.error(SURE, queries=length)
    values = integers(THRESHOLD // 2, length)
    values[shuffled(length)[:hits]] = 2 * THRESHOLD
    answers = run_stream(watch, [Exact(value, ONE) for value in values])
    wrong = sum(
        value < THRESHOLD - error if above else value >= THRESHOLD + error
        for value, above in zip(values.tolist(), answers, strict=False)
    )
    return wrong, len(answers)


def judge_stream(wrong: int, answered: int) -> Finding:
    """No answer is wrong by more than the error, but with probability 10⁻⁸."""
    return Finding(
        "a made-up stream of 2,000 with 3 far above: answers wrong by more than the error",
        "none",
        f"{wrong} of {answered:,}",
        wrong == 0 and answered > 0,
    )


def run() -> Outcome:
    """Exact losses of short streams, errors of long ones, and a stream in fact."""
    cases = ((1, 1), (4, 1), (4, 2))
    findings = [judge_loss(length, hits, loss(EPSILON, length, hits)) for length, hits in cases]
    found = errors()
    findings += [judge_growth(found), judge_cheaper(found), judge_stream(*stream(2000, 3))]
    direct = [(k, laplace(epsilon=EPSILON / k, sensitivity=1).error(0.95, joint=k)) for k in LENGTHS]
    figure = plot(
        "Error with ε = 1 for a stream of k questions",
        [
            Line("Laplace noise for each", direct, "third"),
            Line("sparse vector, one hit", list(found.items()), "ours"),
        ],
        x="length of the stream k",
        y="error, rows",
        log_x=True,
        log_y=True,
    )
    return Outcome(tuple(findings), figure)


CLAIM = Claim(
    name="sparse-vector",
    source="001 Sparse vector",
    title="Pay only for what is above the threshold",
    statement="SparseVector answers, of a stream of queries, which are above T with ε-DP, paying only for those that "
    "are: the loss does not grow with the stream, and the error only as its logarithm.",
    run=run,
)

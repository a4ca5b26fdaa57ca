"""Private multiplicative weights pays for its updates only: 000 Algorithm 2 and Proposition 16, privacy."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

from discreet.accounting import AboveThreshold, Repeat, epsilon
from discreet.accounting.filter import gaussian_gate
from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.textbook.pmw_design import Terms
from discreet.lab.textbook.pmw_lectures import textbook
from discreet.mechanism import sparse_vector
from discreet.mechanism.protocol import Interactive
from discreet.verify import check_pairs

EPSILON, DELTA = 1.0, 1e-9
# The numbers of tests of the streams whose exact law is enumerated.
LENGTHS = (2, 4, 8)


def run() -> Outcome:
    """One run of the noisy test, exactly, on short streams; and the price of a whole session."""
    return Outcome((*one_run(), *prices()), note=NOTE)


NOTE = """A run is one noisy threshold, comparisons with fresh noise until the first failure, and the answer measured
there. Each question is tested from both sides, so its values move in opposite directions: that is the worst for a
sparse vector. The number of comparisons does not enter the price."""


def one_run(make: Callable[..., Interactive[Any, Any]] = sparse_vector) -> tuple[Finding, ...]:
    """The exact loss of one run on streams whose tests move up and down by one row."""
    loss = Fraction(1, 2)
    mechanism = make(epsilon=loss, epsilon_threshold=loss / 2, sensitivity=1, threshold=1)
    found = []
    for length in LENGTHS:
        verdict = check_pairs(mechanism, _streams(length))
        found.append(
            Finding(
                f"loss of a run of up to {length} tests, ε = 1/2",
                "at most 0.5, however long it is",
                f"{verdict.exact.upper:.6f}, exactly, over {verdict.pairs} pairs of streams",
                verdict.exact.upper <= 0.5 * (1 + 2**-40) and verdict.exact.lower > 0.1,
            )
        )
    return tuple(found)


def prices() -> tuple[Finding, ...]:
    """What all runs of a session cost together, for tables of some sizes: (ε, δ), as promised."""
    found = []
    for rows in (10**5, 10**7):
        terms = Terms(gaussian_gate(Fraction(1), Fraction(1, 10**9)), 1000, 0.05, 1, tells_rows=False)
        design = textbook("bun", terms, cells=2**8, rows=rows)
        runs = Repeat(AboveThreshold(design.epsilon), design.updates)
        price, basic = epsilon(runs, delta=DELTA), design.updates * float(design.epsilon)
        found.append(
            Finding(
                f"n = {rows:,}: {design.updates:,} updates, each ε = {float(design.epsilon):.3g}, δ = 10⁻⁹",
                f"at most ε = {EPSILON:g}",
                f"ε = {price:.4f}; by basic composition {basic:.3g}",
                price <= EPSILON * (1 + 1e-9),
            )
        )
    return tuple(found)


def _streams(length: int) -> list[tuple[Sequence[int], Sequence[int]]]:
    """Pairs of streams in which each value moves by at most one, some up and some down."""
    start = [0] * length
    moves = [move for move in product((-1, 1), repeat=length) if move[0] == -1 or length <= 4]
    return [(start, [value + step for value, step in zip(start, move, strict=True)]) for move in moves[:12]]


CLAIM = Claim(
    name="private-weights-privacy",
    source="000 Prop. 16",
    title="Private multiplicative weights pays for updates, not for questions",
    statement="Algorithm 2 is (ε, δ)-DP: the noisy tests between two updates cost as much as one, and the updates add "
    "up by composition.",
    run=run,
)

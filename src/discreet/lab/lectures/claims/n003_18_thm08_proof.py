"""The sketch of Theorem 8's proof, step by step, with exact chances; one of its cases is mixed up."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from math import ceil, log

from flint import arb

from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.noise.law import laplace_tail
from discreet.numeric import precision
from discreet.report.plot import Line, plot

EPSILON, DELTA, BETA, CELLS, QUESTIONS, BITS = 1.0, 1e-6, 0.05, 1024, 1000, 128
ROWS = (10**8, 10**10, 10**12)


def scale(rows: int) -> Fraction:
    """n times the σ of Algorithm 2, with 1 for the constant in its O."""
    return Fraction(round(log(CELLS) ** (1 / 3) * log(1 / DELTA) * rows ** (2 / 3) / EPSILON))


def threshold(noise: Fraction, constant: float) -> int:
    """n times τ = c·σ·ln(k/β)."""
    return ceil(constant * float(noise) * log(QUESTIONS / BETA))


def border_share(noise: Fraction, edge: int) -> float:
    """Given that |guess − z| ≥ τ − 2/n (case 2 or 3), the exact chance of case 3, the border: not above τ + 2/n.

    The guess is right, so that z is off by the noise alone.
    """
    with precision(BITS):
        either: arb = 2 * laplace_tail(edge - 2, noise)
        beyond: arb = 2 * laplace_tail(edge + 3, noise)
        return float((1 - beyond / either).mid())


def exceeds(noise: Fraction, edge: int) -> float:
    """The exact chance that one of k draws is larger than τ/2."""
    with precision(BITS):
        found: arb = 1 - (1 - 2 * laplace_tail(edge // 2 + 1, noise)) ** QUESTIONS
        return float(found.upper())


def judge_cases(shares: Sequence[float]) -> Finding:
    """Case 2, an update, has the constant probability; case 3 becomes unlikely as the noise grows with n."""
    holds = all(b < a / 10 for a, b in pairwise(shares)) and all(share < 0.5 for share in shares)
    return Finding(
        "given case 2 or 3, the chance of case 3 (the border), n = 10⁸, 10¹⁰, 10¹²",
        "constant (the notes); it is case 2 whose chance is constant (the correction)",
        f"{', '.join(f'{share:.1e}' for share in shares)}; case 2 has the rest",
        holds,
    )


def judge_noise(chance: float) -> Finding:
    """With τ = 2σ ln(k/β), no draw is above τ/2 but with probability β: not δ, as is written."""
    return Finding(
        f"one of {QUESTIONS:,} draws of noise is above τ/2, τ = 2σ ln(k/β)",
        f"with probability at most β = {BETA:g}; the notes write δ = {DELTA:g}",
        f"{chance:.4f}, exactly",
        DELTA < chance <= BETA,
    )


def judge_updates(rows: int, power: float) -> Finding:
    """ln|X|/η² with η = (ln|X|/n)^⅓ is n^⅔ (ln|X|)^⅓, and so the noise for that many values is below σ."""
    rate = (log(CELLS) / rows) ** power
    updates = log(CELLS) / rate**2
    claimed = rows ** (2 / 3) * log(CELLS) ** (1 / 3)
    enough = updates / (EPSILON * rows) <= float(scale(rows)) / rows
    return Finding(
        f"updates, ln|X|/η², n = 10^{len(str(rows)) - 1}",
        f"n^⅔ (ln|X|)^⅓ = {claimed:,.0f}, for which σ is enough by Theorem 2",
        f"{updates:,.0f}; σ is {float(scale(rows)) * EPSILON / updates:.1f} times that",
        abs(updates / claimed - 1) < 1e-9 and enough,
    )


def run() -> Outcome:
    """Three steps of the sketch."""
    shares = [border_share(scale(rows), threshold(scale(rows), 1)) for rows in ROWS]
    noise = scale(ROWS[0])
    findings = (
        judge_updates(ROWS[0], 1 / 3),
        judge_noise(exceeds(noise, threshold(noise, 2))),
        judge_cases(shares),
    )
    figure = plot(
        "Given an update or nearly one: the chance of nearly",
        [Line("case 3", list(zip(ROWS, shares, strict=True)), "ours")],
        x="people n",
        y="probability",
        log_x=True,
        log_y=True,
    )
    return Outcome(findings, figure, NOTE)


NOTE = (
    "“If we are sufficiently close to performing an update, then we have a constant probability of actually doing "
    "one”: that is case 2. The sentence that follows in the notes names case 3, which is the rare one."
)

CLAIM = Claim(
    name="pmw-proof",
    source="003 Thm. 8, proof",
    title="Nearly an update is mostly an update",
    statement="There are at most n^⅔(ln|X|)^⅓ updates; no noise exceeds τ/2 but with probability β (printed: δ); and "
    "given case 2 or case 3, case 2 (printed: case 3) has a constant probability.",
    run=run,
    correction=True,
)

"""The proof of BLR's theorem, inequality by inequality: the constants are right, and whole numbers of rows fit in."""

from itertools import product
from math import ceil, log

from discreet.lab.lectures.claim import Claim, Finding, Outcome

QUERIES, CELLS = (2, 10, 10**3, 10**9), (2, 100, 2**20)
ROWS, EPSILONS, BETAS = (10**2, 10**4, 10**6, 10**9), (0.1, 1.0), (0.5, 0.05, 1e-6)
Case = tuple[int, int, int, float, float]


def cases() -> list[Case]:
    """k, |X|, n, ε, β."""
    return list(product(QUERIES, CELLS, ROWS, EPSILONS, BETAS))


def alpha(case: Case, first: float = 256, second: float = 8) -> float:
    """The theorem's error, with its two constants."""
    k, cells, n, epsilon, beta = case
    return float((first * log(k) * log(cells) / (epsilon * n)) ** (1 / 3) + second * log(1 / beta) / (epsilon * n))


def log_ratio(case: Case, error: float, factor: float = 32, whole: bool = False) -> float:
    """ln of exp(εnα/4)/(|X|^m/β), which must not be below 0, with m = factor·ln k/α²."""
    k, cells, n, epsilon, beta = case
    rows = factor * log(k) / error**2
    return epsilon * n * error / 4 - (ceil(rows) if whole else rows) * log(cells) - log(1 / beta)


def judge_ratio(found: dict[Case, float]) -> Finding:
    """Pr[good]/Pr[bad] ≥ 1/β, so that Pr[bad] ≤ β·Pr[good] ≤ β: the direction is as printed."""
    worst = min(found.values())
    return Finding(
        f"exp(εnα/4)/|X|^m over 1/β, in {len(found)} cases, smallest",
        "at least 1",
        f"e^{worst:.3g}",
        worst >= 0,
    )


def judge_whole(found: dict[Case, float]) -> Finding:
    """The same for m rounded up to a whole row, wherever the theorem says something (α < 1)."""
    worst = min(found.values())
    return Finding(
        f"the same with m rounded up, in the {len(found)} cases where α < 1", "at least 1", f"e^{worst:.3g}", worst >= 0
    )


def judge_n(found: list[float]) -> Finding:
    """n ≥ 128 ln k ln|X|/(εα³) + 4 ln(1/β)/(εα) follows, each term being at most half of n."""
    worst = max(found)
    return Finding("(128 ln k ln |X|/(εα³) + 4 ln(1/β)/(εα)) over n, largest", "at most 1", f"{worst:.4f}", worst <= 1)


def needed(case: Case, error: float) -> float:
    """The n that the proof asks for, over the n that there is."""
    k, cells, n, epsilon, beta = case
    return (128 * log(k) * log(cells) / (epsilon * error**3) + 4 * log(1 / beta) / (epsilon * error)) / n


def run() -> Outcome:
    """All cases of a grid."""
    every = {case: alpha(case) for case in cases()}
    useful = {case: error for case, error in every.items() if error < 1}
    return Outcome(
        (
            judge_ratio({case: log_ratio(case, error) for case, error in every.items()}),
            judge_whole({case: log_ratio(case, error, whole=True) for case, error in useful.items()}),
            judge_n([needed(case, error) for case, error in every.items()]),
        ),
        note="Fewer candidates would do: tables are multisets, C(|X| + m − 1, m) of them and not |X|^m.",
    )


CLAIM = Claim(
    name="blr-proof",
    source="003 Thm. 5, proof",
    title="The constants of BLR's proof",
    statement="With m = 32 ln k/α² and α = (256 ln k ln |X|/(εn))^⅓ + 8 ln(1/β)/(εn), the ratio of good to bad tables "
    "is at least exp(εnα/4)/|X|^m ≥ 1/β.",
    run=run,
)

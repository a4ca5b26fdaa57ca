"""BLR must enumerate more tables than there are atoms; the product says how many, and refuses before it is paid."""

from math import comb, log10
from re import search

from discreet.errors import TooLarge
from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.lectures.conjunctions import conjunction_effects
from discreet.lab.textbook.small_db import sample_size
from discreet.mechanism import small_table
from discreet.report.plot import Line, plot

ALPHA = 0.5
COLUMNS = (1, 2, 3, 4, 5, 6, 8)


def tables(columns: int) -> int:
    """How many tables of 32 ln k/α² rows there are for all 2^d conjunctions; those with the same rows count once."""
    few = sample_size(2**columns, ALPHA / 2, notes="003")
    return comb(2**columns + few - 1, few)


def judge(found: dict[int, int]) -> Finding:
    """At least 2^(d²), even if the order of the rows does not count."""
    holds = all(many >= 2 ** (d * d) for d, many in found.items())
    last = max(found)
    return Finding(
        f"tables to list, d = {', '.join(map(str, found))}",
        f"at least 2^(d²); 10^{last**2 * log10(2):.0f} for d = {last}",
        ", ".join(f"10^{log10(many):.0f}" for many in found.values()),
        holds,
    )


def refusal(columns: int) -> str:
    """The product's refusal of BLR on all conjunctions of this number of columns; empty if it accepts."""
    few = sample_size(2**columns, ALPHA / 2, notes="003")
    try:
        small_table(conjunction_effects(columns), epsilon=1, sensitivity=few, rows=few)
    except TooLarge as refused:
        return str(refused)
    return ""


def judge_refusal(columns: int, said: str, many: int) -> Finding:
    """It refuses, with the right power of ten."""
    found = search(r"10\^(\d+)", said)
    holds = found is not None and abs(int(found[1]) - log10(many)) <= 1
    return Finding(
        f"the product, asked for d = {columns}",
        f"refuses, and says about 10^{log10(many):.0f}",
        said.split(";")[0] or "agrees",
        holds,
    )


def run() -> Outcome:
    """Numbers of tables, and a refusal."""
    found = {d: tables(d) for d in COLUMNS}
    findings = (judge(found), judge_refusal(5, refusal(5), found[5]))
    powers = [(d, log10(found[d])) for d in COLUMNS]
    figure = plot(
        "Tables that BLR must weigh, α = 0.5",
        [
            Line("tables of 32 ln k/α² rows", powers, "third"),
            Line("2^(d²)", [(d, d * d * log10(2)) for d in COLUMNS], "second"),
            Line("atoms in the world", [(COLUMNS[0], 80.0), (COLUMNS[-1], 80.0)], "cap"),
        ],
        x="columns d",
        y="powers of ten",
    )
    return Outcome(findings, figure)


CLAIM = Claim(
    name="blr-inefficient",
    source="003 §2.2",
    title="BLR is highly inefficient",
    statement="A naive implementation must enumerate all datasets in ({0,1}^d)^m; there are at least "
    "2^(d·log k) = 2^(d²).",
    run=run,
)

"""Recompute the privacy of a mechanism from its exact law, without sampling and without relying on its proof.

For small inputs every output's probability is known as a rigorous interval, so the privacy loss between two tables is
a finite sum, and a claim can be checked over *all* neighbouring tables of a small domain.
"""

from discreet.verify.check import (
    Verdict,
    are_neighbors,
    check,
    check_pairs,
    curve,
    neighboring_rows,
    neighboring_tables,
    tables,
)
from discreet.verify.divergence import Interval, divergence, epsilon, renyi

__all__ = [
    "Interval",
    "Verdict",
    "are_neighbors",
    "check",
    "check_pairs",
    "curve",
    "divergence",
    "epsilon",
    "neighboring_rows",
    "neighboring_tables",
    "renyi",
    "tables",
]

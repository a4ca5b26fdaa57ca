"""What may be asked: predicates, linear queries, and workloads of them."""

from discreet.query.ask import count, fraction, mean, total
from discreet.query.linear import Linear, Marginal, Ratio
from discreet.query.predicate import Predicate, col, everyone
from discreet.query.workload import (
    Workload,
    all_subsets,
    conjunctions,
    marginals,
    monotone_conjunctions,
    point_histogram,
    prefixes,
    ranges,
)

__all__ = [
    "Linear",
    "Marginal",
    "Predicate",
    "Ratio",
    "Workload",
    "all_subsets",
    "col",
    "conjunctions",
    "count",
    "everyone",
    "fraction",
    "marginals",
    "mean",
    "monotone_conjunctions",
    "point_histogram",
    "prefixes",
    "ranges",
    "total",
]

"""What may be asked: predicates, linear queries, and workloads of them."""

from discreet.query.aggregates import count, describe, fraction, mean, total
from discreet.query.linear import Linear, Marginal, Ratio
from discreet.query.predicate import Predicate, col, everyone
from discreet.query.residual import Measurement, Residual
from discreet.query.sql import parse, parse_predicate
from discreet.query.statement import Aggregate, Group, Order, Select
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
    "Aggregate",
    "Group",
    "Linear",
    "Marginal",
    "Measurement",
    "Order",
    "Predicate",
    "Ratio",
    "Residual",
    "Select",
    "Workload",
    "all_subsets",
    "col",
    "conjunctions",
    "count",
    "describe",
    "everyone",
    "fraction",
    "marginals",
    "mean",
    "monotone_conjunctions",
    "parse",
    "parse_predicate",
    "point_histogram",
    "prefixes",
    "ranges",
    "total",
]

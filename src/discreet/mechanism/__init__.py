"""Mechanisms, the only way from private values to released ones: one file and one proof page for each."""

from discreet.mechanism.choose import best_price, condition_effects, most_common, price_effects
from discreet.mechanism.distance import Parts, farthest, largest_surprise, noisy_distances, surprise_quantile
from discreet.mechanism.exponential import exponential
from discreet.mechanism.gaussian import discrete_gaussian, gaussian, gaussian_pieces
from discreet.mechanism.laplace import histogram, laplace, split_scale
from discreet.mechanism.model_coin import ModelCoin, model_coin
from discreet.mechanism.name_and_shame import name_and_shame
from discreet.mechanism.noisy_max import noisy_max
from discreet.mechanism.protocol import Interactive, Law, Mechanism
from discreet.mechanism.public import public
from discreet.mechanism.quantile import quantile, quantile_effects
from discreet.mechanism.randomized_response import (
    Estimate,
    estimate_counts,
    label_sensitivity,
    randomized_response,
)
from discreet.mechanism.smalldb import imbalance_effects, small_table
from discreet.mechanism.sparse_vector import Run, StreamAnswer, above_threshold, run_stream, sparse_vector

__all__ = [
    "Estimate",
    "Interactive",
    "Law",
    "Mechanism",
    "ModelCoin",
    "Parts",
    "Run",
    "StreamAnswer",
    "above_threshold",
    "best_price",
    "condition_effects",
    "discrete_gaussian",
    "estimate_counts",
    "exponential",
    "farthest",
    "gaussian",
    "gaussian_pieces",
    "histogram",
    "imbalance_effects",
    "label_sensitivity",
    "laplace",
    "largest_surprise",
    "model_coin",
    "most_common",
    "name_and_shame",
    "noisy_distances",
    "noisy_max",
    "price_effects",
    "public",
    "quantile",
    "quantile_effects",
    "randomized_response",
    "run_stream",
    "small_table",
    "sparse_vector",
    "split_scale",
    "surprise_quantile",
]

"""Distributions fitted to what is known: they answer every question, without a guarantee of their own."""

from discreet.model.dense.dense_model import Dense
from discreet.model.interface import Model, NoisyMarginal, noisy_marginals, total_of
from discreet.model.mixture.mixture_model import Mixture, fit_mixture
from discreet.model.rows import Rows
from discreet.model.tree.tree_model import Tree, fit_tree

__all__ = [
    "Dense",
    "Mixture",
    "Model",
    "NoisyMarginal",
    "Rows",
    "Tree",
    "fit_mixture",
    "fit_tree",
    "noisy_marginals",
    "total_of",
]

"""Distributions fitted to what is known: they answer every question, without a guarantee of their own."""

from discreet.model.dense import Dense
from discreet.model.looks import noisy_marginals, total_of
from discreet.model.mixture import Mixture, fit_mixture
from discreet.model.protocol import Model, NoisyMarginal
from discreet.model.rows import Rows
from discreet.model.tree import Tree, fit_tree

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

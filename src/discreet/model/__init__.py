"""Distributions fitted to what is known: they answer every question, without a guarantee of their own."""

from discreet.model.dense import Dense
from discreet.model.looks import looks_of, total_of
from discreet.model.mixture import Mixture, fit_mixture
from discreet.model.protocol import Look, Model
from discreet.model.rows import Rows
from discreet.model.tree import Tree, fit_tree

__all__ = [
    "Dense",
    "Look",
    "Mixture",
    "Model",
    "Rows",
    "Tree",
    "fit_mixture",
    "fit_tree",
    "looks_of",
    "total_of",
]

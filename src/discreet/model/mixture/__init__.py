"""Mixtures of products: a model that fits noisy marginals of many columns."""

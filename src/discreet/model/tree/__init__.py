"""Junction trees: a model with the largest entropy that fits noisy marginals."""

"""Exact integer samplers on the randomness of the operating system."""

from discreet.noise.coin import bernoulli, bernoulli_exp, coin, uniform_below
from discreet.noise.race import exponential_race, gumbel_race
from discreet.noise.sample import discrete_gaussian, discrete_laplace, rounded_gaussian

__all__ = [
    "bernoulli",
    "bernoulli_exp",
    "coin",
    "discrete_gaussian",
    "discrete_laplace",
    "exponential_race",
    "gumbel_race",
    "rounded_gaussian",
    "uniform_below",
]

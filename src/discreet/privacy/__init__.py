"""What it costs: events, losses, calibration, groups, and the gates that keep a budget."""

from discreet.privacy.calibrate import calibrate, gaussian_sigma, lecture_sigma
from discreet.privacy.concentrated import concentrated_delta, concentrated_epsilon, concentrated_limit
from discreet.privacy.event import (
    AboveThreshold,
    Approximate,
    Coin,
    Compose,
    DiscreteGaussian,
    Event,
    Gaussian,
    Laplace,
    Nothing,
    Pure,
    Repeat,
    Selection,
)
from discreet.privacy.gate import GRAIN, Gate, gaussian_gate, pure_gate, renyi_gate
from discreet.privacy.gaussian import epsilon_of, gaussian_delta, gaussian_epsilon, gaussian_limit, mu_of
from discreet.privacy.group import group_budget, group_rho, group_squared_mu
from discreet.privacy.loss import ACCOUNTINGS, delta, epsilon, loss
from discreet.privacy.renyi import ORDERS

__all__ = [
    "ACCOUNTINGS",
    "GRAIN",
    "ORDERS",
    "AboveThreshold",
    "Approximate",
    "Coin",
    "Compose",
    "DiscreteGaussian",
    "Event",
    "Gate",
    "Gaussian",
    "Laplace",
    "Nothing",
    "Pure",
    "Repeat",
    "Selection",
    "calibrate",
    "concentrated_delta",
    "concentrated_epsilon",
    "concentrated_limit",
    "delta",
    "epsilon",
    "epsilon_of",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_gate",
    "gaussian_limit",
    "gaussian_sigma",
    "group_budget",
    "group_rho",
    "group_squared_mu",
    "lecture_sigma",
    "loss",
    "mu_of",
    "pure_gate",
    "renyi_gate",
]

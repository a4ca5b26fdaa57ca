"""What it costs: events, losses, calibration, groups, and the gates that keep a budget."""

from discreet.accounting.calibrate import calibrate, gaussian_sigma, lecture_sigma
from discreet.accounting.concentrated_dp import concentrated_delta, concentrated_epsilon, concentrated_limit
from discreet.accounting.event import (
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
from discreet.accounting.filter import (
    ACCOUNTINGS,
    TICK,
    Gate,
    delta,
    epsilon,
    gaussian_gate,
    loss,
    pure_gate,
    renyi_gate,
)
from discreet.accounting.gaussian_dp import epsilon_of, gaussian_delta, gaussian_epsilon, gaussian_limit, mu_of
from discreet.accounting.group import group_budget, group_rho, group_squared_mu
from discreet.accounting.renyi_dp import ORDERS

__all__ = [
    "ACCOUNTINGS",
    "ORDERS",
    "TICK",
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

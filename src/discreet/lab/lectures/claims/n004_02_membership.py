"""Private answers resist tracing: no test of membership does much better than a coin, and the best one is computed."""

from dataclasses import dataclass
from fractions import Fraction
from math import exp, tanh

import numpy as np

from discreet import noise
from discreet.lab.lectures.chance import seldom_enough
from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.random import truths, uniforms
from discreet.mechanism import laplace
from discreet.verify import divergence

EPSILON, PEOPLE, TRAITS, TRIALS = Fraction(1), 50, 1000, 300


@dataclass(frozen=True, slots=True)
class Traced:
    """The number of a tracer's right guesses, and of all guesses."""

    right: int
    of: int


def trace(scale: Fraction | None) -> Traced:
    """Guess of someone, who is in a study or not by a coin, from the means of a thousand traits; each time a new study.

    The population has a rate for each trait; the tracer knows it and adds up how much the person agrees with the means.
    `scale` is that of the noise on each count, or None for exact means.
    """
    right = 0
    for member in truths(0.5, TRIALS).tolist():
        rates = 0.2 + 0.6 * uniforms(TRAITS)
        rows = uniforms(PEOPLE + 1, TRAITS) < rates
        counts = rows[:-1].sum(axis=0).astype(np.float64)
        if scale is not None:
            counts += np.asarray(noise.discrete_laplace(scale, size=TRAITS))
        lean = float((rows[0 if member else -1] - rates) @ (counts / PEOPLE - rates))
        # A member leans to the means by Σ p(1 − p)/n more, in expectation; half of it is the line.
        line = float((rates * (1 - rates)).sum() / PEOPLE) / 2
        right += (lean > line) == member
    return Traced(right, TRIALS)


def best_advantage(scale: Fraction) -> float:
    """The largest Pr[true alarm] − Pr[false alarm] of any test of membership from one noisy count: exactly."""
    counts = laplace(epsilon=1 / scale, sensitivity=1)
    return divergence(counts.law([3], beside=[[4]]), counts.law([4], beside=[[3]]), 0).upper


def judge(exact: Traced, private: Traced, advantage: float) -> tuple[Finding, ...]:
    """Exact means are traced; of private ones no test is right more often than e^ε/(1 + e^ε)."""
    limit = exp(float(EPSILON)) / (1 + exp(float(EPSILON)))
    bound = tanh(float(EPSILON) / 2)
    return (
        Finding(
            f"a tracer with {TRAITS:,} exact means of {PEOPLE} people is right",
            f"more often than ε = {EPSILON} would allow, {limit:.1%}",
            f"{exact.right / exact.of:.1%} of {exact.of} guesses",
            not seldom_enough(exact.right, exact.of, limit),
        ),
        Finding(
            f"the same with Laplace noise, ε = {EPSILON} for all means together",
            f"at most {limit:.1%}",
            f"{private.right / private.of:.1%}",
            seldom_enough(private.right, private.of, limit),
        ),
        Finding(
            "one noisy count: true alarms less false alarms of the best test",
            f"at most (e^ε − 1)/(e^ε + 1) = {bound:.6f}",
            f"{advantage:.6f}, exactly",
            advantage <= bound * (1 + 1e-12),
        ),
    )


def run() -> Outcome:
    """Trace exact and private means; then the best test of one count."""
    # One person can move every count, so that all together move by as many as there are.
    private = Fraction(TRAITS) / EPSILON
    return Outcome(judge(trace(None), trace(private), best_advantage(1 / EPSILON)))


CLAIM = Claim(
    name="membership-inference",
    source="004 §1.1",
    title="Tracing attacks are resisted",
    statement="Bad outcomes are at most e^ε times likelier with a person's data than without, so differentially "
    "private algorithms resist attacks that infer from many means whether someone is in the data.",
    run=run,
)

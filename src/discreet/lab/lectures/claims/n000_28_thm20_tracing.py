"""Accurate answers to enough queries trace a key, so they cannot be private: the idea of 000 Theorem 20."""

from collections.abc import Callable
from math import tanh

import numpy as np

from discreet.accounting.sensitivity import matrix_sensitivity
from discreet.lab.lectures.chance import hoeffding_margin
from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.random import integers, uniforms
from discreet.mechanism import laplace
from discreet.report.plot import Line, plot
from discreet.schema.unit import Unit
from discreet.source.source import Exact
from discreet.types import Floats

USERS, QUERIES, ACCURACY = 50, 10_000, 0.1


# Sums over the users, to answers as fractions of them.
Curator = Callable[[Floats], Floats]


def run() -> Outcome:
    """Random keys, whose bits are the queries; a tracer who sees the answers and some keys."""
    sizes = (100, 300, 1000, 3000, 10_000)
    shares = [traced(accurate, queries) for queries in sizes]
    lines = [
        Line(
            "users traced", [(float(k), users) for k, (users, _) in zip(sizes, shares, strict=True)], "third", dots=True
        ),
        Line(
            "others accused",
            [(float(k), others) for k, (_, others) in zip(sizes, shares, strict=True)],
            "ours",
            dots=True,
        ),
    ]
    title = "The share of 50 users whose keys are traced from answers within 0.1, over the number of queries"
    return Outcome(findings(), plot(title, lines, x="queries", y="share", log_x=True, floor=0.0), NOTE)


NOTE = """A query asks for the fraction of keys in which a bit is 1. In a traitor-tracing scheme the queries are the 2^c
ciphertexts, there are too many to answer one by one, and whatever answers them all is a decoder that can be traced.
Here the keys are random bits, so that both sides can be computed; the hardness of the theorem is not shown by that."""


def findings(private: "Curator | None" = None) -> tuple[Finding, ...]:
    """Who is traced by accurate answers, and by private ones; and how accurate those are."""
    users, others = traced(accurate, QUERIES)
    ours = private or noisy
    found, accused = traced(ours, QUERIES)
    limit = tanh(0.5)
    counts = integers(USERS + 1, QUERIES).astype(np.float64)
    worst = float(np.abs(ours(counts) - counts / USERS).max())
    return (
        Finding(
            f"from {QUERIES:,} answers within {ACCURACY:g}: users traced, others accused",
            "all, none: such answers are private for no small ε",
            f"{users:.0%}, {others:.0%}",
            users == 1 and others == 0,
        ),
        Finding(
            "from answers that are 1-DP together: users traced less others accused",
            f"at most (e − 1)/(e + 1) = {limit:.0%}, on average",
            f"{found - accused:.0%}",
            found - accused <= limit + 2 * hoeffding_margin(USERS),
        ),
        Finding(
            "and the largest error of those answers",
            f"above {ACCURACY:g}: they cannot be accurate",
            f"{worst:,.0f}",
            worst > ACCURACY,
        ),
    )


def traced(answer: Curator, queries: int) -> tuple[float, float]:
    """The share of users, and of as many others, whose keys agree with the answers more than half way to a user's."""
    keys = integers(2, 2 * USERS * queries).reshape(2, USERS, queries).astype(np.float64)
    answers = answer(keys[0].sum(axis=0))
    # Of a user's key the expectation is queries/users, of another's 0; the deviation of both is the root of that.
    scores = 4 * (keys - 0.5) @ (answers - 0.5)
    users, others = (scores > queries / USERS / 2).mean(axis=1)
    return float(users), float(others)


def accurate(counts: Floats) -> Floats:
    """Any answers within the accuracy."""
    return counts / USERS + ACCURACY * (2 * uniforms(len(counts)) - 1)


def noisy(counts: Floats) -> Floats:
    """All answers in one release of ε = 1."""
    sensitivity = matrix_sensitivity([[0, 1]] * len(counts), Unit(neighbors="replace_one"))
    released = laplace(epsilon=1, sensitivity=sensitivity).release(Exact(counts.astype(np.int64), sensitivity))
    return released / USERS


CLAIM = Claim(
    name="traitor-tracing",
    source="000 Thm. 20",
    title="Accurate answers to enough queries betray a key",
    statement="Where accurate answers to a family of queries let a tracer find a key that was used, no private "
    "algorithm can give them. With traitor-tracing schemes this makes 2^c queries over 2^d cells infeasible.",
    run=run,
)

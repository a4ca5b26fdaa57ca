"""The best of d statistical queries is found within ln(d)/(nε), up to a constant."""

from fractions import Fraction
from math import log

from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.mechanism import noisy_max
from discreet.report.plot import Line, plot

EPSILON, CONFIDENCE = Fraction(1), 0.95
PEOPLE, QUERIES = (10**3, 10**4, 10**5, 10**6), (10, 1000, 10**5)


def error(queries: int, people: int, epsilon: Fraction = EPSILON) -> float:
    """The half-width that the product promises for the fraction of people, at 95 %, whatever the scores."""
    return noisy_max(epsilon=epsilon, sensitivity=1).error(CONFIDENCE, candidates=queries) / people


def exact_failure(queries: int, gap: int) -> float:
    """The exact probability of missing the best count when all others are this gap below."""
    law = noisy_max(epsilon=EPSILON, sensitivity=1).law([gap] + [0] * (queries - 1))
    return 1 - float(law.probabilities[0].lower())


def judge_shape(errors: dict[tuple[int, int], float]) -> list[Finding]:
    """Over n it falls as 1/n; over d it is at most 2 ln(d/2β)/ε, so that it grows with ln d."""
    failure = 1 - CONFIDENCE
    falls = [errors[QUERIES[1], n] / errors[QUERIES[1], 10 * n] for n in PEOPLE[:-1]]
    constants = [errors[d, PEOPLE[0]] * PEOPLE[0] * float(EPSILON) / log(d / (2 * failure)) for d in QUERIES]
    return [
        Finding(
            "ten times the people, the error divided by",
            "10",
            ", ".join(f"{fall:.3f}" for fall in falls),
            all(abs(fall - 10) < 1e-6 for fall in falls),
        ),
        Finding(
            f"error · nε/ln(d/2β), d = {', '.join(f'{d:,}' for d in QUERIES)}",
            "a constant, at most 2",
            ", ".join(f"{constant:.3f}" for constant in constants),
            all(1.5 <= constant <= 2 + 1e-9 for constant in constants),
        ),
    ]


def judge_failure(gap: float, found: float) -> Finding:
    """At the promised error the best is missed seldom enough, in the worst case of ten queries."""
    return Finding(
        f"10 queries, the others {gap:.1f} people behind: the best is missed",
        f"with probability at most {1 - CONFIDENCE:.2f}",
        f"{found:.4f}, exactly",
        found <= 1 - CONFIDENCE,
    )


def run() -> Outcome:
    """Promised errors over n and d, and the exact failure at one of them."""
    errors = {(d, n): error(d, n) for d in QUERIES for n in PEOPLE}
    gap = error(10, 1)
    findings = [*judge_shape(errors), judge_failure(gap, exact_failure(10, int(gap) + 1))]
    curves = [
        Line(f"d = {d:,}", [(n, errors[d, n]) for n in PEOPLE], style)
        for d, style in zip(QUERIES, ("ours", "second", "third"), strict=True)
    ]
    figure = plot(
        "The distance from the best of d statistical queries",
        curves,
        x="people n",
        y="error of the fraction",
        log_x=True,
        log_y=True,
    )
    return Outcome(tuple(findings), figure)


CLAIM = Claim(
    name="best-statistical-query",
    source="004 Thm. 6",
    title="The best of d statistical queries",
    statement="From d statistical queries (each moves by 1/n) an approximate maximizer can be found with error that "
    "scales as ln(d)/(nε).",
    run=run,
)

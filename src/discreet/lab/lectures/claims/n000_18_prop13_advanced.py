"""Advanced composition, beside the exact loss of k randomized responses: 000 Proposition 13."""

from collections.abc import Callable
from fractions import Fraction
from math import comb, log, sqrt

from flint import arb

from discreet.accounting import Pure, Repeat, epsilon
from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.mechanism import randomized_response
from discreet.mechanism.protocol import Law
from discreet.numeric import precision
from discreet.report.plot import Line, plot
from discreet.verify.divergence import DIVERGENCE_BITS, divergence
from discreet.verify.divergence import epsilon as exact_epsilon

CASES = (
    (50, Fraction(1, 5), 1e-5),
    (100, Fraction(1, 10), 1e-6),
    (1000, Fraction(1, 100), 1e-6),
    (300, Fraction(1, 10), 1e-9),
)


def run() -> Outcome:
    """The bound, the tight value and basic composition, over k."""
    each, delta = Fraction(1, 10), Fraction(1, 10**6)
    sizes = (1, 3, 10, 20, 30, 60, 100, 200, 400)
    lines = [
        Line("basic: kε", [(k, k * float(each)) for k in sizes], "third"),
        Line("advanced", [(k, epsilon(Repeat(Pure(each), k), delta=delta, by="advanced")) for k in sizes], "second"),
        Line("exact", [(k, exact_epsilon(*responses(k, each), delta).upper) for k in sizes], "ours", dots=True),
    ]
    title = "Epsilon of k mechanisms of ε = 0.1 together, at δ = 10⁻⁶"
    return Outcome(findings(), plot(title, lines, x="mechanisms k", y="ε in all", log_x=True, log_y=True), NOTE)


NOTE = """Randomized response is the worst ε-DP mechanism there is [KOV15], so its exact δ is what k mechanisms of ε can
cost at most. Advanced composition is valid and not tight; for small ε it beats basic composition from about
k = 2 ln(1/δ) on."""


def findings(bound: "Callable[[int, Fraction, float], float] | None" = None) -> tuple[Finding, ...]:
    """The exact δ at the bound's ε; how much ε the bound gives away; where it begins to pay."""
    found = []
    for k, each, delta in CASES:
        total = (bound or advanced)(k, each, delta)
        here, there = responses(k, each)
        true_delta = divergence(here, there, Fraction(total)).upper
        tight = exact_epsilon(here, there, Fraction(str(delta))).upper
        found.append(
            Finding(
                f"k = {k:,}, ε = {float(each):g}, δ = {delta:g}: the true δ at ε′ = {total:.4f}",
                f"at most {delta:g}",
                f"{true_delta:.3g}, exactly; ε′ = {tight:.4f} would do; basic: {k * float(each):g}",
                true_delta <= delta,
            )
        )
    each, delta = Fraction(1, 100), 1e-6
    first = next(k for k in range(1, 10_000) if advanced(k, each, delta) < k * float(each))
    found.append(
        Finding(
            "ε = 0.01, δ = 10⁻⁶: the first k at which it beats basic composition",
            f"about 2 ln(1/δ) = {2 * log(1 / delta):.1f}",
            f"{first}",
            0.9 < first / (2 * log(1 / delta)) < 1.2,
        )
    )
    return tuple(found)


def advanced(k: int, each: Fraction, delta: float) -> float:
    """kε²/2 + ε√(2k ln(1/δ)), and that the product computes the same."""
    formula = k * float(each) ** 2 / 2 + float(each) * sqrt(2 * k * log(1 / delta))
    product = epsilon(Repeat(Pure(each), k), delta=delta, by="advanced")
    assert abs(product / formula - 1) < 1e-9, f"the product says {product}, the formula {formula}"
    return product


def responses(k: int, each: Fraction) -> tuple[Law, Law]:
    """The laws of the number of ones in k reports about a 1, and about a 0: it says all that the reports say."""
    truth = randomized_response(epsilon=each).law([1]).probabilities
    with precision(DIVERGENCE_BITS):
        powers = [[truth[(bit,)] ** n for n in range(k + 1)] for bit in (0, 1)]
        one = {ones: comb(k, ones) * powers[1][ones] * powers[0][k - ones] for ones in range(k + 1)}
        return Law(one, arb(0)), Law({ones: one[k - ones] for ones in one}, arb(0))


CLAIM = Claim(
    name="advanced-composition",
    source="000 Prop. 13",
    title="k mechanisms cost about √k·ε, but for δ",
    statement="If M₁, …, M_k are ε-DP then together they are (kε²/2 + ε√(2k ln(1/δ)), δ)-DP, for every δ > 0.",
    run=run,
)

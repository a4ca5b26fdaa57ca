"""Group privacy: what a guarantee for one person says about k people at once. Everything is rounded up."""

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from discreet.numeric import positive, probability, upper_bound, whole

if TYPE_CHECKING:
    from flint import arb

# Where e^(people·epsilon) would be an astronomical number, delta is 1 and nothing is promised.
LARGEST_EXPONENT = 10**5


def group_budget(*, epsilon: Any, delta: Any = 0, people: int) -> tuple[Fraction, Fraction]:
    """The (epsilon, delta) that holds for `people` people together, rounded up.

    (kε, δ(e^{kε} − 1)/(e^ε − 1)): δ Σ e^{jε} over j = 0 … k−1, one step for each person exchanged.

    where ε is `epsilon`, δ is `delta` and k is `people`.

    >>> group_budget(epsilon=0.5, people=4)
    (Fraction(2, 1), Fraction(0, 1))
    >>> float(group_budget(epsilon=1, delta=1e-9, people=2)[1])
    3.7182818284590454e-09

    [000 Prop. 10; 002 Lemma 1.7; Vad17, Lemma 2.2]
    """
    e = positive("epsilon", epsilon)
    d = probability("delta", delta, zero=True)
    k = whole("people", people, least=1)
    if d == 0 or k == 1:
        return k * e, d
    if k * e > LARGEST_EXPONENT:
        return k * e, Fraction(1)

    def formula() -> "arb":
        from discreet.numeric import ball

        return ball(d) * ball(k * e).expm1() / ball(e).expm1()

    return k * e, min(Fraction(1), upper_bound(formula))


def group_squared_mu(squared_mu: Fraction, *, people: int) -> Fraction:
    """μ-GDP gives kμ-GDP for k people; this is (kμ)² [DRS22, Thm. 2.14].

    >>> group_squared_mu(Fraction(1, 4), people=3)
    Fraction(9, 4)
    """
    return whole("people", people, least=1) ** 2 * squared_mu


def group_rho(rho: Fraction, *, people: int) -> Fraction:
    """rho-zCDP gives k²·rho-zCDP for k people [BS16, Prop. 1.9].

    >>> group_rho(Fraction(1, 2), people=3)
    Fraction(9, 2)
    """
    return whole("people", people, least=1) ** 2 * rho

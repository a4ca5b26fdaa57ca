"""Steps are written into the bodies of idempotency keys as the first ledgers wrote them."""

from fractions import Fraction

import pytest

from discreet.estimate.measurements import GaussianQuery, GaussianResiduals, LaplaceMarginal, LaplaceQuery
from discreet.ledger.legacy import version_1_text
from discreet.plan.plan import Steps
from discreet.query.linear import Linear
from discreet.query.residual import Measurement, Residual

RESIDUALS = GaussianResiduals(Measurement(((Residual((("a", 1),)), Fraction(3, 2)),)), 0.5)
NOTHING = "<Linear: 0 products on no column>"
FIRST = {
    RESIDUALS: "Lattice(measurement=Measurement(pieces=((Residual(parts=(('a', 1),)), Fraction(3, 2)),)), price=0.5)",
    GaussianQuery(Linear([]), Fraction(3), 0.2): f"Directly(question={NOTHING}, sigma=Fraction(3, 1), price=0.2)",
    LaplaceMarginal(("a", "b"), Fraction(9), 1.0): "Whole(columns=('a', 'b'), scale=Fraction(9, 1), price=1.0)",
    LaplaceQuery(Linear([]), Fraction(1, 2), 1.0): f"Alone(question={NOTHING}, scale=Fraction(1, 2), price=1.0)",
}


@pytest.mark.parametrize("steps", [(), tuple(FIRST)[:1], tuple(FIRST)], ids=["none", "one", "all"])
def test_keys_of_the_first_ledgers_are_recognised(steps):
    texts = [FIRST[step] for step in steps]
    assert version_1_text(Steps(steps)) == f"Steps(steps=({', '.join(texts)}{',' if len(texts) == 1 else ''}))"

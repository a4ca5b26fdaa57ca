"""Two hospitals, one patient: the losses of both add up. 002 scenario 1."""

from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

from discreet.accounting.event import Laplace
from discreet.errors import BudgetExceeded
from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.lectures.laws import equals, loss, then
from discreet.ledger import Budget, Ledger
from discreet.mechanism import laplace


def run() -> Outcome:
    """The exact joint law of two counts about a patient of both; and a ledger with one cap over both tables."""
    return Outcome((joint_loss(), *kept_by_the_ledger()))


def joint_loss(first: Fraction = Fraction(1, 2), second: Fraction = Fraction(1, 4)) -> Finding:
    """The loss of both counts together, for somebody who is in both tables."""
    one, other = laplace(epsilon=first, sensitivity=1), laplace(epsilon=second, sensitivity=1)
    ill = then(one.law([41], beside=[[40]]), lambda _: other.law([13], beside=[[12]]))
    well = then(one.law([40], beside=[[41]]), lambda _: other.law([12], beside=[[13]]))
    found = loss(ill, well)
    return Finding(
        "loss of a patient of both, ε₁ = 1/2 and ε₂ = 1/4",
        "ε₁ + ε₂ = 0.75",
        f"{found.upper:.9g}, exactly",
        equals(found, 0.75),
    )


def kept_by_the_ledger(together: bool = True) -> tuple[Finding, ...]:
    """One cap over both tables; without it, for a test, each hospital has its own and nobody adds up."""
    count = Laplace(Fraction(2), Fraction(1))  # ε = 1/2
    with TemporaryDirectory() as folder, Ledger(Path(folder) / "budget.sqlite") as ledger:
        for name in ("north", "south"):
            ledger.cap(Budget(epsilon=1), table=name)
        if together:
            ledger.cap(Budget(epsilon=1), tables=("north", "south"))
        replies = []
        for name in ("north", "south", "south"):
            try:
                ledger.spend(count, "how many have asthma?", table=name)
                replies.append("paid")
            except BudgetExceeded:
                replies.append("refused")
        left = float(ledger.remaining(table="south").epsilon)
    return (
        Finding(
            "each hospital has ε = 1, both together ε = 1; counts of ε = 1/2: north, south, south",
            "paid, paid, refused",
            ", ".join(replies),
            replies == ["paid", "paid", "refused"],
        ),
        Finding("left to the south, whose own cap has 1/2 left", "0", f"{left:g}", left == 0),
    )


CLAIM = Claim(
    name="two-hospitals",
    source="002 scenario 1",
    title="Two hospitals that share a patient share a budget",
    statement="Hospitals with overlapping tables release A₁(x⁽¹⁾) and A₂(x⁽²⁾), which are ε₁- and ε₂-DP. For a patient "
    "of both, everything together is (ε₁ + ε₂)-DP; a ledger can cap tables that share people.",
    run=run,
)

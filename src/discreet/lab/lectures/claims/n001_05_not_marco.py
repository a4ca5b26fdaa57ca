"""“D5” and “D5, not named Marco”: one answer for both costs half, and the curator gives the second for nothing."""

from fractions import Fraction
from tempfile import TemporaryDirectory

from discreet.curator import Curator
from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.lectures.laws import equals, loss, then
from discreet.lab.lectures.worst import shown
from discreet.lab.random import integers
from discreet.ledger import Budget
from discreet.mechanism import laplace
from discreet.schema import Categories, Domain
from discreet.source.table import open as open_table
from discreet.verify import Interval

EPSILON, CONFIDENCE, PEOPLE, ERROR = Fraction(1, 10), 0.95, 5_000, 100
NAMES = ("Marco", *(f"name {number}" for number in range(1, 50)))
DISEASES = tuple(f"D{number}" for number in range(6))
ALL, SOME = "disease = 'D5'", "disease = 'D5' AND name <> 'Marco'"


def losses(epsilon: Fraction) -> tuple[Interval, Interval]:
    """The exact loss of one noisy count released for both questions, and of two noisy counts with fresh noise.

    Neighbours differ in someone with D5 who is not called Marco, and move both counts.
    """
    count = laplace(epsilon=epsilon, sensitivity=1)
    here, there = count.law([30], beside=[[31]]), count.law([31], beside=[[30]])
    return loss(here, there), loss(then(here, lambda _: here), then(there, lambda _: there))


def judge_losses(once: Interval, twice: Interval) -> Finding:
    """ε against 2ε."""
    claimed = float(EPSILON)
    return Finding(
        "loss of the same answer to both, and of two answers",
        f"{claimed:g} and {2 * claimed:g}",
        f"{shown(once)} and {shown(twice)}, exactly",
        equals(once, claimed) and equals(twice, 2 * claimed),
    )


def judge_errors(together: float, apart: float) -> Finding:
    """For one budget: the same answer is off by one Marco more, two answers by twice the noise."""
    return Finding(
        f"error of the second answer if one Marco has D5, ε = {float(EPSILON):g} for both",
        "less with one answer for both",
        f"{together:g} against {apart:g} people",
        together < apart,
    )


def prices(questions: list[str]) -> list[float]:
    """What a curator charges for one question after the other, all within the same error, on made-up people."""
    diseases, names = integers(6, PEOPLE).tolist(), integers(len(NAMES), PEOPLE).tolist()
    rows = {"disease": [DISEASES[place] for place in diseases], "name": [NAMES[place] for place in names]}
    domain = Domain({"disease": Categories(DISEASES), "name": Categories(NAMES)})
    table, budget = open_table(rows, domain=domain), Budget(epsilon=1, delta=1e-9)
    paid = []
    with TemporaryDirectory() as folder, Curator(table, budget=budget, ledger=f"{folder}/budget.sqlite") as desk:
        for question in questions:
            before = desk.spent.epsilon
            desk.ask(question, error=ERROR)
            paid.append(float(desk.spent.epsilon - before))
    return paid


def judge_prices(there: list[float], back: list[float], alone: float) -> tuple[Finding, ...]:
    """After the finer question the coarser one is free; after the coarser one the finer costs less than by itself."""
    return (
        Finding(
            "the curator, asked for D5 without Marco, then for D5",
            "the second is free",
            f"ε {there[0]:.3f}, then {there[1]:g}",
            there[1] == 0 and there[0] > 0,
        ),
        Finding(
            "the other way round",
            f"the second costs less than by itself, {alone:.3f}",
            f"ε {back[0]:.3f}, then {back[1]:.3f}",
            back[1] < alone,
        ),
    )


def run() -> Outcome:
    """Exact losses, exact errors, and a curator on made-up people."""
    once = laplace(epsilon=EPSILON, sensitivity=1).error(CONFIDENCE) + 1
    half = laplace(epsilon=EPSILON / 2, sensitivity=1).error(CONFIDENCE)
    findings = (judge_losses(*losses(EPSILON)), judge_errors(once, half))
    return Outcome((*findings, *judge_prices(prices([SOME, ALL]), prices([ALL, SOME]), prices([SOME])[0])))


CLAIM = Claim(
    name="not-named-marco",
    source="001 Multiple queries",
    title="D5, and D5 not named Marco",
    statement="Noise need not be independent: of “how many have disease D5?” and “how many, not named Marco, have "
    "disease D5?” we can give the same answer to both and save budget.",
    run=run,
)

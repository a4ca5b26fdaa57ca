"""The demonstration: a made-up town, one budget, exact noise, and what a person there has to fear."""

import random
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

from rich.console import Console
from rich.table import Table as Grid

from discreet.errors import BudgetExceeded
from discreet.meaning import explain
from discreet.mechanism.gaussian import gaussian
from discreet.mechanism.laplace import laplace
from discreet.privacy.calibrate import calibrate
from discreet.privacy.event import Gaussian, Repeat
from discreet.privacy.gate import gaussian_gate
from discreet.privacy.sensitivity import Sensitivity
from discreet.query.ask import count
from discreet.query.predicate import Predicate, col
from discreet.schema.column import Bins, Boolean, Categories
from discreet.schema.domain import Domain
from discreet.source.effect import sensitivity_of
from discreet.source.table import Table, open

PEOPLE, EPSILON, DELTA, CONFIDENCE = 20_000, 1, 1e-9, 0.95
MANY = 1_000


class Person(NamedTuple):
    """A row of the town."""

    age: int
    sex: str
    smokes: bool
    ill: bool


DOMAIN = Domain(
    {
        "age": Bins((0, 18, 30, 45, 65, 80), upper=120),
        "sex": Categories(("female", "male"), outside="drop"),
        "smokes": Boolean(),
        "ill": Boolean(),
    }
)

smoker, ill = col("smokes").isin([True]), col("ill").isin([True])

# What is asked, how it is asked, and how only a demonstration can check it: by looking.
QUESTIONS: list[tuple[str, Predicate, Callable[[Person], bool]]] = [
    ("people aged 65 or more", col("age") >= 65, lambda who: who.age >= 65),
    ("women under 45", (col("age") < 45) & (col("sex") == "female"), lambda who: who.age < 45 and who.sex == "female"),
    ("smokers", smoker, lambda who: who.smokes),
    ("ill people", ill, lambda who: who.ill),
    ("ill smokers", smoker & ill, lambda who: who.smokes and who.ill),
    ("ill people who do not smoke", ~smoker & ill, lambda who: not who.smokes and who.ill),
    ("ill or smoking, under 45", (col("age") < 45) & (ill | smoker), lambda w: w.age < 45 and (w.ill or w.smokes)),
    ("smokers of 80 or more", (col("age") >= 80) & smoker, lambda who: who.age >= 80 and who.smokes),
]


def made_up_town() -> list[Person]:
    """Always the same people: the town is public, only the noise is not."""
    chance = random.Random(2014)

    def person() -> Person:
        age = min(119, int(chance.triangular(0, 100, 35)))
        smokes = age >= 16 and chance.random() < 0.22
        ill = chance.random() < 0.02 + 0.001 * age + 0.12 * smokes
        return Person(age, chance.choice(("female", "male")), smokes, ill)

    return [person() for _ in range(PEOPLE)]


def run() -> None:
    """Ask, pay, answer, and say what it means."""
    console = Console(highlight=False)
    town = made_up_town()
    table = open([person._asdict() for person in town], domain=DOMAIN)
    console.print(f"\n[bold]A town of {PEOPLE:,} made-up people[/bold]; neighbours: {table.unit.describe}.")
    console.print(f"The budget for all questions together: epsilon {EPSILON:g}, delta {DELTA:g}.\n")
    console.print(_ask_all(table, town))
    console.print(_price(MANY))
    console.print("\n[bold]What that means to a person there[/bold]")
    for title, sentence in explain(epsilon=EPSILON, delta=DELTA, rows=PEOPLE).sentences[:3]:
        console.print(f"  [cyan]{title}[/cyan]  {sentence}")
    console.print("\nMore: [bold]discreet explain --epsilon 1[/bold], and the pages in docs/.\n")


def _ask_all(table: Table, town: list[Person]) -> Grid:
    grid = Grid("question", "answer", f"± at {CONFIDENCE:.0%}", "truth", "budget left")
    gate = gaussian_gate(EPSILON, DELTA)
    spent = gate.nothing
    for text, where, truly in QUESTIONS:
        question = count(DOMAIN, where)
        moves = sensitivity_of(question, DOMAIN, table.unit)
        mechanism = gaussian(sensitivity=moves, sigma=_sigma(moves, len(QUESTIONS)))
        # Pay before reading: what does not fit is refused while the rows are untouched.
        amount = gate.charge(mechanism.event)
        if not gate.fits(spent, amount):
            raise BudgetExceeded("the demonstration has spent its budget; no row was read.")
        spent = gate.add(spent, amount)
        answer, error = int(mechanism.release(table.evaluate(question))[0]), mechanism.error(CONFIDENCE)
        truth = sum(map(truly, town))
        colour = "green" if abs(answer - truth) <= error else "yellow"
        left = f"{1 - spent[0] / gate.limit[0]:.0%}"
        grid.add_row(text, f"[{colour}]{answer:,}[/]", f"{error:,.0f}", f"{truth:,}", left)
    for column in grid.columns[1:]:
        column.justify = "right"
    return grid


def _sigma(moves: Sensitivity, questions: int) -> Fraction:
    """The noise with which so many questions use up the budget."""
    return calibrate(lambda s: Repeat(Gaussian(s, moves.l2_squared), questions), epsilon=EPSILON, delta=DELTA)


def _price(questions: int) -> str:
    one = Sensitivity(l1=Fraction(1), l2_squared=Fraction(1), linf=Fraction(1))
    plain = laplace(epsilon=Fraction(EPSILON, questions), sensitivity=one).error(CONFIDENCE)
    ours = gaussian(sigma=_sigma(one, questions), sensitivity=one).error(CONFIDENCE)
    return (
        f"\n[bold]{questions:,} questions[/bold] on the same budget: ± {ours:,.0f} each; "
        f"adding up epsilons would give ± {plain:,.0f}."
    )

"""Differencing: two counts of many people that differ by one of them."""

from dataclasses import dataclass

import numpy as np

from discreet.lab.attack.people import People
from discreet.lab.attack.random_questions import cell_mask
from discreet.lab.attack.target import Answering
from discreet.query.linear import Linear
from discreet.query.product import box


@dataclass(frozen=True, slots=True)
class Difference:
    """Two counts that differ by one person, whose bit is 1 if they differ by more than a half."""

    everybody: float
    all_but_one: float

    @property
    def gap(self) -> float:
        """The difference of the counts."""
        return self.everybody - self.all_but_one

    @property
    def bit(self) -> bool:
        """The guess. Where there is no answer, it is no."""
        return self.gap > 0.5


def pair(people: People, person: int) -> tuple[Linear, Linear]:
    """Two counts of people with the secret: all of them, and those with other public columns than this person.

    [000 §1: "not named Matt Weinberg"; 001: "not named Marco"]
    """
    secret = {people.secret: cell_mask(people.domain, people.secret, people.cell)}
    everybody = Linear([box(secret)])
    profile = {name: cell_mask(people.domain, name, int(people.codes[name][person])) for name in people.public}
    return everybody, everybody - Linear([box({**secret, **profile})])


def difference(answer: Answering, people: People, person: int) -> Difference:
    """Ask both counts and take the difference.

    >>> import discreet as dp
    >>> from discreet.lab.attack.people import choose_people
    >>> people = choose_people(dp.load_adult(), 50, public=["age", "education", "sex"], secret="income")
    >>> all(difference(people.exact, people, i).bit == people.bits[i] for i in range(50))
    True
    """
    first, second = pair(people, person)
    return Difference(answer(first), answer(second))


def point(people: People, person: int) -> Linear:
    """The single count that an attacker of a private curator buys: of this profile, with the secret.

    Two noisy counts cost twice; this one asks for their difference itself.
    """
    first, second = pair(people, person)
    return first - second


def right(guesses: list[bool], people: People) -> int:
    """The number of right guesses among the first ones."""
    return int(np.sum(np.array(guesses, dtype=np.bool_) == people.bits[: len(guesses)]))

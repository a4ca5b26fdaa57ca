"""The subjects of `discreet audit`: our mechanisms, each on two neighbouring inputs, and mistakes it must catch."""

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from discreet.accounting.sensitivity import histogram_sensitivity
from discreet.curator import Curator
from discreet.errors import BadParameter, did_you_mean
from discreet.lab.attack import broken
from discreet.lab.attack.epsilon_audit import ONE, Audited, audit, draws_of, fast_draws_of
from discreet.lab.attack.events import Draw
from discreet.lab.attack.target import answering
from discreet.ledger import Budget
from discreet.mechanism import (
    exponential,
    gaussian,
    laplace,
    name_and_shame,
    noisy_max,
    randomized_response,
    sparse_vector,
)
from discreet.numeric import Number, positive
from discreet.query.aggregates import count
from discreet.query.predicate import col
from discreet.schema.column import Integers
from discreet.schema.domain import Domain
from discreet.schema.unit import Unit
from discreet.source.source import Exact
from discreet.source.table import open as open_table

ALL = 10**9
# The most draws: of mechanisms drawn one by one, and of whole sessions, each with a ledger on disk.
SLOW, SESSIONS = 10_000, 1_000
# A delta at which a mechanism with a delta of its own is audited: draws cannot detect very rare outcomes.
DELTA = 0.01


@dataclass(frozen=True, slots=True)
class Subject:
    """A claim to be audited: `draw` on the neighbours `one` and `other` is said to be (epsilon, delta)-DP.

    `right` says whether it is. Drawing may be slow, so no more than `most` samples are taken; a `patient` subject takes
    minutes, and is audited only by name.
    """

    name: str
    words: str
    draw: Draw
    one: Any
    other: Any
    epsilon: float
    delta: float = 0.0
    right: bool = True
    most: int = ALL
    patient: bool = False

    def audit(self, *, samples: int, confidence: Number) -> Audited:
        """The bound from this many draws."""
        number = min(samples, self.most)
        return audit(self.draw, self.one, self.other, samples=number, delta=self.delta, confidence=confidence)


def subjects(epsilon: Number = 1) -> list[Subject]:
    """All subjects, each claiming this epsilon.

    >>> [each.name for each in subjects() if not each.right][:3]
    ['half-the-noise', 'sensitivity-forgotten', 'name-and-shame']
    """
    exact = positive("epsilon", epsilon, at_most=20, next_step="Give one that draws can distinguish, say 1.")
    return [*_right(exact), *_wrong(exact)]


def find(name: str, epsilon: Number = 1) -> Subject:
    """The subject of this name."""
    every = {each.name: each for each in subjects(epsilon)}
    if name not in every:
        raise BadParameter(f'no subject "{name[:60]}"; {did_you_mean(name, every)}')
    return every[name]


def _right(e: Fraction) -> list[Subject]:
    """Our own: the claim is true."""
    claimed, two_cells = float(e), histogram_sensitivity(2, Unit(neighbors="replace_one"))
    counting = fast_draws_of(laplace(epsilon=e, sensitivity=1))
    cells = fast_draws_of(laplace(epsilon=e, sensitivity=two_cells), sensitivity=two_cells)
    bell = fast_draws_of(gaussian(epsilon=e, delta=DELTA, sensitivity=1))
    response = fast_draws_of(randomized_response(epsilon=e))
    best, largest = (draws_of(make(epsilon=e, sensitivity=1)) for make in (exponential, noisy_max))
    sparse = draws_of(sparse_vector(epsilon=e, sensitivity=1, threshold=0))
    scores, moved = [1, 0, 0], [0, 1, 1]
    return [
        Subject("laplace", "a count", counting, [0], [1], claimed),
        Subject("histogram", "two cells, a row is replaced", cells, [0, 1], [1, 0], claimed),
        Subject("gaussian", f"a count at delta {DELTA:g}", bell, [0], [1], claimed, DELTA),
        Subject("randomized-response", "one report", response, [0], [1], claimed),
        Subject("exponential", "the best of three", best, scores, moved, claimed, most=SLOW),
        Subject("noisy-max", "the best of three", largest, scores, moved, claimed, most=SLOW),
        Subject("sparse-vector", "a stream of three", sparse, [0, 0, 0], [1, 1, -1], claimed, most=SLOW),
        Subject(
            "session",
            "a curator, asked until its budget is gone",
            session_draws(e),
            [1] * 6 + [0] * 6,
            [1] * 7 + [0] * 5,
            claimed,
            most=SESSIONS,
            patient=True,
        ),
    ]


def _wrong(e: Fraction) -> list[Subject]:
    """Mistakes: the claim is false."""
    # Name-and-shame is (0, 1 %)-DP, as it says. What is refuted is that it is private at a delta that means something.
    shame = _shaming(Fraction(1, 100))
    mistakes: list[tuple[str, str, Draw, list[int], list[int], float]] = [
        ("half-the-noise", "Laplace noise of half the scale", broken.half_the_noise(epsilon=e), [0], [1], 0.0),
        (
            "sensitivity-forgotten",
            "a histogram with the noise of a count",
            broken.sensitivity_forgotten(epsilon=e),
            [0, 1],
            [1, 0],
            0.0,
        ),
        ("name-and-shame", "each row published with probability 1 %", shame, [1], [0], 1e-6),
        (
            "sparse-vector-3",
            "it releases the number that it compared",
            broken.algorithm_3(epsilon=e),
            [0] * 5,
            [1] * 4 + [0],
            0.0,
        ),
        ("sparse-vector-4", "it forgets its hits", broken.algorithm_4(epsilon=e), [0] * 4, [1, 1, -1, -1], 0.0),
        ("sparse-vector-5", "no noise on what it compares", broken.algorithm_5(epsilon=e), [0, 1], [1, 0], 0.0),
        ("sparse-vector-6", "no limit of hits", broken.algorithm_6(epsilon=e), [0] * 6, [1] * 3 + [-1] * 3, 0.0),
    ]
    return [
        Subject(name, words, draw, one, other, float(e), delta, right=False)
        for name, words, draw, one, other, delta in mistakes
    ]


def session_draws(epsilon: Number) -> Draw:
    """Whole sessions: a new ledger and a new curator each time, which is asked until its budget is gone, and then more.

    Tables are neighbours if one row is replaced.
    """
    whole = positive("epsilon", epsilon)
    domain, unit = Domain({"bit": Integers(0, 1)}), Unit(neighbors="replace_one")

    def session(bits: list[int], folder: Path) -> tuple[float, ...]:
        table = open_table({"bit": bits}, domain=domain, unit=unit)
        with Curator(table, budget=Budget(epsilon=whole), ledger=folder / "ledger.sqlite") as desk:
            asked = count(domain, col("bit") == 1)
            answer = answering(desk, epsilon=whole)
            return answer(asked), float(np.nan_to_num(answer(count(domain, col("bit") == 0)))), answer(asked)

    def draw(bits: list[int], size: int) -> Any:
        outcomes = []
        for _ in range(size):
            with TemporaryDirectory() as folder:
                outcomes.append(session(bits, Path(folder)))
        return np.array(outcomes)

    return draw


def _shaming(delta: Fraction) -> Draw:
    mechanism = name_and_shame(delta=delta)
    return lambda values, size: list(mechanism.release(Exact(np.tile(values, size), ONE)))

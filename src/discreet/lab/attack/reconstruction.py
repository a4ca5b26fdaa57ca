"""Reconstruction: from many counts, each harmless by itself, to the secret of everybody."""

from typing import Literal

import numpy as np

from discreet.errors import BadParameter
from discreet.lab.attack.people import People
from discreet.types import Numbers

Method = Literal["linear", "squares"]


def reconstruct(matrix: Numbers, answers: Numbers, *, method: Method = "linear") -> Numbers:
    """A number between 0 and 1 for each person, how likely they have the secret, that fits the answers best.

    Minimises ‖Wx − a‖ over 0 ≤ x ≤ 1: in L1 by linear programming ("linear"), which is robust to a few large errors, or
    in L2 ("squares"), which is faster. From answers to all subsets within an error of o(√n), or to about n random ones,
    all but o(n) of the bits are right, for any such answers.

    where W is `matrix`, W[q, i] being 1 if question q counts person i, and a are the `answers`; those that are NaN are
    left out. Round at one half to guess.

    >>> matrix = np.array([[1.0, 1, 0], [0, 1, 1], [1, 0, 1]])
    >>> reconstruct(matrix, matrix @ [1, 0, 1]).round(6).tolist()
    [1.0, 0.0, 1.0]

    [DN03, Thm. 5; 000 §1]
    """
    answered = np.isfinite(answers)
    weights, values = np.asarray(matrix, dtype=np.float64)[answered], np.asarray(answers, dtype=np.float64)[answered]
    if not len(values):
        return np.full(np.shape(matrix)[1], 0.5)
    if method == "squares":
        from scipy.optimize import lsq_linear

        return np.asarray(lsq_linear(weights, values, bounds=(0, 1), max_iter=60).x)
    if method != "linear":
        raise BadParameter(f'method is {method!r}; it must be "linear" or "squares". Leave it out for the first.')
    return _linear_program(weights, values)


def _linear_program(weights: Numbers, values: Numbers) -> Numbers:
    """min Σ t over |Wx − a| ≤ t, 0 ≤ x ≤ 1."""
    from scipy.optimize import linprog
    from scipy.sparse import eye_array, hstack, vstack

    questions, people = weights.shape
    slack = eye_array(questions)
    found = linprog(
        np.concatenate([np.zeros(people), np.ones(questions)]),
        A_ub=vstack([hstack([weights, -slack]), hstack([-weights, -slack])]),
        b_ub=np.concatenate([values, -values]),
        bounds=[(0, 1)] * people + [(0, None)] * questions,
        method="highs",
    )
    # HiGHS may stop early on an ill-conditioned problem; then nothing is guessed.
    return np.full(people, 0.5) if found.x is None else np.asarray(found.x[:people])


def share_right(people: People, guess: Numbers) -> float:
    """The share of people whose bit is guessed right when `guess` is rounded; one half is no guess, and half right."""
    return float(np.mean(np.where(guess == 0.5, 0.5, (guess > 0.5) == people.bits)))


def guess_from_cells(people: People, counts: Numbers) -> Numbers:
    """Guess from a noisy histogram of the public columns and, as its last axis, the secret one.

    Nobody else has a person's profile, so a person is either in the one cell or in one of the others: the best use of
    one measurement. Two equal counts give one half.
    """
    cells = counts[tuple(people.codes[name] for name in people.public)]
    others = np.delete(cells, people.cell, axis=1)
    return np.asarray((np.sign(cells[:, people.cell] - others.max(axis=1)) + 1) / 2)

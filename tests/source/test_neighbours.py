"""What one person can change: over all neighbouring small tables, never more than declared, and sometimes as much."""

from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from discreet.accounting.sensitivity import bounded_sensitivity, matrix_sensitivity
from discreet.query import Marginal, col, count, marginals, point_histogram, prefixes, total
from discreet.schema import Boolean, Categories, Domain, Integers, Unit
from discreet.source import Frame, sensitivity_of
from discreet.source.source import unseal

KEEPS = Domain({"n": Integers(10, 12, missing="missing"), "c": Boolean()})
DROPS = Domain({"n": Integers(10, 12, outside="drop", missing="drop"), "c": Boolean()})
ONE_CELL = Domain({"n": Categories([10], outside="drop")})
VALUES = [(10, True), (12, False), (12, True), (99, True), (None, False)]
OTHERS = [(11, True), (12, False)]

QUESTIONS = {
    "count": lambda domain: count(domain, col("n") >= 12) if "c" in domain else count(domain),
    "everyone": count,
    "marginal": lambda domain: Marginal(tuple(domain)),
    "one way": lambda domain: Marginal(("n",)),
    "total": lambda domain: total(domain, "n") if "c" in domain else 5 * count(domain),
    "grouped": lambda domain: Marginal(
        ("c",) if "c" in domain else ("n",), total(domain, "n") if "c" in domain else 5 * count(domain)
    ),
    "difference": lambda domain: 3 * count(domain, col("n") == 10) - count(domain),
    "vector": lambda domain: [count(domain), 2 * count(domain, col("n") == 10), -1 * count(domain, col("n") != 10)],
    "points": point_histogram,
    "prefixes": lambda domain: prefixes(domain, "n") if "c" in domain else [count(domain), count(domain)],
}
UNITS = [
    Unit(),
    Unit(neighbors="replace_one"),
    Unit(key="who"),
    Unit(key="who", contributions=2),
    Unit(key="who", neighbors="replace_one"),
    Unit(key="who", contributions=2, neighbors="replace_one"),
]


@cache
def frame_of(rows, domain, unit):
    return Frame([{"who": who, "n": n, "c": c} for who, (n, c) in rows], domain=domain, unit=unit)


def evaluate(rows, question, domain, unit):
    exact = frame_of(tuple(rows), domain, unit).evaluate(question)
    return unseal(exact, exact.sensitivity), exact.sensitivity


def persons(unit):
    """All that one person may bring: a row, or none to three rows (more than are kept)."""
    if unit.key is None:
        return [(value,) for value in VALUES]
    return [rows for many in range(4) for rows in combinations_with_replacement(VALUES, many)]


def moves(question, domain, unit):
    """How every change of one person moves the answer, and the declared sensitivity."""
    answers = []
    choices = persons(unit)
    for rows in choices:
        # Interleaved with the rows of others, so that no rule can lean on the order of the table.
        table = [("me", value) for value in rows[::2]] + [("you", value) for value in OTHERS] * 2
        values, declared = evaluate(table + [("me", value) for value in rows[1::2]], question, domain, unit)
        answers.append(values)
    without, _ = evaluate([("you", value) for value in OTHERS] * 2, question, domain, unit)
    if unit.neighbors == "add_remove":
        return [values - without for values in answers], declared
    return [p - q for p, q in product(answers, answers)], declared


@pytest.mark.parametrize("domain", [KEEPS, DROPS, ONE_CELL], ids=["keeps", "drops", "one cell"])
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: f"{unit.key or 'row'} {unit.contributions} {unit.neighbors}")
@pytest.mark.parametrize("name", QUESTIONS)
def test_one_person_moves_an_answer_at_most_by_the_declared_sensitivity_and_sometimes_by_it(domain, unit, name):
    changes, declared = moves(QUESTIONS[name](domain), domain, unit)
    assert max(np.abs(change).sum() for change in changes) == declared.l1
    assert max((change**2).sum() for change in changes) == declared.l2_squared
    assert max(np.abs(change).max() for change in changes) == declared.linf
    if declared.monotone:
        assert all((change >= 0).all() for change in changes) or all((change <= 0).all() for change in changes)


def test_forgetting_that_a_row_may_be_dropped_would_be_seen():
    unit = Unit(neighbors="replace_one")
    changes, declared = moves(total(DROPS, "n"), DROPS, unit)
    forgotten = sensitivity_of(total(KEEPS.project(["n"]), "n"), KEEPS.project(["n"]), unit)
    assert declared.l1 == forgotten.l1 == 12, "the cell for missing values weighs nothing, like a dropped row"
    assert matrix_sensitivity([[10, 11, 12]], unit).l1 == 2 < max(abs(change).sum() for change in changes)


def test_forgetting_the_contributions_would_be_seen():
    changes, _ = moves(count(KEEPS), KEEPS, Unit(key="who", contributions=2))
    assert max(np.abs(change).sum() for change in changes) > sensitivity_of(count(KEEPS), KEEPS, Unit()).l1


def test_a_vector_too_large_for_its_matrix_has_a_bound_that_covers_it():
    names = [f"x{place}" for place in range(6)]
    wide = Domain({name: Integers(0, 9) for name in names})
    questions = [count(wide, col(name) >= 5) for name in names]
    for unit in UNITS:
        bound = sensitivity_of(questions, wide, unit)
        few = sensitivity_of(questions[:3], wide, unit)
        assert bound.covers(few)
        assert bound == bounded_sensitivity([(0, 1)] * 6, unit)
        assert bounded_sensitivity([(0, 1)] * 3, unit).covers(few)


def test_sensitivities_beyond_64_bits_are_exact():
    big = 2**62
    assert matrix_sensitivity([[big, -big]], Unit(neighbors="replace_one")).l2_squared == Fraction(2**126)


def test_the_marginals_of_a_workload_each_move_like_a_histogram():
    for marginal in marginals(KEEPS, 1):
        assert sensitivity_of(marginal, KEEPS, Unit(neighbors="replace_one")).l2_squared == 2

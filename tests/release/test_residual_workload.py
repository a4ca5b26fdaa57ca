"""The energies of what is asked: as the lattice says of each question by itself, added up."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dp
from discreet.errors import BadParameter, BadQuery, TooLarge
from discreet.estimate.gaussian_estimator import GaussianLattice
from discreet.estimate.residual_lattice import inside, subsets
from discreet.estimate.separable import energies_of
from discreet.query.linear import Marginal
from discreet.query.residual import axis_of_size
from discreet.query.workload import all_subsets, conjunctions, marginals, prefixes, ranges
from discreet.release.methods.residual_workload import (
    asked_marginals,
    asked_prefixes,
    asked_questions,
    asked_ranges,
    asked_subsets,
    traces,
)
from discreet.release.task import goal_of

seeds = st.integers(0, 2**32 - 1)


def random_domain(rng, columns=3, most=6):
    """Ordered columns and categories; one in five has missing values as a further cell."""
    found = {}
    for name in "abcdefgh"[:columns]:
        size = int(rng.integers(1, most + 1))
        missing = "missing" if rng.random() < 0.2 else "drop"
        ordered = dp.Integers(0, size - 1, outside="drop", missing=missing)
        found[name] = ordered if rng.random() < 0.5 else dp.Categories(range(size), outside="drop", missing=missing)
    return dp.Domain(found)


def by_hand(asked, domain, questions, weights):
    """The demand of every piece, from the energies of one question after the other."""
    known = GaussianLattice.nothing(domain, dp.Unit())
    found = {columns: np.zeros_like(block) for columns, block in asked.split(np.zeros(asked.size)).items()}
    for question, weight in zip(questions, weights, strict=True):
        family = known.family(question)
        energies = energies_of(family)
        whole = energies.reshape(-1, *(axis.parts for axis in family.axes)).sum(axis=0)
        for chosen in subsets(family.columns):
            found[chosen] += weight * whole[inside(family.columns, chosen)]
    return asked.joined(found)


@settings(max_examples=60)
@given(seed=seeds)
def test_the_demand_for_a_piece_is_the_energy_of_all_cells_of_all_marginals(seed):
    rng = np.random.default_rng(seed)
    domain = random_domain(rng)
    goal = goal_of({("a", "b"): 2.0, ("b", "c"): 1.0, ("a",): 0.5, ("c", "a", "b"): 0.25}, domain)
    asked = asked_marginals(goal)
    expected = by_hand(asked, domain, [Marginal(scope) for scope in goal.scopes], asked.weights)
    np.testing.assert_allclose(asked.demand(asked.weights), expected, rtol=1e-9, atol=1e-12)
    assert asked.answers.tolist() == [goal.cells(scope) for scope in goal.scopes]


@settings(max_examples=40)
@given(seed=seeds, apart=st.booleans())
def test_the_demand_of_questions_is_that_of_each_by_itself(seed, apart):
    rng = np.random.default_rng(seed)
    domain = random_domain(rng)
    questions = list(conjunctions(domain, 2))[:20] + list(conjunctions(domain, 1))
    # Sums of products, and a weight over two columns at once.
    questions += [questions[0] + 2 * questions[-1], 3 * questions[-1], questions[0] - questions[len(questions) // 2]]
    weights = rng.random(len(questions)) + 0.1
    asked = asked_questions(questions, domain, weights=weights, apart=apart)
    expected = by_hand(asked, domain, questions, weights / weights.sum())
    np.testing.assert_allclose(asked.demand(asked.weights), expected, rtol=1e-9, atol=1e-12)
    assert len(asked.weights) == (len(questions) if apart else len({question.scope for question in questions}))
    assert asked.weights @ asked.answers == pytest.approx(1)


@pytest.mark.parametrize("cells", [2, 5, 8, 9])
@pytest.mark.parametrize(
    ("by_name", "workload"), [(asked_ranges, ranges), (asked_prefixes, prefixes), (asked_subsets, all_subsets)]
)
def test_questions_by_name_are_those_of_the_workload(by_name, workload, cells):
    domain = dp.Domain({"age": dp.Integers(1, cells, missing="missing" if cells == 5 else "drop", outside="drop")})
    listed, named = asked_questions(workload(domain, "age"), domain), by_name(domain, "age")
    np.testing.assert_allclose(named.demand(named.weights), listed.demand(listed.weights), rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("ordered", [True, False])
def test_the_traces_of_an_axis_are_the_dimensions_of_its_parts(ordered):
    for cells in (1, 2, 4, 16):
        axis = axis_of_size(cells, ordered=ordered)
        assert traces(axis)[0] == 1 / cells
        assert traces(axis)[1:].sum() == pytest.approx(cells - 1)
    assert traces(axis_of_size(6, ordered=True))[1:].sum() == pytest.approx(5)


def test_a_workload_that_cannot_be_listed_is_refused_with_a_way_out():
    domain = dp.Domain({"age": dp.Integers(0, 1023, missing="drop", outside="drop")})
    with pytest.raises(TooLarge, match="asked_ranges"):
        asked_questions(ranges(domain, "age"), domain)
    wide = dp.Domain({"age": dp.Integers(0, 2**14 - 1, missing="drop", outside="drop")})
    with pytest.raises(TooLarge, match="fewer cells"):
        asked_ranges(wide, "age")


def test_weights_that_are_not_one_for_each_question_are_refused():
    domain = dp.Domain({"old": dp.Boolean()})
    questions = list(conjunctions(domain, 1))
    for weights in ([1.0], [1.0, -1.0], [0.0, 0.0], [np.nan, 1.0]):
        with pytest.raises(BadParameter, match="weights has"):
            asked_questions(questions, domain, weights=weights)
    with pytest.raises(BadQuery):
        asked_questions([], domain)


def test_a_question_of_everyone_asks_for_the_total_alone():
    domain = dp.Domain({"old": dp.Boolean()})
    asked = asked_questions(list(conjunctions(domain, 0)), domain)
    assert asked.split(asked.demand(asked.weights)) == {(): 1.0}


def test_numbers_of_blocks_are_split_and_joined():
    domain = dp.Domain({"a": dp.Integers(0, 4, missing="drop", outside="drop"), "b": dp.Boolean()})
    asked = asked_marginals(goal_of(marginals(domain, 2), domain))
    numbers = np.arange(asked.size, dtype=np.float64)
    assert asked.split(numbers)["a", "b"].shape == (3, 1)
    assert asked.joined(asked.split(numbers)).tolist() == numbers.tolist()

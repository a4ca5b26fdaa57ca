"""What a release is for, however it is said: marginals with weights that add up to 1."""

import numpy as np
import pytest

from discreet.errors import BadParameter, BadQuery
from discreet.query import Marginal, col, count
from discreet.query.workload import marginals, monotone_conjunctions, point_histogram
from discreet.release import task as module
from discreet.release.task import goal_of
from discreet.schema import Boolean, Categories, Domain, Integers

PEOPLE = Domain(
    {"old": Boolean(), "region": Categories(list("xyz"), outside="drop"), "ill": Boolean(), "age": Integers(0, 9)}
)


def weights_of(wanted):
    return dict(goal_of(wanted, PEOPLE).weights)


def test_all_ways_to_say_the_same_give_the_same():
    pairs = [("old", "region"), ("ill", "old"), ("ill", "region")]
    ways = [
        pairs,
        [Marginal(pair) for pair in pairs],
        [list(reversed(pair)) for pair in reversed(pairs)],
        dict.fromkeys(pairs, 7),
        {tuple(reversed(pair)): 0.5 for pair in pairs},
    ]
    for way in ways:
        goal = goal_of(way, PEOPLE)
        assert goal.scopes == (("ill", "old"), ("ill", "region"), ("old", "region"))
        assert [weight for _, weight in goal.weights] == pytest.approx([1 / 3] * 3)


def test_a_workload_of_marginals_is_its_marginals():
    goal = goal_of(marginals(PEOPLE, 2), PEOPLE)
    assert len(goal.scopes) == 6
    assert goal.scopes == tuple(sorted(goal.scopes))
    assert goal.describe == "all 2-way marginals of 4 columns"
    assert goal_of([("old",)], PEOPLE).describe == "1 marginal"
    assert goal_of({("old",): 2, ("ill",): 1}, PEOPLE).describe == "2 weighted marginals"


def test_questions_count_for_the_marginal_of_their_columns_as_often_as_they_are_asked():
    old, ill = (col(name) == True for name in ("old", "ill"))  # noqa: E712
    questions = [count(PEOPLE, old), count(PEOPLE, old & ill), count(PEOPLE, old & ~ill)]
    assert weights_of(questions) == pytest.approx({("old",): 1 / 3, ("ill", "old"): 2 / 3})
    # All cells of a marginal are one marginal; of conjunctions of three columns each subset is one.
    assert weights_of(point_histogram(PEOPLE, ["region", "ill"])) == {("ill", "region"): 1.0}
    three = Domain({name: Boolean() for name in ("a", "b", "c")})
    goal = goal_of(monotone_conjunctions(three, 2), three)
    assert goal.scopes == (("a", "b"), ("a", "c"), ("b", "c"))


@pytest.mark.parametrize("scale", [1, 3, 1e-9, 1e9])
def test_weights_add_up_to_1_and_those_of_the_same_columns_are_added(scale):
    found = weights_of({("old", "ill"): 2 * scale, ("ill", "old"): scale, ("age",): scale})
    assert found == pytest.approx({("age",): 0.25, ("ill", "old"): 0.75})
    assert weights_of([("age",), ("age",), ("old",)]) == pytest.approx({("age",): 2 / 3, ("old",): 1 / 3})


def test_below_are_all_subsets_once_the_fewest_first():
    goal = goal_of([("old", "region", "ill"), ("age", "old"), ("old",)], PEOPLE)
    assert goal.below == (
        ("age",),
        ("ill",),
        ("old",),
        ("region",),
        ("age", "old"),
        ("ill", "old"),
        ("ill", "region"),
        ("old", "region"),
        ("ill", "old", "region"),
    )


def test_cells_are_those_of_the_domain_with_those_for_other_values():
    goal = goal_of([("region", "age")], PEOPLE)
    assert goal.cells(("region",)) == PEOPLE["region"].size
    assert goal.cells(("age", "region")) == PEOPLE["age"].size * PEOPLE["region"].size
    assert goal.cells(()) == 1


@pytest.mark.parametrize(
    ("wanted", "match"),
    [
        ([], "the workload is empty"),
        ({}, "the workload is empty"),
        ("old", "the workload is a str"),
        (3, "the workload is a int"),
        ([("old", "illness")], 'no column "illness".*did you mean "ill"'),
        ({("agee",): 1}, 'no column "agee".*did you mean "age"'),
    ],
)
def test_what_is_no_workload_is_refused(wanted, match):
    with pytest.raises(BadQuery, match=match):
        goal_of(wanted, PEOPLE)


@pytest.mark.parametrize("weight", [0, -1, float("nan"), float("inf"), "1", None])
def test_a_weight_is_above_0(weight):
    with pytest.raises(BadParameter, match=r"weight is .*Leave out marginals of no weight"):
        goal_of({("old",): 1, ("ill",): weight}, PEOPLE)


def test_too_many_questions_are_refused_before_they_are_listed(monkeypatch):
    forty = Domain({f"b{place}": Boolean() for place in range(40)})
    with pytest.raises(BadQuery, match=f"the workload has {2**40} questions"):
        goal_of(monotone_conjunctions(forty), forty)
    monkeypatch.setattr(module, "MOST_GOAL_QUERIES", 5)
    with pytest.raises(BadQuery, match="the limit is 5"):
        goal_of(marginals(PEOPLE, 2), PEOPLE)
    assert goal_of(marginals(PEOPLE, 2)[:5], PEOPLE).weights


@pytest.mark.parametrize("wanted", [[()], [("one",)], {(): 1, ("one",): 2}])
def test_marginals_of_one_cell_are_no_workload(wanted):
    domain = Domain({"one": Categories(["x"], outside="drop", missing="drop"), "ill": Boolean()})
    with pytest.raises(BadQuery, match="no column of the workload has two values"):
        goal_of(wanted, domain)
    assert goal_of([("ill", "one"), ()], domain).weights


def test_one_column_is_no_list_of_columns():
    with pytest.raises(BadQuery):
        goal_of(["old"], PEOPLE)


def test_weights_are_plain_doubles_whatever_they_were():
    goal = goal_of({("old",): np.float32(2), ("ill",): np.int64(2)}, PEOPLE)
    assert [type(weight) for _, weight in goal.weights] == [float, float]

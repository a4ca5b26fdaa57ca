"""Nothing outside of the normal form can be made, and nothing that was made can be changed."""

import copy
import pickle
from dataclasses import FrozenInstanceError, replace
from fractions import Fraction

import numpy as np
import pytest

from discreet.accounting.event import Compose
from discreet.curator.executor import mechanism_of
from discreet.curator.question import read_question
from discreet.errors import BadQuery, SealBroken, TooLarge
from discreet.estimate.measurements import GaussianQuery, GaussianResiduals
from discreet.plan.plan import Steps, step_event
from discreet.query import Linear, Marginal, Measurement, Ratio, Residual, Workload, prefixes
from discreet.query.points import Body, Boxes, Clusters
from discreet.query.product import MOST_COMBINED, Factor, Product
from discreet.query.query_wire import query_from_plain
from discreet.schema import Categories, Domain, Integers, Unit
from discreet.source.frame import Frame
from discreet.source.query_sensitivity import sensitivity_of, settled_query
from discreet.source.source import unseal
from discreet.source.table import open as open_table
from discreet.wire.question_json import question_from_plain
from support.query_oracle import KEEPING

SEX = Factor(("sex",), [0, 1])
ONE = Linear([Product((SEX,))])


def test_columns_are_sorted_and_the_axes_with_them():
    factor = Factor(("b", "a"), np.arange(6).reshape(2, 3))
    assert factor.columns == ("a", "b")
    assert factor.weights.tolist() == [[0, 3], [1, 4], [2, 5]]
    assert factor == Factor(("a", "b"), np.arange(6).reshape(2, 3).T)
    three = Factor(("c", "a", "b"), np.arange(24).reshape(2, 3, 4))
    assert three.weights.shape == (3, 4, 2)
    assert three.weights[2, 1, 0] == 0 * 12 + 2 * 4 + 1


def test_factors_that_share_a_column_are_multiplied():
    both = Factor(("a", "b"), [[1, 2], [3, 4]])
    assert Product((both, Factor(("b",), [5, 0]))) == Product((Factor(("a", "b"), [[5, 0], [15, 0]]),))
    chain = Product((both, Factor(("b", "c"), [[1, 0], [2, 1]])))
    assert [factor.columns for factor in chain.factors] == [("a", "b", "c")]
    assert chain.factors[0].weights.tolist() == [[[1, 0], [4, 2]], [[3, 0], [8, 4]]]
    # A third one may join two that were apart.
    joined = Product((Factor(("a",), [0, 1]), Factor(("b",), [0, 1]), Factor(("a", "b"), [[1, 2], [3, 4]])))
    assert joined == Product((Factor(("a", "b"), [[0, 0], [0, 4]]),))
    assert Product((Factor(("a",), [1, -1]), Factor(("a",), [1, -1]))) == Product(())


def test_what_would_grow_by_multiplying_is_refused_before_it_does():
    wide = MOST_COMBINED
    long = [Factor(("a", "b"), np.arange(wide).reshape(wide, 1)), Factor(("b", "c"), np.arange(wide).reshape(1, wide))]
    with pytest.raises(TooLarge, match="cells together"):
        Product(long)
    # One that has all the columns does not grow.
    assert Product((Factor(("a",), np.arange(2 * wide)), Factor(("a",), np.arange(2 * wide)))).magnitude > wide
    with pytest.raises(TooLarge, match="64 bits"):
        Product((Factor(("a",), [0, 2**40]), Factor(("a",), [1, 2**40])))


def test_constant_factors_and_products_of_nothing_leave_no_trace():
    assert Product((Factor(("a",), [3, 3]), SEX), 2) == Product((SEX,), 6)
    assert Product((Factor(("a",), [0, 0]), SEX)) == Product((), 0) == Product((SEX,), 0)
    assert Linear([Product((SEX,), 0)]).products == ()
    assert Linear([Product((Factor((), 5),))]) == Linear([Product((), 5)])


def test_products_that_meet_in_one_cell_of_a_column_are_not_disjoint():
    one = Product((Factor(("a",), [1, 1, 0]), Factor(("b",), [1, 0])))
    other = Product((Factor(("a",), [0, 1, 1]), Factor(("b",), [3, 1])))
    assert Linear([one, other]).range(KEEPING) == (0, 4)


def test_a_column_has_one_size_in_a_whole_query():
    short, long = Factor(("a", "b"), [[0, 1]]), Factor(("a", "b"), [[1, 0], [0, 1], [1, 1]])
    with pytest.raises(BadQuery, match="cells in one factor"):
        Product((short, long))
    # numpy would stretch the one cell to three.
    with pytest.raises(BadQuery, match="cells in one factor"):
        Linear([Product((short,)), Product((long,))])


WRONG = {
    "a float": [0, 1.5],
    "a whole float": [0.0, 1.0],
    "an array of floats": np.array([0.0, 1.0]),
    "a truth value": [True, 2],
    "an array of truth values": np.array([False, True]),
    "a text": ["0", "1"],
    "nothing": [None, 1],
    "not a number": [float("nan"), 1],
    "a complex number": [1j, 1],
    "a fraction": [Fraction(1, 2), 1],
    "beyond 64 bits": [0, 2**63],
    "beyond 64 bits below": [0, -(2**63)],
    "beyond 64 bits without a sign": np.array([0, 2**64 - 1], dtype=np.uint64),
    "the lowest of 64 bits": np.array([0, -(2**63)]),
    "a ragged list": [[0], [1, 2]],
    "arrays that do not fit": [np.zeros((2, 2)), np.zeros((2, 3))],
    "too many axes": [[0, 1]],
    "no cells": [],
    "a date": np.array(["2024-01-01", "2024-01-02"], dtype="datetime64[D]"),
}


@pytest.mark.parametrize("weights", WRONG.values(), ids=WRONG)
def test_weights_are_exact_integers_or_refused(weights):
    with pytest.raises(BadQuery):
        Factor(("a",), weights)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Factor("a", [0, 1]),
        lambda: Factor(("a", "a"), [[0, 1], [1, 0]]),
        lambda: Factor((1,), [0, 1]),
        lambda: Factor(None, [0, 1]),
        lambda: Product(5),
        lambda: Product((5,)),
        lambda: Product((SEX,), 1.5),
        lambda: Product((SEX,), True),
        lambda: Product((SEX,), "2"),
        lambda: Product((SEX,), None),
        lambda: Linear(5),
        lambda: Linear([SEX]),
        lambda: Linear([ONE]),
        lambda: Marginal("ab"),
        lambda: Marginal(("a", "a")),
        lambda: Marginal((b"a",)),
        lambda: Marginal(5),
        lambda: Marginal(("a",), 1),
        lambda: Ratio(ONE, 5),
        lambda: Ratio(Marginal(("sex",)), ONE),
        lambda: Residual((("a", 1), ("a", 2))),
        lambda: Residual((("a", True),)),
        lambda: Residual((("a", 1.0),)),
        lambda: Measurement(()),
        lambda: Measurement(5),
        lambda: Measurement((5,)),
        lambda: Measurement(((Residual((("a", 1),)), 1), (Residual((("a", 1),)), 2))),
        lambda: Clusters(Body((4,)), ((0,),), weight=1.5),
        lambda: Clusters(Body((4,)), ((0.5,),), weight=1),
        lambda: Clusters(Body((4,)), ((0,),), weight=1, radius=True),
        lambda: Boxes(Body((4,)), (1.5,)),
        lambda: Boxes(Body((4, 4)), (1, 1), ("a", "a")),
        lambda: Body((4.5,)),
    ],
)  # fmt: skip
def test_what_is_not_a_query_cannot_be_made(make):
    with pytest.raises(BadQuery):
        make()


def test_what_can_be_read_once_is_read_once():
    assert Marginal(iter(["a", "b"])).columns == ("a", "b")
    assert Factor(iter(["b", "a"]), [[1, 2], [3, 4]]).columns == ("a", "b")
    assert Product(iter([SEX])).factors == (SEX,)
    pieces = ((Residual((("a", 1),)), 2),)
    assert Measurement(iter(pieces)) == Measurement(pieces)


def test_nobody_can_write_to_the_weights():
    given = np.array([0, 1])
    factor = Factor(("a",), given)
    given[:] = 7
    assert factor.weights.tolist() == [0, 1]
    with pytest.raises(ValueError, match="read-only"):
        factor.weights[0] = 7
    with pytest.raises(ValueError, match="WRITEABLE"):
        factor.weights.setflags(write=True)
    for array in (factor.weights, pickle.loads(pickle.dumps(factor)).weights, copy.deepcopy(factor).weights):
        while isinstance(array, np.ndarray):
            assert not array.flags.writeable
            array = array.base
        assert isinstance(array, bytes), "in the end the memory belongs to bytes, which nobody can write to"


QUERIES = [
    SEX,
    Product((SEX,)),
    ONE,
    Ratio(ONE, ONE),
    Marginal(("sex",), ONE),
    Residual((("sex", 1),)),
    Measurement(((Residual((("sex", 1),)), Fraction(2)),)),
    Body((4,)),
    Boxes(Body((4,)), (2,)),
    Clusters(Body((4,)), ((0,),), weight=1),
]


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: type(query).__name__)
def test_copies_are_constructed_and_fields_are_frozen(query):
    for again in (copy.copy(query), copy.deepcopy(query), pickle.loads(pickle.dumps(query)), replace(query)):
        assert type(again) is type(query)
        assert again == query
    make, arguments = query.__reduce__()
    assert make is type(query)
    assert make(*arguments) == query
    with pytest.raises(FrozenInstanceError):
        setattr(query, next(iter(type(query).__dataclass_fields__)), ())


@pytest.mark.parametrize("kind", [type(query) for query in QUERIES])
def test_a_query_has_no_subclass_that_could_weigh_otherwise(kind):
    with pytest.raises(TypeError, match="subclass of a query"):
        type("Other", (kind,), {"range": lambda self, domain: (0, 1)})


def test_a_text_that_compares_otherwise_becomes_a_plain_one():
    class Other(str):
        __slots__ = ()

        def __eq__(self, other):
            return False

        __hash__ = str.__hash__

    for names in (Factor([Other("a")], [0, 1]).columns, Marginal([Other("a")]).columns):
        assert [type(name) for name in names] == [str]
    with pytest.raises(BadQuery, match="once"):
        Marginal([Other("a"), Other("a")])


# What is evaluated is what was priced.

AGES = Domain({"age": Integers(0, 4, missing="drop")})
TABLE = Frame({"age": [0, 1, 2, 3, 4]}, domain=AGES)


def test_a_workload_that_says_something_else_each_time_is_read_once():
    light, heavy = prefixes(AGES, "age")[0], 1000 * prefixes(AGES, "age")[4]
    calls = []

    def make(index):
        calls.append(index)
        return light if len(calls) <= 2 else heavy

    exact = TABLE.evaluate(Workload("two faces", AGES, range(2), make))
    assert unseal(exact, exact.sensitivity).tolist() == [1, 1]
    assert exact.sensitivity == sensitivity_of([light, light], AGES, Unit())
    assert len(calls) == 2


def test_a_list_that_changes_its_mind_is_read_once():
    class Faces(list):
        def __iter__(self):
            self.append(None)
            return iter([prefixes(AGES, "age")[0] * (1 if len(self) == 1 else 1000)] * 2)

    exact = TABLE.evaluate(Faces())
    assert unseal(exact, exact.sensitivity).tolist() == [1, 1]
    assert type(settled_query(Faces())) is tuple


def test_the_seal_refuses_a_query_whose_declared_range_is_not_that_of_its_weights(monkeypatch):
    query = Linear([Product((Factor(("a", "b"), [[0, 9], [0, 0], [0, 0]]),)), Product((Factor(("c",), [0, 1]),))])
    table = Frame({"a": ["x"], "b": [1], "c": ["y"]}, domain=KEEPING)
    assert unseal(table.evaluate(query), sensitivity_of(query, KEEPING, Unit())).tolist() == [10]
    monkeypatch.setattr(Linear, "range", lambda self, domain: (0, 1))
    for question in (query, [query, query], Marginal(("b",), query), Ratio(query, query)):
        with pytest.raises(SealBroken, match="a mistake in discreet"):
            table.evaluate(question)


def test_a_mechanism_for_a_lighter_question_is_refused_at_the_seal():
    table = open_table({"age": [0, 1, 2, 3, 4]}, domain=AGES)
    query = prefixes(AGES, "age")[0]
    light, heavy = GaussianQuery(query, Fraction(10), 0.0), 2 * query
    mechanism = mechanism_of(light, table)
    with pytest.raises(SealBroken, match="calibrated"):
        mechanism.release(table.evaluate(heavy))


def test_what_is_paid_for_a_step_is_what_its_mechanism_does():
    table = open_table({"a": ["x"], "b": [1], "c": ["y"]}, domain=KEEPING)
    query = query_from_plain({"products": [[3, [[["b", "a"], [2, 3], [0, 1, 0, 2, 0, -1]]]]]})
    steps = (
        GaussianQuery(query, Fraction(10), 0.0),
        GaussianQuery(Marginal(("b", "a"), query), Fraction(7), 0.0),
        GaussianResiduals(
            Measurement(((Residual((("b", 1), ("a", 1))), Fraction(3)), (Residual(()), Fraction(2)))), 0.0
        ),
    )
    for step in steps:
        assert mechanism_of(step, table).event == step_event(step, table.domain, table.unit)
    assert Steps(steps).event(table.domain, table.unit) == Compose(
        tuple(mechanism_of(step, table).event for step in steps)
    )


def test_a_wide_weight_without_groups_is_summed_like_any_other():
    wide = Domain({name: Integers(0, 1999, missing="drop") for name in "ab"})
    table = Frame({"a": [0, 1, 1999], "b": [5, 0, 1999]}, domain=wide)
    values = np.arange(2000)
    query = Linear([Product((Factor(("a",), values), Factor(("b",), values)))])
    exact = table.evaluate(Marginal((), query))
    assert unseal(exact, exact.sensitivity).tolist() == [1999**2]


# JSON.

GOOD = [["a"], [3], [0, 1, 0]]
STRICT = {
    "a float": [[1, [[["a"], [3], [0, 1.5, 0]]]]],
    "a whole float": [[1, [[["a"], [3], [0, 1.0, 0]]]]],
    "a truth value": [[1, [[["a"], [3], [0, True, 0]]]]],
    "a coefficient that is a float": [[1.0, [GOOD]]],
    "a coefficient that is true": [[True, [GOOD]]],
    "a coefficient that is a text": [["1", [GOOD]]],
    "a text of columns": [[1, [["abc", [3, 2, 2], [0] * 11 + [1]]]]],
    "a size that is guessed": [[1, [[["a"], [-1], [0, 1, 0]]]]],
    "a size that is true": [[1, [[["a", "b"], [3, True], [0, 1, 0]]]]],
    "sizes that multiply to it": [[1, [[["a", "b"], [-3, -2], [0, 1, 0, 0, 0, 0]]]]],
    "fewer weights": [[1, [[["a", "b"], [3, 2], [0, 1, 0]]]]],
    "nested weights": [[1, [[["a", "b"], [3, 2], [[0, 1], [0, 0], [0, 0]]]]]],
    "more axes than columns": [[1, [[["a"], [3, 1], [0, 1, 0]]]]],
    "more axes than an array has": [[1, [[[f"c{n}" for n in range(65)], [1] * 65, [1]]]]],
    "a name that is a number": [[1, [[[1], [3], [0, 1, 0]]]]],
    "a column twice in a factor": [[1, [[["b", "b"], [2, 2], [0, 1, 0, 0]]]]],
    "an axis of two sizes": [[1, [GOOD]], [1, [[["a"], [2], [0, 1]]]]],
    "something more": [[1, [GOOD], 1]],
    "an object": [{"coefficient": 1, "factors": []}],
    "a text": "products",
}


@pytest.mark.parametrize("products", STRICT.values(), ids=STRICT)
def test_json_is_read_strictly(products):
    for body in (
        {"products": products},
        {"columns": ["b"], "weight": products},
        {"numerator": {"products": products}, "denominator": {"products": []}},
    ):
        with pytest.raises(BadQuery):
            question_from_plain(body, table="people")


def test_a_name_that_nobody_knows_is_refused():
    for body in ({"products": [], "x": 1}, {"columns": ["a"], "weight": None, "x": 1}):
        with pytest.raises(BadQuery):
            question_from_plain(body, table="people")


def test_a_weight_with_many_products_is_too_long_as_a_query_is():
    products = [[1, []]] * 1000
    for body in ({"products": products}, {"columns": ["a"], "weight": products}):
        with pytest.raises(TooLarge):
            question_from_plain(body, table="people")


def test_what_an_older_ledger_holds_out_of_form_is_read_as_what_was_evaluated():
    swapped = query_from_plain({"products": [[1, [[["b", "a"], [2, 3], [0, 1, 2, 3, 4, 5]], GOOD]]]})
    assert swapped == Linear([Product((Factor(("a", "b"), [[0, 0], [1, 4], [0, 0]]),))])


def test_a_table_may_have_its_axes_in_any_order():
    query = Linear([Product((Factor(("a", "b"), [[0, 1], [2, 3], [4, 5]]),))])
    assert query.table(KEEPING, ("a", "b")).tolist() == [[0, 1], [2, 3], [4, 5]]
    assert query.table(KEEPING, ("b", "a")).tolist() == [[0, 2, 4], [1, 3, 5]]
    assert query.table(KEEPING, ("b", "c", "a"))[1, 0].tolist() == [1, 3, 5]
    for names in (("a",), ("a", "a", "b"), "ab"):
        with pytest.raises(BadQuery):
            query.table(KEEPING, names)


def test_a_weight_or_a_ratio_for_other_columns_is_refused_before_it_is_planned():
    other = query_from_plain({"products": [[1, [[["b", "a"], [3, 2], [0, 1, 2, 3, 4, 5]]]]]})
    for question in (other, Marginal(("b",), other), Ratio(ONE, other), Ratio(other, ONE)):
        with pytest.raises(BadQuery):
            read_question(question, KEEPING, "people")


def test_categories_of_one_cell_make_no_difference():
    domain = Domain({"a": Categories(["x"], outside="x"), "b": Categories([0, 1], outside=0)})
    query = Linear([Product((Factor(("b", "a"), [[0], [1]]),))])
    assert query.range(domain) == (0, 1)
    assert query.table(domain, ("b", "a")).tolist() == [[0], [1]]
    assert query.table(domain, ("a", "b")).tolist() == [[0, 1]]


def test_factors_that_share_columns_are_multiplied_up_to_a_limit():
    wide, narrow = Factor(("a", "b"), np.ones((64, 64), dtype=np.int64)), Factor(("a",), [1] * 63 + [0])
    assert Product([wide] + [narrow] * 7) == Product([wide, narrow])
    with pytest.raises(TooLarge, match="65,536 multiplications"):
        Product([wide] + [narrow] * 900)

"""A model that was written and read again is the same model."""

import json

import numpy as np
import pytest

from discreet.errors import BadData
from discreet.model.dense.dense_model import Dense
from discreet.model.interface import NoisyMarginal
from discreet.model.mixture.mixture_model import Blend, Mixture
from discreet.model.rows import Rows
from discreet.model.serialize import from_arrays, to_arrays
from discreet.model.tree.tree_model import fit_tree
from discreet.query.aggregates import count
from discreet.query.predicate import col
from discreet.schema.column import Boolean, Categories
from discreet.schema.domain import Domain

PEOPLE = Domain({"smoker": Boolean(), "city": Categories([*"abc"], outside="a", missing="a"), "old": Boolean()})
QUESTION = count(PEOPLE, (col("city") == "b") & (col("smoker") == True))  # noqa: E712


def mixture():
    rng = np.random.default_rng(1)
    tables = np.concatenate([rng.dirichlet(np.ones(size), 2).T for size in PEOPLE.shape])
    return Mixture(PEOPLE, 70.0, np.array([0.25, 0.75]), tables, misfit=1.25)


def tree():
    looks = [
        NoisyMarginal(("city", "smoker"), None, np.array([[10.0, 20.0], [5.0, 5.0], [30.0, 1.0]]), weight=1.0),
        NoisyMarginal(("city", "old"), None, np.array([[15.0, 15.0], [8.0, 2.0], [1.0, 30.0]]), weight=0.5),
    ]
    return fit_tree(PEOPLE, looks, total=71)


def dense():
    model = Dense(PEOPLE, total=80)
    model.update(QUESTION, step=1.5)
    return model


def rows():
    return Rows(PEOPLE, {"smoker": [0, 1, 1], "city": [2, 1, 0], "old": [0, 0, 1]}, scale=2.5)


MODELS = {"mixture": mixture, "tree": tree, "dense": dense, "rows": rows}
MODELS["blend"] = lambda: Blend([mixture(), Blend([tree(), rows()], [1, 2])], [3, 1])


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_a_model_read_again_says_the_same(make):
    model = make()
    plain, arrays = to_arrays(model)
    again = from_arrays(json.loads(json.dumps(plain)), arrays, PEOPLE)
    assert type(again) is type(model)
    assert again.total == pytest.approx(model.total, rel=1e-12)
    for columns in (["smoker"], ["old", "city"], ["city", "smoker", "old"]):
        assert again.marginal(columns) == pytest.approx(model.marginal(columns), rel=1e-9, abs=1e-9)
    assert again.answer(QUESTION) == pytest.approx(model.answer(QUESTION), rel=1e-9)
    assert sorted(again.rows(7)) == sorted(PEOPLE)


def test_parts_of_a_blend_do_not_share_arrays():
    _, arrays = to_arrays(Blend([mixture(), mixture()], [1, 1]))
    assert len(arrays) == 4


def test_what_is_no_model_is_refused():
    with pytest.raises(BadData, match="Write rows of it"):
        to_arrays(object())
    with pytest.raises(BadData, match="newer"):
        from_arrays({"is": "oracle"}, {}, PEOPLE)

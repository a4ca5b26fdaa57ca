"""Models to arrays and JSON values and back, to the bit: the form in which they are stored in files."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BadData
from discreet.model.dense.dense_model import Dense
from discreet.model.interface import Model
from discreet.model.mixture.mixture_model import Blend, Mixture
from discreet.model.rows import Rows
from discreet.model.tree.junction_tree import CliqueForest
from discreet.model.tree.message_passing import layout_of
from discreet.model.tree.tree_model import Tree
from discreet.schema.domain import Domain

PlainModel = dict[str, Any]
Arrays = dict[str, NDArray[Any]]


def to_arrays(model: Model, name: str = "model") -> tuple[PlainModel, Arrays]:
    """A model as plain values, which JSON can write, and arrays, whose names begin with `name`."""
    match model:
        case Mixture():
            arrays = {f"{name}.weights": model.weights, f"{name}.tables": model.tables}
            return {"is": "mixture", "total": model.total, "misfit": model.misfit}, arrays
        case Tree():
            plain = {
                "is": "tree",
                "total": model.total,
                "cliques": [list(clique) for clique in model.shape.cliques],
                "parents": list(model.shape.parents),
                "fit": [model.loss, model.converged, model.steps],
            }
            return plain, {f"{name}.directed": model.directed, f"{name}.beliefs": model.beliefs}
        case Dense():
            return {"is": "dense", "total": model.total}, {f"{name}.weights": model.marginal(list(model.domain))}
        case Rows():
            codes = np.stack([model.codes[each] for each in model.domain])
            return {"is": "rows", "scale": model.scale}, {f"{name}.codes": codes}
        case Blend():
            parts = [to_arrays(each, f"{name}.{at}") for at, each in enumerate(model.models)]
            merged = {key: array for _, arrays in parts for key, array in arrays.items()}
            return {"is": "blend", "shares": list(model.shares), "models": [plain for plain, _ in parts]}, merged
    raise BadData(f"a {type(model).__name__} cannot be written into a file. Write rows of it.")


def from_arrays(plain: PlainModel, arrays: Mapping[str, NDArray[Any]], domain: Domain, name: str = "model") -> Model:
    """The model that `to_arrays` has taken apart."""
    match plain["is"]:
        case "mixture":
            return Mixture(domain, plain["total"], arrays[f"{name}.weights"], arrays[f"{name}.tables"], plain["misfit"])
        case "tree":
            cliques = tuple(tuple(clique) for clique in plain["cliques"])
            there = {each for clique in cliques for each in clique}
            sizes = tuple((each, domain[each].size) for each in sorted(there))
            shape = CliqueForest(cliques, tuple(plain["parents"]), sizes)
            loss, converged, steps = plain["fit"]
            directed, beliefs = arrays[f"{name}.directed"], arrays[f"{name}.beliefs"]
            return Tree(domain, plain["total"], shape, (), loss, converged, steps, layout_of(shape), directed, beliefs)
        case "dense":
            return Dense(domain, total=plain["total"], weights=arrays[f"{name}.weights"])
        case "rows":
            codes = dict(zip(domain, arrays[f"{name}.codes"], strict=True))
            return Rows(domain, codes, scale=plain["scale"])
        case "blend":
            parts = [from_arrays(each, arrays, domain, f"{name}.{at}") for at, each in enumerate(plain["models"])]
            return Blend(parts, plain["shares"])
    raise BadData(f"a model of the kind {plain['is']!r} is not known. A newer discreet may have written it.")

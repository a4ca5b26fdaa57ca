"""Procedures that make releases, driven by the executor of a small table with a real ledger, and what they cost."""

from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from math import prod
from uuid import uuid4

import numpy as np
import pytest

import discreet.release.methods.fitting
from discreet.accounting.filter import loss
from discreet.curator.release_run import RequestExecutor
from discreet.estimate.laplace_estimator import estimator_for
from discreet.ledger import Budget, Ledger
from discreet.model.mixture.ensemble import fit_ensemble
from discreet.plan.plan import run
from discreet.release.task import Brief, goal_of
from discreet.schema import Boolean, Categories, Domain, Schema, Unit
from discreet.source.frame import Frame
from discreet.source.table import Table

DOMAIN = Domain(
    {
        "age": Categories([0, 1, 2, 3, 4], ordered=True, outside=0, missing=0),
        "city": Categories(["a", "b", "c"], outside="a", missing="a"),
        "ill": Boolean(),
        "old": Boolean(),
        "rich": Boolean(),
    }
)
NAMES = tuple(DOMAIN)
ROWS = 3_000
TRIPLES = goal_of(list(combinations(NAMES, 3)), DOMAIN)
PAIRS = goal_of(list(combinations(NAMES, 2)), DOMAIN)
ADD, REPLACE, PERSONS = Unit(), Unit(neighbors="replace_one"), Unit(key="who", contributions=3)
UNITS = (ADD, REPLACE, PERSONS, Unit(neighbors="replace_one", key="who", contributions=2))
GAUSSIAN, PURE = Budget(epsilon=900, delta=1e-6), Budget(epsilon=900)
# Squared mu, or epsilon: noise of a few rows, and of next to none.
SOME, PLENTY = Fraction(2), Fraction(300)


def linked_rows(rows=ROWS, seed=1):
    """Columns of which some follow from others, most of the time; two rows for each person."""
    rng = np.random.default_rng(seed)

    def mostly(exact, size, often):
        return np.where(rng.random(rows) < often, exact, rng.integers(size, size=rows))

    age = np.minimum(rng.integers(5, size=rows), rng.integers(5, size=rows))
    old = mostly(age >= 2, 2, 0.9)
    rich = mostly(old, 2, 0.7)
    ill = mostly(old ^ rich, 2, 0.7)
    city = mostly(age % 3, 3, 0.5)
    return {"age": age, "city": city, "ill": ill, "old": old, "rich": rich, "who": np.arange(rows) // 2}


CODES = linked_rows()


def table_of(unit=ADD, codes=CODES):
    data = {name: codes[name].tolist() for name in ("age", "who")}
    data |= {name: codes[name].astype(bool).tolist() for name in ("ill", "old", "rich")}
    data["city"] = np.array(["a", "b", "c"])[codes["city"]].tolist()
    return Table(Schema("data", DOMAIN, unit), Frame(data, domain=DOMAIN, unit=unit))


def counts_of(scope, codes=CODES):
    shape = tuple(DOMAIN[name].size for name in scope)
    return np.bincount(np.ravel_multi_index([codes[name] for name in scope], shape), minlength=prod(shape)).reshape(
        shape
    )


def error_of(model, goal=TRIPLES, codes=CODES):
    """The mean L1 distance of the marginals, as a share of the rows."""
    rows = len(codes["age"])
    apart = [np.abs(model.marginal(scope) - counts_of(scope, codes)).sum() / rows for scope in goal.scopes]
    return float(np.mean(apart))


@dataclass
class Desk:
    """A executor, and all that procedures have asked of it."""

    executor: RequestExecutor
    requests: list = field(default_factory=list)

    @property
    def known(self):
        return self.executor.known

    def answer(self, request):
        self.requests.append(request)
        return self.executor.answer(request, analyst="ana")

    def release(self, method, units=SOME, goal=TRIPLES, **named):
        self.requests = []
        return run(method(Brief(self.known, goal, units), **named), self.answer)

    def prices(self):
        """What each request costs, exactly."""
        table, by = self.executor.table, self.known.accounting
        return [loss(request.event(table.domain, table.unit), by=by) for request in self.requests]

    def spent(self):
        return sum(self.prices(), Fraction(0))


@contextmanager
def desk_of(folder, *, unit=ADD, pure=False, table=None):
    with Ledger(folder / f"{uuid4().hex}.sqlite") as ledger:
        executor = RequestExecutor(table_of(unit) if table is None else table, ledger)
        executor.watch.open(PURE if pure else GAUSSIAN, "anyone")
        executor.known = estimator_for("pure" if pure else "gaussian", executor.table.domain, executor.table.unit)
        executor.read_public_total()
        yield Desk(executor)


@contextmanager
def quick_fits(members=2, components=4, steps=10):
    """Fits take a fraction of the time: what is asked and paid is the same."""

    def quick(*args, **named):
        return fit_ensemble(*args, **{**named, "members": members, "components": components, "steps": steps})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(discreet.release.methods.fitting, "fit_ensemble", quick)
        yield


def refused(procedure):
    """The error that a procedure raises before it asks for anything."""
    with pytest.raises(Exception) as raised:
        next(procedure)
    return raised.value

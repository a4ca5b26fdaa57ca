"""Statistics as an analyst may write them: they may look at the whole call, and do something odd at some rows."""

import asyncio
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

# A row with this number in its first column makes a statistic do something odd.
ODD = -7.0


class Stop(BaseException):
    """Raised by nobody else, and no Exception."""


class Odd(float):
    """A number that fails when it is read."""

    def __float__(self):
        raise SystemExit(3)

    def __array__(self, *_: Any, **__: Any):
        raise Stop


def compute_product(x, weights, cut):
    """A product whose last bit depends on the shape of the call, compared with one that it takes in some of them."""
    return x @ weights > cut


CORES: dict[str, Callable[..., Any]] = {
    "a product": compute_product,
    "exact": lambda x, w, c: x[:, 1] > 0,
    "exact, of two columns": lambda x, w, c: np.clip(np.abs(x[:, 1] - x[:, 2]) / 4, 0, 1),
    "a library's last bit": lambda x, w, c: np.exp(-np.abs(x)).sum(axis=1) / x.shape[1],
    "a loop": lambda x, w, c: np.array([float(row @ w > c) for row in x]),
    "by the length": lambda x, w, c: x[:, 1] > len(x) / 100,
    "by the mean": lambda x, w, c: x[:, 1] > x[:, 1].mean(),
    "by the first row": lambda x, w, c: x[:, 1] >= x[0, 1],
    "by the rank": lambda x, w, c: np.argsort(np.argsort(x[:, 1])) / len(x),
    "a warning": lambda x, w, c: np.log(np.abs(x[:, 2]) - x[:, 2]) < c,
    "where it lies": lambda x, w, c: x[:, 1] > (x.ctypes.data % 128) / 128,
    "what it was cut from": lambda x, w, c: x[:, 1] > (0 if x.base is None else np.ravel(x.base)[:9].sum() % 1),
}


def raises(error):
    def deed(self, x):
        raise error

    return deed


def gives(value):
    return lambda self, x: value(x)


def mutate(self, x):
    x[...] = 1
    return np.ones(len(x))


def lock_up(self, x):
    x.setflags(write=False)
    x.shape = (x.size,)
    return np.ones(1)


def warn(self, x):
    warnings.warn(f"rows {x}", stacklevel=1)
    return np.ones(len(x))


def warn_as_error(self, x):
    warnings.simplefilter("error")
    np.seterr(all="raise")
    return np.log(x[:, 0])


def divide(self, x):
    with np.errstate(all="raise"):
        return 1 / (x[:, 0] - ODD)


def ask_again(self, x):
    self.ask(lambda x: x[:, 1] > 0)
    return np.ones(len(x))


def end(self, x):
    self.desk.close()
    return np.ones(len(x))


def recurse(self, x):
    return recurse(self, x)


DEEDS: dict[str, Callable[..., Any]] = {
    **{
        type(error).__name__: raises(error)
        for error in (
            *(ValueError("odd"), KeyError(1), MemoryError(), StopIteration(), FloatingPointError(), Stop()),
            *(SystemExit(1), KeyboardInterrupt(), GeneratorExit(), asyncio.CancelledError()),
        )
    },
    "a mean": gives(lambda x: 0.5),
    "no rows": gives(lambda x: np.zeros(0)),
    "a row more": gives(lambda x: np.ones(len(x) + 1)),
    "nan": gives(lambda x: np.full(len(x), np.nan)),
    "infinite": gives(lambda x: np.full(len(x), np.inf)),
    "too large for a double": gives(lambda x: [10**400] * len(x)),
    "texts": gives(lambda x: ["no"] * len(x)),
    "nothing": gives(lambda x: None),
    "objects": gives(lambda x: [Odd(1)] * len(x)),
    "mutates": mutate,
    "locks": lock_up,
    "warns": warn,
    "warns as an error": warn_as_error,
    "divides by zero": divide,
    "asks again": ask_again,
    "ends the session": end,
    "recursion": recurse,
    "counts calls": gives(lambda x: np.ones(len(x))),
}


# In a call of several rows these fail as a whole, instead of giving other rows another number.
FAILURES = sorted(set(DEEDS) - {"nan", "infinite", "mutates", "warns", "warns as an error", "counts calls"})


@dataclass
class Strange:
    """A statistic of rows x: the numbers of a core, and where a row is odd, a deed."""

    core: str
    deed: str
    weights: np.ndarray
    cut: float
    calls: int = 0
    desk: Any = None
    same: np.ndarray = field(default_factory=lambda: np.zeros(1))

    def meets(self, desk):
        """Knows the session that calls it, as any function of a notebook does."""
        self.desk = desk

    def ask(self, question):
        return self.desk.estimate(question) if hasattr(self.desk, "estimate") else self.desk.submit(question)

    def __call__(self, x):
        self.calls += 1
        if self.deed == "counts calls":
            return np.full(len(x), (self.calls % 3) / 2)
        if (x[:, 0] == ODD).any():
            return DEEDS[self.deed](self, x)
        found = np.asarray(CORES[self.core](x, self.weights, self.cut), dtype=np.float64)
        if len(found) == 1:
            # The same array each time, filled anew.
            self.same[:] = found
            return self.same
        return found


@dataclass(frozen=True)
class Case:
    """Training rows, and two held sets that differ in one row."""

    train: np.ndarray
    held: np.ndarray
    other: np.ndarray


def case_of(rng, rows=(20, 90)):
    """Rows of which many are alike, so that a last bit that moves moves many; one of them is exchanged."""
    size, columns = int(rng.integers(*rows)), int(rng.choice([3, 17, 64, 100]))
    kinds = rng.normal(size=(int(rng.integers(1, 4)), columns))
    held = kinds[rng.integers(0, len(kinds), size)]
    other = held.copy()
    odd = kinds[0].copy()
    odd[0] = rng.choice([ODD, ODD, np.nan, np.inf, 0.0])
    other[rng.integers(size)] = odd
    return Case(rng.normal(size=(size, columns)), held, other)


def statistic_of(rng, case, core, deed):
    """Cut where products of the held rows lie, in calls of several lengths: where the last bit decides."""
    weights = rng.normal(size=case.held.shape[1])
    length = int(rng.choice([1, 2, 3, 5, 9, len(case.held)]))
    cut = float((case.held[:length] @ weights)[rng.integers(length)])
    return Strange(core, deed, weights, cut)


@st.composite
def questions(draw, cores=tuple(CORES), deeds=tuple(DEEDS)):
    """Two neighbouring sets of held rows, and a statistic."""
    rng = np.random.default_rng(draw(st.integers(0, 10**9)))
    case = case_of(rng)
    return case, statistic_of(rng, case, draw(st.sampled_from(cores)), draw(st.sampled_from(deeds)))

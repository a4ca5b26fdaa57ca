"""What is asked of the golden ledgers: by `make.py` when they were written, and by the tests ever after.

Only public names are used here, so that a renamed module changes nothing in these files.
"""

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

import discreet as dp
from golden.tables import NAMES, labels, open_table, points

Plain = Any


class Place:
    """A folder with tables, and a ledger that is open."""

    def __init__(self, tables: Path, ledger: Path) -> None:
        self.tables, self.ledger = tables, dp.Ledger(ledger)
        self._desks: dict[str, dp.Curator] = {}

    def table(self, name: str) -> dp.Table:
        return self.desk(name).table

    def desk(self, name: str, analyst: str = "anyone", **named: Any) -> dp.Curator:
        if name not in self._desks:
            self._desks[name] = dp.Curator(open_table(self.tables, name), ledger=self.ledger, **named)
        return self._desks[name].seen_by(analyst)

    def close(self) -> None:
        for desk in self._desks.values():
            desk.close()
        self.ledger.close()

    def __enter__(self) -> "Place":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def plain(value: Any) -> Plain:
    """A value as JSON has it, with every float to the bit."""
    match value:
        case None | bool() | int() | str():
            return value
        case float() | np.floating():
            return float(value).hex()
        case np.integer() | np.bool_():
            return value.item()
        case Fraction():
            return str(value)
        case bytes():
            return value.hex()
        case np.ndarray():
            return plain(value.tolist())
        case dp.Budget():
            return [str(value.epsilon), str(value.delta), value.gate]
        case dp.Answer():
            names = ("value", "error", "confidence", "columns", "origin", "remaining", "price")
            return {name: plain(getattr(value, name)) for name in names} | {"cost": event(value.cost)}
        case dp.Release():
            return release(value)
        case dp.KMeans():
            names = ("cluster_centers_", "path_", "n_iter_", "noise_")
            return {name: plain(getattr(value, name)) for name in names} | {"event": event(value.event_)}
        case Mapping():
            return {_name(key): plain(each) for key, each in value.items()}
        case Iterable():
            return [plain(each) for each in value]
    return str(value)


def event(given: Any) -> Plain:
    """An event by the names and numbers that are stored for it."""
    fields = getattr(given, "__dataclass_fields__", {})
    said: list[Plain] = [type(given).__name__]
    for name in fields:
        part = getattr(given, name)
        match part:
            case tuple():
                said.append([event(each) for each in part])
            case int() | Fraction():
                said.append(str(part))
            case _:
                said.append(event(part))
    return said


def release(made: dp.Release) -> Plain:
    """All that a release says without drawing anything."""
    scopes = made.goal.scopes
    bill = {name: getattr(made.bill, name) for name in ("budget", "spent", "cap", "table_spent", "earlier", "entries")}
    return {
        "method": made.method,
        "total": plain(made.total),
        "marginals": {",".join(each): plain(made.marginal(each)) for each in scopes},
        "errors": plain(made.errors),
        "bill": plain(bill) | {"made": made.bill.made, "grains": plain(made.bill.grains)},
        "answers": {text: plain(made.answer(text)) for text in _about(made)},
    }


def _about(made: dp.Release) -> list[str]:
    """Questions about one column and about two of a release."""
    known = {
        "age": "age >= 4",
        "sex": "sex = 'Male'",
        "member": "member",
        "city": "city = 'Oslo'",
        "x0": "x0",
        "x1": "x1",
    }
    names = [name for name in made.domain if name in known]
    single = [known[name] for name in names]
    return single + [f"{known[one]} AND {known[other]}" for one, other in combinations(names[:3], 2)]


def _name(key: Any) -> str:
    return ",".join(key) if isinstance(key, tuple) else str(key)


def conjunctions(count: int, salt: int = 0) -> list[str]:
    """Conditions on four of the eight columns of pairs."""
    every = list(combinations(NAMES, 4))
    found = []
    for place in range(count):
        chosen, signs = every[(place * 17 + salt) % len(every)], place * 5 + salt * 3
        found.append(" AND ".join(n if signs >> i & 1 else f"NOT {n}" for i, n in enumerate(chosen)))
    return found


# Conditions that a model which takes columns for independent gets wrong.
SPLIT = [f"{NAMES[i]} AND {NAMES[i + 1]} AND {NAMES[j]} AND {NAMES[j + 1]}" for i, j in combinations(range(0, 8, 2), 2)]
WISH = {"error": 200, "confidence": 0.99}

# --- Under a key: the same answer, for nothing ------------------------------------------------------------------------

Request = Callable[[Place], Any]
GROUPS = "SELECT sex, COUNT(*) FROM people GROUP BY sex"
MEAN = "SELECT AVG(age) FROM people WHERE sex = 'Female'"
SEVERAL = "SELECT city, COUNT(*) AS many, SUM(age) AS years FROM people WHERE member GROUP BY city"
SCOPES = [["age"], ["sex", "city"], ["sex", "member"]]
RARE = "income >= 125 AND level = 'low' AND age = 3"
TRIPLES = [list(each) for each in combinations(("age", "sex", "city", "level", "income", "since", "member"), 3)]


def _counts(place: Place, table: str) -> list[Any]:
    domain = place.table(table).domain
    return [dp.query.count(domain, text) for text in (dp.col("sex") == "Male", dp.col("age") >= 5, dp.everyone)]


def _asks(table: str, error: float, mean: float) -> dict[str, Request]:
    """Questions of every form, of two analysts."""
    return {
        "count": lambda at: at.desk(table, "ana").ask("age >= 4 AND city = 'Oslo'", error=error, key="k-count"),
        "count of ben": lambda at: at.desk(table, "ben").ask("since >= '2010-06-15'", error=error, key="k-count"),
        "groups": lambda at: at.desk(table, "ana").ask(GROUPS, error=error, joint=True, key="k-groups"),
        "mean": lambda at: at.desk(table, "ana").ask(MEAN, error=mean, key="k-mean"),
        "several": lambda at: at.desk(table, "ben").ask(SEVERAL, epsilon=0.5, nonnegative=True, key="k-several"),
        "predicate": lambda at: at.desk(table).ask(
            (dp.col("income") >= 62.5) & (dp.col("level") >= "middle"), epsilon=0.25, confidence=0.9, key="k-predicate"
        ),
        "many": lambda at: at.desk(table, "ana").ask_many(
            ["age >= 3", "sex = 'Male'", "member AND level = 'high'", MEAN], error=2 * error, key="k-many"
        ),
    }


def _release(table: str, method: str, budget: dp.Budget, scopes: Any = SCOPES, name: str = "") -> Request:
    return lambda at: at.desk(table, "ben").release(scopes, budget, method=method, key=f"k-{name or method}")


def _kmeans(at: Place, table: str, **named: Any) -> dp.KMeans:
    return dp.KMeans(3, columns=["age", "income"], **named).fit(at.desk(table, "ana"))


def _clumps(at: Place, **named: Any) -> dp.KMeans:
    model = dp.KMeans(3, bounds=(0, 1), ledger=at.ledger, table="points", analyst="ana", **named)
    return model.fit(points())


def _model(model: Any) -> Plain:
    return plain(model.marginal(["age", "sex"]))


SMALL, SMALL_PURE = dp.Budget(2, 1e-9), dp.Budget(2)
PURE: dict[str, Request] = {
    **_asks("people/people", 12, 1.5),
    "release direct": _release("people/people", "direct", dp.Budget(4), [["age", "member"], ["level", "since"]]),
    "release mwem": _release("people/people", "mwem", SMALL_PURE),
    "release small_db": _release("people/people", "small_db", SMALL_PURE, [["sex"], ["sex", "member"]]),
    "k-means": lambda at: _kmeans(at, "people/people", epsilon=2, key="k-means"),
    "k-means of the lecture": lambda at: _kmeans(
        at, "people/people", epsilon=2, algorithm="lecture", rounds=3, average=2, key="k-lecture"
    ),
    "k-means of an array": lambda at: _clumps(at, epsilon=2, key="k-array"),
    "mwem": lambda at: _model(
        dp.mwem(
            at.table("fixed/fixed"), _counts(at, "fixed/fixed"), epsilon=2, rounds=3, ledger=at.ledger, key="k-mwem"
        )
    ),
    "small_db": lambda at: _model(
        dp.small_db(
            at.table("fixed/fixed"), _counts(at, "fixed/fixed"), epsilon=2, rows=4, ledger=at.ledger, key="k-small"
        )
    ),
}
GAUSSIAN: dict[str, Request] = {
    **_asks("people/people", 12, 1.0),
    "release direct": _release("people/people", "direct", dp.Budget(4, 1e-9), [["age", "city"], ["level", "member"]]),
    "release mixture": _release("people/people", "mixture", SMALL, [*SCOPES, ["age", "city"]]),
    "release tree": _release("people/people", "mixture", SMALL, TRIPLES, "tree"),
    "release blend": _release("apart", "mixture", dp.Budget(0.02, 1e-9), [*map(list, combinations(NAMES, 3))], "blend"),
    "release lattice": _release("people/people", "lattice", SMALL),
    "release mwem": _release("people/people", "mwem", SMALL),
    "k-means": lambda at: _kmeans(at, "people/people", epsilon=2, key="k-means"),
    "k-means in rounds": lambda at: _kmeans(at, "people/people", epsilon=2, rounds=2, key="k-rounds"),
    "k-means in a ball": lambda at: _clumps(at, epsilon=2, norm="l2", key="k-ball"),
    "mwem": lambda at: _model(
        dp.mwem(
            at.table("fixed/fixed"),
            _counts(at, "fixed/fixed"),
            epsilon=2,
            delta=1e-9,
            rounds=3,
            step="textbook",
            ledger=at.ledger,
            analyst="ana",
            key="k-mwem",
        )
    ),
}
PAIRS = [list(each) for each in combinations(NAMES[:5], 2)]
RENYI: dict[str, Request] = {
    "certified": lambda at: at.desk("pairs", "ana").ask_many(conjunctions(40, 3), error=400, key="k-certified"),
    "hit": lambda at: at.desk("apart", "ben").ask(SPLIT[0], **WISH, key="k-hit"),
    "release adaptive": _release("pairs", "adaptive", dp.Budget(1, 1e-9), PAIRS),
    "release mixture": _release("pairs", "mixture", dp.Budget(1, 1e-9), PAIRS),
    "count": lambda at: at.desk("people/people", "ana").ask("age >= 4", error=15, key="k-count"),
}
SHARED: dict[str, Request] = {
    "visits": lambda at: at.desk("shared/visits", "ana").ask("age >= 3 AND sex = 'Male'", error=40, key="k-visits"),
    "second version": lambda at: at.desk("second/people", "ana").ask("age >= 4", error=20, key="k-second"),
    "after a failure": lambda at: at.desk("shared/visits", "ben").ask("age >= 6", error=50, key="k-repeated"),
}
KEYED = {"pure": PURE, "gaussian": GAUSSIAN, "renyi": RENYI, "shared": SHARED}

# --- Paid for, and not answered: under its key it goes on for nothing -------------------------------------------------

FAILED: dict[str, dict[str, Request]] = {
    "shared": {
        "ask": lambda at: at.desk("shared/visits", "ben").ask("sex = 'Male'", error=50, key="k-failed"),
        "k-means": lambda at: dp.KMeans(2, epsilon=1, columns=["age"], key="k-failed-means").fit(
            at.desk("shared/visits", "ben")
        ),
    },
}
LOST: dict[str, dict[str, Request]] = {
    "shared": {"ask": lambda at: at.desk("shared/visits", "ana").ask("sex = 'Female'", error=50, key="k-lost")},
}
HALF: dict[str, dict[str, Request]] = {
    "gaussian": {
        "release": lambda at: at.desk("people/people", "ben").release(
            [["level"], ["age", "member"]], dp.Budget(1, 1e-9), method="mwem", key="k-half"
        )
    },
}

# --- Refused ----------------------------------------------------------------------------------------------------------

REFUSED: dict[str, dict[str, Request]] = {
    "pure": {
        "another question under a key": lambda at: at.desk("people/people", "ana").ask(
            "age >= 5", error=9, key="k-count"
        ),
        "a cap of one analyst": lambda at: at.desk("people/people", "cleo").ask(RARE, error=4),
        "a session that was opened": lambda at: dp.PMW(
            at.table("pairs"), ledger=at.ledger, epsilon=1, updates=2, name="golden"
        ),
        "held rows that were used": lambda at: dp.Holdout(labels(), labels(), epsilon=1, ledger=at.ledger),
    },
    "gaussian": {
        "a cap of one analyst": lambda at: at.desk("people/people", "cleo").ask(RARE, error=4),
        "a session that was opened": lambda at: dp.PMW(
            at.table("pairs"), ledger=at.ledger, epsilon=1, updates=2, name="golden"
        ),
    },
    "renyi": {},
    "shared": {
        "an older version": lambda at: at.desk("shared/people").ask("age >= 5", error=30),
        "a key of an older version": lambda at: at.desk("second/people", "ana").ask(
            "age >= 4", error=20, key="k-first"
        ),
    },
}

# --- For free: all that follows from what is recorded -----------------------------------------------------------------

_PEOPLE = [
    "age >= 4 AND city = 'Oslo'",
    "age >= 4",
    "age < 4 AND city = 'Oslo'",
    "sex = 'Male'",
    "member AND level = 'high'",
    "since >= '2010-06-15'",
    GROUPS,
    "SELECT age, COUNT(*) FROM people GROUP BY age",
    "SELECT city, sex, COUNT(*) FROM people GROUP BY city, sex",
    MEAN,
]
FREE: dict[str, dict[str, list[str]]] = {
    "pure": {"people/people": _PEOPLE},
    "gaussian": {"people/people": _PEOPLE},
    "renyi": {
        "pairs": [*NAMES, *conjunctions(12, 5), *SPLIT],
        "apart": [*NAMES, *conjunctions(12, 5), *SPLIT],
        "mixed": [*NAMES, *conjunctions(12, 5), *SPLIT],
        "people/people": ["age >= 4", "member"],
    },
    "shared": {
        "second/people": ["age >= 4"],
        "shared/visits": ["age >= 3", "sex = 'Male'", "age >= 3 AND sex = 'Male'"],
    },
}

# --- What goes on, for a price ----------------------------------------------------------------------------------------

# What is told when a session is opened again, paid anew, on what its ledger remembers.
REOPENED: dict[str, dict[str, Request]] = {
    "pure": {
        "session": lambda at: _session(at, "pairs", epsilon=2, updates=3),
        "session of the lecture": lambda at: _session(at, "public", epsilon=10, name="bun", setting="bun"),
        "holdout": lambda at: _opened(dp.Holdout(labels(), labels(), epsilon=1, ledger=at.ledger, reopen=True)),
        "leaderboard": lambda at: _opened(dp.Leaderboard(labels(), epsilon=1, ledger=at.ledger, reopen=True)),
    },
    "gaussian": {
        "session": lambda at: _session(at, "pairs", epsilon=2, updates=3),
        "holdout": lambda at: _opened(dp.Holdout(labels(), labels(), epsilon=1, ledger=at.ledger, reopen=True)),
    },
    "renyi": {
        "leaderboard": lambda at: _opened(dp.Leaderboard(labels(), epsilon=1, ledger=at.ledger, reopen=True)),
    },
    "shared": {},
}
MORE: dict[str, Request] = {
    "pure": lambda at: at.desk("people/people", "dora").ask("income >= 125", error=11, key="k-more"),
    "gaussian": lambda at: at.desk("people/people", "dora").ask("income >= 125 AND member", error=11, key="k-more"),
    "renyi": lambda at: at.desk("people/people", "dora").ask("sex = 'Male'", error=15, key="k-more"),
    "shared": lambda at: at.desk("second/people", "dora").ask("member", error=30, key="k-more"),
}


def _session(at: Place, table: str, name: str = "golden", **how: Any) -> Plain:
    """What the model of a session says that is opened again: it follows from what was recorded."""
    with dp.PMW(at.table(table), ledger=at.ledger, name=name, queries=20, reopen=True, **how) as session:
        told = [session._fitted.answer(dp.query.count(session.table.domain, each)) for each in _conditions()]
        return {"rows": plain(session._fitted.rows), "answers": told, "error": session.error}


def _conditions() -> list[Any]:
    x0, x1, x2 = (dp.col(name) == True for name in NAMES[:3])  # noqa: E712
    return [x0, x1, x0 & x1, x1 & ~x2]


def _opened(session: Any) -> Plain:
    """How wide the intervals are: they carry what earlier sessions have told."""
    with session:
        return {"worst": plain(session.worst_error), "bound": session.bound, "cost": event(session.cost)}

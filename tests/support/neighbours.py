"""Record and replay: whole sessions of a curator on two neighbouring tables, with what was released frozen.

On the first table everything is recorded: what is paid, what is asked of the rows, the true values, the noise, what is
kept, the answers. On the second the curator is told what the first released, so it must do exactly the same; its true
values are compared with the first's, and forgotten. Nothing here is read from a plan: losses are computed from the true
values and the noise that was drawn.
"""

import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any
from uuid import uuid4

import numpy as np
import pytest

from discreet import noise
from discreet.accounting.filter import TICK
from discreet.curator import Curator
from discreet.ledger import Budget, Ledger
from discreet.query import Linear, Marginal, col, count
from discreet.query.product import Factor, Product
from discreet.schema import Boolean, Categories, Domain, Integers, Schema, Unit
from discreet.source.frame import Frame
from discreet.source.source import unseal
from discreet.source.table import Table

KEEPS = Domain(
    {"age": Integers(0, 4, missing="missing"), "city": Categories(["a", "b", "c"], missing="missing"), "sex": Boolean()}
)
DROPS = Domain(
    {
        "age": Integers(0, 5, outside="drop", missing="drop"),
        "city": Categories(["a", "b", "c"], outside="drop", missing="drop"),
        "one": Categories(["x"], outside="drop", missing="drop"),
        "sex": Boolean(),
    }
)
UNITS = [
    Unit(neighbors=neighbors, **who)
    for neighbors in ("add_remove", "replace_one")
    for who in ({}, {"key": "who"}, {"key": "who", "contributions": 3})
]
AGES, CITIES, SEXES = [0, 1, 2, 3, 4, 5, 7, None], ["a", "b", "c", "z", None], [True, False]


# --- Two tables ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pair:
    """Two neighbouring tables, and what both declare."""

    domain: Domain
    unit: Unit
    one: list[dict[str, Any]]
    other: list[dict[str, Any]]

    def tables(self, source=Frame):
        """Both, under protection; `source` makes a source of rows."""
        schema = Schema("data", self.domain, self.unit)
        return [Table(schema, source(rows, domain=self.domain, unit=self.unit)) for rows in (self.one, self.other)]


def random_pair(rng, *, domain=None, unit=None, persons=30):
    """Neighbours: one person is replaced, added or removed, with up to four rows where persons have keys."""
    unit = UNITS[rng.integers(len(UNITS))] if unit is None else unit
    domain = (KEEPS, DROPS)[rng.integers(2)] if domain is None else domain

    def person(who, most=4):
        rows = 1 if unit.key is None else rng.integers(most + 1)
        return [
            {
                "who": who,
                "age": AGES[rng.integers(len(AGES))],
                "city": CITIES[rng.integers(len(CITIES))],
                "sex": SEXES[rng.integers(2)],
                "one": "x" if rng.integers(9) else None,
            }
            for _ in range(rows)
        ]

    people = [person(who) for who in range(int(rng.integers(1, persons)))]
    place = int(rng.integers(len(people)))
    if unit.neighbors == "replace_one":
        changed = [*people[:place], person(place), *people[place + 1 :]]
    elif rng.integers(2):
        changed = [*people[:place], *people[place + 1 :]]
    else:
        changed = [*people, person(len(people))]
    # In whatever order rows come.
    one, other = ([row for rows in everybody for row in rows] for everybody in (people, changed))
    return Pair(domain, unit, one, [other[at] for at in rng.permutation(len(other))])


# --- Questions -------------------------------------------------------------------------------------------------------


def random_questions(rng, domain, how_many):
    """A session: counts, ranges, ORs, GROUP BYs, sums, means, odd weights, batches, mistakes; some of them again."""
    asked = []
    while len(asked) < how_many:
        again = asked and rng.random() < 0.25
        asked.append(asked[rng.integers(len(asked))] if again else random_question(rng, domain))
    return asked


def random_question(rng, domain):
    """One of them: how it is asked (ask, ask_many or plan), what, and how good it must be."""
    where = f" WHERE {_condition(rng, domain)}" if rng.random() < 0.7 else ""
    groups = [str(name) for name in rng.permutation(["age", "city", "sex"])[: rng.integers(1, 3)]]
    listed = ", ".join(groups)
    wish = {"error": float(rng.choice([3, 6, 12, 25, 60, 200])), "confidence": float(rng.choice([0.9, 0.95, 0.999]))}
    if rng.random() < 0.1:
        wish = {"epsilon": float(rng.choice([0.01, 0.1, 0.4]))}
    elif rng.random() < 0.1:
        wish = {}
    match int(rng.integers(14)):
        case 0 | 1 | 2:
            question = f"SELECT COUNT(*) FROM data{where}"
        case 3:
            question = _condition(rng, domain)
        case 4:
            question = f"SELECT {listed}, COUNT(*) AS n FROM data{where} GROUP BY {listed}"
            wish |= {"joint": bool(rng.integers(2)), "nonnegative": bool(rng.integers(2))}
        case 5:
            question = f"SELECT {listed}, COUNT(*) AS n FROM data GROUP BY {listed} ORDER BY n DESC LIMIT 2"
        case 6:
            question = f"SELECT SUM(age), COUNT(*) FROM data{where}"
        case 7:
            question = f"SELECT AVG(age) FROM data{where}"
            wish = {"error": float(rng.choice([0.5, 1, 2])), "confidence": 0.9}
        case 8:
            question = f"SELECT sex, AVG(age), SUM(age) FROM data{where} GROUP BY sex"
            wish = {"error": float(rng.choice([2, 4])), "confidence": 0.9}
        case 9:
            question = _odd_weight(rng, domain)
        case 10:
            question = Marginal(tuple(groups), _odd_weight(rng, domain) if rng.integers(2) else None)
        case 11:
            many = [f"SELECT COUNT(*) FROM data WHERE {_condition(rng, domain)}" for _ in range(3)]
            return "ask_many", [*many, Marginal(tuple(groups))], {"error": float(rng.choice([12, 40]))}
        case 12:
            return "plan", f"SELECT {listed}, COUNT(*) FROM data{where} GROUP BY {listed}", wish
        case _:
            mistakes = ["aeg >= 2", "SELECT COUNT(*) FROM people", "SELECT MAX(age) FROM data", col("age") == "old"]
            question = mistakes[rng.integers(len(mistakes))]
    return "ask", question, wish


def _condition(rng, domain):
    atoms = []
    for _ in range(rng.integers(1, 4)):
        low, high = sorted(int(age) for age in rng.integers(0, 5, size=2))
        choices = [
            f"age >= {low}",
            f"age BETWEEN {low} AND {high}",
            f"age = {high}",
            "city = 'a'",
            "city IN ('b', 'c')",
        ]
        choices += ["sex", "NOT sex", f"age < {high}" if domain.drops else "city IS NULL"]
        atoms.append(f"({rng.choice(choices)})")
    return f" {rng.choice(['AND', 'OR'])} ".join(atoms)


def _odd_weight(rng, domain):
    """A weight that is no count, on one or two columns together."""
    names = tuple(sorted(str(name) for name in rng.permutation(["age", "city", "sex"])[: rng.integers(1, 3)]))
    shape = tuple(domain[name].size for name in names)
    table = Linear([Product((Factor(names, rng.integers(-2, 3, size=shape)),))])
    return table + int(rng.integers(-2, 3)) * count(domain, col("sex") == True)  # noqa: E712


# --- Listening -------------------------------------------------------------------------------------------------------


@dataclass
class Release:
    """The true values of one release, what was declared of them, and the noise that was drawn for them."""

    values: list[int]
    sensitivity: Any
    stretches: tuple[tuple[Fraction, int], ...]
    draws: list[tuple[str, Fraction, list[int]]] = field(default_factory=list)


@dataclass
class Session:
    """All that happened: every call that a neighbour must repeat, and apart from them the releases."""

    calls: list[Any] = field(default_factory=list)
    releases: list[Release] = field(default_factory=list)
    spent: Fraction = Fraction(0)
    kind: str = ""


class HeardLedger(Ledger):
    """A ledger that tells a session what is paid and what is kept."""

    session: Session

    def spend(self, event, why, **named):
        self.session.calls.append(("spend", event, why, sorted(named.items())))
        return super().spend(event, why, **named)

    def record(self, receipt, released, **named):
        self.session.calls.append(("record", receipt.sequence, released))
        return super().record(receipt, released, **named)


@dataclass(frozen=True, eq=False, repr=False)
class HeardTable(Table):
    """A table that tells a session what is asked of its rows."""

    session: Session = field(default_factory=Session)

    def evaluate(self, question):
        self.session.calls.append(("evaluate", question))
        return super().evaluate(question)


@contextmanager
def listening(session, rng, first=None):
    """Hear what is opened and drawn; with a `first` session, tell its values and its noise instead of one's own."""
    with pytest.MonkeyPatch.context() as patch:

        def opened(exact, calibrated, *, stretches=()):
            values = unseal(exact, calibrated, stretches=stretches)
            session.calls.append(("open", exact.sensitivity, exact.stretches, exact.size))
            session.releases.append(Release(values.tolist(), exact.sensitivity, exact.stretches))
            if first is None:
                return values
            return np.array(_same_place(first, session).values, dtype=np.int64)

        def drawn(name):
            def draw(scale, size=None):
                session.calls.append(("draw", name, scale, size))
                release = session.releases[-1]
                if first is None:
                    noises = np.rint(rng.normal(scale=float(scale), size=size or 1)).astype(np.int64).tolist()
                else:
                    draws = _same_place(first, session).draws
                    noises = draws[len(release.draws)][2] if len(release.draws) < len(draws) else [0] * (size or 1)
                release.draws.append((name, Fraction(scale), noises))
                return np.array(noises, dtype=np.int64) if size is not None else noises[0]

            return draw

        for name, module in list(sys.modules.items()):
            if name.startswith("discreet.mechanism") and hasattr(module, "unseal"):
                patch.setattr(module, "unseal", opened)
        for name in ("rounded_gaussian", "discrete_gaussian", "discrete_laplace"):
            patch.setattr(noise, name, drawn(name))
        for name in set(noise.__all__) - {"rounded_gaussian", "discrete_gaussian", "discrete_laplace"}:
            patch.setattr(noise, name, _unheard)
        yield


def _same_place(first, session):
    place = len(session.releases) - 1
    # A session that goes astray is told something, and its calls will not be the same.
    return first.releases[place] if place < len(first.releases) else session.releases[place]


def _unheard(*_, **__):
    raise AssertionError("noise that nobody listens to")


def heard_session(table, questions, *, folder, budget, seed=0, first=None):
    """A whole session of a new curator: everything it did, and what came of each question."""
    session = Session()
    rng = np.random.default_rng(seed)
    with listening(session, rng, first), HeardLedger(folder / f"{uuid4().hex}.sqlite") as ledger:
        ledger.session = session
        heard = HeardTable(table.schema, table.source, session)
        desk = Curator(heard, budget=budget, ledger=ledger)
        for how, question, wish in questions:
            session.calls.append(("outcome", outcome(desk, how, question, wish)))
        (account,) = ledger.balances(table="data")
        session.spent, session.kind = account.spent_ticks[0] * TICK, account.gate.kind
    return session


def outcome(desk, how, question, wish):
    """What an analyst gets: an answer to the last bit, or an error to the last letter."""
    try:
        found = getattr(desk, how)(question, **wish)
    except Exception as error:
        # Of whatever type: a neighbour must see the same one. Those that are no sentence are looked for elsewhere.
        return (type(error).__name__, str(error))
    return tuple(map(told, found if isinstance(found, list) else [found]))


def told(answer):
    """All of an answer or a plan, comparable: doubles to the last bit, nan equal to nan."""
    names = [name for name in type(answer).__dataclass_fields__ if name != "steps"]
    return tuple((name, repr(_plain(getattr(answer, name)))) for name in names)


def _plain(value):
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    return value


# --- What is wrong ---------------------------------------------------------------------------------------------------


def broken_promises(pair, questions, *, folder, budget, source=Frame, seed=0):
    """What is wrong with a session on two neighbours, as sentences; and the session on the first."""
    one, other = pair.tables(source)
    first = heard_session(one, questions, folder=folder, budget=budget, seed=seed)
    second = heard_session(other, questions, folder=folder, budget=budget, first=first)
    # Once they go apart, there is nothing to compare their values with.
    broken = [*differences(first, second)] or [*disorder(first), *overdrawn(first, second)]
    return list(dict.fromkeys(broken)), first


def differences(first, second):
    """Whether a neighbour would see another course of events."""
    for one, other in zip(first.calls, second.calls, strict=False):
        if one != other:
            yield f"another {one[0] if one[0] == other[0] else 'step'}"
            return
    if len(first.calls) != len(second.calls):
        yield "more steps"
    if (first.spent, first.kind) != (second.spent, second.kind):
        yield "another price"


def disorder(session):
    """Whether rows are read before they are paid for, or answers kept before they are drawn."""
    paid = False
    for call in session.calls:
        match call[0]:
            case "spend":
                paid = True
            case "evaluate" | "open" | "draw" if not paid:
                yield f"{call[0]} before it is paid"
            case "record":
                paid = False


def overdrawn(first, second):
    """Whether the true values of two neighbours differ by more than was declared, or than was paid."""
    whole = Fraction(0)
    for one, other in zip(first.releases, second.releases, strict=False):
        lost = loss(one, other, first.kind)
        if lost > declared_loss(one, first.kind):
            yield "more than declared"
        whole += lost
    if whole > first.spent:
        yield "more than paid"


def session_loss(first, second):
    """What the two sessions tell apart, in all."""
    pairs = zip(first.releases, second.releases, strict=True)
    return sum((loss(one, other, first.kind) for one, other in pairs), Fraction(0))


def loss(one, other, kind):
    """Σ ((v − v′)/σ)², or Σ |v − v′|/scale where the currency is pure; infinite for what gets no noise."""
    moves = [a - b for a, b in zip(one.values, other.values, strict=True)]
    total, start = Fraction(0), 0
    for name, scale, noises in one.draws:
        here = moves[start : start + len(noises)]
        start += len(noises)
        if kind == "pure":
            assert name == "discrete_laplace"
            total += sum(abs(move) for move in here) / scale
        else:
            assert name == "rounded_gaussian"
            total += sum(move * move for move in here) / scale**2
    return total + (10**9 if any(moves[start:]) else 0)


def declared_loss(release, kind):
    """What the seal says of these values, over the noise they got."""
    if release.stretches:
        assert release.stretches == tuple((scale, len(noises)) for _, scale, noises in release.draws)
        return release.sensitivity.l1 if kind == "pure" else release.sensitivity.l2_squared
    scales = {scale for _, scale, _ in release.draws}
    assert len(scales) <= 1
    if not scales:
        return Fraction(0)
    (scale,) = scales
    return release.sensitivity.l1 / scale if kind == "pure" else release.sensitivity.l2_squared / scale**2


BUDGETS = [Budget(epsilon=epsilon, delta=1e-6) for epsilon in (2, 6, 20)]
PLENTY, PURE = BUDGETS[2], Budget(epsilon=30)

"""Error bars hold, and are not wider than they must be.

A run is a fresh ledger on the same table, asked the same script of questions. Answers of one run share noise, so of
each kind of answer one is counted in a run (one cell of a GROUP BY, chosen at random; or all of them, where they must
hold together): runs are independent. The pool is a list of orthogonal contrasts, whose errors are independent within a
run too (lattice.md §2), so that a deviation of a few percent shows.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, chi2

import discreet as dp
from discreet.curator import Curator
from discreet.estimate.estimator import normal_quantile
from discreet.query import Linear, Marginal, Ratio, col, count
from discreet.query.product import Factor, Product
from discreet.query.residual import axis_of
from discreet.schema import Boolean, Categories, Domain, Integers, Schema, Unit
from discreet.source.frame import Frame
from discreet.source.table import Table

FALSE_ALARM = 1e-9
CONFIDENCES = (0.5, 0.8, 0.95, 0.99)
QUICK, LONG = 25, 200


@dataclass(frozen=True)
class Kind:
    """A question, how it is asked, and the true value of each row of its answer."""

    name: str
    question: Any
    truth: Callable[[dict[str, list[Any]]], list[float | None]]
    options: dict[str, Any] = field(default_factory=dict)
    origin: str | None = None
    together: bool = False


@dataclass
class Seen:
    """What came of a kind: for each confidence whether the bar held, and errors in units of what the bar says."""

    held: dict[float, list[bool]] = field(default_factory=lambda: defaultdict(list))
    standard: list[float] = field(default_factory=list)


# What is promised.


def too_often_outside(held: list[bool], confidence: float) -> str:
    """Why so many answers outside their bars are incredible, or an empty string (exact binomial tail)."""
    outside = len(held) - sum(held)
    tail = float(binom.sf(outside - 1, len(held), 1 - confidence))
    return "" if tail > FALSE_ALARM else f"{outside} of {len(held)} outside at {confidence}: probability {tail:.2g}"


def wrong_width(standard: list[float]) -> str:
    """Why errors of this size are incredible for bars that are exactly right, or an empty string (chi-square)."""
    squares, n = float(np.sum(np.square(standard))), len(standard)
    low, high = chi2.ppf(FALSE_ALARM / 2, n), chi2.isf(FALSE_ALARM / 2, n)
    if low <= squares <= high:
        return ""
    return f"the errors have {np.sqrt(squares / n):.3f} of the standard deviation that the bars say, over {n} answers"


def spread(standard: list[float]) -> float:
    """The standard deviation of the errors, in units of what the bars say."""
    return float(np.sqrt(np.mean(np.square(standard))))


# Asking.


def run(desk: Curator, kinds: list[Kind], seen: dict[str, Seen], rng: np.random.Generator) -> None:
    """Ask everything once, pay where need be, and look at each answer again at other confidences, for free."""
    for kind in kinds:
        first = desk.ask(kind.question, **kind.options)
        assert kind.origin in (None, first.origin), f"{kind.name} is {first.origin}"
        free = {name: value for name, value in kind.options.items() if name in ("joint", "nonnegative")}
        for confidence in CONFIDENCES:
            again = desk.ask(kind.question, confidence=confidence, **free)
            assert again.origin == "known"
            _count(kind, again.columns, confidence, seen[kind.name], rng)


def _count(kind: Kind, columns: Any, confidence: float, seen: Seen, rng: np.random.Generator) -> None:
    name = next(name for name in columns if f"{name}_error" in columns)
    rows = list(zip(columns[name], columns[f"{name}_error"], kind.truth(columns), strict=True))
    rows = [(value, error, truth) for value, error, truth in rows if truth is not None]
    if not kind.together and rows:
        rows = [rows[rng.integers(len(rows))]]
    # What has no value has no bar that could be wrong.
    held = [value is None or abs(value - truth) <= error * (1 + 1e-9) for value, error, truth in rows]
    seen.held[confidence].append(all(held))
    if confidence == 0.95 and not kind.together and rows and rows[0][0] is not None:
        value, error, truth = rows[0]
        seen.standard.append((value - truth) / (error / normal_quantile(0.95)))


def orthogonal_contrasts(domain: Domain, names: list[str]) -> list[Linear]:
    """Questions whose errors are independent: contrasts of Helmert for categories, wavelets for ordered columns."""
    found = []
    for name in names:
        axis = axis_of(domain[name])
        n = axis.cells
        if axis.levels:
            rows = [row for part in range(1, axis.parts) for row in axis.measure(part) if not row.sum() and row.any()]
            # The wavelets whose blocks hold no padding, the widest first.
            weights = rows[:20]
        else:
            weights = [np.r_[np.ones(k), -k, np.zeros(n - k - 1)].astype(int) for k in range(1, n)]
        found += [Linear([Product((Factor((name,), each),))]) for each in weights]
    return found


# Two tables.


class Counted:
    """The true answers."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame

    def rows(self, where: str | None) -> pd.DataFrame:
        return self.frame if where is None else self.frame.query(where)

    def number(self, where: str | None = None, of: str | None = None, how: str = "size"):
        """One number: how many rows, or the sum or mean of a column."""
        rows = self.rows(where)
        truth = float(len(rows)) if how == "size" else float(getattr(rows[of], how)())
        return lambda columns: [truth]

    def groups(self, by: list[str], where: str | None = None, of: str | None = None, how: str = "size"):
        """A number for each row that is shown, by its labels; a mean of no rows is None, a sum of none zero."""
        grouped = self.rows(where).groupby(by)
        table = (grouped.size() if how == "size" else getattr(grouped[of], how)()).to_dict()
        nothing = None if how == "mean" else 0.0
        unknown = "missing"

        def truth(columns):
            labels = zip(*(columns[name] for name in by), strict=True)
            return [
                table.get(key[0] if len(by) == 1 else key, nothing)
                for key in (tuple(unknown if each is None else each for each in label) for label in labels)
            ]

        return truth

    def linear(self, query: Linear, domain: Domain) -> float:
        """The truth of a contrast of one column."""
        (name,) = query.scope
        values = self.frame[name].value_counts()
        counts = np.zeros(domain[name].size)
        for value, times in values.items():
            counts[domain[name].code(None if value == "missing" else value)] += times
        return float(query.table(domain) @ counts)


@pytest.fixture(scope="module")
def adult():
    frame = pd.read_parquet(str(files("discreet.data") / "adult.parquet"))
    for name in frame.columns:
        if frame[name].dtype.kind not in "iu":
            frame[name] = frame[name].astype(object).where(frame[name].notna(), "missing")
    return dp.load_adult(), Counted(frame)


def adult_kinds(table: Table, true: Counted) -> list[Kind]:
    women = "sex == 'Female'"
    rich = count(table.domain, col("income") == ">50K")
    rich_women = count(table.domain, (col("income") == ">50K") & (col("sex") == "Female"))
    few = (
        "age >= 60 AND sex = 'Female' AND race = 'Black' AND marital_status = 'Widowed' AND relationship = 'Unmarried'"
    )
    few_true = few.replace(" = ", " == ").replace("AND", "and")
    fewer = few.replace("60", "40")
    return [
        Kind(
            "topped up",
            "age >= 65 AND sex = 'Female'",
            true.number("age >= 65 and " + women),
            {"error": 100},
            "measured",
        ),
        Kind("known", "age >= 65 AND sex = 'Male'", true.number("age >= 65 and sex == 'Male'"), {}, "known"),
        Kind("range", "age BETWEEN 30 AND 44", true.number("30 <= age <= 44"), {"error": 90}, "measured"),
        Kind(
            "group by, each",
            "SELECT education, COUNT(*) AS n FROM adult GROUP BY education",
            true.groups(["education"]),
            {"error": 150},
        ),
        Kind(
            "group by, joint",
            "SELECT race, sex, COUNT(*) AS n FROM adult GROUP BY race, sex",
            true.groups(["race", "sex"]),
            {"error": 200, "joint": True},
            together=True,
        ),
        Kind(
            "limit",
            "SELECT occupation, COUNT(*) AS n FROM adult GROUP BY occupation ORDER BY n DESC LIMIT 4",
            true.groups(["occupation"]),
            {"error": 400},
            together=True,
        ),
        Kind(
            "having",
            "SELECT workclass, COUNT(*) AS n FROM adult GROUP BY workclass HAVING n > 500",
            true.groups(["workclass"]),
            {"error": 400},
            together=True,
        ),
        Kind(
            "sum",
            "SELECT SUM(hours_per_week) AS s FROM adult WHERE income = '>50K'",
            true.number("income == '>50K'", "hours_per_week", "sum"),
            {"error": 20_000},
        ),
        Kind(
            "sum, grouped",
            "SELECT sex, SUM(hours_per_week) AS s FROM adult GROUP BY sex",
            true.groups(["sex"], None, "hours_per_week", "sum"),
            {"error": 15_000},
        ),
        Kind(
            "average",
            "SELECT AVG(hours_per_week) AS m FROM adult WHERE sex = 'Male'",
            true.number("sex == 'Male'", "hours_per_week", "mean"),
            {"error": 0.5},
        ),
        Kind(
            "average, grouped",
            "SELECT marital_status, AVG(age) AS m FROM adult GROUP BY marital_status",
            true.groups(["marital_status"], None, "age", "mean"),
            {"error": 2},
        ),
        Kind("or", "sex = 'Female' OR age < 30", true.number(women + " or age < 30"), {"error": 150}),
        Kind("direct", few, true.number(few_true), {"error": 2}, "direct"),
        Kind("beside a direct", fewer, true.number(few_true.replace("60", "40")), {"error": 300}),
        Kind(
            "nonnegative",
            "SELECT race, COUNT(*) AS n FROM adult WHERE age >= 85 GROUP BY race",
            true.groups(["race"], "age >= 85"),
            {"error": 60, "nonnegative": True},
        ),
        Kind("for a price", "relationship = 'Wife'", true.number("relationship == 'Wife'"), {"epsilon": 0.05}),
        Kind(
            "ratio",
            Ratio(rich_women, rich),
            lambda columns: [len(true.rows("income == '>50K' and " + women)) / len(true.rows("income == '>50K'"))],
            {"error": 0.05},
        ),
        Kind("query object", Marginal(("income",)), true.groups(["income"]), {"error": 200}),
    ]


@pytest.fixture(scope="module")
def people():
    """A table in memory, protected against the exchange of a person, so that its size is public."""
    rng = np.random.default_rng(5)
    n = 4000
    city = rng.choice(["a", "b", "c", "d", "e"], p=[0.5, 0.3, 0.15, 0.04, 0.01], size=n)
    age = np.minimum(rng.integers(18, 60, size=n) + (city == "a") * 10, 70)
    smoker = rng.random(n) < np.where(city == "b", 0.6, 0.2)
    frame = pd.DataFrame({"city": city, "age": age, "smoker": smoker, "pay": rng.integers(0, 101, size=n)})
    # No row is ever dropped: otherwise a person could be exchanged for one who does not count.
    columns = {"city": Categories(list("abcde")), "age": Integers(18, 70), "smoker": Boolean(), "pay": Integers(0, 100)}
    domain = Domain(columns)
    unit = Unit(neighbors="replace_one")
    return Table(Schema("people", domain, unit), Frame(frame, domain=domain, unit=unit)), Counted(frame)


def people_kinds(table: Table, true: Counted) -> list[Kind]:
    everyone = Kind("everyone", "SELECT COUNT(*) AS n FROM people", true.number(), {}, "known", together=True)
    return [
        everyone,
        Kind("topped up", "smoker = TRUE", true.number("smoker"), {"error": 60}, "measured"),
        Kind("known", "smoker = FALSE", true.number("not smoker"), {}, "known"),
        Kind("range", "age BETWEEN 30 AND 44", true.number("30 <= age <= 44"), {"error": 30}),
        Kind("group by, each", Marginal(("city",)), true.groups(["city"]), {"error": 40}),
        Kind(
            "group by, joint",
            "SELECT smoker, city, COUNT(*) AS n FROM people GROUP BY smoker, city",
            true.groups(["smoker", "city"]),
            {"error": 60, "joint": True},
            together=True,
        ),
        Kind("sum", "SELECT SUM(pay) AS s FROM people", true.number(None, "pay", "sum"), {"error": 3000}),
        Kind(
            "average",
            "SELECT AVG(pay) AS m FROM people WHERE smoker = TRUE",
            true.number("smoker", "pay", "mean"),
            {"error": 2},
        ),
        Kind(
            "average, grouped",
            "SELECT city, AVG(age) AS m FROM people GROUP BY city",
            true.groups(["city"], None, "age", "mean"),
            {"error": 2},
        ),
        Kind("or", "city = 'b' OR age < 30", true.number("city == 'b' or age < 30"), {"error": 50}),
        Kind(
            "direct",
            "age = 33 AND city = 'a' AND pay >= 90 AND smoker = TRUE",
            true.number("age == 33 and city == 'a' and pay >= 90 and smoker"),
            {"error": 2},
            "direct",
        ),
        Kind(
            "nonnegative",
            "SELECT city, COUNT(*) AS n FROM people WHERE age >= 69 GROUP BY city",
            true.groups(["city"], "age >= 69"),
            {"error": 40, "nonnegative": True},
        ),
    ]


def runs(table: Table, kinds: list[Kind], contrasts: list[Linear], true: Counted, times: int, folder: Any):
    """What came of all runs: by kind, and the pool."""
    seen: dict[str, Seen] = defaultdict(Seen)
    pool: list[float] = []
    truths = [true.linear(query, table.domain) for query in contrasts]
    rng = np.random.default_rng()
    for place in range(times):
        budget = dp.Budget(epsilon=30, delta=1e-9)
        with Curator(table, budget=budget, ledger=folder / f"{place}.sqlite") as desk:
            for name in sorted({name for query in contrasts for name in query.scope}):
                bought = desk.ask(Marginal((name,)), error=0.01 * len(true.frame))
                assert bought.origin == "measured", "pieces of the lattice, whose errors are independent"
            answers = [desk.ask(query) for query in contrasts]
            bars = [answer.error / normal_quantile(0.95) for answer in answers]
            pool += [(answer.value - truth) / bar for answer, truth, bar in zip(answers, truths, bars, strict=True)]
        if kinds:
            with Curator(table, budget=budget, ledger=folder / f"{place} again.sqlite") as desk:
                run(desk, kinds, seen, rng)
    return seen, pool


NO_CHI_SQUARE = {
    "direct": "the exact law of a few whole numbers",
    "nonnegative": "lifted to zero",
    "average": "Fieller's bars, a little wider than the standard deviation",
    "average, grouped": "Fieller's bars",
    "ratio": "Fieller's bars",
    "everyone": "public",
}


def judge(seen: dict[str, Seen], pool: list[float]) -> list[str]:
    """Every reason to doubt the bars."""
    found = []
    for name, kind in seen.items():
        found += [f"{name}: {why}" for c, held in kind.held.items() if (why := too_often_outside(held, c))]
        if kind.standard and name not in NO_CHI_SQUARE:
            why = wrong_width(kind.standard)
            found += [f"{name}: {why}"] if why else []
    why = wrong_width(pool)
    return [*found, *([f"pool: {why}"] if why else [])]


def report(seen: dict[str, Seen], pool: list[float]) -> str:
    """The table of coverage: of each kind the share inside the bar at each confidence, and the spread of the errors."""
    lines = [f"{'':20}" + "".join(f"{confidence:>8}" for confidence in CONFIDENCES) + "  spread"]
    for name, kind in seen.items():
        shares = "".join(f"{np.mean(kind.held.get(confidence, [np.nan])):8.3f}" for confidence in CONFIDENCES)
        lines.append(f"{name:20}{shares}{spread(kind.standard) if kind.standard else np.nan:8.3f}")
    return "\n".join([*lines, f"pool of {len(pool)}: spread {spread(pool):.4f}"])


def prepared(adult, people, which):
    table, true = adult if which == "adult" else people
    kinds = (adult_kinds if which == "adult" else people_kinds)(table, true)
    names = (
        ["sex", "race", "relationship", "marital_status", "workclass", "education", "age"] if which == "adult" else None
    )
    return table, kinds, orthogonal_contrasts(table.domain, names or ["city", "age", "smoker", "pay"]), true


@pytest.mark.slow
@pytest.mark.parametrize("which", ["adult", "people"])
def test_bars_hold_and_are_not_wider_than_needed(adult, people, which, tmp_path):
    table, kinds, contrasts, true = prepared(adult, people, which)
    seen, pool = runs(table, kinds, contrasts, true, QUICK, tmp_path)
    print(report(seen, pool))
    assert not judge(seen, pool)


@pytest.mark.long
@pytest.mark.parametrize("which", ["adult", "people"])
def test_over_two_hundred_runs_bars_hold_and_are_within_five_percent_of_what_is_needed(adult, people, which, tmp_path):
    table, kinds, contrasts, true = prepared(adult, people, which)
    seen, pool = runs(table, kinds, contrasts, true, LONG, tmp_path)
    print(report(seen, pool))
    assert not judge(seen, pool)
    # A right curator fails this with probability below 1e-9: the spread of so many has a standard deviation of 0.75 %.
    assert len(pool) >= 8900
    assert 1 / 1.05 <= spread(pool) <= 1.05


def test_nobody_gets_a_bar_of_zero_around_a_number_that_was_never_measured(people, tmp_path):
    """The number of rows is public here; the number of smokers is not, and nobody has asked for it."""
    table, true = people
    everyone, smokers = Linear([Product(())]), count(table.domain, col("smoker") == True)  # noqa: E712
    with Curator(table, budget=dp.Budget(epsilon=1, delta=1e-9), ledger=tmp_path / "ledger.sqlite") as desk:
        answer = desk.ask(2**21 * everyone + smokers, error=1e6)
    truth = 2**21 * len(true.frame) + len(true.rows("smoker"))
    assert abs(answer.value - truth) <= answer.error or answer.error > 0


# The tests themselves.


def gaussian_runs(times: int, contrasts: int, factor: float, rng: np.random.Generator):
    """What a curator would give whose bars are right but for a factor."""
    seen: dict[str, Seen] = {"a": Seen()}
    for _ in range(times):
        error = rng.normal()
        for confidence in CONFIDENCES:
            seen["a"].held[confidence].append(bool(abs(error) <= factor * normal_quantile(confidence)))
        seen["a"].standard.append(error / factor)
    return seen, (rng.normal(size=times * contrasts) / factor).tolist()


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_power_bars_that_are_ten_percent_off_are_caught_by_the_long_version(factor):
    rng = np.random.default_rng()
    # 200 runs of 39 contrasts; the statistic is 7 of its standard deviations or more beyond the bound.
    assert judge(*gaussian_runs(LONG, 39, factor, rng))
    assert not judge(*gaussian_runs(LONG, 39, 1.0, rng))


def test_power_bars_of_two_thirds_are_caught_by_the_quick_version_too():
    assert judge(*gaussian_runs(QUICK, 39, 0.66, np.random.default_rng()))


def test_power_a_kind_whose_bars_are_half_as_wide_is_caught_by_its_own_count():
    rng = np.random.default_rng()
    seen, _ = gaussian_runs(LONG, 1, 0.5, rng)
    assert any(too_often_outside(held, confidence) for confidence, held in seen["a"].held.items())


def test_power_a_curator_with_small_bars_is_caught_on_a_real_table(people, tmp_path, monkeypatch):
    """The bars of the curator itself, made a third narrower."""
    from discreet.estimate import gaussian_estimator

    narrow = lambda confidence, joint=1: normal_quantile(confidence, joint) * 0.6
    table, true = people
    contrasts = orthogonal_contrasts(table.domain, ["city", "age", "smoker", "pay"])
    monkeypatch.setattr(gaussian_estimator, "normal_quantile", narrow)
    # Asked for three fifths of the error, it measures as before and says less.
    _, pool = runs(table, [], contrasts, true, QUICK, tmp_path)
    assert wrong_width(pool)

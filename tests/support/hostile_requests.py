# ruff: noqa: E501, requests are long
"""Requests that an analyst may send to make a curator work hard, and what they cost: processor seconds and megabytes."""

import gc
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any

import discreet as dp
from discreet.curator import Curator
from discreet.errors import DiscreetError
from discreet.ledger import Budget
from discreet.wire.question_json import question_from_plain

# What one request may take, beyond its answer.
SECONDS, MEGABYTES = 1.0, 200.0

FLAGS, THREES, ROWS = 60, 20, 20_000


def domain_of(many: int) -> dp.Domain:
    """Sixty columns of two cells, twenty of three, and columns of `many` categories or numbers."""
    columns: dict[str, Any] = {f"f{i:02d}": dp.Boolean() for i in range(FLAGS)}
    columns |= {f"t{i:02d}": dp.Categories(["a", "b", "c"], outside="drop", missing="drop") for i in range(THREES)}
    columns |= {name: dp.Categories([f"v{i}" for i in range(many)]) for name in ("zip", "code")}
    columns |= {
        "income": dp.Integers(0, many - 1),
        "age": dp.Integers(0, 99),
        "size": dp.Bins(range(0, many, 2), upper=many),
    }
    return dp.Domain(columns)


def table_of(domain: dp.Domain, neighbors: str) -> dp.Table:
    """Few rows, but enough for a mean: what a request costs must not come from them."""
    draw = random.Random(1)
    rows: dict[str, list[Any]] = {}
    for name in domain:
        column = domain[name]
        values = column.values if isinstance(column, dp.Categories) else range(100)
        rows[name] = draw.choices(values, k=ROWS)
    return dp.open(rows, domain=domain, unit=dp.Unit(neighbors=neighbors))


def desk_of(folder: Path, many: int, *, neighbors: str = "add_remove", delta: float = 1e-9) -> Curator:
    """A desk with a large budget, so that nothing is refused for want of it."""
    table = table_of(domain_of(many), neighbors)
    return Curator(table, budget=Budget(epsilon=1000, delta=delta), ledger=folder / f"{neighbors}-{delta}.sqlite")


@dataclass(frozen=True)
class Ask:
    """One request: its name, the question (SQL or JSON) and what is wished."""

    name: str
    question: Any
    wish: dict[str, Any]

    def plan(self, desk: Curator) -> Any:
        """What it would cost."""
        return desk.plan(question_from_plain(self.question, table="data"), **self.wish)

    def ask(self, desk: Curator) -> Any:
        """The answer."""
        return desk.ask(question_from_plain(self.question, table="data"), **self.wish)


def conjunction(names: list[str]) -> str:
    """Every column says something."""
    return " AND ".join(f"{name} = true" if name.startswith("f") else f"{name} = 'a'" for name in names)


def corpus(many: int) -> Iterator[Ask]:
    """The fixed list."""
    flags, threes = [f"f{i:02d}" for i in range(FLAGS)], [f"t{i:02d}" for i in range(THREES)]
    error, price = {"error": 50}, {"epsilon": 0.1}
    for k in (8, 11, 12, 13, 14, 20, 40, 60):
        yield Ask(f"AND of {k} flags", conjunction(flags[:k]), error)
    yield Ask("AND of 11 flags for a price", conjunction(flags[20:31]), price)
    for k in (6, 8, 10, 12, 20):
        yield Ask(f"AND of {k} columns of three", conjunction(threes[:k]), error)
    for pairs in (7, 10, 11):
        where = " OR ".join(f"({conjunction(flags[2 * i : 2 * i + 2])})" for i in range(pairs))
        yield Ask(f"OR of {pairs} pairs", where, error)
        yield Ask(f"SUM WHERE {pairs} pairs", f"SELECT SUM(income) AS s FROM data WHERE {where}", {"error": 1e6})
        yield Ask(
            f"AVG BY t00 WHERE {pairs} pairs",
            f"SELECT t00, AVG(income) AS s FROM data WHERE {where} GROUP BY t00",
            price,
        )
    ands = [f"({conjunction(random.Random(i).sample(flags, 6))})" for i in range(200)]
    for n, of in ((3, 6), (12, 6), (40, 4), (200, 2)):
        some = [f"({conjunction(random.Random(i).sample(flags[:12], of))})" for i in range(n)]
        yield Ask(f"OR of {n} ANDs of {of} of 12 flags", " OR ".join(some), error)
    yield Ask("OR of 200 ANDs of 6 of 60 flags", " OR ".join(ands), error)
    yield Ask("NOT of an OR of 8 ANDs", f"NOT ({' OR '.join(ands[:8])})", error)
    yield Ask("OR of 60 flags", " OR ".join(f"{name} = true" for name in flags), error)
    yield Ask("XOR of 10 flags", _parity(flags[:10]), error)
    listed = ", ".join(f"'v{i}'" for i in range(0, min(many, 10_000), 2))
    yield Ask("IN a long list", f"zip IN ({listed})", error)
    yield Ask("IN two long lists", f"zip IN ({listed}) AND code IN ({listed})", error)
    bins = {"column": "size", "in": [f"{i} to {i + 1}" for i in range(0, min(many - 2, 9000), 2)]}
    yield Ask("IN the labels of bins", {"where": bins}, error)
    yield Ask(
        "5000 ORs on one column",
        {"where": {"or": [{"column": "income", "is": "==", "value": i} for i in range(1200)]}},
        error,
    )
    for group in ("zip", "income", "zip, sex_", "zip, f00, f01", "income, f00"):
        if "sex_" in group:
            continue
        yield Ask(f"GROUP BY {group}", f"SELECT {group}, COUNT(*) AS n FROM data GROUP BY {group}", error)
    yield Ask(
        "GROUP BY zip with a WHERE on it",
        f"SELECT zip, COUNT(*) AS n FROM data WHERE zip IN ({listed}) GROUP BY zip",
        error,
    )
    yield Ask("GROUP BY zip, jointly", "SELECT zip, COUNT(*) AS n FROM data GROUP BY zip", {"error": 80, "joint": True})
    yield Ask("GROUP BY zip for a price", "SELECT code, COUNT(*) AS n FROM data GROUP BY code", price)
    yield Ask("GROUP BY two wide columns", "SELECT zip, code, COUNT(*) AS n FROM data GROUP BY zip, code", error)
    yield Ask(
        "HAVING and ORDER BY",
        "SELECT zip, COUNT(*) AS n FROM data GROUP BY zip HAVING n > 10 OR n < 5 ORDER BY n DESC LIMIT 3",
        error,
    )
    yield Ask("AVG of a wide column", "SELECT AVG(income) AS a FROM data", {"error": many / 4})
    yield Ask(
        "AVG of a wide column WHERE",
        f"SELECT AVG(income) AS a FROM data WHERE {conjunction(flags[:6])}",
        {"error": many / 4},
    )
    for what in ("AVG(income)", "SUM(income)", "AVG(age)"):
        for group in ("", "zip", "income", "age", "f00, t00"):
            listed_first, by = (f"{group}, ", f" GROUP BY {group}") if group else ("", "")
            wanted = f"SELECT {listed_first}{what} AS a FROM data{by}"
            yield Ask(f"{what} BY {group or 'nothing'} for a price", wanted, {"epsilon": 3})
    yield Ask("AVG BY zip", "SELECT zip, AVG(income) AS a FROM data GROUP BY zip", {"error": many / 2})
    yield Ask("AVG BY its own column", "SELECT income, AVG(income) AS a FROM data GROUP BY income", {"error": many / 2})
    yield Ask(
        "SUM BY zip WHERE OR",
        f"SELECT zip, SUM(income) AS a FROM data WHERE {' OR '.join(ands[:3])} GROUP BY zip",
        {"error": 1e6},
    )
    yield Ask(
        "a hundred aggregates",
        "SELECT " + ", ".join(f"SUM(age) AS a{i}" for i in range(100)) + " FROM data",
        {"error": 500},
    )
    yield Ask(
        "a hundred averages BY zip",
        "SELECT zip, " + ", ".join(f"AVG(age) AS a{i}" for i in range(40)) + " FROM data GROUP BY zip",
        {"error": 50},
    )
    yield from _products(flags, threes, many)
    yield from _just_below(flags, threes, many)
    yield Ask("brackets", "(" * 30 + conjunction(flags[:3]) + ")" * 30, error)
    yield Ask("NOT NOT NOT", "NOT " * 60 + "f00 = true", error)
    yield Ask("a long text", " AND ".join(["f00 = true"] * 3000), error)


def _just_below(flags: list[str], threes: list[str], many: int) -> Iterator[Ask]:
    """What the limits of the language and of the planner still let through."""
    error = {"error": 50}
    listed = ", ".join(f"'v{i}'" for i in range(0, min(many, 900), 2))
    yield Ask("IN the longest list", f"zip IN ({listed})", error)
    yield Ask("IN two lists", f"zip IN ({listed[:3000].rpartition(',')[0]}) AND f00 = true", error)
    sums = ", ".join(f"SUM(age) AS a{i}" for i in range(60))
    yield Ask("sixty aggregates", f"SELECT {sums} FROM data", {"error": 500})
    averages = ", ".join(f"AVG(age) AS a{i}" for i in range(20))
    yield Ask("twenty averages BY zip", f"SELECT zip, {averages} FROM data GROUP BY zip", {"error": 50})
    yield Ask("AVG BY zip of a narrow column", "SELECT zip, AVG(age) AS a FROM data GROUP BY zip", {"error": 90})
    yield Ask("deep brackets", "(" * 22 + conjunction(flags[:3]) + ")" * 22, error)
    yield Ask("deep NOTs", "NOT " * 22 + "f00 = true", error)
    yield Ask("a text of many words", " AND ".join(["f00 = true"] * 240), error)
    yield Ask("AND of 10 flags", conjunction(flags[30:40]), error)
    yield Ask("AND of 9 columns of three", conjunction(threes[9:18]), error)


def _parity(names: list[str]) -> str:
    if len(names) == 1:
        return f"{names[0]} = true"
    left, right = _parity(names[: len(names) // 2]), _parity(names[len(names) // 2 :])
    return f"(({left}) AND NOT ({right}) OR NOT ({left}) AND ({right}))"


def _products(flags: list[str], threes: list[str], many: int) -> Iterator[Ask]:
    """What only JSON can say."""

    def factor(draw: random.Random, name: str) -> list[Any]:
        cells = 2 if name.startswith("f") else 3
        return [[name], [cells], [draw.randint(-2, 2) or 1, *(draw.randint(3, 6) for _ in range(cells - 1))]]

    def products(n: int, names: list[str], of: int) -> list[Any]:
        draw = random.Random(n * of)
        return [[draw.randint(1, 3), [factor(draw, each) for each in sorted(draw.sample(names, of))]] for _ in range(n)]

    for n, names, of in ((2, flags[:12], 12), (20, flags[:12], 4), (100, flags[:11], 3), (400, flags[:13], 2)):
        yield Ask(f"{n} products on {of} of {len(names)} flags", {"products": products(n, names, of)}, {"error": 5e4})
    yield Ask("400 products on 12 of 60 flags", {"products": products(400, flags, 12)}, {"error": 1e9})
    yield Ask("300 products on 6 columns of three", {"products": products(300, threes[:6], 6)}, {"error": 1e6})
    weight = [[1, [[["zip"], [many + 1], [i % 97 for i in range(many + 1)]]]]]
    if many <= 20_000:
        yield Ask("a weight for every cell of a group", {"columns": ["zip"], "weight": weight}, {"error": 5000})
    three = products(3, flags[:4], 2)
    yield Ask("groups of a sum of products", {"columns": ["zip"], "weight": three}, {"error": 500})
    yield Ask(
        "groups by 10 flags of a sum of products",
        {"columns": flags[:10], "weight": products(30, flags[:12], 3)},
        {"error": 5000},
    )


def any_of(draw: random.Random, names: list[str], ands: int, of: int) -> str:
    """An OR of ANDs of some columns."""
    return " OR ".join(f"({conjunction(sorted(draw.sample(names, of)))})" for _ in range(ands))


def batches(many: int) -> Iterator[tuple[str, list[Any]]]:
    """Batches that are too large, or nearly: what is refused must be refused before it is read."""
    flags, draw = [f"f{i:02d}" for i in range(FLAGS)], random.Random(5)
    yield "a thousand short texts", [f"f{i % 60:02d} = true AND income > {i % many}" for i in range(1000)]
    yield "two thousand short texts", [f"f{i % 60:02d} = true AND income > {i % many}" for i in range(2000)]
    yield "many conditions", [{"where": {"column": "income", "is": ">", "value": i % many}} for i in range(2048)]
    for ands, of, among in ((5, 3, 60), (8, 2, 60), (12, 2, 14), (30, 3, 12)):
        name = f"ORs of {ands} ANDs of {of} of {among}"
        yield name, [any_of(draw, flags[:among], ands, of) for _ in range(250)]
    yield "wide equalities", [f"zip = 'v{i}' AND age > {i % 90}" for i in range(170)]
    yield "wide sums", [f"SELECT SUM(income) AS s FROM data WHERE f{i:02d} = true OR t00 = 'a'" for i in range(50)]
    yield "ANDs of 6", [conjunction(sorted(draw.sample(flags, 6))) for _ in range(56)]
    yield "ANDs of 12", [conjunction(sorted(draw.sample(flags, 12))) for _ in range(200)]


def releases(many: int) -> Iterator[tuple[str, Any]]:
    """Workloads as a server reads them."""
    flags = [f"f{i:02d}" for i in range(FLAGS)]
    for of, among, n in (
        (12, 60, 15),
        (12, 60, 3),
        (12, 14, 2),
        (10, 12, 60),
        (10, 12, 20),
        (8, 60, 150),
        (6, 60, 900),
    ):
        some = [[sorted(random.Random(i).sample(flags[:among], of)), 1] for i in range(n)]
        yield f"{n} marginals of {of} of {among} flags", {"weights": some}
    yield "all triples of 30 flags", {"marginals": 3, "of": flags[:30]}
    for kind, name in (("prefixes", "income"), ("ranges", "income"), ("subsets", "zip"), ("ranges", "age")):
        yield f"{kind} of {name}", {kind: name}


@dataclass(frozen=True)
class Cost:
    """What a call took."""

    seconds: float
    megabytes: float
    outcome: str


def cost_of(call: Callable[[], Any]) -> Cost:
    """Processor seconds, and by how much the process grew at its largest, the answer included."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")
    before, begun = _resident("VmRSS"), process_time()
    try:
        found = call()
        outcome = getattr(found, "origin", type(found).__name__)
    except DiscreetError as refused:
        outcome = type(refused).__name__
    return Cost(process_time() - begun, _resident("VmHWM") - before, outcome)


def _resident(which: str) -> float:
    return int(re.search(rf"{which}:\s+(\d+)", Path("/proc/self/status").read_text())[1]) / 1e3  # type: ignore[index]


def warm_up() -> None:
    """Load what is loaded once in the life of a process, not in a request: the compiler of the noise, the parser."""
    from discreet.noise import rounded_gaussian

    rounded_gaussian(10, 300_000)

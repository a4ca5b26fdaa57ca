"""What a source costs: opening 10⁸ rows and one three-way marginal, beside the same GROUP BY in plain DuckDB.

python bench/sources.py               prints the tables, writes bench/results/sources.md and sources.png
python bench/sources.py --rows N      with fewer rows

The rows are made by DuckDB from a hash of their number, in a temporary folder (1.1 GB for 10⁸). Each run is a process
of its own, which does the same with a thousand rows before the clock starts, so that everything is imported; the two
ways alternate. Spark has a tenth of the rows and two workers.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from hashlib import sha256
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

from machine import describe

ROWS, REPEATS = 10**8, 7
SIZES = (2, 3, 5, 7, 10, 16, 20, 40, 75, 100)
TYPES = ("utinyint",) * 3 + ("tinyint",) * 3 + ("smallint", "smallint", "integer", "bigint")
CHOICES = (("c5", "c6", "c7"), ("c4", "c8", "c9"))
SPARK = "spark://local-cluster[2,1,1024]"


def make(folder, rows):
    import duckdb

    columns = ", ".join(
        f"cast(hash(i * 10 + {place}) % {size} as {kind}) as c{place}"
        for place, (size, kind) in enumerate(zip(SIZES, TYPES, strict=True))
    )
    connection = duckdb.connect(str(folder / "big.duckdb"))
    connection.execute(f"create table big as select {columns} from range({rows}) r(i)")
    connection.execute(f"copy big to '{folder}/big.parquet' (format parquet)")
    connection.execute(f"copy (from big limit {rows // 10}) to '{folder}/small.parquet' (format parquet)")
    connection.execute(f"copy (from big limit 1000) to '{folder}/tiny.parquet' (format parquet)")


def domain():
    import discreet as dp

    return dp.Domain({f"c{place}": dp.Integers(0, size - 1) for place, size in enumerate(SIZES)})


def plain(path, columns):
    import duckdb

    own = path.endswith("duckdb")
    connection = duckdb.connect(path if own else ":memory:", read_only=own)
    where, names = "big" if own else f"'{path}'", ", ".join(columns)
    found = connection.execute(f"select {names}, count(*) from {where} group by {names}").fetchall()
    return {tuple(row[:-1]): row[-1] for row in found}


def product(path, columns):
    import discreet as dp
    from discreet.source.source import unseal

    schema = dp.Schema("big", domain())
    exact = dp.open(path, schema=schema).evaluate(dp.Marginal(columns))
    return unseal(exact, exact.sensitivity).reshape(dp.Marginal(columns).shape(schema.domain))


def digest(counts):
    """A short name of the integers, however they are held."""
    if not isinstance(counts, dict):
        counts = {cell: int(counts[cell]) for cell in zip(*counts.nonzero(), strict=True)}
    lines = sorted(f"{tuple(map(int, cell))}:{number}" for cell, number in counts.items())
    return sha256("\n".join(lines).encode()).hexdigest()[:12]


def conjunctions(path):
    """200 random conjunctions of four columns, as 200 sums in one scan and through the product."""
    from random import Random

    import duckdb

    import discreet as dp
    from discreet.query import count
    from discreet.source.source import unseal

    chance = Random(7)
    asked = [{f"c{place}": chance.randrange(SIZES[place]) for place in (3, 4, 5, 6)} for _ in range(200)]
    sums = ", ".join(
        "count(*) filter (where " + " and ".join(f"{name} >= {least}" for name, least in each.items()) + ")"
        for each in asked
    )
    for way in (plain, product):
        way(str(Path(path).with_name("tiny.parquet")), ("c1", "c2"))
    before = process_time()
    (expected,) = duckdb.execute(f"select {sums} from '{path}'").fetchall()
    scan, before = process_time() - before, process_time()
    table = dp.open(path, domain=domain())
    queries = []
    for each in asked:
        where = dp.everyone
        for name, least in each.items():
            where = where & (dp.col(name) >= least)
        queries.append(count(table.domain, where))
    made, before = process_time() - before, process_time()
    exact = table.evaluate(queries)
    ours = process_time() - before
    assert unseal(exact, exact.sensitivity).tolist() == list(expected)
    return scan, made, ours


def timed(way, *arguments):
    """One run in a process of its own."""
    command = [sys.executable, __file__, "--run", way, *arguments]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])


def peak_megabytes():
    """Of this program alone; what getrusage says begins with the memory of the process that started it."""
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024


def run_once(way, path, *columns):
    run = {"plain": plain, "product": product}[way]
    if "://" not in path:
        run(str(Path(path).with_name("tiny.parquet")), columns)
    before, cpu = perf_counter(), process_time()
    counts = run(path, columns)
    wall, cpu = perf_counter() - before, process_time() - cpu
    print(json.dumps({"wall": wall, "cpu": cpu, "memory": peak_megabytes(), "digest": digest(counts)}))


def measure(folder):
    rows, ratios = [], []
    for name in ("big.parquet", "big.duckdb"):
        for columns in CHOICES:
            runs = {"plain": [], "product": []}
            for _ in range(REPEATS):
                for way, found in runs.items():
                    found.append(timed(way, str(folder / name), *columns))
            assert len({each["digest"] for found in runs.values() for each in found}) == 1, "the same integers"
            middle = {way: {key: median(run[key] for run in found) for key in ("wall", "cpu", "memory")}
                      for way, found in runs.items()}  # fmt: skip
            spread = [max(run["wall"] for run in found) - min(run["wall"] for run in found) for found in runs.values()]
            wall = middle["product"]["wall"] / middle["plain"]["wall"]
            ratios.append((f"{name.split('.')[1]}\n{' '.join(columns)}", middle))
            rows.append(
                (
                    name.split(".")[1],
                    " × ".join(columns),
                    f"{middle['plain']['wall']:.2f} (spread {spread[0]:.2f})",
                    f"{middle['product']['wall']:.2f} (spread {spread[1]:.2f})",
                    f"**{wall:.2f}**",
                    f"{middle['plain']['cpu']:.2f} / {middle['product']['cpu']:.2f}",
                    f"{middle['product']['cpu'] / middle['plain']['cpu']:.2f}",
                    f"{middle['plain']['memory']:.0f} / {middle['product']['memory']:.0f}",
                )
            )
            print(*rows[-1], sep=" | ", flush=True)
    return rows, ratios


def table(title, head, rows):
    lines = [f"## {title}", "", "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    return "\n".join([*lines, ""])


def figure(ratios, path):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    fig, axes = pyplot.subplots(figsize=(7, 3.2))
    for shift, (way, label) in enumerate((("plain", "plain DuckDB"), ("product", "Discreet, opening included"))):
        places = [place + 0.38 * shift for place in range(len(ratios))]
        axes.bar(places, [middle[way]["wall"] for _, middle in ratios], width=0.36, label=label)
    axes.set_xticks([place + 0.19 for place in range(len(ratios))], [name for name, _ in ratios])
    axes.set_ylabel("seconds, median")
    axes.legend(frameon=False, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    axes.spines[["top", "right"]].set_visible(False)
    fig.tight_layout()
    fig.savefig(path, dpi=150)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--run", nargs="+")
    arguments = parser.parse_args()
    if arguments.run:
        run_once(*arguments.run)
        return
    with tempfile.TemporaryDirectory() as held:
        folder = Path(held)
        make(folder, arguments.rows)
        rows, ratios = measure(folder)
        small = str(folder / "small.parquet")
        scan, made, ours = conjunctions(small)
        columns = CHOICES[1]
        duck, spark = timed("plain", small, *columns), timed("product", f"{SPARK}?path={small}", *columns)
        assert duck["digest"] == spark["digest"], "the same integers"
    head = ("file", "columns", "plain DuckDB, s", "Discreet, s", "ratio", "CPU s", "CPU ratio", "peak MB")
    text = [
        "# Sources",
        "",
        describe("duckdb", "ibis-framework", "pyspark"),
        "",
        table(
            f"{arguments.rows:,} rows × 10 columns: opening and one three-way marginal, median of {REPEATS}", head, rows
        ),
        "![seconds](sources.png)",
        "",
        table(
            f"200 conjunctions of four columns over {arguments.rows // 10:,} rows, CPU s",
            ("200 sums in one scan of DuckDB", "through the product", "of which making the queries"),
            [(f"{scan:.2f}", f"{made + ours:.2f}", f"{made:.2f}")],
        ),
        table(
            f"{arguments.rows // 10:,} rows on Spark, local cluster of two workers",
            ("marginal", "same integers as DuckDB", "seconds, opening included"),
            [(" × ".join(columns), "yes", f"{spark['wall']:.1f}")],
        ),
    ]
    results = Path(__file__).parent / "results"
    figure(ratios, results / "sources.png")
    (results / "sources.md").write_text("\n".join(text))
    print("\n".join(text))


if __name__ == "__main__":
    main()

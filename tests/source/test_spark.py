"""Spark away from this process: a server of Spark Connect, and a cluster of two workers."""

import json
import os
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.query import Marginal, col, count, total
from discreet.schema import Domain, Integers, Unit
from discreet.source import Frame
from discreet.source import open as open_table
from discreet.source.source import unseal
from source.tables import DOMAIN, arrow
from support.needs import needs_spark

pytestmark = needs_spark
TESTS = Path(__file__).parent.parent

SERVER = """
    import sys
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.plugins", "org.apache.spark.sql.connect.SparkConnectPlugin")
    builder = builder.config("spark.connect.grpc.binding.port", sys.argv[1])
    builder = builder.config("spark.sql.shuffle.partitions", "1").config("spark.sql.warehouse.dir", sys.argv[2])
    session = builder.getOrCreate()
    session.read.parquet(sys.argv[3]).write.saveAsTable("people")
    print("ready", flush=True)
    input()
    session.stop()
"""

# One process has one Spark, and that of the tests may be in this one; so others ask.
CLIENT = """
    import json, sys
    from discreet.source import open as open_table
    from source.test_spark import QUESTIONS, UNITS, opened
    from source.tables import DOMAIN

    def answers(address):
        tables = [open_table(address, domain=DOMAIN, unit=unit) for unit in UNITS]
        return [opened(table, question).tolist() for table in tables for question in QUESTIONS]

    print(json.dumps([answers(address) for address in sys.argv[1:]]))
"""

CLUSTER = """
    import json, sys
    from discreet.query import Marginal
    from discreet.source import open as open_table
    from source.test_spark import CHOSEN, TEN, opened

    print(json.dumps(opened(open_table(sys.argv[1], domain=TEN), Marginal(CHOSEN)).tolist()))
"""

QUESTIONS = [
    Marginal(("city", "age", "smoker")),
    Marginal(("rate", "since")),
    count(DOMAIN, (col("age") >= 25) & (col("city") == "a")),
    [total(DOMAIN, "hours"), count(DOMAIN)],
]
UNITS = [Unit(), Unit(key="who", contributions=2)]
SIZES = (2, 3, 5, 7, 10, 16, 20, 40, 75, 100)
TEN = Domain({f"c{place}": Integers(0, size - 1) for place, size in enumerate(SIZES)})
CHOSEN = ("c4", "c8", "c9")


def opened(table, question):
    exact = table.evaluate(question)
    return unseal(exact, exact.sensitivity)


def run(script, *arguments, seconds):
    """What a script says last."""
    environment = os.environ | {"PYTHONPATH": str(TESTS)}
    command = [sys.executable, "-c", dedent(script), *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=seconds, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@contextmanager
def server(folder, rows):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-c", dedent(SERVER), str(port), str(folder), str(rows)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, text=True, **pipes) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            yield f"sc://127.0.0.1:{port}"
        finally:
            process.communicate("\n", timeout=60)


def sample():
    generator = np.random.default_rng(11)
    rows = [
        {
            "age": None if generator.random() < 0.1 else int(generator.integers(0, 99)),
            "city": [None, "", "Zürich", "a", "A"][generator.integers(5)],
            "hours": int(generator.integers(0, 6)),
            "rate": [None, 0.1, 0.3, 0.5, float("nan"), float("inf")][generator.integers(6)],
            "smoker": [None, True, False][generator.integers(3)],
            "since": None if generator.random() < 0.2 else np.datetime64("2024-02-29T00:00:00.000000").item(),
            "who": int(generator.integers(0, 40)),
        }
        for _ in range(300)
    ]
    return arrow(rows)


# Another JVM and its server take half a minute.
@pytest.mark.long
def test_a_server_of_spark_connect_gives_the_integers_of_the_frame(tmp_path):
    table, rows = sample(), tmp_path / "people.parquet"
    pq.write_table(table, rows)
    expected = [
        opened(Frame(table, domain=DOMAIN, unit=unit), question).tolist() for unit in UNITS for question in QUESTIONS
    ]
    assert len({json.dumps(answer) for answer in expected}) > len(QUESTIONS), "the units differ"
    with server(tmp_path / "warehouse", rows) as address:
        assert run(CLIENT, f"{address}?path={rows}", f"{address}?table=people", seconds=120) == [expected] * 2


@pytest.mark.long
def test_ten_million_rows_on_a_cluster_of_two_workers_give_the_integers_of_duckdb(tmp_path):
    import duckdb

    path = tmp_path / "big.parquet"
    columns = ", ".join(f"CAST(hash(i * 10 + {p}) % {size} AS INTEGER) AS c{p}" for p, size in enumerate(SIZES))
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT {columns} FROM range(10000000) AS r(i)) TO '{path}' (FORMAT parquet)")
        names = ", ".join(CHOSEN)
        found = connection.execute(f"SELECT {names}, count(*) FROM '{path}' GROUP BY ALL").fetchnumpy()
    plain = np.zeros(Marginal(CHOSEN).shape(TEN), dtype=np.int64)
    plain[tuple(found[name] for name in CHOSEN)] = found["count_star()"]
    expected = opened(open_table(path, domain=TEN), Marginal(CHOSEN))
    assert expected.tolist() == plain.ravel().tolist()
    assert run(CLUSTER, f"spark://local-cluster[2,1,1024]?path={path}", seconds=600) == expected.tolist()


assert pa.types.is_timestamp(arrow([]).schema.field("since").type)

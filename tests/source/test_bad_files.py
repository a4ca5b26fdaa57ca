"""Files and servers that are not what they should be: a sentence, no value of any row, and nothing left behind."""

import gc
import gzip
import logging
import os
import socket
import subprocess
import sys
import tempfile
import traceback
from datetime import date
from pathlib import Path
from shutil import copy2
from textwrap import dedent
from time import monotonic

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.errors import BadData, BadSchema, SourceFailed
from discreet.query import Marginal, count
from discreet.schema import Bins, Boolean, Categories, Domain, Integers, Schema, Unit
from discreet.source import open as open_table
from discreet.source.engines import connect, engine
from discreet.source.engines.address import read_address
from discreet.source.source import unseal
from support.engines import postgres, postgres_address
from support.needs import needs, needs_postgres, needs_spark

CANARY = "SECRET-CANARY"
SCHEMA = Schema("people", Domain({"age": Integers(0, 99), "city": Categories(["Bern", "Chur"])}))
ROWS = pa.table({"age": [31, 64, 7], "city": ["Bern", CANARY, "Chur"]})
LINES = f"age,city\n31,Bern\n64,{CANARY}\n7,Chur\n"


@pytest.fixture
def people_in_postgres():
    return in_postgres()


@pytest.fixture(autouse=True)
def no_trace(request, tmp_path, monkeypatch, capfd, caplog, recwarn):
    """After every test: no folder, no open file and no value of a row is left anywhere."""
    if "people_in_postgres" in request.fixturenames:
        # The server has files of its own.
        request.getfixturevalue("people_in_postgres")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.chdir(tmp_path)
    caplog.set_level(logging.DEBUG)
    yield
    gc.collect()
    assert list(temporary.iterdir()) == []
    assert [path for path in map(_target, Path("/proc/self/fd").glob("*")) if str(tmp_path / "people") in path] == []
    said = [*capfd.readouterr(), caplog.text, *(str(warning.message) for warning in recwarn.list)]
    assert not any(CANARY in text for text in said)


def _target(link):
    try:
        return str(link.readlink())
    except OSError:
        return ""


def refusal(data, schema=SCHEMA, kind=BadData):
    """The sentence with which a table is refused."""
    with pytest.raises(kind) as caught:
        open_table(data, schema=schema)
    return _sentence(caught.value)


def _sentence(error):
    """What an error says, if neither it nor its traceback says anything else."""
    shown = "".join(traceback.format_exception(error))
    assert CANARY not in shown
    assert "During handling" not in shown
    assert "direct cause" not in shown
    return str(error)


def counted(data, schema=SCHEMA):
    exact = open_table(data, schema=schema).evaluate(count(schema.domain))
    return unseal(exact, exact.sensitivity).tolist()[0]


def write_good(path):
    """A good file of the kind that the name promises."""
    path = Path(path)
    path.unlink(missing_ok=True)
    if path.suffix == ".parquet":
        pq.write_table(ROWS, path)
    elif path.suffix == ".duckdb":
        import duckdb

        with duckdb.connect(str(path)) as connection:
            connection.register("arrow", ROWS)
            connection.execute("create table people as from arrow")
    else:
        path.write_bytes(gzip.compress(LINES.encode()) if path.suffix == ".gz" else LINES.encode())


def good_bytes(name):
    write_good(name)
    return Path(name).read_bytes()


def noise(size=5_000):
    return bytes((place * place * 7 + 11 * place) % 251 for place in range(size))


def cut(name, part):
    whole = good_bytes(name)
    return whole[: int(len(whole) * part)]


def zeroed(name):
    """A file whose beginning promises more."""
    whole, kept = good_bytes(name), 12_288 if name.endswith("duckdb") else 16
    return whole[:kept] + bytes(len(whole) - kept)


NOT_PARQUET, NOT_DUCKDB = "is not a Parquet file, or it is truncated", "cannot be opened as a DuckDB file"
NO_HEADER, BAD_LINE = "names no column of the schema", "some line has another number of fields"
NOT_TEXT = "it is damaged or in another encoding"
BAD_FILES = {
    "an empty Parquet file": ("people.parquet", lambda name: b"", NOT_PARQUET),
    "half a Parquet file": ("people.parquet", lambda name: cut(name, 0.5), NOT_PARQUET),
    "a Parquet file without its last bytes": ("people.parquet", lambda name: cut(name, 0.99), NOT_PARQUET),
    "a Parquet file of zeros": ("people.parquet", zeroed, NOT_PARQUET),
    "noise called Parquet": ("people.parquet", lambda name: noise(), NOT_PARQUET),
    "CSV called Parquet": ("people.parquet", lambda name: LINES.encode(), NOT_PARQUET),
    "an empty DuckDB file": ("people.duckdb", lambda name: b"", NOT_DUCKDB),
    "half a DuckDB file": ("people.duckdb", lambda name: cut(name, 0.5), NOT_DUCKDB),
    "a DuckDB file of zeros": ("people.duckdb", zeroed, NOT_DUCKDB),
    "noise called DuckDB": ("people.duckdb", lambda name: noise(), NOT_DUCKDB),
    "Parquet called DuckDB": ("people.duckdb", lambda name: good_bytes("x.parquet"), NOT_DUCKDB),
    "an empty CSV file": ("people.csv", lambda name: b"", NO_HEADER),
    "noise called CSV": ("people.csv", lambda name: noise(), NOT_TEXT),
    "Parquet called CSV": ("people.csv", lambda name: good_bytes("x.parquet"), "people.csv"),
    "no header": ("people.csv", lambda name: f"{CANARY},Bern\n".encode(), NO_HEADER),
    "no header, one field": ("people.csv", lambda name: f"{CANARY}\n".encode(), NO_HEADER),
    "no delimiter of ours": ("people.csv", lambda name: LINES.replace(",", "^").encode(), NO_HEADER),
    "an empty first line": ("people.csv", lambda name: b"\n" + LINES.encode(), NO_HEADER),
    "another delimiter below": ("people.csv", lambda name: f"age,city\n64;{CANARY}\n".encode(), BAD_LINE),
    "a column twice": ("people.csv", lambda name: b"age,city,age\n1,Bern,1\n", 'has "age" and "age"'),
    "a column twice but for case": ("people.csv", lambda name: b"age,city,Age\n1,Bern,1\n", 'has "age" and "Age"'),
    "a line too long": ("people.csv", lambda name: f"{LINES}1,Bern,{CANARY}\n".encode(), BAD_LINE),
    "a line too short": ("people.csv", lambda name: f"{LINES}{CANARY}\n".encode(), BAD_LINE),
    "an open quote": ("people.csv", lambda name: f'{LINES}1,"{CANARY}\n2,Bern\n'.encode(), BAD_LINE),
    "a value of three megabytes": ("people.csv", lambda name: f"{LINES}1,{CANARY * 250_000}\n".encode(), BAD_LINE),
    "a row in Latin-1": ("people.csv", lambda name: f"{LINES}1,{CANARY}ü\n".encode("latin1"), "not in UTF-8"),
    "a header in Latin-1": ("people.csv", lambda name: "age,city,größe\n".encode("latin1"), NOT_TEXT),
    "UTF-16": ("people.csv", lambda name: LINES.encode("utf-16"), NOT_TEXT),
    "half a gzip file": ("people.csv.gz", lambda name: cut(name, 0.5), NOT_TEXT),
    "a gzip file that was changed": ("people.csv.gz", lambda name: good_bytes(name)[:-8] + bytes(8), NOT_TEXT),
    "CSV called gzip": ("people.csv.gz", lambda name: LINES.encode(), NOT_TEXT),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_bad_file_is_refused_and_a_good_one_in_its_place_is_opened(case):
    name, content, sentence = BAD_FILES[case]
    held = content(name)
    Path(name).write_bytes(held)
    assert sentence in refusal(name)
    # The bad file is kept, so that the good one is surely another file and not the same number used again.
    Path(name).rename("bad")
    write_good(name)
    assert counted(name) == 3


def test_the_canary_would_be_seen(capfd):
    """Power: the engines themselves do quote rows."""
    import duckdb

    Path("people.csv").write_bytes(f"age,city\n{CANARY},Bern\n".encode())
    with duckdb.connect() as connection, pytest.raises(duckdb.Error, match=CANARY):
        connection.sql("FROM read_csv('people.csv', header=true, columns={'age': 'int', 'city': 'text'})").fetchall()
    with pytest.raises(AssertionError):
        _sentence(BadData(f"city is {CANARY}"))


GOOD_FILES = {
    "semicolons": LINES.replace(",", ";").encode(),
    "tabs": LINES.replace(",", "\t").encode(),
    "bars": LINES.replace(",", "|").encode(),
    "a byte order mark": LINES.encode("utf-8-sig"),
    "lines that end as in Windows": LINES.replace("\n", "\r\n").encode(),
    "no end of the last line": LINES.strip().encode(),
    "quoted names": LINES.replace("age,city", '"age","city"').encode(),
    "quoted lines": LINES.replace("Chur", '"Chur\n\n""here"""').encode(),
    "a column without a name": LINES.replace("\n", ",0\n").replace("city,0", "city,").encode(),
    "columns in another order": b"x,city,age\n1,Bern,3\n1,Bern,3\n1,Bern,3\n",
}


@pytest.mark.parametrize("case", GOOD_FILES)
def test_a_csv_file_may_have(case):
    Path("people.csv").write_bytes(GOOD_FILES[case])
    assert counted("people.csv") == 3
    Path("people.csv.gz").write_bytes(gzip.compress(GOOD_FILES[case]))
    assert counted("people.csv.gz") == 3
    with pa.output_stream("people.csv.zst") as stream:
        stream.write(GOOD_FILES[case])
    assert counted("people.csv.zst") == 3


def test_what_has_brackets_in_its_name_is_one_file_and_a_star_is_many():
    for name, rows in (("year1", 1), ("year2", 2), ("year[12]", 3)):
        pq.write_table(ROWS.slice(0, rows), f"{name}.parquet")
        Path(f"{name}.csv").write_text("".join(LINES.splitlines(keepends=True)[: rows + 1]))
    for ending in ("parquet", "csv"):
        assert counted(f"year[12].{ending}") == 3
        assert counted(f"year?.{ending}") == 3
        assert counted(f"year*.{ending}") == 6


def test_files_of_one_table_have_one_header():
    Path("a1.csv").write_text(LINES)
    Path("a2.csv").write_text(LINES.replace("city", "town"))
    assert "has another header than" in refusal("a*.csv")


@pytest.mark.parametrize("ending", ["parquet", "csv", "duckdb"])
def test_what_is_no_file_is_refused(ending):
    write_good(f"people.{ending}")
    assert f'did you mean "people.{ending}"?' in refusal(f"peple.{ending}")
    assert "no file matches" in refusal(f"nothing*.{ending}")
    assert "there is no file" in refusal(f"no/such/folder/people.{ending}")
    assert "cannot be read (File name too long)" in refusal(f"{'x' * 5000}.{ending}")
    Path(f"folder.{ending}").mkdir()
    assert "is a directory; a source is a file" in refusal(f"folder.{ending}")
    os.mkfifo(f"pipe.{ending}")
    assert "is a pipe or a device" in refusal(f"pipe.{ending}")
    Path(f"zero.{ending}").symlink_to("/dev/zero")
    assert "is a pipe or a device" in refusal(f"zero.{ending}")
    Path(f"nowhere.{ending}").symlink_to("nothing")
    assert "there is no file" in refusal(f"nowhere.{ending}")
    assert counted(f"people.{ending}") == 3


@pytest.mark.parametrize("ending", ["parquet", "csv", "duckdb"])
def test_a_file_without_permission_is_refused(ending, tmp_path):
    """A child without privileges asks, because nothing is forbidden to root."""
    write_good(f"people.{ending}")
    Path(f"people.{ending}").chmod(0)
    script = f"""
        import os
        import ibis.backends.duckdb, pyarrow
        from discreet.errors import BadData
        from discreet.source.engines.files import open_csv, open_duckdb, open_parquet
        if os.geteuid() == 0:
            os.setgroups([]), os.setgid(65534), os.setuid(65534)
        assert os.path.exists("people.{ending}")
        try:
            {{"csv": lambda path: open_csv(path, ["age"]), "duckdb": open_duckdb, "parquet": open_parquet}}["{ending}"](
                "people.{ending}"
            )
        except BadData as error:
            print(error)
    """
    # The folders of pytest are closed to others.
    with tempfile.TemporaryDirectory(dir="/tmp") as held:
        Path(held).chmod(0o755)
        Path(f"people.{ending}").rename(Path(held) / f"people.{ending}")
        run = subprocess.run(
            [sys.executable, "-c", dedent(script)], cwd=held, capture_output=True, text=True, timeout=60, check=False
        )
    assert run.stdout.strip() == f'"people.{ending}" cannot be read; check its permissions.', run.stderr


@pytest.mark.parametrize("ending", ["parquet", "csv", "duckdb"])
def test_a_schema_that_does_not_fit_the_file_is_refused(ending):
    write_good(f"people.{ending}")
    absent = Schema("people", Domain({"age": Integers(0, 99), "citty": Categories(["Bern"])}))
    assert 'column "citty" of the schema is not there; did you mean "city"?' in refusal(f"people.{ending}", absent)
    keyed = Schema("people", SCHEMA.domain, Unit(key="person"))
    assert 'column "person" of the schema is not there; it has "age", "city"' in refusal(f"people.{ending}", keyed)
    if ending != "csv":
        swapped = Schema("people", Domain({"age": Categories(["Bern"]), "city": Integers(0, 9)}))
        assert 'column "age" holds int64 and is declared as Categories of texts' in refusal(f"people.{ending}", swapped)
    assert counted(f"people.{ending}") == 3


def test_a_database_without_the_table_is_refused():
    write_good("people.duckdb")
    assert 'no table "visits"; it has "people"' in refusal("duckdb://people.duckdb?table=visits")
    assert 'did you mean "people"?' in refusal("duckdb://people.duckdb?table=poeple")
    assert 'no table "other.people"; it has none' in refusal("duckdb://people.duckdb?table=other.people")
    assert 'has no option "tabel"; did you mean "table"?' in refusal("duckdb://people.duckdb?tabel=x", kind=BadSchema)
    assert counted("duckdb://people.duckdb?table=main.people") == 3


def test_two_tables_of_one_database_can_be_open_at_once():
    write_good("people.duckdb")
    first = open_table("people.duckdb", schema=SCHEMA)
    keyed = Schema("people", Domain({"age": Integers(0, 99)}), Unit(key="city"))
    second = open_table("duckdb://people.duckdb?table=people", schema=keyed)
    for table in (first, second):
        exact = table.evaluate(count(table.domain))
        assert unseal(exact, exact.sensitivity).tolist() == [3]


def test_a_database_that_another_process_writes_is_refused_until_it_has_finished():
    write_good("people.duckdb")
    script = "import duckdb; held = duckdb.connect('people.duckdb'); print('ready', flush=True); input()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", script], **pipes) as writer:
        assert writer.stdout.readline() == "ready\n"
        assert "another program is writing to it" in refusal("people.duckdb")
        writer.communicate("\n", timeout=30)
    assert counted("people.duckdb") == 3


def test_an_address_that_nobody_understands_is_refused(monkeypatch):
    monkeypatch.delenv("NOT_SET", raising=False)
    for address, sentence in {
        "mysql://host/people": "the source starts with",
        "postgress://host/people": 'did you mean "postgres"?',
        "people.xlsx": 'ends in ".xlsx"',
        "people.parqet": 'did you mean ".parquet"?',
        "people": 'ends in ""',
        "": "it must be a path or an address",
        "postgres://ana:${NOT_SET}@host/db": "uses ${NOT_SET}, which is not in the environment",
        "spark://local?table=a&path=b": "names a table and a path",
        "postgres://ana:what?ever@host/db": "In a password write %3F for ?",
    }.items():
        said = refusal(address, kind=BadSchema)
        assert sentence in said
        assert "what" not in said


# Servers.

PASSWORD = "hunter2-SECRET"


@needs("psycopg")
@pytest.mark.parametrize(
    "address",
    [
        f"postgres://ana:{PASSWORD}@127.0.0.1:1/people",
        f"postgres://127.0.0.1:1/people?user=ana&password={PASSWORD}",
        f"postgres://ana:{PASSWORD}/@127.0.0.1:1/people",
        f"postgres://ana:{PASSWORD}",
        f"postgres://{PASSWORD}:1@[::/people",
    ],
)
def test_a_postgres_that_is_not_there_is_refused_and_the_password_not_told(address):
    start = monotonic()
    said = refusal(address)
    assert "cannot be reached, or refused. Check host, port, database and password." in said
    assert PASSWORD not in said
    assert monotonic() - start < 15


@needs("psycopg")
def test_a_password_from_the_environment_may_have_any_character(monkeypatch):
    from psycopg.conninfo import conninfo_to_dict

    monkeypatch.setenv("PASSWORD", "a@b/c?d#e%41 &=")
    monkeypatch.setenv("HOST", "db.example:5433")
    address = read_address("postgres://ana:${PASSWORD}@${HOST}/people?sslmode=disable&table=visits")
    parts = conninfo_to_dict(address.place)
    assert (parts["password"], parts["host"], parts["port"]) == ("a@b/c?d#e%41 &=", "db.example", "5433")
    assert (parts["sslmode"], address.table) == ("disable", "visits")
    assert "b/c" not in repr(address)


def in_postgres():
    with postgres().cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS people CASCADE; CREATE TABLE people (age integer, city text)")
        cursor.executemany("INSERT INTO people VALUES (%s, %s)", [tuple(row.values()) for row in ROWS.to_pylist()])
    return postgres_address()


@needs_postgres
def test_a_postgres_without_the_database_the_role_or_the_table_is_refused(people_in_postgres):
    address = people_in_postgres
    assert "cannot be reached, or refused" in refusal(address.replace("/postgres?", "/nothing?"))
    assert "cannot be reached, or refused" in refusal(address.replace("//postgres:", "//nobody:"))
    assert 'no table "poeple"; did you mean "people"?' in refusal(f"{address}&table=poeple")
    assert 'no table "other.people"' in refusal(f"{address}&table=other.people")
    assert counted(address) == 3


@needs_postgres
def test_a_table_that_may_not_be_read_is_refused(people_in_postgres):
    address = people_in_postgres
    with postgres().cursor() as cursor:
        cursor.execute("DROP ROLE IF EXISTS stranger; CREATE ROLE stranger LOGIN; REVOKE ALL ON people FROM public")
    said = refusal(f"{address.replace('//postgres:', '//stranger:')}&table=people")
    assert 'has no table "people"; it has none that you may read.' in said


@needs_spark
def test_a_spark_that_does_not_answer_is_refused_in_seconds(monkeypatch):
    monkeypatch.setattr(connect, "_PATIENCE", 1)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        for address in ("spark://127.0.0.1:1", "sc://127.0.0.1:1", f"sc://127.0.0.1:{silent.getsockname()[1]}"):
            start = monotonic()
            said = refusal(
                f"{address}/;token={PASSWORD}?table=people" if "sc:" in address else f"{address}?table=people"
            )
            assert "cannot be reached" in said
            assert PASSWORD not in said
            assert monotonic() - start < 15


# Later: the table was there when it was opened.


def failure(table):
    with pytest.raises(SourceFailed, match="nothing was released") as caught:
        table.evaluate(Marginal(("city",)))
    return _sentence(caught.value)


@pytest.mark.parametrize("change", ["deleted", "noise", "cut", "another column", "another type"])
def test_a_file_that_changes_later_fails_until_it_is_back(change):
    write_good("people.parquet")
    table = open_table("people.parquet", schema=SCHEMA)
    copy2("people.parquet", "copy.parquet")
    Path("people.parquet").rename("people.kept")
    copy2("copy.parquet", "people.parquet")
    if change == "deleted":
        Path("people.parquet").unlink()
    elif change in ("noise", "cut"):
        Path("people.parquet").write_bytes(noise() if change == "noise" else cut("people.parquet", 0.6))
    else:
        other = ROWS.rename_columns(["age", "town"]) if change == "another column" else ROWS.set_column(
            1, "city", pa.array([[CANARY]] * 3, pa.list_(pa.string()))
        )  # fmt: skip
        pq.write_table(other, "people.parquet")
    failure(table)
    # Another file with the same rows is another file: whoever wrote it opens it again.
    write_good("people.parquet")
    failure(table)
    Path("people.kept").replace("people.parquet")
    exact = table.evaluate(Marginal(("city",)))
    assert unseal(exact, exact.sensitivity).tolist() == [1, 1, 1]


@needs_postgres
@pytest.mark.parametrize("change", ["DROP TABLE people", "ALTER TABLE people RENAME COLUMN city TO town"])
def test_a_table_that_changes_later_fails_and_recovers(people_in_postgres, change):
    table = open_table(people_in_postgres, schema=SCHEMA)
    with postgres().cursor() as cursor:
        cursor.execute(change)
    failure(table)
    in_postgres()
    exact = table.evaluate(Marginal(("city",)))
    assert unseal(exact, exact.sensitivity).tolist() == [1, 1, 1]


@needs_postgres
def test_a_connection_that_is_lost_is_a_failure_and_made_again_by_the_next_question(people_in_postgres):
    table = open_table(people_in_postgres, schema=SCHEMA)
    with postgres().cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
    failure(table)
    exact = table.evaluate(Marginal(("city",)))
    assert unseal(exact, exact.sensitivity).tolist() == [1, 1, 1]


def test_who_stops_half_way_does_not_block_the_next_question(monkeypatch):
    write_good("people.csv")
    monkeypatch.setattr(engine, "_BATCH", 1)
    table = open_table("people.csv", schema=SCHEMA)
    stopped = table.source.cells(("age", "city"))
    next(stopped)
    stopped.close()
    exact = table.evaluate(Marginal(("city",)))
    assert unseal(exact, exact.sensitivity).tolist() == [1, 1, 1]


# Never: no value of any row makes a question fail.

WORDS = ["", " ", "x", CANARY, "nan", "NaN", "inf", "-Infinity", "1e400", "-1e400", "1e-400", "9" * 400, "0x10", "1_0"]
WORDS += ["٣", "1,5", "7", " 7 ", "+7", "7.", ".7", "7e0", "--7", "9223372036854775808", "-9223372036854775809", "true"]
WORDS += ["infinity", "epoch", "now", "today", "0000-00-00", "2024-02-30", "2024-02-29", "290000-01-01", "-1-01-01"]
WORDS += ["2024-02-29 24:00:00", "2024-02-29T12:00:00+14:00", "2024-02-29 12:00 Europe/Zurich", "\x00", "\U0001f600"]


def test_no_word_in_a_csv_file_makes_a_question_fail():
    columns = {
        "whole": Integers(0, 9, missing="missing"),
        "rate": Bins([0, 0.5], upper=1, outside="other"),
        "day": Bins([date(2024, 2, 29)], upper=date(2024, 12, 31), outside="other"),
        "truth": Boolean(missing="missing"),
        "number": Categories([7, 0.7], missing="missing"),
        "mixed": Categories(["x", 7, True, date(2024, 2, 29)], missing="missing"),
    }
    quoted = ['"' + word.replace('"', '""') + '"' for word in WORDS]
    Path("words.csv").write_text("\n".join([",".join(columns), *(",".join([word] * 6) for word in quoted)]) + "\n")
    domain = Domain(columns)
    table = open_table("words.csv", domain=domain)
    for name, column in columns.items():
        exact = table.evaluate(Marginal((name,)))
        found = dict(zip(column.labels, unseal(exact, exact.sensitivity).tolist(), strict=True))
        assert sum(found.values()) == len(WORDS)
        if name == "number":
            assert found["7"] == 5, 'the words "7", " 7 ", "+7", "7." and "7e0"'
            assert found["0.7"] == 1
        if name == "day":
            assert found["2024-02-29 to 2024-12-31"] >= 1
            assert found["missing"] > 10

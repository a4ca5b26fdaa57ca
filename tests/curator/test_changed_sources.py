"""A source that is no longer what was asked: its owner is told, nothing is charged, nothing old is told of it."""

import os
from pathlib import Path
from time import monotonic, sleep
from uuid import uuid4

import pytest

import discreet as dp
from discreet.curator import Curator, executor
from discreet.errors import SourceChanged, TableChanged
from discreet.ledger import Budget, Ledger
from support.needs import needs_postgres

BUDGET = Budget(epsilon=4, delta=1e-9)
DOMAIN = dp.Domain({"age": dp.Integers(0, 99)})


class Rows:
    """A table in a real file or server, with so many rows, half of them 50 or older."""

    def __init__(self, kind, folder):
        self.kind, self.folder, self.name = kind, Path(folder), f"t{uuid4().hex[:12]}"
        self.write(10_000)

    @property
    def source(self):
        if self.kind == "postgres":
            from support.engines import postgres_address

            return f"{postgres_address()}&table={self.name}"
        return str(self.folder / f"{self.name}.{self.kind}")

    def write(self, rows):
        """Put so many rows in place of those that are there."""
        match self.kind:
            case "csv":
                Path(self.source).write_text("\n".join(["age", *(str(n % 100) for n in range(rows)), ""]))
            case "parquet":
                import polars as pl

                draft = Path(f"{self.source}.new")
                pl.DataFrame({"age": [n % 100 for n in range(rows)]}).write_parquet(draft)
                os.replace(draft, self.source)
            case "postgres":
                from support.engines import postgres

                postgres().execute(f"CREATE TABLE IF NOT EXISTS {self.name} (age integer)")
                before = postgres().execute(f"SELECT count(*) FROM {self.name}").fetchone()[0]
                postgres().execute(
                    f"INSERT INTO {self.name} SELECT n % 100 FROM generate_series({before}, {rows - 1}) n"
                )
                # The server counts edits a moment later.
                postgres().execute("SELECT pg_stat_force_next_flush()")

    def opened(self, version="1", **named):
        schema = dp.Schema(self.name, DOMAIN, version=version)
        return dp.open(self.source, schema=schema, **named)


KINDS = ["csv", "parquet", pytest.param("postgres", marks=needs_postgres)]


@pytest.fixture(params=KINDS)
def rows(request, tmp_path):
    return Rows(request.param, tmp_path)


def refused(ask, patience=12):
    """The refusal, as soon as the source shows that it has changed: Postgres takes a moment."""
    end = monotonic() + patience
    while True:
        try:
            ask()
        except (TableChanged, SourceChanged) as error:
            return error
        assert monotonic() < end, "it was not refused"
        sleep(0.2)


def test_a_table_that_grew_is_refused_when_it_is_opened_until_a_version_is_declared(rows, tmp_path):
    with Curator(rows.opened(), budget=BUDGET, ledger=tmp_path / "l.sqlite") as desk:
        assert abs(desk.ask("age >= 50", error=50).value - 5_000) < 200
        spent, head = desk.spent, desk.ledger.head
    # Nothing has changed: it opens, and what is known is free.
    with Curator(rows.opened(), ledger=tmp_path / "l.sqlite") as desk:
        assert desk.ask("age >= 50", error=50).origin == "known"
    rows.write(30_000)

    def reopen():
        with Curator(rows.opened(), ledger=tmp_path / "l.sqlite") as again:
            assert again.ask("age >= 50", error=50).origin == "known", "the change does not show yet"

    error = refused(reopen)
    assert isinstance(error, TableChanged)
    assert "version: 2" in str(error)
    assert rows.source not in str(error)
    with Ledger(tmp_path / "l.sqlite") as ledger:
        assert ledger.head == head, "nothing was charged"
    with Curator(rows.opened("2"), ledger=tmp_path / "l.sqlite") as desk:
        assert desk.spent == spent
        answer = desk.ask("age >= 50", error=50)
        assert answer.origin != "known"
        assert abs(answer.value - 15_000) < 200
        assert abs(desk.ask("age >= 50", error=30).value - 15_000) < 120


@pytest.mark.parametrize("kind", ["parquet", pytest.param("postgres", marks=needs_postgres)])
def test_a_table_that_changes_under_an_open_desk_is_not_paid_for_and_then_not_told(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(executor, "LOOK_AGAIN", 0.0)
    rows = Rows(kind, tmp_path)
    with Curator(rows.opened(), budget=BUDGET, ledger=tmp_path / "l.sqlite") as desk:
        desk.ask("age >= 50", error=50)
        rows.write(30_000)
        refused(lambda: desk.ask("age >= 50", error=50))
        head = desk.ledger.head
        for ask in (lambda: desk.ask("age < 20", error=50), lambda: desk.plan("age < 20", error=50), desk.known):
            with pytest.raises(TableChanged, match="has not declared a new version"):
                ask()
        assert desk.ledger.head == head


def test_a_desk_that_has_read_its_rows_answers_about_those(tmp_path):
    rows = Rows("parquet", tmp_path)
    with Curator(rows.opened(in_memory=True), budget=BUDGET, ledger=tmp_path / "l.sqlite") as desk:
        rows.write(30_000)
        assert abs(desk.ask("age >= 50", error=50).value - 5_000) < 200
    with pytest.raises(TableChanged):
        Curator(rows.opened(in_memory=True), ledger=tmp_path / "l.sqlite")


def test_what_is_known_is_still_told_while_the_source_is_away(tmp_path, monkeypatch):
    monkeypatch.setattr(executor, "LOOK_AGAIN", 0.0)
    rows = Rows("parquet", tmp_path)
    with Curator(rows.opened(), budget=BUDGET, ledger=tmp_path / "l.sqlite") as desk:
        desk.ask("age >= 50", error=50)
        head = desk.ledger.head
        os.rename(rows.source, f"{rows.source}.away")
        assert desk.ask("age >= 50", error=50).origin == "known"
        with pytest.raises(dp.SourceFailed):
            desk.ask("age < 20", error=50)
        assert desk.ledger.head == head
        os.rename(f"{rows.source}.away", rows.source)
        assert desk.ask("age < 20", error=50).origin != "known"


def test_a_look_at_the_source_takes_less_than_a_millisecond(tmp_path):
    table = Rows("parquet", tmp_path).opened()
    times = []
    for _ in range(200):
        begun = monotonic()
        _ = table.identity
        times.append(monotonic() - begun)
    assert sorted(times)[20] < 1e-3

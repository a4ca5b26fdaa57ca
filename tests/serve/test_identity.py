"""Two hospitals behind one server, a file that changes under it, another unit: who sees what, what is charged."""

import json
import os
from dataclasses import replace

import pytest

from discreet.errors import BadParameter, BadSchema, TableChanged
from discreet.ledger import Budget, Ledger, Scope
from discreet.serve.app import make
from support.live_server import CANARIES, Inside, people, settings

ONE = Budget(epsilon=1, delta=1e-9)
AGES = "age >= 45"


def hospitals(folder, **shares):
    """Two schema files, each in a folder of its own, each with rows of its own."""
    files = []
    for name in ("a", "b"):
        file = people(folder / name)
        said = f"shares_people_with: [{shares[name]}]\n" if name in shares else ""
        file.write_text(file.read_text().replace("table: people", f"table: {name}\n{said}"))
        files.append(str(file))
    return tuple(files)


def ask(server, table, **wish):
    return server.call("POST", f"/tables/{table}/ask", json={"question": AGES, **wish})


@pytest.mark.parametrize("shares", [{"a": "b"}, {"b": "a"}, {"a": "b", "b": "a"}], ids=["first", "second", "both"])
def test_two_hospitals_of_one_server_have_one_budget(tmp_path, shares):
    with Inside(tmp_path, schemas=hospitals(tmp_path, **shares), budget=ONE) as server:
        assert ask(server, "a", epsilon=0.9).status_code == 200
        spent = server.entries
        assert ask(server, "b", epsilon=0.9).status_code == 402
        assert server.entries == spent
        assert server.call("GET", "/tables/b").json()["shares_people_with"] == ["a", "b"]
        assert server.desks.ledger.caps == {Scope(("a", "b")): ONE}
        raised = server.call("PUT", "/tables/b/caps", "owner", json={"epsilon": 2, "delta": 1e-9})
        assert (raised.status_code, raised.json()["raised"]) == (200, True)
        assert server.desks.ledger.caps == {Scope(("a", "b")): Budget(epsilon=2, delta=1e-9)}


def test_a_server_does_not_start_on_caps_for_each_hospital_alone(tmp_path):
    chosen = settings(tmp_path, schemas=hospitals(tmp_path, a="b"), budget=None)
    with Ledger(chosen.ledger) as ledger:
        for name in ("a", "b"):
            ledger.cap(ONE, table=name)
    with pytest.raises(BadParameter, match="together with all tables that share its people"):
        make(chosen)
    with Inside(tmp_path, schemas=chosen.schemas, budget=ONE) as server:
        assert ask(server, "a", epsilon=0.9).status_code == 200
        assert ask(server, "b", epsilon=0.9).status_code == 402


def test_a_parquet_file_that_is_replaced_under_a_server(tmp_path):
    with Inside(tmp_path) as old:
        schema = tmp_path / "people.yaml"
        known = old.ask(AGES, error=300)
        assert known.status_code == 200
        people(tmp_path / "next", rows=9000)
        os.replace(tmp_path / "next" / "people.parquet", tmp_path / "people.parquet")
        old.desks.curators["people"]._executor.watch._looked = -10.0
        charged = old.entries
        said = [old.ask(AGES, error=300), old.ask("age < 18", error=300)]
        said.append(old.call("POST", "/tables/people/plan", json={"question": AGES, "error": 100}))
        for reply in said:
            assert reply.status_code == 409
            assert reply.json()["error"] == "TableChanged"
            assert "has not declared a new version" in reply.json()["detail"]
            assert not any(word in reply.text for word in ("parquet", str(tmp_path), "4000", "9000", *CANARIES))
        assert len({reply.json()["detail"] for reply in said}) == 1, "the sentence depends on nothing but the fact"
        assert old.entries == charged
        # The owner's log says where.
        lines = [json.loads(line) for line in old.log.getvalue().splitlines()]
        (line,) = [line for line in lines if line["is"] == "table changed"]
        assert line["source"] == "people.parquet"
        # What is public stays visible.
        assert old.call("GET", "/tables/people/budget").status_code == 200
        with pytest.raises(TableChanged, match="version: 2"):
            make(old.settings)
        schema.write_text(schema.read_text().replace("table: people", "table: people\nversion: 2"))
        with Inside(tmp_path, schemas=(str(schema),), budget=None) as new:
            answer = new.ask(AGES, error=300)
            assert answer.status_code == 200
            assert answer.json()["origin"] != "known"
            assert abs(answer.json()["value"] - known.json()["value"]) > 1500
            stale = old.ask(AGES, error=300)
            assert (stale.status_code, 'version "2"' in stale.json()["detail"]) == (409, True)


def test_a_key_of_a_release_is_of_one_version(tmp_path):
    wanted = {"workload": {"marginals": 1}, "epsilon": 0.5}
    key = {"headers": {"idempotency-key": "k"}}
    with Inside(tmp_path) as old:
        assert old.call("POST", "/tables/people/releases", json=wanted, **key).status_code == 202
        old.desks.jobs._maker.shutdown(wait=True)
    schema = tmp_path / "people.yaml"
    schema.write_text(schema.read_text().replace("table: people", "table: people\nversion: 2"))
    with Inside(tmp_path, schemas=(str(schema),), budget=None) as new:
        again = new.call("POST", "/tables/people/releases", json=wanted, **key)
        assert (again.status_code, again.json()["error"]) == (409, "KeyReused")


def test_a_server_does_not_start_with_another_unit(tmp_path):
    with Inside(tmp_path) as server:
        server.ask(AGES, error=300)
        charged = server.entries
    schema = tmp_path / "people.yaml"
    schema.write_text(schema.read_text().replace("privacy_unit: row", "privacy_unit: salary\ncontributions: 5"))
    with pytest.raises(BadSchema, match=r'one row is added or removed.*one "salary" with up to 5 rows'):
        make(replace(server.settings, budget=None))
    with Ledger(server.settings.ledger) as ledger:
        assert ledger.head.sequence == charged

"""What owners, auditors and analysts see: tables, budgets, caps, history, receipts, the ledger."""

import csv
import io
import json

import pytest

from discreet.ledger import Head, verify
from discreet.schema import parse_schema, read_schema
from support.live_server import Inside


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """Some questions by two people."""
    with Inside(tmp_path_factory.mktemp("books")) as inside:
        for hours in (10, 20, 30):
            assert inside.ask(f"hours >= {hours} AND sex = 'Male'", error=200 / hours).status_code == 200
        assert inside.ask("SELECT city, COUNT(*) FROM people GROUP BY city", "owner", error=30).status_code == 200
        yield inside


def test_a_table_tells_its_schema_and_not_where_the_rows_are(asked):
    (summary,) = asked.call("GET", "/tables").json()
    assert summary["name"] == "people"
    assert summary["protects"] == "one row is added or removed"
    found = asked.call("GET", "/tables/people").json()
    columns = {column["name"]: column for column in found["columns"]}
    assert columns["city"]["values"] == ["Bern", "Chur", "Genf", "Thun", "other"]
    assert columns["age"]["starts"] == [0, 18, 30, 45, 65, 80]
    assert columns["hours"]["numeric"]
    assert "parquet" not in json.dumps(found)
    declared = read_schema(asked.settings.schemas[0])
    assert parse_schema(found["schema"]).domain == declared.domain


def test_the_openapi_document_names_the_tables_and_the_token(asked):
    document = asked.web.get("/openapi.json", headers={"authorization": f"Bearer {asked.tokens['auditor']}"}).json()
    (table,) = document["paths"]["/v1/tables/{table}/ask"]["post"]["parameters"]
    assert table["schema"]["enum"] == ["people"]
    assert document["security"] == [{"token": []}]
    assert document["paths"]["/v1/health"]["get"]["security"] == []


def test_the_budget_is_told_in_words_and_numbers(asked):
    found = asked.call("GET", "/tables/people/budget?error=50").json()
    assert found["words"].startswith("about ")
    assert found["words"].endswith("more counts at ± 50")
    assert [row["error"] for row in found["counts"]] == [12.5, 25, 50, 100, 250]
    assert found["cap"] == {"epsilon": 20.0, "delta": 1e-9, "gate": "gaussian"}
    shares = [point["share"] for point in found["over_time"]]
    assert shares == sorted(shares)
    (mine,) = found["by_analyst"]
    assert mine["analyst"] == "analyst"
    assert shares[-1] == pytest.approx(mine["share"])
    owners = asked.call("GET", "/tables/people/budget", "owner").json()
    assert {row["analyst"] for row in owners["by_analyst"]} == {"analyst", "owner"}
    whole = [point["share"] for point in owners["over_time"]]
    assert whole[-1] == pytest.approx(1 - owners["share_left"])
    assert sum(row["share"] for row in owners["by_analyst"]) == pytest.approx(whole[-1])


def test_what_others_spend_shows_in_what_is_left_and_nowhere_else(tmp_path):
    with Inside(tmp_path) as inside:
        inside.ask("hours >= 10", error=100)
        before = inside.call("GET", "/tables/people/budget").json()
        inside.ask("hours >= 20 AND sex = 'Male'", role="owner", error=50)
        after = inside.call("GET", "/tables/people/budget").json()
        assert len(after["over_time"]) == len(before["over_time"]) == 1
        assert after["over_time"] == before["over_time"]
        assert after["by_analyst"] == before["by_analyst"]
        assert after["share_left"] < before["share_left"]


def test_the_meaning_of_a_budget_is_told(asked):
    found = asked.call("GET", "/tables/people/budget?error=50").json()
    titles = [each["title"] for each in found["meaning"]]
    assert len(titles) >= 4


def test_the_history_has_prices_and_receipts_that_are_in_the_ledger(asked):
    found = asked.call("GET", "/tables/people/history", "auditor").json()
    assert found["total"] == len(found["spends"]) == 4
    for spend in found["spends"]:
        assert spend["price"] > 0
        assert spend["answered"]
        audit = verify(asked.settings.ledger, head=Head.parse(spend["receipt"]))
        assert audit.spends >= 4


def test_an_answer_says_what_was_paid_as_the_history_does(tmp_path):
    with Inside(tmp_path) as inside:
        paid, known = (inside.ask("hours >= 10 AND sex = 'Male'", error=50).json() for _ in range(2))
        (spend,) = inside.call("GET", "/tables/people/history").json()["spends"]
        assert (paid["price"], known["price"]) == (spend["price"], 0)
        plan = inside.call(
            "POST", "/tables/people/plan", json={"question": "hours >= 3 AND age < 30", "error": 50}
        ).json()
        many = {"questions": ["hours >= 3 AND age < 30"], "error": 50}
        (answer,) = inside.call("POST", "/tables/people/ask-many", json=many).json()
        assert answer["price"] == pytest.approx(plan["price"]["epsilon"])


def test_the_history_is_filtered_and_paged(asked):
    first = asked.call("GET", "/tables/people/history?limit=2", "owner").json()
    assert first["more"]
    last = first["spends"][-1]["sequence"]
    second = asked.call("GET", f"/tables/people/history?limit=2&before={last}", "owner").json()
    assert not second["more"]
    numbers = [spend["sequence"] for page in (first, second) for spend in page["spends"]]
    assert numbers == sorted(numbers, reverse=True)
    assert len(set(numbers)) == 4
    assert asked.call("GET", "/tables/people/history?text=HOURS%20%3E%3D%2020", "owner").json()["total"] == 1
    assert asked.call("GET", "/tables/people/history?analyst=owner", "owner").json()["total"] == 1


def test_the_history_is_exported(asked):
    rows = list(csv.DictReader(io.StringIO(asked.call("GET", "/tables/people/history/export", "owner").text)))
    assert [row["analyst"] for row in rows] == ["analyst"] * 3 + ["owner"]
    assert rows[0]["receipt"].startswith("discreet-head ")
    lines = asked.call("GET", "/tables/people/history/export?form=jsonl").text.splitlines()
    assert [json.loads(line)["why"] for line in lines] == [f"hours >= {h} AND sex = 'Male'" for h in (10, 20, 30)]


def test_a_spreadsheet_does_not_compute_what_it_is_shown():
    from discreet.serve.spending_history import csv_of

    row = dict.fromkeys(("sequence", "at", "analyst", "price", "answered", "key", "receipt"), "")
    (_, line) = csv_of([row | {"why": "=1+1"}])
    assert "'=1+1" in line


def test_an_analyst_has_a_cap_under_the_tables_and_the_owner_raises_it(tmp_path):
    with Inside(tmp_path) as inside:
        cap = {"epsilon": 0.1, "delta": 1e-9, "analyst": "analyst"}
        assert inside.call("PUT", "/tables/people/caps", "owner", json=cap).json()["raised"] is False
        refused = inside.ask("hours >= 10 AND city = 'Bern'", error=20)
        assert refused.status_code == 402
        assert 'analyst "analyst", table "people"' in refused.json()["detail"]
        plan = inside.call("POST", "/tables/people/plan", json={"question": "hours >= 10", "error": 20}).json()
        assert plan["fits"] is False
        assert inside.ask("hours >= 10 AND city = 'Bern'", "owner", error=20).status_code == 200
        again = inside.ask("hours >= 10 AND city = 'Bern'", error=20).json()
        assert again["origin"] == "known"
        assert again["remaining"]["epsilon"] <= 0.1
        assert inside.call("GET", "/tables/people/budget").json()["remaining"]["epsilon"] <= 0.1
        assert inside.call("PUT", "/tables/people/caps", "owner", json=cap | {"epsilon": 2}).json()["raised"] is True
        assert inside.ask("hours >= 11 AND city = 'Bern'", error=20).status_code == 200
        lower = inside.call("PUT", "/tables/people/caps", "owner", json=cap | {"epsilon": 0.01})
        assert lower.status_code == 400
        each = inside.call("PUT", "/tables/people/caps", "owner", json={"epsilon": 3, "delta": 1e-9, "analyst": "*"})
        assert each.json()["each"]
        changes = [json.loads(entry.body) for entry in inside.desks.ledger.entries()]
        assert [change["owner"] for change in changes if change["is"] == "raise"] == ["owner"]


def test_the_ledger_is_verified_and_damage_is_told(tmp_path):
    import sqlite3

    with Inside(tmp_path) as inside:
        inside.ask("hours >= 10", error=100)
        found = inside.call("POST", "/ledger/verify", "auditor").json()
        assert found["holds"]
        assert found["head"] == inside.call("GET", "/ledger/head", "auditor").json()["head"]
        with sqlite3.connect(inside.settings.ledger) as database:
            database.execute("DROP TRIGGER discreet_ledger_update")
            database.execute("UPDATE discreet_ledger SET body = replace(body, '10', '11') WHERE sequence = 3")
        found = inside.call("POST", "/ledger/verify", "auditor").json()
        assert not found["holds"]
        assert "entry 3" in found["detail"]


def test_a_budget_that_was_raised_is_not_lowered_by_a_start(tmp_path):
    from dataclasses import replace

    from discreet.errors import BadParameter
    from discreet.ledger import Budget
    from discreet.serve.app import make

    with Inside(tmp_path) as inside:
        inside.call("PUT", "/tables/people/caps", "owner", json={"epsilon": 30, "delta": 1e-9})
    with Inside(tmp_path) as inside:
        assert inside.call("GET", "/tables/people/budget").json()["cap"]["epsilon"] == 30
    with pytest.raises(BadParameter, match="has a smaller budget already: epsilon 30"):
        make(replace(inside.settings, budget=Budget(40, 1e-9)))

"""Whatever comes in: a 4xx with a sentence, nothing charged, and no word of what is in the data."""

import json
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from discreet.errors import DiscreetError
from discreet.query.sql import parse_predicate
from discreet.schema import Schema, write_schema
from support.live_server import CANARIES, Inside, Live, names_python, settings
from support.needs import needs
from support.statements import HOSTILE, PEOPLE

FORMS = [
    {"question": 3},
    {"question": None},
    {"question": []},
    {"question": {}},
    {"question": {"where": None}},
    {"question": {"where": {"column": "age"}}},
    {"question": {"where": {"column": "age", "is": "~", "value": 1}}},
    {"question": {"where": {"column": "age", "is": ">=", "value": {"date": "yesterday"}}}},
    {"question": {"where": {"column": "age", "is": ">=", "value": {"number": "1/0"}}}},
    {"question": {"where": {"column": "age", "is": ">=", "value": [1]}}},
    {"question": {"where": {"and": []}}},
    {"question": {"where": {"column": "nobody", "is": "==", "value": 1}}},
    {"question": {"select": []}},
    {"question": {"select": ["max"]}},
    {"question": {"select": [{"median": "age"}]}},
    {"question": {"select": ["count"], "table": "others"}},
    {"question": {"select": ["count"], "group_by": ["nobody"]}},
    {"question": {"select": ["count"], "group_by": "age"}},
    {"question": {"select": ["count", "count"]}},
    {"question": {"select": ["count"], "limit": -1}},
    {"question": {"select": ["count"], "order_by": ["nobody"]}},
    {"question": {"select": ["count"], "form": 1}},
    {"question": {"select": [{"group": "sex"}, "count"], "group_by": ["city"]}},
    {"question": {"select": [{"avg": "sex"}]}},
    {"question": {"columns": ["age", "age"]}},
    {"question": {"columns": [3]}},
    {"question": {"columns": ["age"], "weight": "much"}},
    {"question": {"products": 3}},
    {"question": {"products": [[1, [[["age"], [3], [1, 2, 3]]]]]}},
    {"question": {"products": [[10**30, [[["sex"], [3], [1, 2, 3]]]]]}},
    {"question": {"products": [[1, [[["sex"], [3], [2**62, 2**62, 2**62]]], ], [2**62, []]]}},
    {"question": {"products": [[1, [[["sex"], [-1], [1]]]]]}},
    {"question": {"numerator": {"products": []}, "denominator": 3}},
    {"question": "age >= 18", "error": 0},
    {"question": "age >= 18", "error": -5},
    {"question": "age >= 18", "error": "5"},
    {"question": "age >= 18", "error": True},
    {"question": "age >= 18", "error": 5, "epsilon": 1},
    {"question": "age >= 18", "epsilon": 0},
    {"question": "age >= 18", "error": 5, "confidence": 1},
    {"question": "age >= 18", "error": 5, "confidence": 0},
    {"question": "age >= 18", "error": 5, "joint": "yes"},
    {"question": "age >= 18", "error": 5, "sql": "DROP TABLE people"},
    {"question": "age >= 18", "error": 5, "analyst": "owner"},
    {"question": "age >= 18", "error": 1e-9},
    {"question": {"where": {"or": [{"column": "age", "is": "==", "value": place} for place in range(2000)]}}},
    {"question": {"where": {"column": "age", "in": [17] * 6000}}},
    {"question": {"products": [[1, []]] * 600}},
    {"question": {"select": [{"sum": "hours", "as": f"a{place}"} for place in range(101)]}},
    {},
]  # fmt: skip
RAW = [b"", b"{", b"null", b"[]", b'"age >= 18"', b'{"question": "age >= 18", "error": NaN}', b"\xff\xfe",
       b"\x00" * 100, b'{"question": "age >= 18", "error": 1e999}', b'{"question": "age >= 18", "error": -Infinity}',
       b'{"question": "age >= 18", "error": ' + b"9" * 5000 + b"}", b'{"question": "\\ud800", "error": 5}',
       b'{"question": "a\\u0000", "error": 5}']  # fmt: skip


def refused(inside, reply, before):
    assert 400 <= reply.status_code < 500, (reply.request.content[:200], reply.text)
    assert reply.headers["content-type"] == "application/problem+json"
    problem = reply.json()
    assert problem["status"] == reply.status_code
    assert len(problem["detail"]) > 10
    assert not names_python(problem["detail"]), problem["detail"]
    assert not any(canary in reply.text for canary in CANARIES)
    assert inside.entries == before


def test_hostile_statements_are_refused_uncharged(tmp_path):
    """All those of the tests of SQL, of the table that they are about."""
    # A file does not tell "x" from "X".
    domain = PEOPLE.project([name for name in PEOPLE if name != "X"])
    write_schema(Schema("people", domain, source="people.csv"), tmp_path / "people.yaml")
    lines = ["|".join(f'"{name}"' for name in domain), "|".join(CANARIES[0] for _ in domain)]
    (tmp_path / "people.csv").write_text("\n".join(lines) + "\n")
    with Inside(tmp_path, schemas=(str(tmp_path / "people.yaml"),)) as inside:
        assert inside.call("GET", "/tables/people").status_code == 200
        before = inside.entries
        # Beside statements the server takes conditions as after WHERE, and some are one.
        hostile = [statement for statement in HOSTILE if not _is_condition(statement, domain)]
        assert len(set(hostile)) >= 300
        for statement in hostile:
            body = json.dumps({"question": statement, "error": 100}).encode()
            headers = {"content-type": "application/json"}
            refused(inside, inside.call("POST", "/tables/people/ask", content=body, headers=headers), before)


def _is_condition(statement, domain):
    with suppress(DiscreetError):
        return bool(parse_predicate(statement, domain) is not None)
    return False


@pytest.mark.parametrize("form", FORMS, ids=lambda form: json.dumps(form)[:60])
def test_hostile_forms_are_refused_uncharged(inside, form):
    before = inside.entries
    for path in ("ask", "plan"):
        given = form if path == "ask" else {name: value for name, value in form.items() if name != "analyst"}
        if path == "plan" and ("analyst" in form or form.get("error") == 1e-9):
            continue
        refused(inside, inside.call("POST", f"/tables/people/{path}", json=given), before)


@pytest.mark.parametrize("body", RAW, ids=lambda body: repr(body[:40]))
def test_hostile_bytes_are_refused_uncharged(inside, body):
    before = inside.entries
    headers = {"content-type": "application/json"}
    refused(inside, inside.call("POST", "/tables/people/ask", content=body, headers=headers), before)


@pytest.mark.parametrize("key", ["", "x" * 201, "a\tb"])
def test_hostile_keys_are_refused_uncharged(inside, key):
    before = inside.entries
    refused(inside, inside.ask("age >= 18", error=5, headers={"idempotency-key": key}), before)


@pytest.mark.parametrize(
    "form",
    [
        {"workload": {}, "epsilon": 1},
        {"workload": {"marginals": 0}, "epsilon": 1},
        {"workload": {"marginals": 9}, "epsilon": 1},
        {"workload": {"marginals": "two"}, "epsilon": 1},
        {"workload": {"marginals": 1, "of": []}, "epsilon": 1},
        {"workload": {"marginals": 1, "of": ["nobody"]}, "epsilon": 1},
        {"workload": {"prefixes": "city"}, "epsilon": 1},
        {"workload": {"ranges": 3}, "epsilon": 1},
        {"workload": {"weights": [[["age"], "much"]]}, "epsilon": 1},
        {"workload": {"weights": [[["age"], -1]]}, "epsilon": 1},
        {"workload": {"questions": ["SELECT COUNT(*) FROM people"]}, "epsilon": 1},
        {"workload": {"questions": [["age"]] * 6000}, "epsilon": 1},
        {"workload": {"everything": True}, "epsilon": 1},
        {"workload": {"marginals": 1}, "epsilon": 0},
        {"workload": {"marginals": 1}, "epsilon": -1},
        {"workload": {"marginals": 1}, "epsilon": 1, "delta": 2},
        {"workload": {"marginals": 1}, "epsilon": 1, "delta": 0.0},
        {"workload": {"marginals": 1}, "epsilon": 1e9},
        {"workload": {"marginals": 1}, "epsilon": 1, "method": "magic"},
        {"workload": {"marginals": 1}, "epsilon": 1, "seconds": -1},
    ],
    ids=lambda form: json.dumps(form)[:60],
)
def test_hostile_releases_are_refused_uncharged(inside, form):
    before = inside.entries
    refused(inside, inside.call("POST", "/tables/people/releases", json=form), before)


@pytest.mark.parametrize(
    "path",
    ["/tables/nobody", "/tables/nobody/ask", "/tables/people/releases/0123", "/tables/people/releases/..%2f..%2fx/card",
     "/tables/people/history?limit=0", "/tables/people/history?limit=x", "/tables/people/known?confidence=7",
     "/tables/people/budget?error=-1", "/tables/people/budget?error=nan", "/tables/people/history/export?form=xls",
     "/nowhere", "/tables/..%2f..%2fetc%2fpasswd"],
)  # fmt: skip
def test_hostile_addresses_are_refused(inside, path):
    refused(inside, inside.call("GET", path), inside.entries)


@pytest.mark.server
@needs("schemathesis")
def test_a_machine_that_reads_the_openapi_document_finds_no_failure(tmp_path):
    """Every route, with what fits its schema and what does not: no 5xx, and what was charged still adds up."""
    with Live(settings(tmp_path)) as live:
        command = [Path(sys.executable).with_name("schemathesis"), "run", f"{live.address}/openapi.json"]
        command += ["--header", f"Authorization: Bearer {live.owner}", "--checks", "not_a_server_error", "--no-color"]
        command += [
            "--max-examples",
            "8",
            "--phases",
            "examples,fuzzing",
            "--seed",
            "7",
            "--generation-database",
            "none",
        ]
        found = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, cwd=tmp_path)
        assert found.returncode == 0, found.stdout[-3000:]
        operations = re.search(r"Operations: +(\d+) selected / (\d+) total", found.stdout)
        assert operations, found.stdout[-3000:]
        assert operations[1] == operations[2]
        assert int(operations[1]) >= 25
        with live.web() as web:
            assert web.post("/ledger/verify").json()["holds"]


def test_a_route_that_fails_would_be_found(tmp_path):
    """The same machine sees a server that fails: it is not blind."""
    with Inside(tmp_path) as inside:
        app = inside.app._app.app

        @app.get("/v1/broken")
        def broken():
            raise ZeroDivisionError(CANARIES[0])

        reply = inside.call("GET", "/broken")
        assert reply.status_code == 500
        assert CANARIES[0] not in reply.text
        assert CANARIES[0] not in inside.log.getvalue()
        assert "ZeroDivisionError" in inside.log.getvalue()

"""Who comes in, and who does not: tokens, roles, sizes, rates; whatever is refused here costs nothing."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from socket import gethostname
from time import sleep

import pytest
import sqlalchemy as sa

from discreet.errors import BadParameter
from discreet.serve.app import make
from discreet.serve.middleware import COOKIE, _depth
from discreet.serve.registry import MOST_BYTES, Settings
from discreet.serve.tokens import FRESH, MARK, Tokens
from support.live_server import Inside, people

OWNERS = [
    ("GET", "/tokens", None),
    ("POST", "/tokens", {"name": "eve", "role": "owner"}),
    ("DELETE", "/tokens/abcdefgh", None),
    ("PUT", "/tables/people/caps", {"epsilon": 50, "delta": 1e-9}),
    ("DELETE", "/ledger/holds/1", None),
]
READERS = [
    ("GET", "/ledger/head", None),
    ("POST", "/ledger/verify", None),
    ("GET", "/ledger/holds", None),
    ("GET", "/metrics", None),
]
ASKERS = [
    ("POST", "/tables/people/ask", {"question": "age >= 18", "error": 500}),
    ("POST", "/tables/people/ask-many", {"questions": ["age >= 18"], "error": 500}),
    ("POST", "/tables/people/plan", {"question": "age >= 18", "error": 500}),
    ("POST", "/tables/people/releases", {"workload": {"marginals": 1}, "epsilon": 0.5}),
    ("POST", "/tables/people/releases/plan", {"workload": {"marginals": 1}, "epsilon": 0.5}),
]
PLACES = ("", "/people", "/people/known", "/people/budget", "/people/history")
ANYONE = [("GET", "/me", None), *(("GET", f"/tables{place}", None) for place in PLACES)]


def spoiled(inside):
    """Every way to come without a token that stands."""
    expired = inside.desks.tokens.create("late", "owner", days=1)
    revoked = inside.desks.tokens.create("gone", "owner")
    inside.desks.tokens.revoke(revoked[len(MARK) :][:8])
    yesterday = (datetime.now(UTC) - timedelta(days=1)).isoformat()
    with sa.create_engine(f"sqlite:///{inside.settings.ledger}").begin() as database:
        database.execute(sa.text("UPDATE discreet_token SET expires = :past WHERE name = 'late'"), {"past": yesterday})
    inside.desks.tokens._forget()
    good = inside.tokens["owner"]
    yield "missing", {}
    yield "empty", {"authorization": "Bearer "}
    yield "wrong", {"authorization": f"Bearer {MARK}{'x' * 43}"}
    yield "nearly", {"authorization": f"Bearer {good[:-1]}"}
    yield "longer", {"authorization": f"Bearer {good}x"}
    yield "another scheme", {"authorization": f"Basic {good}"}
    yield "expired", {"authorization": f"Bearer {expired}"}
    yield "revoked", {"authorization": f"Bearer {revoked}"}
    yield "the prefix", {"authorization": f"Bearer {good[len(MARK) :][:8]}"}
    yield "spoofed", {"x-analyst": "owner", "x-forwarded-user": "owner", "remote-user": "owner"}
    yield "odd letters", {"authorization": "Bearer \u00e9\u00ff"}
    yield "a strange cookie", {"cookie": 'discreet="\\777'}


def test_without_a_token_that_stands_all_replies_are_one_reply(inside):
    before = inside.entries
    seen = set()
    for _, headers in spoiled(inside):
        for method, path, form in [*OWNERS, *READERS, *ASKERS, *ANYONE, ("GET", "/nowhere", None)]:
            encoded = {name: value.encode("latin-1") for name, value in headers.items()}
            found = inside.web.request(method, f"/v1{path}", headers=encoded, json=form)
            shown = {name: value for name, value in found.headers.items() if name not in ("x-request-id", "date")}
            seen.add((found.status_code, found.text, json.dumps(shown)))
    assert len(seen) == 1
    ((status, body, headers),) = seen
    assert status == 401
    assert json.loads(body)["error"] == "NotAllowed"
    assert json.loads(headers)["www-authenticate"].startswith("Bearer")
    assert inside.entries == before


@pytest.mark.parametrize(
    ("role", "routes"),
    [("analyst", OWNERS + READERS), ("auditor", OWNERS + ASKERS)],
)
def test_a_role_that_may_not_is_told_so_and_nothing_happens(inside, role, routes):
    before, tokens = inside.entries, len(inside.desks.tokens.list())
    for method, path, form in routes:
        found = inside.call(method, path, role, json=form)
        assert (found.status_code, found.json()["error"]) == (403, "NotAllowed"), path
        assert f"your token is of an {role}" in found.json()["detail"]
    assert (inside.entries, len(inside.desks.tokens.list())) == (before, tokens)


@pytest.mark.parametrize("role", ["owner", "analyst", "auditor"])
def test_everybody_sees_the_schema_the_budget_and_their_history(inside, role):
    for method, path, _ in ANYONE:
        assert inside.call(method, path, role).status_code == 200


def test_an_analyst_sees_their_own_history_and_the_owner_all(inside):
    inside.ask("hours >= 30", error=200)
    inside.ask("hours >= 31 AND sex = 'Male'", "owner", error=200)
    mine = inside.call("GET", "/tables/people/history").json()["spends"]
    assert {spend["analyst"] for spend in mine} == {"analyst"}
    all_of_them = inside.call("GET", "/tables/people/history", "owner").json()["spends"]
    assert {spend["analyst"] for spend in all_of_them} == {"analyst", "owner"}
    other = inside.call("GET", "/tables/people/history?analyst=owner").json()
    assert other["spends"] == []
    assert inside.call("GET", "/tables/people/history?analyst=owner", "auditor").json()["spends"]


def test_a_token_is_shown_once_and_kept_as_a_hash(inside):
    made = inside.call(
        "POST", "/tokens", "owner", json={"name": "ana@example.org", "role": "analyst", "days": 2}
    ).json()
    token = made["token"]
    assert token.startswith(MARK)
    assert len(token) == len(MARK) + 43
    listed = inside.call("GET", "/tokens", "owner")
    assert token not in listed.text
    assert made["prefix"] in listed.text
    with open(inside.settings.ledger, "rb") as file, open(f"{inside.settings.ledger}-wal", "rb") as log:
        assert token.encode() not in file.read() + log.read()
    assert token not in inside.log.getvalue()
    assert inside.web.get("/v1/me", headers={"authorization": f"Bearer {token}"}).json()["name"] == "ana@example.org"
    assert inside.call("DELETE", f"/tokens/{made['prefix']}", "owner").json()["revoked_by"] == "owner"
    assert inside.web.get("/v1/me", headers={"authorization": f"Bearer {token}"}).status_code == 401


def test_a_token_revoked_elsewhere_is_refused_within_a_second(inside):
    store = Tokens(inside.settings.ledger)
    token = store.create("far", "analyst")
    headers = {"authorization": f"Bearer {token}"}
    sleep(FRESH + 0.1)
    assert inside.web.get("/v1/me", headers=headers).status_code == 200
    store.revoke(token[len(MARK) :][:8])
    sleep(FRESH + 0.1)
    assert inside.web.get("/v1/me", headers=headers).status_code == 401
    store.close()


@pytest.mark.parametrize(
    "form",
    [{"name": "*", "role": "analyst"}, {"name": "", "role": "analyst"}, {"name": "a" * 81, "role": "analyst"},
     {"name": "<b>", "role": "analyst"}, {"name": " ana", "role": "analyst"}, {"name": "ana", "role": "king"},
     {"name": "ana", "role": "analyst", "days": -1}, {"name": "ana", "role": "analyst", "days": 1e9}, {"name": "ana"}],
)  # fmt: skip
def test_a_token_that_makes_no_sense_is_refused(inside, form):
    found = inside.call("POST", "/tokens", "owner", json=form)
    assert found.status_code == 400
    assert found.json()["detail"]


def test_the_owner_does_not_lock_the_door_behind_themselves(inside):
    own = inside.tokens["owner"][len(MARK) :][:8]
    assert "the token that you use" in inside.call("DELETE", f"/tokens/{own}", "owner").json()["detail"]


def test_a_cookie_works_for_the_page_and_not_for_other_pages(inside):
    cookie = {"cookie": f"discreet={inside.tokens['analyst']}"}
    form = {"question": "age >= 18", "error": 900}
    path = "/v1/tables/people/plan"
    assert inside.web.get("/v1/me", headers=cookie).status_code == 200
    for origin in ({}, {"origin": "https://evil.example"}, {"origin": "null"}):
        found = inside.web.post(path, json=form, headers={**cookie, **origin})
        assert found.status_code == 403
        assert "another server" in found.json()["detail"]
    assert inside.web.post(path, json=form, headers={**cookie, "origin": "http://127.0.0.1:8711"}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8711", "127.0.0.1.evil.example", ""])
def test_a_name_that_is_not_ours_is_refused(inside, host):
    found = inside.web.get("/v1/health", headers={"host": host})
    assert found.status_code == 403
    assert "is not called" in found.json()["detail"]


@pytest.mark.parametrize("host", ["localhost:8711", "127.0.0.1", "[::1]:8711"])
def test_loopback_has_several_names(inside, host):
    assert inside.web.get("/v1/health", headers={"host": host}).json()["status"] == "ok"


@pytest.mark.parametrize("how", [{"certificate": Path("c.pem"), "key": Path("k.pem")}, {"behind_proxy": True}])
def test_a_certificate_or_a_proxy_says_what_a_server_is_called(tmp_path, how):
    with Inside(tmp_path, host="0.0.0.0", **how) as inside:
        assert inside.web.get("/v1/health", headers={"host": "stats.example.org"}).json()["status"] == "ok"
        assert inside.settings.address.split("//")[1].split(":")[0] == gethostname()


def test_what_is_too_long_or_too_deep_is_refused_uncharged(inside):
    before = inside.entries
    long = inside.ask("age >= 18" + " " * MOST_BYTES, error=1)
    assert long.status_code == 413
    parts = (b'{"question": "', b"x" * MOST_BYTES, b'"}')
    headers = {"content-type": "application/json"}
    assert inside.call("POST", "/tables/people/ask", content=iter(parts), headers=headers).status_code == 413
    for deep in ("[" * 100_000, '{"question":' * 50_000, '{"question": {"where": ' + '{"not": ' * 60 + "1" + "}" * 62):
        found = inside.call("POST", "/tables/people/ask", content=deep, headers=headers)
        assert found.status_code == 400
        assert "brackets" in found.json()["detail"]
    assert inside.entries == before


def test_the_depth_of_a_text_is_that_of_its_brackets():
    assert _depth(b'{"a": [1, [2]], "b": "[[[["}') == 3
    assert _depth(rb'{"a\"[[[": "\\", "b": []}') == 2
    assert _depth(b"") == 0


def test_too_many_requests_are_refused_uncharged_and_told_when_to_come_again(tmp_path):
    with Inside(tmp_path, rate=5.0, burst=3.0) as inside:
        before = inside.entries
        replies = [inside.ask("age >= 18", error=100) for _ in range(6)]
        refused = [reply for reply in replies if reply.status_code == 429]
        assert len(refused) >= 2
        assert all(int(reply.headers["retry-after"]) >= 1 for reply in refused)
        assert refused[0].json()["error"] == "TooMany"
        assert inside.entries == before + 2
        assert inside.call("GET", "/me", "owner").status_code == 200


def test_a_failed_token_is_answered_on_the_quantum(tmp_path):
    with Inside(tmp_path, quantum=0.2) as inside:
        for what, headers in spoiled(inside):
            encoded = {name: value.encode("latin-1") for name, value in headers.items()}
            # A busy machine may miss a quantum: each kind is refused after one of them, at one of three tries.
            for _ in range(3):
                found = inside.web.get("/v1/me", headers=encoded)
                assert found.status_code == 401
                waited = found.elapsed.total_seconds()
                assert waited > 0.19
                if waited < 0.4:
                    break
            assert waited < 0.4, what


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.7", "example.org", "::"])
def test_another_address_than_loopback_needs_tls_or_a_proxy(tmp_path, host):
    given = {"schemas": ("people.yaml",), "ledger": "x.sqlite", "releases": tmp_path, "host": host}
    with pytest.raises(BadParameter, match="--certificate and --key"):
        Settings(**given)
    assert Settings(**given, behind_proxy=True).host == host
    assert Settings(**given, certificate=tmp_path, key=tmp_path).is_secure
    with pytest.raises(BadParameter, match="one of them is missing"):
        Settings(**given, certificate=tmp_path)


def test_a_server_without_a_budget_does_not_start(tmp_path):
    schema = str(people(tmp_path))
    with pytest.raises(BadParameter, match="--budget 1 --delta 1e-9"):
        make(Settings(schemas=(schema,), ledger=str(tmp_path / "l.sqlite"), releases=tmp_path))
    with pytest.raises(BadParameter, match="two schemas declare one table"):
        make(Settings(schemas=(schema, schema), ledger=str(tmp_path / "l.sqlite"), releases=tmp_path))


def test_a_path_that_does_not_exist_is_a_page_for_a_browser_and_a_problem_for_a_program(inside):
    browser = {"accept": "text/html,application/xhtml+xml"}
    signed = {"cookie": f"{COOKIE}={inside.tokens['analyst']}"}
    page = inside.web.get("/nowhere", headers=browser | signed, follow_redirects=False)
    assert page.status_code == 404
    assert "No such page" in page.text
    assert "text/html" in page.headers["content-type"]
    bearer = {"authorization": f"Bearer {inside.tokens['analyst']}"}
    nobody = inside.web.get("/nowhere", headers=browser, follow_redirects=False)
    assert (nobody.status_code, nobody.headers["location"]) == (303, "/sign-in")
    for headers, path in (({}, "/nowhere"), (browser, "/v1/nowhere")):
        found = inside.web.get(path, headers=headers | bearer)
        assert (found.status_code, found.json()["error"]) == (404, "NotFound")


@pytest.mark.parametrize(
    ("path", "to"),
    [
        ("/t/people/ask", "/sign-in?to=%2Ft%2Fpeople%2Fask"),
        ("/owner", "/sign-in?to=%2Fowner"),
        (f"/t/{'%41' * 10_000}/ask", "/sign-in"),
        (f"/{'%41' * 10_000}", "/sign-in"),
    ],
)
def test_where_a_sign_in_leads_to_is_a_page_and_short(inside, path, to):
    found = inside.web.get(path, headers={"accept": "text/html"}, follow_redirects=False)
    assert (found.status_code, found.headers["location"]) == (303, to)

"""Everything else in a browser: signing in, budget, history, releases, the owner; on a phone and in the dark."""

import csv
import io
import re
from time import sleep
from urllib.parse import urlsplit

import httpx
import pytest

from discreet.serve.middleware import UNKNOWN_TOKEN
from support.needs import needs_browser

pytestmark = needs_browser

# Every page, and what it shows last.
PAGES = {
    "/sign-in": "#token",
    "/t/people/ask": "#curve polyline",
    "/t/people/budget": "#by-analyst svg",
    "/t/people/history": "#spends tbody tr",
    "/t/people/release": "#list > *",
    "/owner": "#tables table",
    "/t/nowhere/ask": "h1",
}


@pytest.fixture
def expect():
    from playwright.sync_api import expect

    return expect


@pytest.fixture(scope="session")
def api(server):
    """The server by HTTP, as the owner; something was already asked."""
    with httpx.Client(base_url=f"{server.address}/v1", headers={"authorization": f"Bearer {server.owner}"}) as web:
        for question in (
            "SELECT city, COUNT(*) FROM people GROUP BY city",
            "SELECT COUNT(*) FROM people WHERE age >= 65",
        ):
            web.post("/tables/people/ask", json={"question": question, "error": 70.0}).raise_for_status()
        yield web


def token_of(api, name, role):
    return api.post("/tokens", json={"name": name, "role": role}).json()["token"]


def test_a_token_behind_the_hash_signs_in_and_leaves_the_address(visit, server, expect):
    found = visit(token=None)
    page = found.to(f"/sign-in#{server.owner}")
    page.wait_for_url("**/t/adult/ask")
    assert server.owner not in page.evaluate("location.href + document.referrer")
    cookie = next(each for each in found.context.cookies() if each["name"] == "discreet")
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    page.go_back()
    assert server.owner not in page.url
    page.goto(server.address)
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/sign-in")
    assert found.context.cookies() == []
    found.to("/t/people/ask")
    assert urlsplit(page.url).path == "/sign-in"


def test_who_signs_in_is_taken_to_the_page_that_was_wanted(visit, server):
    page = visit("/t/people/budget", token=None).page
    assert urlsplit(page.url).path == "/sign-in"
    page.fill("#token", "discreet_wrong")
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("alert").get_by_text("neither revoked nor expired").wait_for()
    page.fill("#token", server.owner)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/t/people/budget")


WRONG = [
    "//elsewhere.example",
    "https://elsewhere.example/t/a/ask",
    "/\\elsewhere.example",
    "/t//elsewhere.example",
    "ask",
]


@pytest.mark.parametrize("to", [*WRONG, "/t/a/ask\r\nx: y", "/sign-in?to=/owner", "javascript:alert(1)", ""])
def test_nobody_is_taken_to_a_page_elsewhere(server, to):
    with httpx.Client(base_url=server.address, headers={"origin": server.address}) as web:
        said = web.post("/sign-in", data={"token": server.owner, "to": to})
        assert (said.status_code, said.headers["location"]) == (303, "/t/adult/ask")
        wanted = web.post("/sign-in", data={"token": server.owner, "to": "/t/people/history"})
        assert wanted.headers["location"] == "/t/people/history"
        shown = httpx.get(f"{server.address}/sign-in", params={"to": f'"><script>{to}'}).text
        assert "<script>" not in shown


def test_an_unknown_token_is_told_the_same_sentence_as_a_program(visit, expect):
    page = visit("/sign-in", token=None).page
    page.fill("#token", "discreet_wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_have_text(UNKNOWN_TOKEN)


@pytest.mark.parametrize("origin", ["http://elsewhere.example", "null", ""])
def test_nobody_is_signed_in_or_out_by_a_page_elsewhere(server, origin):
    headers = {"origin": origin} if origin else {}
    with httpx.Client(base_url=server.address, headers=headers) as web:
        said = web.post("/sign-in", data={"token": server.owner})
        assert (said.status_code, "set-cookie" in said.headers) == (401, False)
        assert "set-cookie" not in web.post("/sign-out").headers


def test_what_is_static_is_kept_for_a_day_and_pages_are_not(server):
    with httpx.Client(base_url=server.address) as web:
        page = web.get("/sign-in")
        assert page.headers["cache-control"] == "no-store"
        sheet = web.get(re.search(r'href="(/static/\w+/style.css)"', page.text)[1])
        assert sheet.headers["cache-control"] == "private, max-age=86400"
        assert web.get("/static/older/style.css").headers["cache-control"] == "no-cache"
        assert web.get("/static/older/page.py").status_code == 404
        packed, plain = (web.get("/static/vega.js", headers={"accept-encoding": how}) for how in ("gzip", "identity"))
        assert packed.headers["content-encoding"] == "gzip"
        assert packed.content == plain.content


def test_the_budget_is_told_in_words_with_what_it_means(visit, api, expect):
    page = visit("/t/people/budget").page
    expect(page.locator("#words")).to_have_text(re.compile(r"About [\d,]+ more counts at ± 200"))
    page.fill("#error", "50")
    expect(page.locator("#words")).to_have_text(re.compile(r"About [\d,]+ more counts at ± 50"))
    expect(page.locator("#meaning")).to_contain_text("change the odds that you took part")
    expect(page.locator("#over-time svg")).to_be_visible()
    expect(page.locator("#by-analyst svg")).to_be_visible()
    expect(page.locator("#accounts tbody tr")).to_have_count(1)


def test_the_history_is_filtered_and_exported(visit, api, expect):
    page = visit("/t/people/history").page
    expect(page.locator("#spends tbody tr").nth(1)).to_be_visible()
    page.fill("#text", "age >= 65")
    expect(page.locator("#total")).to_have_text("1 spend")
    expect(page.locator("#spends tbody tr")).to_have_count(1)
    expect(page.locator("#spends")).to_contain_text("SELECT COUNT(*) FROM people WHERE age >= 65")
    with page.expect_download() as download:
        page.click("#csv")
    rows = list(csv.DictReader(io.StringIO(download.value.path().read_text())))
    assert [row["why"] for row in rows] == ["SELECT COUNT(*) FROM people WHERE age >= 65"]
    page.get_by_role("link", name="again").click()
    expect(page.locator("#sql")).to_have_value("SELECT COUNT(*) FROM people WHERE age >= 65")
    page.go_back()
    page.select_option("#analyst", "owner")
    expect(page.locator("#total")).to_contain_text("spends")


@pytest.mark.parametrize(("typed", "shown"), [("0.125", "0.125"), ("0", "0.5")])
def test_a_cost_of_a_release_that_is_typed_before_the_budget_comes_stays(visit, expect, typed, shown):
    page, let_through = visit().early("/t/people/release", "**/v1/tables/people")
    page.fill("#epsilon", typed)
    let_through()
    expect(page.locator("#columns input")).not_to_have_count(0)
    assert page.input_value("#epsilon") == shown


def test_a_release_is_planned_made_watched_compared_and_downloaded(visit, expect):
    page = visit("/t/people/release").page
    for name in ("sex", "city", "hours"):
        page.get_by_label(re.compile(f"^{name}")).check()
    page.fill("#epsilon", "0.5")
    expect(page.locator("#goal")).to_contain_text("all 2-way marginals of 3 columns, for epsilon 0.5", ignore_case=True)
    expect(page.locator("#plan tbody tr").nth(1)).to_contain_text("%")
    page.get_by_role("button", name="Make the release").click()
    expect(page.locator("#progress")).to_be_visible()
    expect(page.get_by_role("progressbar")).to_be_visible()
    expect(page.locator("#headline")).to_contain_text("one row is added or removed", timeout=40_000)
    expect(page.locator("#progress")).to_be_hidden()
    expect(page.locator("#facts")).to_contain_text("mean error of a marginal")
    bars = page.locator("#compare svg g.mark-rect.layer_0_marks > *")
    expect(bars).to_have_count(3)
    page.select_option("#second", "city")
    expect(bars).to_have_count(15)
    expect(page.locator("#compare svg g.mark-rule.layer_1_marks > *")).to_have_count(15)
    expect(page.locator("#compare-words")).to_contain_text("within the error")
    # A marginal that is still being fetched when another is chosen is given up.
    page.route(re.compile(r"marginal\?columns=hours,city"), lambda route: None)
    with page.expect_request(re.compile("columns=hours,city")):
        page.select_option("#first", "hours")
    with page.expect_event("requestfailed", lambda request: "columns=hours,city" in request.url):
        page.select_option("#second", "")
    expect(page.locator("#compare-words")).to_contain_text("The line is the release; the band is what is known")
    expect(page.locator("#compare svg g.mark-symbol > *")).to_have_count(62)
    expect(page.locator("#compare svg g.mark-area > *")).to_have_count(1)
    with page.expect_download() as download:
        page.get_by_role("link", name="Rows, CSV").click()
    assert download.value.suggested_filename == "people-synthetic.csv"
    assert download.value.path().read_text().splitlines()[0].split(",") == ["sex", "city", "hours"]
    expect(page.locator("#list tbody tr")).to_contain_text(["done"])


def test_a_token_is_made_shown_once_used_and_revoked(visit, expect):
    owner, other = visit("/owner").page, visit(token=None)
    owner.get_by_label("Name").fill("ada")
    owner.get_by_label("Days").fill("7")
    owner.get_by_role("button", name="Make a token").click()
    token = owner.locator("#new-token").text_content()
    page = other.to(f"/sign-in#{token}")
    page.wait_for_url("**/t/adult/ask")
    expect(page.locator("header")).to_contain_text("ada analyst")
    other.to("/owner")
    expect(page.get_by_role("heading", level=1)).to_have_text("For the data owner")
    owner.reload()
    owner.locator("#tokens table").wait_for()
    assert token not in owner.content()
    owner.get_by_role("button", name="Revoke the token of ada").click()
    owner.get_by_role("button", name="Revoke the token of ada for good?").click()
    expect(owner.locator("#tokens tr.off")).to_contain_text("ada")
    sleep(1.5)
    other.to("/t/people/budget")
    assert urlsplit(page.url).path == "/sign-in"


def test_a_page_whose_token_is_gone_goes_back_to_the_form(visit, api, expect):
    found = visit("/t/people/budget", token=token_of(api, "eva", "analyst"))
    expect(found.page.locator("#words")).to_contain_text("more counts")
    found.context.clear_cookies()
    found.page.fill("#error", "77")
    found.page.wait_for_url("**/sign-in?to=*budget")


def test_the_owner_raises_a_cap_and_verifies_the_ledger(visit, api, expect):
    page = visit("/owner").page
    expect(page.locator("#accounts tbody tr")).to_have_count(2)
    page.select_option("#cap-table", "people")
    expect(page.locator("#cap-delta")).to_have_value("1e-9")
    page.fill("#cap-analyst", "ana")
    page.fill("#cap-epsilon", "2")
    page.get_by_role("button", name="Set or raise").click()
    expect(page.locator("#accounts")).to_contain_text('analyst "ana"')
    page.fill("#cap-epsilon", "1")
    page.get_by_role("button", name="Set or raise").click()
    expect(page.locator("#cap-problem")).to_contain_text("can be raised")
    page.get_by_role("button", name="Verify every entry").click()
    expect(page.locator("#verified")).to_contain_text("This ledger holds")
    expect(page.locator("#head code")).to_contain_text("discreet-head")
    expect(page.locator("#tables")).to_contain_text("one row is added or removed")


def test_an_auditor_looks_and_does_not_ask(visit, api, expect):
    found = visit("/", token=token_of(api, "aud", "auditor"))
    assert found.page.url.endswith("/t/adult/budget")
    expect(found.page.get_by_role("navigation", name="Pages").get_by_role("link")).to_have_text(
        ["Budget", "History", "Release", "Ledger"]
    )
    found.to("/owner")
    expect(found.page.locator("#holds")).to_contain_text("Nothing is set aside")
    assert found.page.locator("#tokens").count() == 0
    found.to("/t/people/ask")
    expect(found.page.get_by_role("heading", level=1)).to_have_text("Not for auditors")


def test_an_unknown_table_is_told_kindly(visit, expect):
    page = visit("/t/poeple/ask").page
    expect(page.locator("main")).to_contain_text('There is no table "poeple"; did you mean "people"?')


def test_nothing_is_wider_than_a_phone(visit, api):
    found = visit(viewport={"width": 375, "height": 700})
    for path, last in PAGES.items():
        page = found.to(path)
        page.locator(last).first.wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= 375, path


def test_charts_follow_the_colours_of_the_night(visit, api, expect):
    page = visit("/t/people/budget").page
    label = page.locator("#by-analyst svg .role-axis-label text").first
    expect(label).to_have_attribute("fill", "#5d6776")
    page.emulate_media(color_scheme="dark")
    expect(page.locator("body")).to_have_css("background-color", "rgb(16, 20, 26)")
    expect(label).to_have_attribute("fill", "#98a4b3")

"""Asking in a browser: the price before, the answer with its error, the chart, and what is said when it is refused."""

import re

import pytest

from support.needs import needs_browser

pytestmark = needs_browser

ADULT, PEOPLE = "/t/adult/ask", "/t/people/ask"


@pytest.fixture
def expect():
    from playwright.sync_api import expect

    return expect


def ask(page, sql, error=None):
    """Write a question and press the button."""
    page.fill("#sql", sql)
    if error is not None:
        page.fill("#error", str(error))
    page.click("#ask")


def marks(page, kind, layer=0):
    """The marks of a layer of the open chart."""
    return page.locator(f".answer[open] .chart svg g.mark-{kind}.layer_{layer}_marks > *")


def test_a_count_has_its_price_before_and_its_error_after(visit, expect):
    page = visit(PEOPLE).page
    page.fill("#sql", "SELECT COUNT(*) FROM people WHERE hours >= 40 AND city = 'Bern'")
    page.fill("#error", "31")
    expect(page.locator("#price")).to_contain_text(re.compile(r"epsilon 0\.\d+, [\d.]+ % of the budget, ± 31"))
    expect(page.locator("#curve polyline")).to_be_visible()
    page.click("#ask")
    expect(page.locator(".answer .number")).to_have_text(re.compile(r"^-?[\d,]+ ± (31|30\.\d)$"))
    expect(page.locator(".answer .errorbar")).to_be_visible()
    expect(page.locator(".answer .origin")).to_contain_text(re.compile(r"measured for epsilon 0\.\d+; epsilon 20 left"))
    expect(page.locator("#price")).to_contain_text("free: it is known")


def test_what_is_typed_while_the_page_loads_stays(visit, expect):
    page, let_through = visit().early(PEOPLE, "**/tables/people")
    page.get_by_label("Build it").check()
    assert page.locator("#builder").is_hidden()
    let_through()
    page.get_by_role("button", name="+ Add a condition").click()


def test_the_builder_sums_and_averages(visit, expect):
    page = visit(PEOPLE).page
    page.get_by_label("Build it").check()
    page.get_by_label("What to ask for").select_option("avg")
    assert page.input_value("#sql") == "SELECT AVG(hours)\nFROM people"
    page.click("#ask")
    expect(page.locator(".answer .number")).to_contain_text("±")


def test_a_click_on_a_column_or_a_value_puts_it_into_the_question(visit, expect):
    page = visit(PEOPLE).page
    page.fill("#sql", "SELECT COUNT(*) FROM people WHERE")
    page.get_by_role("button", name="city", exact=True).click()
    page.keyboard.type(" =")
    page.get_by_role("button", name="5 values of city").click()
    page.get_by_role("button", name="Genf").click()
    expect(page.locator("#sql")).to_have_value("SELECT COUNT(*) FROM people WHERE city = 'Genf'")


def test_what_is_known_is_offered_and_free_and_answers_stay(visit, expect):
    page = visit(PEOPLE).page
    ask(page, "SELECT sex, city, COUNT(*) FROM people GROUP BY sex, city", 50)
    chip = page.locator("#chips button", has_text="city × sex").or_(
        page.locator("#chips button", has_text="sex × city")
    )
    chip.first.click()
    expect(page.locator("#price")).to_contain_text("free: it is known")
    page.click("#ask")
    expect(page.locator(".answer[open] .origin")).to_contain_text("known: free")
    expect(page.locator(".answer")).to_have_count(2)
    page.reload()
    expect(page.locator(".answer")).to_have_count(2)
    expect(marks(page, "rect")).to_have_count(15)


def test_a_lost_connection_is_tried_again_with_the_same_key(visit, expect):
    found = visit(PEOPLE)
    page, keys = found.page, []

    def lose_the_first(route):
        keys.append(route.request.headers["idempotency-key"])
        if len(keys) == 1:
            route.abort()
        else:
            route.continue_()

    page.route("**/tables/people/ask", lose_the_first)
    ask(page, "SELECT COUNT(*) FROM people WHERE hours > 55", 60)
    expect(page.locator(".answer .number")).to_contain_text("±")
    assert len(keys) == 2
    assert keys[0] == keys[1]
    assert [error for error in found.errors if "ERR_FAILED" not in error] == []
    found.errors.clear()


def test_who_comes_too_often_waits_and_is_answered(visit, expect):
    page = visit(PEOPLE).page
    calls = []

    def first_too_often(route):
        calls.append(route.request.url)
        if len(calls) == 1:
            route.fulfill(status=429, headers={"retry-after": "1"}, json={"detail": "wait"})
        else:
            route.continue_()

    page.route("**/tables/people/ask", first_too_often)
    ask(page, "SELECT COUNT(*) FROM people WHERE hours > 50", 60)
    expect(page.locator(".answer .number")).to_contain_text("±")
    assert len(calls) == 2


def test_the_keyboard_is_enough(visit, expect):
    page = visit(PEOPLE).page
    page.locator("#columns button").first.wait_for()
    reached = []
    for _ in range(20):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id"))
        if reached[-1] == "sql":
            break
    assert reached[-1] == "sql"
    page.keyboard.press("Control+a")
    page.keyboard.type("SELECT COUNT(*) FROM people WHERE hours < 10")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".answer .number")).to_contain_text("±")


def test_every_input_has_a_name(visit):
    page = visit(PEOPLE).page
    page.get_by_label("Build it").check()
    page.get_by_role("button", name="+ Add a condition").click()
    nameless = """() => [...document.querySelectorAll("input, select, textarea, button, summary")].filter((one) =>
        !(one.labels?.length || one.getAttribute("aria-label") || one.textContent.trim())).length"""
    assert page.evaluate(nameless) == 0


def test_the_watch_sees_a_script_that_asks_elsewhere(visit):
    found = visit(PEOPLE)
    found.page.evaluate("fetch('http://192.0.2.1/').catch(() => 0)")
    assert any("Content Security Policy" in error for error in found.errors)
    found.errors.clear()

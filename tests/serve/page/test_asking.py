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
    page, let_through = visit().early(PEOPLE, "**/v1/tables/people")
    typed = "SELECT COUNT(*) FROM people WHERE hours > 41"
    page.fill("#sql", typed)
    expect(page.locator("#columns")).to_contain_text("Loading")
    let_through()
    expect(page.locator("#columns")).to_contain_text("hours")
    expect(page.locator("#sql")).to_have_value(typed)


def test_the_slider_chooses_an_error_and_shows_its_price(visit, expect):
    page = visit(PEOPLE).page
    page.fill("#sql", "SELECT COUNT(*) FROM people WHERE hours <= 7")
    expect(page.locator("#curve polyline")).to_be_visible()
    page.locator("#slider").focus()
    before = float(page.input_value("#error"))
    page.keyboard.press("PageDown")
    error = float(page.input_value("#error"))
    assert error < before
    expect(page.locator("#price")).to_contain_text(re.compile(rf"epsilon [\d.]+, [\d.,]+ % of the budget, ± {error:g}"))


@pytest.mark.parametrize("width", [1200, 375])
def test_what_comes_late_does_not_move_the_button_under_the_finger(visit, expect, server, width):
    """A click counts only where the mouse goes down and up on the same button."""
    with server.web() as web:
        web.post("/tables/people/ask", json={"question": "SELECT sex, COUNT(*) FROM people GROUP BY sex", "error": 40})
    found, late, now = visit(viewport={"width": width, "height": 900}), [], []
    for what in ("known*", "plan"):
        hold = lambda route: route.continue_() if now else late.append(route)
        found.page.route(f"**/v1/tables/people/{what}", hold)
    page = found.to(PEOPLE)
    page.fill("#sql", "SELECT COUNT(*) FROM people WHERE sex = 'Male'")
    expect(page.locator("#columns .put")).to_have_count(4)
    while not any("known" in route.request.url for route in late):
        page.wait_for_timeout(50)
    page.locator("#ask").scroll_into_view_if_needed()
    box = page.locator("#ask").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 4)
    page.mouse.down()
    now.append(True)
    for route in late:
        route.continue_()
    expect(page.locator("#chips button").first).to_be_visible()
    expect(page.locator("#price")).to_contain_text("±")
    page.mouse.up()
    expect(page.locator(".answer .number")).to_be_visible()
    assert page.locator("#ask").bounding_box()["y"] == box["y"]


def test_the_slider_of_a_mean_goes_by_the_range_of_its_column(visit, expect):
    page = visit(PEOPLE).page
    expect(page.locator("#columns .put")).to_have_count(4)
    page.fill("#sql", "SELECT AVG(hours) FROM people")
    expect(page.locator("#price")).to_contain_text("±")
    expect(page.locator("#error")).to_have_value("1")
    for place, error in (("0", "0.060"), ("1000", "24")):
        page.locator("#slider").fill(place)
        assert float(page.input_value("#error")) == float(error)


def test_too_small_an_error_is_refused_with_a_sentence_and_a_way_out(visit, expect):
    page = visit(PEOPLE).page
    ask(page, "SELECT COUNT(*) FROM people WHERE hours = 33", 0.1)
    expect(page.locator("#refusal")).to_contain_text("This needs epsilon")
    expect(page.locator("#refusal")).to_contain_text("nothing was charged")
    expect(page.locator("#price")).to_contain_text("more than is left")
    page.click("#refusal button")
    assert float(page.input_value("#error")) > 0.1
    expect(page.locator("#price")).not_to_contain_text("more than is left")


def test_a_price_that_comes_late_is_not_that_of_another_wish(visit, expect):
    """The plan of the question is held up until the plan of another error has come."""
    found, late = visit(), []

    def hold(route):
        form = route.request.post_data_json
        if form.get("error") == 3.5 and not late:
            late.append(route)
        else:
            route.continue_()

    page = found.to(PEOPLE)
    page.fill("#error", "3.5")
    expect(page.locator("#price")).to_contain_text("± 3.5")
    page.route("**/v1/tables/people/plan", hold)
    page.fill("#sql", "SELECT COUNT(*) FROM people WHERE hours <= 13 AND age >= 30")
    while not late:
        page.wait_for_timeout(50)
    page.fill("#error", "4.5")
    expect(page.locator("#price")).to_contain_text("± 4.5")
    with page.expect_response(lambda reply: reply.url.endswith("/plan")):
        late[0].continue_()
    page.wait_for_timeout(200)
    expect(page.locator("#price")).to_contain_text("± 4.5")


def test_what_is_known_for_free_is_offered_where_a_wish_is_refused(visit, expect):
    page = visit(PEOPLE).page
    ask(page, "SELECT COUNT(*) FROM people WHERE age >= 45 AND sex = 'Female'", 70)
    expect(page.locator("#price")).to_contain_text("free: it is known")
    page.fill("#error", "0.01")
    expect(page.locator("#price")).to_contain_text("times the budget")
    page.click("#ask")
    expect(page.locator("#refusal")).to_contain_text("nothing was charged")
    expect(page.locator("#refusal")).not_to_contain_text("without an error")
    page.locator("#refusal").get_by_role("button", name="known for free").click()
    expect(page.locator("#price")).to_contain_text("free: it is known")
    page.keyboard.press("Enter")
    expect(page.locator(".answer")).to_have_count(2)
    expect(page.locator(".answer[open] .origin")).to_contain_text("known: free")


def test_what_is_wrong_is_said_under_the_box_and_is_never_html(visit, expect):
    page = visit(PEOPLE).page
    page.fill("#sql", "SELECT COUNT(*) FROM people WHERE aeg > 3")
    expect(page.locator("#problem")).to_contain_text('No column "aeg"; did you mean "age"?')
    page.fill("#sql", "SELECT COUNT(*) FROM people WHERE \"<img src=x onerror='alert(1)'>\" = 'Bern'")
    expect(page.locator("#problem")).to_contain_text("<img src=x")
    assert page.locator("#problem img").count() == 0


def test_groups_are_bars_with_error_bars(visit, expect):
    page = visit(ADULT).page
    ask(page, "SELECT education, COUNT(*) FROM adult GROUP BY education", 100)
    expect(marks(page, "rect")).to_have_count(16)
    expect(marks(page, "rule", 1)).to_have_count(16)
    expect(page.locator(".answer[open] tbody tr")).to_have_count(16)


def test_many_ordered_groups_are_a_line_with_a_band(visit, expect):
    page = visit(ADULT).page
    ask(page, "SELECT age, COUNT(*) FROM adult GROUP BY age", 100)
    expect(page.locator(".answer[open] .chart svg g.mark-symbol > *")).to_have_count(74)
    expect(page.locator(".answer[open] .chart svg g.mark-area > *")).to_have_count(1)


def test_two_columns_are_a_heat_map(visit, expect):
    page = visit(ADULT).page
    ask(page, "SELECT sex, race, COUNT(*) FROM adult GROUP BY sex, race", 100)
    expect(marks(page, "rect")).to_have_count(10)
    expect(page.locator(".answer[open] tbody tr")).to_have_count(10)


def test_the_builder_writes_sql_that_is_asked(visit, expect):
    page = visit(PEOPLE).page
    page.get_by_label("Build it").check()
    page.get_by_role("button", name="+ Add a condition").click()
    page.get_by_label("Column", exact=True).select_option("hours")
    page.get_by_label("Comparison").select_option("between")
    page.get_by_label("Largest value").fill("20")
    page.get_by_role("button", name="+ Add a condition").click()
    page.get_by_label("Column", exact=True).nth(1).select_option("city")
    page.get_by_label("Bern").check()
    page.get_by_label("Thun").check()
    page.get_by_label("For each value of").first.select_option("sex")
    wanted = (
        "SELECT sex, COUNT(*)\nFROM people\nWHERE hours BETWEEN 0 AND 20 AND city IN ('Bern', 'Thun')\nGROUP BY sex"
    )
    assert page.input_value("#sql") == wanted
    page.fill("#error", "40")
    page.click("#ask")
    expect(marks(page, "rect")).to_have_count(3)


def test_who_chooses_to_build_before_the_columns_come_can_build(visit):
    page, let_through = visit().early(PEOPLE, "**/v1/tables/people")
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

    page.route("**/v1/tables/people/ask", lose_the_first)
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

    page.route("**/v1/tables/people/ask", first_too_often)
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

"""Whatever an analyst sends is answered or refused with a sentence: never a 500, and a refusal is never charged."""

import json
from threading import current_thread

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from support.live_server import Inside, names_python

HUGE = "1" + "0" * 5000
NUMBERS = ["0", "-1", "1e-300", "5e-324", "1e300", "1e400", "NaN", "Infinity", "-Infinity", HUGE, f"-{HUGE}", "9e-16"]
NUMBERS += ['"5"', "true", "[]", "{}", "1e16"]
CONFIDENCES = [*NUMBERS, "1", "1e-17", "0.0001", "0.99999999999999999", "0.9999999999999", "1.5"]


@pytest.fixture(scope="module")
def inside(tmp_path_factory):
    with Inside(tmp_path_factory.mktemp("edges")) as found:
        yield found


def refused(inside, path, body):
    """Send a body as it is: it is refused with a sentence, and nothing is charged."""
    before = inside.entries
    headers = {"content-type": "application/json"}
    reply = inside.call("POST", f"/tables/people/{path}", content=body.encode(), headers=headers)
    assert reply.status_code in (400, 402, 422), (reply.status_code, body[:200])
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.json()["detail"].count(" ") > 3
    assert not names_python(reply.json()["detail"]), reply.json()["detail"]
    assert inside.entries == before


@pytest.mark.parametrize("path", ["ask", "plan"])
@pytest.mark.parametrize(("name", "values"), [("error", NUMBERS), ("epsilon", NUMBERS), ("confidence", CONFIDENCES)])
def test_numbers_that_make_no_sense_are_refused(inside, path, name, values):
    for question in ("age >= 18", "SELECT sex, AVG(hours) FROM people GROUP BY sex HAVING AVG(hours) > 3"):
        for value in values:
            more = '"error": 900, ' if name == "confidence" else ""
            refused(inside, path, f'{{"question": {json.dumps(question)}, {more}"{name}": {value}}}')


@pytest.mark.parametrize("value", [*CONFIDENCES])
def test_so_they_are_for_many_questions_and_for_what_is_known(inside, value):
    refused(inside, "ask-many", f'{{"questions": ["age >= 18"], "error": 900, "confidence": {value}}}')
    if value.strip("{}[]"):
        reply = inside.call("GET", f"/tables/people/known?confidence={value[:50]}")
        assert reply.status_code == 400, value


@pytest.mark.parametrize("value", NUMBERS)
def test_so_they_are_for_releases(inside, value):
    for name in ("epsilon", "delta", "seconds", "memory"):
        body = {"workload": {"questions": [["sex"]]}, "epsilon": 0.001, "method": "direct"}
        plain = json.dumps({**body, name: "HERE"}).replace('"HERE"', value)
        fine = {"delta": ("1e-300", "5e-324", "9e-16"), "seconds": ("1e300",), "memory": ("1e300",)}
        if value not in fine.get(name, ()):
            refused(inside, "releases", plain)


@pytest.mark.parametrize("value", [HUGE, f"-{HUGE}", "1e400", "NaN", '{"number": "1e999999"}', '{"number": "sNaN"}'])
def test_values_of_conditions_are_refused_too(inside, value):
    for atom in (f'"is": ">=", "value": {value}', f'"in": [{value}]'):
        for clause in ("where", "having"):
            name = "hours" if clause == "where" else "count"
            question = f'{{"select": ["count"], "{clause}": {{"column": "{name}", {atom}}}}}'
            refused(inside, "ask", f'{{"question": {question}, "error": 900}}')


@pytest.mark.parametrize(
    "wrong",
    [
        {"having": {"column": "count", "is": ">", "value": "5"}},
        {"having": {"column": "count", "is": ">=", "value": {"date": "2024-02-29"}}},
        {"having": {"column": "count", "missing": True}},
        {"having": {"column": "hours", "is": ">", "value": 5}},
        {"having": {"column": "s", "is": "==", "value": "Male"}},
        {"order_by": ["hours"]},
        {"order_by": [{"name": "count", "descending": 1}]},
        {"select": ["count", {"avg": "hours", "as": "count_error"}]},
        {"select": ["count", {"avg": "hours", "as": "COUNT"}]},
    ],
)
def test_mistakes_in_having_and_order_by_are_not_charged(inside, wrong):
    statement = {"select": [{"group": "sex", "as": "s"}, "count"], "group_by": ["sex"], **wrong}
    # An error that nothing known has yet, so that it would have to be paid for.
    refused(inside, "ask", json.dumps({"question": statement, "error": 50.0}))


NAMES = st.sampled_from(["count", "n", "N", "n_error", "count_error", "sex", "city", "hours", "avg_hours", "who"])
VALUES = st.sampled_from(
    [
        0,
        5,
        -1.5,
        "5",
        "Male",
        "Bern",
        "other",
        True,
        None,
        {"date": "2024-02-29"},
        {"number": "1/3"},
        {"number": "1e999"},
    ]
)
VALUES |= st.integers() | st.text(max_size=2) | st.sampled_from([10**400, [], {}, {"date": "x"}, {"number": "1e999"}])
ATOMS = (
    st.fixed_dictionaries({"column": NAMES, "is": st.sampled_from(["==", "=", ">", "<=", "~"]), "value": VALUES})
    | st.fixed_dictionaries({"column": NAMES, "in": st.lists(VALUES, max_size=2)})
    | st.fixed_dictionaries({"column": NAMES, "missing": st.booleans()})
)
CONDITIONS = st.recursive(
    ATOMS | st.just({"everyone": True}),
    lambda inner: (
        st.fixed_dictionaries({"and": st.lists(inner, max_size=2)})
        | st.fixed_dictionaries({"or": st.lists(inner, max_size=2)})
        | st.fixed_dictionaries({"not": inner})
    ),
    max_leaves=3,
)
NOISE = st.recursive(VALUES, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2))
ITEMS = st.just("count") | st.builds(
    lambda kind, column, name: {kind: column} | ({} if name is None else {"as": name}),
    st.sampled_from(["count", "avg", "sum", "group"]),
    st.sampled_from(["hours", "sex", None]),
    st.none() | NAMES,
)
ORDERS = NAMES | st.builds(lambda name, down: {"name": name, "descending": down}, NAMES, st.booleans() | st.just(1))
STATEMENTS = st.fixed_dictionaries(
    {"select": st.lists(ITEMS, min_size=1, max_size=3)},
    optional={
        "where": CONDITIONS,
        "group_by": st.lists(st.sampled_from(["sex", "city"]), max_size=2),
        "show_groups": st.booleans(),
        "having": CONDITIONS,
        "order_by": st.lists(ORDERS, max_size=2),
        "limit": st.integers(-1, 5) | st.sampled_from([True, 10**20, "3"]),
    },
)
SEEN = {}


@given(STATEMENTS | NOISE, st.sampled_from([700.0, 2500.0, 1e6]))
@settings(max_examples=300, deadline=None)
def test_json_is_answered_or_refused_unpaid(inside, question, error):
    """Whatever is accepted never fails after it was paid for; whatever is refused costs nothing."""
    before = inside.entries
    body = json.dumps({"question": question, "error": error}).encode()
    reply = inside.call("POST", "/tables/people/ask", content=body, headers={"content-type": "application/json"})
    SEEN[reply.status_code] = SEEN.get(reply.status_code, 0) + 1
    assert reply.status_code in (200, 400, 402, 422), question
    if reply.status_code != 200:
        assert inside.entries == before or "mean" in reply.json()["detail"]
    else:
        names = list(reply.json()["columns"])
        assert len({name.casefold() for name in names}) == len(names)


def test_the_strategy_is_accepted_often_enough(inside):
    test_json_is_answered_or_refused_unpaid(inside)
    assert SEEN[200] > 20
    assert SEEN[400] > 20


# Halves of characters, zero bytes, signs that turn the writing round, and a text that is far too long.
ODD = st.sampled_from(
    ["\ud800", "a\udfff", "\x00", "a\x00b", "\u202eabc", "\ufeff", "n" * 3000, "", " ", "\x1b[2J", "é"]
)
TEXTS = ODD | NAMES | st.text(max_size=3)
COLUMNS = st.lists(st.sampled_from(["sex", "city"]) | TEXTS, max_size=2)
WEIGHTS = st.lists(
    st.tuples(
        st.integers(-2, 2),
        st.just([])
        | st.lists(
            st.tuples(
                st.lists(st.just("sex") | TEXTS, max_size=1), st.just([2]) | st.just([]), st.just([0, 1]) | st.just([1])
            ),
            max_size=1,
        ),
    ),
    max_size=2,
)
LINEAR = st.fixed_dictionaries({"products": WEIGHTS})
ODD_ATOMS = st.fixed_dictionaries({"column": st.just("sex") | TEXTS, "is": st.just("==") | TEXTS, "value": TEXTS})
FORMS = (
    st.fixed_dictionaries({"columns": COLUMNS}, optional={"weight": st.none() | WEIGHTS})
    | LINEAR
    | st.fixed_dictionaries({"numerator": LINEAR, "denominator": LINEAR})
    | st.fixed_dictionaries({"where": ODD_ATOMS})
    | st.fixed_dictionaries(
        {"select": st.lists(st.fixed_dictionaries({"count": st.just("sex") | st.none()}, optional={"as": TEXTS}),
                            min_size=1, max_size=2)},
        optional={"group_by": COLUMNS, "having": ODD_ATOMS, "order_by": st.lists(TEXTS, max_size=1)},
    )
    | TEXTS
    | TEXTS.map(lambda text: f"city = '{text}'")
    | TEXTS.map(lambda text: f'SELECT COUNT(*) AS "{text}" FROM people')
)  # fmt: skip


@given(FORMS, st.sampled_from([650.0, 2300.0]))
@settings(max_examples=300, deadline=None)
@example({"columns": []}, 55.0)
@example({"columns": [], "weight": [[1, [[["sex"], [2], [0, 1]]]]]}, 54.0)
@example({"select": [{"count": None, "as": "\ud800"}]}, 53.0)
@example({"where": {"column": "\ud800", "is": "==", "value": 1}}, 52.0)
@example('SELECT COUNT(*) AS "\ud800" FROM people', 51.0)
def test_odd_texts_in_questions_of_every_form_are_answered_or_refused_unpaid(inside, question, error):
    before = inside.entries
    body = json.dumps({"question": question, "error": error}).encode()
    reply = inside.call("POST", "/tables/people/ask", content=body, headers={"content-type": "application/json"})
    assert reply.status_code in (200, 400, 402, 422), question
    # A quotient that turns out to be too dear has paid for a first look at its denominator.
    looked = reply.status_code == 402 and isinstance(question, dict) and "denominator" in question
    assert reply.status_code == 200 or looked or inside.entries == before


@pytest.mark.parametrize("name", ["\ud800", "\x00", "\u202eabc", "n" * 3000])
def test_odd_names_in_a_workload_are_refused(inside, name):
    workloads = [{"questions": [["sex", name]]}, {"weights": [[[name], 1]]}, {"marginals": 1, "of": [name]}]
    workloads += [{"prefixes": name}, {name: 1}, {"questions": [{"columns": [name]}]}]
    for workload in workloads:
        for path in ("releases", "releases/plan"):
            refused(inside, path, json.dumps({"workload": workload, "epsilon": 0.001}))
    refused(inside, "releases", json.dumps({"workload": {"questions": [["sex"]]}, "epsilon": 0.001, "method": name}))


def test_a_marginal_of_no_columns_is_one_number(inside):
    body = {"question": {"columns": []}, "error": 45.0}
    reply = inside.call("POST", "/tables/people/ask", json=body).json()
    assert reply["shape"] == "number"
    assert reply["columns"] == {"value": [reply["value"]], "value_error": [reply["error"]]}


def test_a_release_with_a_delta_above_the_tables_is_refused(inside):
    for path in ("releases", "releases/plan"):
        refused(inside, path, json.dumps({"workload": {"questions": [["sex"]]}, "epsilon": 0.001, "delta": 0.5}))


def test_a_workload_is_read_while_others_are_served(inside, monkeypatch):
    """Reading a workload may take long; it is never done by the thread that serves everybody."""
    from discreet.serve.routes import releases

    threads, read = [], releases.workload_of
    monkeypatch.setattr(releases, "workload_of", lambda *given: threads.append(current_thread().name) or read(*given))
    body = {"workload": {"questions": [["sex"]]}, "epsilon": 0.001}
    assert inside.call("POST", "/tables/people/releases/plan", json=body).status_code == 200
    assert threads[0].startswith("AnyIO worker")


def test_a_workload_of_very_many_parts_is_refused(inside):
    product = [1, [[["sex"], [2], [0, 1]]]]
    workload = {"questions": [{"products": [product] * 400}] * 6}
    refused(inside, "releases/plan", json.dumps({"workload": workload, "epsilon": 0.001}))

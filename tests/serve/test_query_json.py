"""Queries as JSON over HTTP, from the grammar and from noise: an answer or a sentence, never a failure."""

import json
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.live_server import Inside
from support.query_oracle import JUNK, mutated

M = 2**31
# The columns of the server's table and how many cells they have.
SEX, CITY = ["Female", "Male", "other"], ["Bern", "Chur", "Genf", "Thun", "other"]
SWAPPED = {
    "products": [
        [M, [[["sex", "city"], [3, 5], [0, 1] + [0] * 13]]],
        [-M, [[["city", "sex"], [5, 3], [0, 1] + [0] * 13]]],
        [1, [[["sex"], [3], [1, 0, 0]]]],
    ]
}
FORMS = [
    {"products": [[1, [[["sex"], [3], [0, 1, 0]]]]]},
    {"columns": ["sex"], "weight": [[1, [[["city", "sex"], [5, 3], [0, 1, 2] * 5]]]]},
    {"columns": ["city", "sex"], "weight": None},
    {"numerator": {"products": [[1, [[["sex"], [3], [0, 1, 0]]]]]}, "denominator": {"products": [[1, []]]}},
    SWAPPED,
]


@pytest.fixture(scope="module")
def inside(tmp_path_factory):
    with Inside(tmp_path_factory.mktemp("query_json")) as server:
        yield server


def test_a_query_with_its_axes_exchanged_is_priced_as_what_it_is(inside):
    before = inside.entries
    said = inside.ask(SWAPPED, error=1000.0)
    assert said.status_code == 402
    assert inside.entries == before
    planned = inside.call("POST", "/tables/people/plan", json={"question": SWAPPED, "error": 1000.0 * M})
    assert planned.status_code == 200, planned.text


def post(inside, body):
    """As bytes, for some bodies are no JSON that a client would write."""
    text = json.dumps({"question": body, "error": 1e12})
    headers = {"content-type": "application/json"}
    return inside.call("POST", "/tables/people/plan", content=text.encode("utf-8", "surrogatepass"), headers=headers)


@settings(max_examples=60, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(FORMS), st.integers(0, 2**32))
def test_any_body_is_planned_or_refused_in_a_sentence(inside, form, seed):
    random = Random(seed)
    before = inside.entries
    for body in [mutated(form, random) for _ in range(4)]:
        said = post(inside, body)
        assert said.status_code in (200, 400, 402, 403, 413, 422), (body, said.status_code, said.text)
    assert inside.entries == before


@pytest.mark.parametrize("depth", [50, 500, 900, 5000, 100_000])
@pytest.mark.parametrize("place", ["products", "columns", "factor"])
def test_a_body_that_is_nested_deep_is_refused_in_a_sentence(inside, place, depth):
    deep = "[" * depth + "]" * depth
    question = {
        "products": f'{{"products": {deep}}}',
        "columns": f'{{"columns": {deep}}}',
        "factor": f'{{"products": [[1, [{deep}]]]}}',
    }[place]
    said = inside.call("POST", "/tables/people/ask", content=f'{{"question": {question}, "error": 1000}}')
    assert 400 <= said.status_code < 500, said.text


@pytest.mark.parametrize("junk", JUNK, ids=repr)
def test_junk_in_the_place_of_a_weight_is_refused_in_a_sentence(inside, junk):
    said = post(inside, {"products": [[1, [[["sex"], [3], [0, 1, junk]]]]]})
    fine = type(junk) is int and abs(junk) <= 2**32
    assert said.status_code == 200 if fine else 400 <= said.status_code < 500, said.text


def test_a_number_of_many_digits_is_refused_in_a_sentence(inside):
    number = "9" * 10_000
    text = f'{{"question": {{"products": [[{number}, []]]}}, "error": 1000}}'
    assert 400 <= inside.call("POST", "/tables/people/ask", content=text).status_code < 500

"""The card of a release and its page: the same facts again after a file, and nobody's text is obeyed."""

import json
import re
from dataclasses import fields, replace
from datetime import date
from fractions import Fraction
from html.parser import HTMLParser
from math import exp, inf

import numpy as np
import pytest

from discreet.errors import BadData
from discreet.ledger import Budget
from discreet.release.report.card import Card, CardColumn, MarginalError, card_columns, errors_of
from discreet.release.report.release_page import MOST_BARS, MOST_MAPS, MOST_NAMED, MOST_SIDE, dependence, gathered, page
from discreet.schema import Bins, Boolean, Categories, Domain, Integers, Unit

# What a browser, a terminal or a careless program might obey.
EVIL = "\"'><script>x</script>\x1b[2J\u202e&"


def card_of(**changes):
    fields = {
        "table": "people",
        "columns": (CardColumn("age", "integers", 80), CardColumn("sex", "categories", 3)),
        "unit": Unit(),
        "budget": Budget(0.3, 1e-9),
        "spent": Budget(Fraction(1, 7), 1e-9),
        "grains": (123_456_789_012_345,),
        "cap": Budget(1, 1e-9),
        "table_spent": Budget(Fraction(2, 7), 1e-9),
        "earlier": 2,
        "method": "direct",
        "describe": "every marginal is measured by itself",
        "forecast": 0.05,
        "goal": "all 2-way marginals of 2 columns",
        "rows": 3999.7,
        "rows_error": 31.4,
        "errors": (MarginalError(("age",), 0.02, 0.25), MarginalError(("age", "sex"), 0.06, 0.75)),
        "entries": (4, 5, 6, 9),
        "version": "0.1.0",
        "made": "2026-01-31T12:34:56.789+00:00",
    }
    return Card(**(fields | changes))


CARDS = [
    card_of(),
    card_of(unit=Unit("person_id", 3, "replace_one"), rows_error=0.0, errors=(), forecast=None, earlier=0, entries=()),
    card_of(budget=Budget(50), spent=Budget(49.9), cap=Budget(100), table_spent=Budget(51)),
    card_of(cap=Budget(2, 1e-6, "renyi"), spent=Budget(0.2, 1e-6, "renyi"), grains=tuple(range(40))),
    card_of(table=EVIL, method=EVIL, goal=EVIL, columns=(CardColumn(EVIL, "boolean", 2),)),
]


@pytest.mark.parametrize("card", CARDS, ids=["plain", "person", "pure", "renyi", "evil"])
def test_a_card_read_again_is_the_same_card(card):
    again = Card.from_json(card.to_json())
    assert again == card
    assert again.to_json() == card.to_json()
    assert str(again) == str(card)


def test_every_field_makes_a_difference_to_the_file():
    """A field that the file forgot would come back as something else."""
    plain = json.loads(card_of().to_json())
    for field in fields(Card):
        changed = {name: value for name, value in plain.items() if name != field.name}
        with pytest.raises(BadData, match=field.name):
            Card.from_json(json.dumps(changed))


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"is": "discreet card 2"}', card_of().to_json().replace('"earlier"', '"later"')]
)
def test_what_is_no_card_is_refused(text):
    with pytest.raises(BadData):
        Card.from_json(text)


def test_budgets_are_rounded_up_and_decimals_stay_as_they_were_said():
    card = card_of()
    assert card.spent.epsilon >= Fraction(1, 7) > card.spent.epsilon - Fraction(1, 10**15)
    assert (card.budget, card.cap) == (Budget(0.3, 1e-9), Budget(1, 1e-9))


def test_the_mean_error_is_weighted_and_units_are_those_of_the_gate():
    card = card_of()
    assert card.error == pytest.approx(0.25 * 0.02 + 0.75 * 0.06)
    assert card.units == (pytest.approx(0.123456789012345),)
    assert card.gate == "gaussian"


def test_what_is_not_finite_is_not_known():
    card = card_of(forecast=inf, rows_error=inf, errors=(MarginalError(("age",), inf, 1.0),))
    assert (card.forecast, card.rows_error, card.error) == (None, None, 2.0)
    assert Card.from_json(card.to_json()) == card
    assert "about 4,000 rows" in str(card)
    assert "number of rows" not in " ".join(card.guaranteed)
    assert "inf" not in page(card, {}, {})


def test_the_guarantee_says_whom_it_protects_and_by_how_much():
    said = " ".join(card_of(earlier=0).guaranteed)
    assert said.startswith("If one row is added or removed")
    assert f"{exp(0.3):.2f} times" in said
    assert "probability of 1e-09" in said
    assert "2.72 (and 1e-09) for everything that is ever released" in said
    # It is made of earlier answers too.
    assert card_of().guaranteed[0].startswith("Given all earlier answers about the table")
    pure = " ".join(card_of(budget=Budget(1), cap=Budget(40)).guaranteed)
    assert "2.72 times as likely." in pure
    assert "e^40" in pure
    person = card_of(unit=Unit("person_id", 3, "replace_one"))
    assert 'if one "person_id" with up to 3 rows is replaced' in person.guaranteed[0]


def test_a_number_of_rows_is_public_or_has_an_error():
    assert "within 31.4 of the truth with probability 95 %" in card_of().guaranteed[-1]
    assert "4,000 ± 31.4 (95 %) rows" in str(card_of())
    public = card_of(rows=4000.0, rows_error=0.0)
    assert "public" in public.guaranteed[-1]
    assert "4,000 rows (public)" in str(public)


def test_a_reader_sees_what_else_was_released():
    assert "not all that was released" in " ".join(card_of().not_promised)
    assert "other answers were released before" in dict(card_of().summary)["Whole table"]
    assert "2" not in dict(card_of().summary)["Whole table"].rpartition(";")[2]
    alone = card_of(earlier=0)
    assert "not all that was released" not in " ".join(alone.not_promised)
    assert "nothing was released before" in dict(alone.summary)["Whole table"]


def test_persons_with_several_rows_are_warned():
    assert "protected less" in " ".join(card_of().not_promised)
    assert "protected less" not in " ".join(card_of(unit=Unit("person_id", 3)).not_promised)


def test_a_terminal_obeys_nothing_and_lines_are_short():
    told = str(card_of(table=EVIL, goal=EVIL, method=EVIL))
    assert all(letter.isprintable() or letter == "\n" for letter in told)
    assert max(map(len, str(card_of()).splitlines())) <= 88


def test_a_notebook_obeys_nothing():
    html = card_of(table=EVIL, goal=EVIL)._repr_html_()
    assert "<script" not in html
    assert "&lt;script&gt;" in html


def test_columns_have_their_kind():
    domain = Domain(
        {
            "a": Integers(0, 9),
            "b": Bins([0, 5], upper=9),
            "c": Bins([date(2020, 1, 1), date(2021, 1, 1)], upper=date(2021, 12, 31)),
            "d": Boolean(),
            "e": Categories(["x", "y"]),
            "f": Categories(["x", "y"], ordered=True),
        }
    )
    kinds = {column.name: (column.kind, column.cells) for column in card_columns(domain)}
    assert [kinds[name][0] for name in "abcdef"] == [
        "integers",
        "bins",
        "dates",
        "boolean",
        "categories",
        "ordered categories",
    ]
    assert all(kinds[name][1] == domain[name].size for name in "abcdef")


def test_errors_keep_the_order_and_the_weights_of_the_goal():
    found = errors_of({("a",): 0.1, ("b",): 0.2}, [(("b",), 0.75), (("a",), 0.25)])
    assert found == (MarginalError(("b",), 0.2, 0.75), MarginalError(("a",), 0.1, 0.25))


# The page.


class Seen(HTMLParser):
    """Which tags there are, which attributes, and which are never closed."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.text, self.open = [], [], "", []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def pictures(sizes, seed=0):
    """Drawn counts of columns of these sizes, and of all their pairs."""
    rng = np.random.default_rng(seed)
    names = {f"c{place}": [f"v{cell}" for cell in range(size)] for place, size in enumerate(sizes)}
    one = {(name,): ((labels,), rng.integers(1, 900, len(labels)).astype(float)) for name, labels in names.items()}
    two = {
        (first, second): (
            (names[first], names[second]),
            rng.integers(0, 900, (len(names[first]), len(names[second]))) * 1.0,
        )
        for first in names
        for second in names
        if first < second
    }
    return one, two


def test_the_page_needs_nothing_from_elsewhere():
    text = page(card_of(), *pictures([3, 60, 2]))
    seen = Seen(text)
    assert not seen.open
    assert not {"script", "link", "img", "iframe", "object", "embed", "base", "form"} & set(seen.tags)
    assert not {"src", "href", "srcset", "action", "xlink:href"} & {name for name, _ in seen.attributes}
    assert not [name for name, _ in seen.attributes if name.startswith("on")]
    assert not re.search(r"https?:|url\(|@import|//[a-z]", text)
    assert "default-src 'none'" in text


def test_the_page_obeys_no_name_and_no_category():
    card = card_of(
        table=EVIL, goal=EVIL, method=EVIL, describe=EVIL, unit=Unit(EVIL, 2), columns=(CardColumn(EVIL, EVIL, 2),)
    )
    card = replace(card, errors=(MarginalError((EVIL,), 0.1, 1.0),) * 20)
    labels = [EVIL, "b"]
    counts = np.array([[4.0, 1.0], [0.0, 3.0]])
    text = page(card, {(EVIL,): ((labels,), counts.sum(axis=1))}, {(EVIL, "x"): ((labels, labels), counts)})
    seen = Seen(text)
    assert "script" not in seen.tags
    assert set(seen.tags) <= set(Seen(page(card_of(errors=card.errors), *pictures([2, 2]))).tags)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert seen.text.count("<script>") > 5


def test_the_page_says_all_that_the_card_says():
    card = card_of()
    told = " ".join(Seen(page(card, *pictures([3, 4]))).text.split())
    for said in [*card.guaranteed, *card.estimated, *card.not_promised, *(text for _, text in card.summary)]:
        assert " ".join(said.split()) in told


def test_every_figure_has_a_title():
    text = page(card_of(), *pictures([3, 4, 5]))
    figures = re.findall(r"<svg [^>]*>", text)
    assert len(figures) == 1 + 3 + 1 + 3
    assert all(re.search(r'role="img".*aria-label="[^"]{8,}"', figure) for figure in figures)


def test_large_tables_stay_readable():
    one, two = pictures([200, 100, 50] + [2] * 40)
    errors = tuple(MarginalError((f"c{n % 43}",), n / 1000, 1.0) for n in range(5000))
    text = page(card_of(errors=errors), one, two)
    assert len(text) < 3_000_000
    assert text.count(" × ") >= MOST_MAPS
    maps = text.count("a heat map of")
    assert maps == MOST_MAPS
    bars = re.search(r'aria-label="c0:.*?</svg>', text, flags=re.S)[0]
    assert bars.count("<rect") == MOST_BARS
    assert "and 161 more" in bars
    assert f"The {MOST_NAMED} columns with the strongest pairs; 13 more are not shown" in text
    assert (
        max(len(re.findall("<rect", each)) for each in re.findall(r"a heat map.*?</svg>", text, flags=re.S))
        <= MOST_SIDE**2
    )


def test_a_page_without_pairs_or_errors_is_a_page():
    bare = page(card_of(errors=(), forecast=None), {}, {})
    assert "Pairs of columns" not in bare
    assert "<svg" not in bare
    zero = np.zeros((2, 2))
    labels = ["a", "b"]
    empty = page(card_of(), {("age",): ((labels,), zero[0])}, {("age", "sex"): ((labels, labels), zero)})
    assert "nan" not in empty.lower().replace("&nan", "")


def test_no_row_is_lost_when_cells_are_put_together():
    rng = np.random.default_rng(3)
    counts = rng.integers(0, 100, (57, 5)).astype(float)
    labels = [str(cell) for cell in range(55)] + ["other", "missing"]
    for ordered in (True, False):
        shown, fewer = gathered(labels, counts, 0, ordered=ordered, most=20)
        assert len(shown) == len(fewer) <= 20
        assert np.array_equal(fewer.sum(axis=0), counts.sum(axis=0))
    ordered, fewer = gathered(labels, counts, 0, ordered=True, most=20)
    assert ordered[-2:] == ["other", "missing"]
    assert np.array_equal(fewer[-2:], counts[-2:])
    assert np.array_equal(fewer[0], counts[:4].sum(axis=0))
    assert ordered[0] == "0…3"


def test_the_most_dependent_pairs_come_first():
    labels = ["a", "b"]
    tables = {("x", "y"): np.array([[50.0, 50.0], [50.0, 50.0]]), ("x", "z"): np.array([[90.0, 10.0], [10.0, 90.0]])}
    text = page(card_of(), {}, {columns: ((labels, labels), counts) for columns, counts in tables.items()})
    assert dependence(tables["x", "z"]) == pytest.approx(0.4)
    assert text.index("x × z: a heat map") < text.index("x × y: a heat map")

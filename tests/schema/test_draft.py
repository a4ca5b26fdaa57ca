from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import BadSchema
from discreet.schema import Bins, Boolean, Categories, Integers, Unit, parse_schema
from discreet.schema.yaml.codebook import codebook_from_csv, read_codebook
from discreet.schema.yaml.draft import draft_text
from discreet.schema.yaml.partial_column import PartialColumn, partial_column_of

KINDS = {
    "age": PartialColumn("integer"),
    "rate": PartialColumn("number"),
    "sex": PartialColumn("text"),
    "since": PartialColumn("date"),
    "smoker": PartialColumn("boolean"),
    "unknown": PartialColumn(),
}


def columns_of(text):
    return text[text.index("\ncolumns:\n") + 10 :]


def test_a_draft_has_a_blank_for_everything_that_is_not_known():
    assert columns_of(draft_text("people", KINDS, origin="types")) == (
        "  age: {type: integer, lower: ___, upper: ___}\n"
        "  rate: {type: number, bins: [___], upper: ___}\n"
        "  sex: {type: text, values: [___]}\n"
        "  since: {type: date, bins: [___], upper: ___}\n"
        "  smoker: {type: boolean}\n"
        "  unknown: ___\n"
    )


def test_what_is_known_is_filled_in_and_the_rest_is_blank():
    known = {
        "age": PartialColumn("integer", lower=0, missing="drop"),
        "rate": PartialColumn("number", lower=Decimal("0.5"), upper=2),
        "since": PartialColumn("date", bins=(date(2000, 1, 1),)),
        "sex": PartialColumn("text", values=("no", "1")),
    }
    assert columns_of(draft_text("people", known, origin="metadata", unit=Unit())) == (
        "  age: {type: integer, lower: 0, upper: ___, missing: drop}\n"
        "  rate: {type: number, bins: [0.5, ___], upper: 2}\n"
        "  since: {type: date, bins: [2000-01-01], upper: ___}\n"
        '  sex: {values: ["no", "1"]}\n'
    )


def test_a_draft_is_refused_as_a_schema_and_says_which_columns_are_open():
    with pytest.raises(
        BadSchema, match='Complete privacy_unit and the columns "age", "rate", "sex", "since", "unknown":'
    ):
        parse_schema(draft_text("people", KINDS, origin="types"))


def test_a_draft_becomes_a_schema_when_its_blanks_are_filled():
    text = draft_text("people", {"age": KINDS["age"], "smoker": KINDS["smoker"]}, origin="types", source="people.csv")
    for answer in ("person", "0", "120"):
        text = text.replace(": ___", f": {answer}", 1)
    schema = parse_schema(text)
    assert (schema.table, schema.source, schema.unit) == ("people", "people.csv", Unit("person"))
    assert dict(schema.domain.columns) == {"age": Integers(0, 120), "smoker": Boolean()}


def test_a_draft_says_where_it_comes_from():
    assert "no row was read" in draft_text("people", KINDS, origin="types")
    assert "no row was read" in draft_text("people", KINDS, origin="names")
    public = draft_text("people", KINDS, origin="values")
    assert "WRITTEN FROM THE ROWS, because --public-data was said" in public
    assert "no row was read" not in public


def test_a_column_of_very_many_cells_is_pointed_out():
    wide = draft_text("people", {"income": PartialColumn("integer", lower=0, upper=500_000)}, origin="values")
    assert "# 500,001 cells; bins would be fewer" in wide


names = st.text(min_size=1) | st.sampled_from(["a\rtable: b", "a\x85b: c", "a\u2028b: c", "a\nb: c", "\x00"])


@given(names, st.dictionaries(names, st.sampled_from(list(KINDS.values())), min_size=1))
def test_a_draft_of_any_names_is_a_file_that_only_lacks_its_blanks(table, columns):
    with pytest.raises(BadSchema, match="this draft is not finished"):
        parse_schema(draft_text(table, columns, origin="types", source=table, remarks=[table, *columns]))


COLUMNS = [
    Integers(0, 9),
    Integers(0, 9, outside="drop", missing=3),
    Bins([0, 5], upper=9),
    Bins([Decimal(0), 5], upper=9),
    Bins([date(2000, 1, 1)], upper=date(2001, 1, 1)),
    Categories(["a", 1, True]),
    Categories([False, True], ordered=True),
    Categories([0, 1], outside=0),
    Boolean(),
    Boolean(outside=True),
    Boolean(outside="other", missing="missing"),
]


@pytest.mark.parametrize("column", COLUMNS, ids=repr)
def test_the_sketch_of_a_column_makes_the_column_again(column):
    assert partial_column_of(column).gaps == ()
    assert partial_column_of(column).column() == column


# Code books


def test_a_code_book_in_csv_gives_values_in_their_order_and_bounds():
    text = (
        'name,value,label,lower,upper\nsex,M,Male,,\nsex,"F",Female,,\nage,,,0,120\nrate,,,0,0.5\nday,,,2000-01-01,\n'
    )
    assert codebook_from_csv(text, {}) == {
        "sex": PartialColumn(values=("M", "F")),
        "age": PartialColumn("integer", lower=0, upper=120),
        "rate": PartialColumn("number", lower=0, upper=Decimal("0.5")),
        "day": PartialColumn("date", lower=date(2000, 1, 1)),
    }


def test_codes_are_integers_only_if_all_of_them_are_and_the_column_is_not_of_texts():
    text = "name,value\na,1\na,2\nb,01\nb,2\nc,1\nc,no\nd,\nd,x\n"
    book = codebook_from_csv(text, {})
    assert [book[name].values for name in "abcd"] == [(1, 2), ("01", "2"), ("1", "no"), ("", "x")]
    assert codebook_from_csv(text, {"a": PartialColumn("text")})["a"].values == ("1", "2")


def test_a_code_book_in_yaml_has_as_many_settings_as_are_known(tmp_path):
    path = tmp_path / "book.yaml"
    path.write_text("age: {lower: 0, upper: 120}\nzip: {values: [01234, 12]}\nsex: {values: [F, M], ordered: true}\n")
    known = {"age": PartialColumn("number"), "zip": PartialColumn("text")}
    assert read_codebook(path, known) == {
        "age": PartialColumn("number", lower=0, upper=120),
        "zip": PartialColumn("text", values=("01234", "12")),
        "sex": PartialColumn(values=("F", "M"), ordered=True),
    }
    path.write_text("table: people\ncolumns: {age: {lower: 0}}\n")
    assert read_codebook(path, {}) == {"age": PartialColumn("integer", lower=0)}
    path.write_text('{"age": 85}')
    assert read_codebook(path, {})["age"].upper == 84


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", 'book, line 1: a code book in CSV begins with the line "name,value"'),
        ("column,value\na,b\n", "line 1: a code book in CSV begins"),
        ("name,label\na,b\n", "line 1: a code book in CSV begins"),
        ("name,value\na,x\na,y\na,x\n", 'line 4: column "a": values has "x" twice'),
        ("name,lower,upper\na,1,2\na,1,3\n", 'line 3: column "a" has lower twice'),
        ("name,lower,upper\nsex,1,2\n", 'column "sex" has type text and also lower'),
        ("name,lower,upper\nage,x,2\n", 'line 2: column "age": lower has "x"; with type integer it must be'),
        ('name,value\na,"x\n', "this is not CSV"),
    ],
)
def test_a_wrong_code_book_is_refused_with_its_line(text, said):
    with pytest.raises(BadSchema) as caught:
        codebook_from_csv(text, KINDS, name="book")
    assert said in str(caught.value)

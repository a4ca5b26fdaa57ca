from contextlib import suppress
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import BadSchema
from discreet.schema import (
    Bins,
    Boolean,
    Categories,
    Domain,
    Integers,
    Schema,
    Unit,
    parse_schema,
    read_schema,
    schema_text,
    write_schema,
)
from discreet.values import read_value

FIXTURES = Path(__file__).parent / "fixtures"

PEOPLE = Schema(
    "people",
    Domain(
        {
            "age": Bins([17, 25, 35, 45, 55, 65], upper=90),
            "sex": Categories(["Female", "Male"]),
            "education": Categories(["school", "bachelor", "master"], ordered=True, outside="drop"),
            "hours": Integers(1, 99, outside="other", missing=40),
            "rate": Bins([0, Decimal("0.3"), Decimal("0.5")], upper=1),
            "share": Bins([Decimal(0), 1], upper=2),
            "since": Bins([date(2000, 1, 1), date(2020, 1, 1)], upper=date(2024, 12, 31), missing="drop"),
            "smoker": Boolean(),
            "asked": Boolean(missing="missing"),
            "country": Categories(["no", "NO", "yes", "off", "true", "1", "null", ""]),
            "zip": Categories(["01234", "12", "no", "2024-01-01", "~"]),
            "mixed": Categories([1, "1", True, date(2024, 2, 29), 0.5]),
        }
    ),
    Unit("person_id", contributions=3, neighbors="replace_one"),
    source="people.parquet",
    shares_people_with=("visits", "2024"),
)


def columns(text):
    """The columns of a file that has little else."""
    return parse_schema(f"privacy_unit: row\ncolumns:\n{text}", name="people.yaml").domain


# What the format says


def test_a_file_says_everything_that_a_schema_has():
    assert read_schema(FIXTURES / "people.yaml") == PEOPLE


def test_norway_is_a_country_and_not_false():
    assert columns("  country: {values: [NO, no, yes, on, Off, y]}")["country"].values == (
        *("NO", "no", "yes", "on", "Off", "y"),
    )


def test_a_column_or_a_table_may_have_any_name():
    domain = columns("  no: {type: boolean}\n  1: {type: boolean}\n  null: {type: boolean}\n  é: {type: boolean}")
    assert list(domain) == ["no", "1", "null", "é"]
    assert parse_schema("{table: 2024, privacy_unit: row, columns: {a: {type: boolean}}}").table == "2024"


def test_a_table_without_a_name_is_called_like_its_file(tmp_path):
    path = tmp_path / "visits.of.2024.yaml"
    path.write_text("privacy_unit: row\ncolumns: {a: {type: boolean}}")
    assert read_schema(path).table == "visits.of.2024"


def test_bins_of_numbers_do_not_round_down_and_bins_of_integers_do():
    domain = columns("  a: {type: number, bins: [0, 1], upper: 2}\n  b: {type: integer, bins: [0, 1], upper: 2}")
    assert [domain["a"].whole, domain["b"].whole] == [False, True]
    assert [domain["a"].code(2.5), domain["b"].code(2.5)] == [1, 1]
    assert domain["a"].label(1) == "[1, 2]"


def test_a_column_of_a_privacy_unit_may_be_called_row():
    text = "privacy_unit: {column: row}\ncolumns: {a: {type: boolean}}"
    assert parse_schema(text).unit.key == "row"
    assert parse_schema("privacy_unit: row\ncolumns: {a: {type: boolean}}").unit.key is None


def test_anchors_and_json_and_byte_order_marks_are_read(tmp_path):
    domain = columns("  a: &yesno {values: [yes, no]}\n  b: *yesno")
    assert domain["a"] == domain["b"] == Categories(["yes", "no"])
    path = tmp_path / "people.json"
    path.write_bytes(b'\xef\xbb\xbf{"privacy_unit": "row",\r\n "columns": {"a": {"values": ["x", 1]}}}')
    assert read_schema(path).domain["a"] == Categories(["x", 1])


# The round trip

names = st.text(min_size=1)
texts = st.text() | st.sampled_from(
    [
        *(
            "yes",
            "no",
            "null",
            "~",
            "1",
            "1.0",
            "1e3",
            "0x1F",
            "2024-01-01",
            "",
            " ",
            "a: b",
            "a #b",
            '"',
            "'",
            "\\",
            "\n",
        ),
        *(
            "___",
            "- a",
            "[a]",
            "{a}",
            "*a",
            "&a",
            "!a",
            "%a",
            "@a",
            "?",
            "|",
            ">",
            "a\nb",
            "\t",
            "\x00",
            "\x85",
            "\u2028",
        ),
        *("\ufeff", "😀", "\ud7ff", "true", "Drop", "drop ", "<<", "a,b", "01234", "-", "---", "...", "a" * 2000),
    ]
)
decimals = st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**9), max_value=10**9, places=4)
values = st.one_of(texts, st.booleans(), st.integers(), decimals, st.floats(-1e300, 1e300), st.dates())


def ascending(edges):
    return st.lists(edges, min_size=2, max_size=8, unique=True).map(sorted)


@st.composite
def integers(draw):
    lower = draw(st.integers(-(2**62), 2**62))
    upper = lower + draw(st.integers(0, 10**6))
    outside = draw(st.sampled_from(["clip", "drop", "other", lower, upper]))
    return Integers(lower, upper, outside=outside, missing=draw(st.sampled_from(["missing", "drop", lower])))


@st.composite
def bins(draw, edges):
    *starts, upper = draw(ascending(edges))
    outside = draw(st.sampled_from(["clip", "drop", "other", starts[0], upper]))
    return Bins(starts, upper=upper, outside=outside, missing=draw(st.sampled_from(["missing", "drop", upper])))


@st.composite
def categories(draw):
    listed = draw(st.lists(values, min_size=1, max_size=6, unique_by=read_value))
    usable = [value for value in listed if value not in ("drop", "outside")]
    outside = draw(st.sampled_from([*usable, "other"] + ["drop"] * ("drop" not in listed)))
    missing = draw(st.sampled_from([*usable, "missing"] + ["drop"] * ("drop" not in listed)))
    return Categories(listed, ordered=draw(st.booleans()), outside=outside, missing=missing)


booleans = st.builds(
    Boolean, outside=st.sampled_from([False, True, "drop", "other"]), missing=st.sampled_from(["outside", "missing"])
)
kinds = st.one_of(
    booleans,
    integers(),
    categories(),
    bins(st.integers()),
    bins(st.dates()),
    bins(decimals),
    bins(st.fractions(max_denominator=1).map(lambda number: Decimal(number.numerator))),
)


@st.composite
def schemas(draw, column=kinds):
    key = draw(st.none() | names | st.sampled_from(["row", "ROW", "rows", "null", "1"]))
    made = draw(st.dictionaries(names, column, min_size=1, max_size=4))
    made.pop(key, None)
    table = draw(names)
    contributions = 1 if key is None else draw(st.integers(1, 10**6))
    unit = Unit(key, contributions, draw(st.sampled_from(["add_remove", "replace_one"])))
    shared = [name for name in draw(st.lists(names, max_size=3)) if name != table]
    return Schema(table, Domain(made or {f"not {key}": Boolean()}), unit, draw(st.none() | names), tuple(shared))


@given(schemas())
def test_the_text_of_a_schema_makes_the_same_schema_again(schema):
    assert parse_schema(schema_text(schema)) == schema


@given(bins(st.floats(-1e300, 1e300, allow_subnormal=False)))
def test_floats_become_the_decimals_that_they_print_as(column):
    schema = Schema("people", Domain({"a": column}))
    again = parse_schema(schema_text(schema)).domain["a"]
    for part in ("edges", "top", "kind", "whole", "fates", "extra"):
        assert getattr(again, part) == getattr(column, part)
    assert schema_text(Schema("people", Domain({"a": again}))) == schema_text(schema)


@pytest.mark.parametrize("wrong", ["1", "null", "2024-01-01", "true", "a: b", " a", "1e3"])
def test_the_round_trip_notices_a_text_without_its_quotes(wrong):
    right = Schema("people", Domain({"a": Categories([wrong])}))
    text = schema_text(right).replace(f'"{wrong}"', wrong)
    with suppress(BadSchema):
        assert parse_schema(text) != right


def test_a_long_list_of_values_is_broken_between_values_and_not_inside_them():
    column = Categories([f"value  {place}, with 'quotes' and \\" for place in range(100)])
    text = schema_text(Schema("people", Domain({"a": column})))
    assert max(map(len, text.splitlines())) <= 120
    assert parse_schema(text).domain["a"] == column


def test_a_name_of_any_length_is_written():
    schema = Schema("t" * 3000, Domain({"é" * 3000: Boolean(), "b": Categories(["v" * 3000, "w" * 3000])}))
    assert parse_schema(schema_text(schema)) == schema


def test_a_number_without_an_end_is_refused_and_not_rounded():
    from fractions import Fraction

    with pytest.raises(BadSchema, match="decimals only"):
        schema_text(Schema("people", Domain({"a": Bins([Fraction(1, 3)], upper=1)})))


def test_writing_and_reading_a_file(tmp_path):
    write_schema(PEOPLE, tmp_path / "people.yaml")
    assert read_schema(tmp_path / "people.yaml") == PEOPLE
    with pytest.raises(BadSchema, match="cannot be written"):
        write_schema(PEOPLE, tmp_path / "none" / "people.yaml")


# Errors

WRONG = [
    ("age: {type: integer, lower: 1, uper: 9}", 'column "age" has no setting "uper"; did you mean "upper"?'),
    ("age: {type: intger, lower: 1, upper: 9}", 'column "age" has type "intger"; did you mean "integer"?'),
    ("age: {type: int, lower: 1, upper: 9}", 'column "age" has type "int"; write "integer".'),
    ("age: {type: colour}", "it must be integer, number, text, date or boolean."),
    ("age: {type: [integer]}", 'has type "a list"'),
    ("age: {type: integer, lower: 1, upper: 9, outside: dorp}", 'outside is "dorp"; did you mean "drop"?'),
    ("sex: {values: [Female, Male], missing: male}", 'missing is "male"; did you mean "Male"?'),
    ("sex: {values: [Female, Male], outside: clip}", 'outside is \'clip\'; it must be "drop", "other" or one of'),
    ("age: {type: integer, lower: 1, upper: 9, missing: 12}", "missing is 12; it must be"),
    ("age: {type: integer, lower: 1, upper: 9, missing: outside}", "missing is 'outside'; it must be"),
    ("age: {type: integer, lower: 1, upper: 9, outside: [1]}", "outside has a list or a mapping"),
    ("age: {type: integer, lower: 1, upper: 9, outside: }", "outside has no value (empty)"),
    ("age: {type: integer, lower: 9, upper: 1}", "upper is 1 and lower is 9; raise upper."),
    ("age: {type: integer, lower: 1.5, upper: 9}", "lower has 1.5; with type integer it must be an integer. For frac"),
    ('age: {type: integer, lower: "1", upper: 9}', 'lower has "1"; with type integer it must be an integer. Remove'),
    ("age: {type: integer, lower: true, upper: 9}", "lower has true; with type integer it must be an integer."),
    ("age: {type: integer, lower: 1_000, upper: 9}", 'lower has "1_000"'),
    ("age: {type: integer, lower: 01, upper: 9}", "01 begins with a zero, so it could be a number or a text. Write 1"),
    ("age: {type: integer, lower: 0, upper: 99999999999}", "cells; the limit is"),
    ("age: {type: integer, lower: 0, upper: 9223372036854775808}", "upper is 9223372036854775808; it must be"),
    ("age: {type: integer, lower: 0}", "has type integer and no upper; it is where the last cell ends"),
    ("age: {type: integer}", "has type integer and no lower and no upper"),
    ("age: {type: integer, bins: [0, 5]}", "no upper"),
    ("age: {type: integer, bins: [0, 5, 5], upper: 9}", "bins has 5 after 5; bins ascend."),
    ("age: {type: integer, bins: [5, 0], upper: 9}", "bins has 0 after 5"),
    ("age: {type: integer, bins: [0, 5], upper: 4}", "upper is 4 and the last bin starts at 5"),
    ("age: {type: integer, lower: 1, bins: [0, 5], upper: 9}", "lower is 1 and the first bin starts at 0; they are"),
    ("age: {type: integer, bins: [], upper: 9}", "bins is empty"),
    ("age: {type: integer, bins: 5, upper: 9}", "bins is 5; it must be a list"),
    ("age: {type: integer, bins: [0, [5]], upper: 9}", "bins has a list or a mapping; it must be one value"),
    ("age: {type: integer, bins: [0, .nan], upper: 9}", "bins has .nan; it must be a finite number"),
    ("age: {type: number, bins: [0, .inf], upper: 9}", "bins has .inf; it must be a finite number"),
    ("age: {type: number, bins: [0, 1e9999], upper: 1e9999}", "the bins have an edge 1E+9999"),
    ("age: {type: number, lower: 0, upper: 9}", "has type number and no bins; each bin is a cell."),
    ("age: {type: date, bins: [2024-13-01], upper: 2025-01-01}", "2024-13-01 is not a day of the calendar"),
    ('age: {type: date, bins: ["2024-01-01"], upper: 2025-01-01}', "it must be a date like 2024-12-31. Remove the q"),
    ("age: {type: date, bins: [2024], upper: 2025}", "bins has 2024; with type date it must be a date"),
    ("age: {lower: 0, upper: 9}", "has lower and no type. Add type: integer, number or date."),
    ("age: {}", "has neither type nor values"),
    ("age: {type: text}", "has type text and no values; list those that may occur"),
    ("age: {type: text, lower: a}", "has type text and also lower; only integers, numbers and dates have bounds"),
    ("age: {type: boolean, values: [true]}", "has values and also type: boolean"),
    ("age: {values: [1, 2], upper: 9}", "has values and also upper; it has one or the other."),
    ("age: {values: [a, b, a]}", 'values has "a" twice'),
    ("age: {values: [1, 1.0]}", "values has 1.0 twice"),
    ("age: {values: [a, ~]}", "values has no value (~). Write one"),
    ("age: {values: []}", "values is empty"),
    ("age: {values: Female}", 'values is "Female"; it must be a list'),
    ("age: {values: {a: 1}}", "values is a mapping; it must be a list"),
    ("age: {values: [.inf]}", "values has .inf; it must be a finite number"),
    ("age: {values: [a], ordered: 1}", "ordered must be true or false"),
    ("age: {type: boolean, ordered: true}", "is ordered and has no values"),
    ("age: {values: [drop], outside: drop}", "which is a rule and also one of the values"),
    (
        "age: [Female, Male]",
        'column "age" is a list; it must be a mapping of settings. For a list of values write {val',
    ),
    ("age: integer", 'column "age" is "integer"; it must be a mapping of settings. Write {type: integer, lower: 0, up'),
    ("age: 3", 'column "age" is 3; it must be a mapping'),
    ("age:", 'column "age" is empty; it must be a mapping'),
    ('"": {type: boolean}', "a column has an empty name"),
    ("age: {type: boolean, type: boolean}", '"type" is there twice'),
    ("[age]: {type: boolean}", "a name is a list or a mapping"),
    ("age: !!python/object:os.system {type: boolean}", "a tag (!…) is not read here"),
    ("age: *nothing", '"*nothing" is not defined before this line'),
    ("age: &a {values: [*a]}", '"*a" is not defined before this line'),
    ("age: {values: [a, b}", "a bracket that opens here is not closed; expected ',' or ']'"),
    ("age: {values: ['a]}", "a quote that opens here is not closed"),
    ("age: type: boolean", 'there is a ":" too many'),
    ("\tage: {type: boolean}", "there is a tab where YAML wants spaces"),
    ("age: @x", "a value cannot begin with '@'"),
]


@pytest.mark.parametrize(("column", "said"), WRONG)
def test_a_wrong_column_is_refused_with_its_line(column, said):
    with pytest.raises(BadSchema) as caught:
        columns(f"  {column}\n")
    assert str(caught.value).startswith("people.yaml, line 3: ")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("  a: {type: boolean}\n  a: {type: boolean}\n", 'line 4: "a" is there twice, first in line 3. Remove one.'),
        ("  a:\n    values:\n      - x\n      - x\n", 'line 6: column "a": values has "x" twice'),
        ("  a:\n    type: integer\n    lower: 3\n    uper: 4\n", 'line 6: column "a" has no setting "uper"'),
        ("  a:\n    type: integer\n    lower: 3\n", 'line 3: column "a" has type integer and no upper'),
        ("  a:\n    type: integer\n    lower: 3\n    upper: 2\n", 'line 6: column "a": upper is 2'),
        ("  a:\n    values: [x]\n    missing: y\n", "line 5: column \"a\": missing is 'y'; it must be"),
        ("  a: &x {values: [1]}\n  b: {values: *x}\n", 'line 4: column "b": values is a mapping'),
    ],
)
def test_the_line_is_that_of_the_setting(text, said):
    with pytest.raises(BadSchema) as caught:
        columns(text)
    assert str(caught.value).startswith(f"people.yaml, {said}")


COLUMNS = "columns: {a: {type: boolean}}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "people.yaml is empty"),
        ("# only a comment\n", "people.yaml is empty"),
        ("---\n", "people.yaml is empty"),
        ("people", "people.yaml, line 1: the file is one text; it must be a mapping"),
        ("- a\n- b", "line 1: the file is a list"),
        ("privacy_unit: row", 'people.yaml has no "columns"'),
        ("privacy_unit: row\ncolumns:", "line 2: columns is empty"),
        ("privacy_unit: row\ncolumns: {}", "line 2: columns is empty"),
        ("privacy_unit: row\ncolumns:\n- a", "line 2: columns is a list"),
        (f"privacy_unit: row\ncolums: 3\n{COLUMNS}", 'line 2: a schema has no "colums"; did you mean "columns"?'),
        (f"table: [a]\nprivacy_unit: row\n{COLUMNS}", "line 1: table is a list or a mapping"),
        (f"table:\nprivacy_unit: row\n{COLUMNS}", "line 1: table has no value"),
        (COLUMNS, "people.yaml does not say whom to protect. Add privacy_unit: row"),
        (f"privacy_unit:\n{COLUMNS}", "line 1: privacy_unit has no value"),
        (f"privacy_unit: rows\n{COLUMNS}", 'line 1: privacy_unit is "rows"; did you mean "row"?'),
        (f"privacy_unit: a\n{COLUMNS}", 'line 1: column "a" is the privacy unit and also a column'),
        (f"privacy_unit: row\ncontributions: 3\n{COLUMNS}", "line 2: contributions is 3 and privacy_unit is row"),
        (f"privacy_unit: id\ncontributions: 0\n{COLUMNS}", "line 2: contributions is 0; it must be a whole number"),
        (f"privacy_unit: id\ncontributions: 1.5\n{COLUMNS}", "line 2: contributions is 1.5; it must be a whole number"),
        (f"privacy_unit: id\ncontributions: many\n{COLUMNS}", "line 2: contributions is 'many'"),
        (f"privacy_unit: row\nneighbors: add_remov\n{COLUMNS}", 'line 2: neighbors is "add_remov"; did you mean "add_'),
        (f"privacy_unit: row\nshares_people_with: b\n{COLUMNS}", "line 2: shares_people_with must be a list"),
        (f"table: t\nprivacy_unit: row\nshares_people_with: [t]\n{COLUMNS}", 'line 3: shares_people_with names "t"'),
        (f"privacy_unit: row\n{COLUMNS}\n---\n{COLUMNS}", "line 3: a second document begins here"),
        ("a: " + "[" * 100_000, "more than 16 levels"),
        ("{a: " * 3000, "more than 16 levels"),
        ("- " * 10_000, "more than 16 levels"),
        ("a: \x00", "a character that YAML does not allow"),
        ('a: "\\UFFFFFFFF"', "is no character"),
        ("x" * (2**20 + 1), "larger than 1048576 bytes"),
        ("!" * 10**6, "a word of more than 100000 characters"),
        ("%" + "x" * 10**6, "a word of more than 100000 characters"),
    ],
)
def test_a_wrong_file_is_refused_with_a_sentence(text, said):
    with pytest.raises(BadSchema) as caught:
        parse_schema(text, name="people.yaml")
    assert said in str(caught.value)


def test_aliases_cannot_blow_a_file_up():
    bomb = "".join(f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]\n" for level in range(1, 30))
    with pytest.raises(BadSchema, match="more than 200000 values"):
        parse_schema(f"a0: &a0 [x, x]\n{bomb}")


def test_a_file_that_is_not_there_or_no_text_is_refused(tmp_path):
    with pytest.raises(BadSchema, match="there is no file"):
        read_schema(tmp_path / "people.yaml")
    with pytest.raises(BadSchema, match="is a directory"):
        read_schema(tmp_path)
    (tmp_path / "latin.yaml").write_bytes("a: 1\nb: é".encode("latin-1"))
    with pytest.raises(BadSchema, match=r"latin\.yaml, line 2: this is not UTF-8"):
        read_schema(tmp_path / "latin.yaml")
    (tmp_path / "large.yaml").write_bytes(b"#" * (2**20 + 1))
    with pytest.raises(BadSchema, match=r"large\.yaml is larger"):
        read_schema(str(tmp_path / "large.yaml"))


def test_a_file_without_permission_is_refused(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(BadSchema, match="cannot be read: Permission denied"):
        read_schema(tmp_path / "people.yaml")


def test_a_table_that_the_file_does_not_declare_is_refused():
    with pytest.raises(BadSchema, match='declares the table "people" and not "visits"'):
        parse_schema(schema_text(PEOPLE), table="visits")
    assert parse_schema(schema_text(PEOPLE), table="people") == PEOPLE


def test_a_long_value_is_not_repeated_in_full():
    with pytest.raises(BadSchema) as caught:
        columns(f"  age: {{type: integer, lower: {'x' * 5000}, upper: 3}}")
    assert len(str(caught.value)) < 300


def test_a_draft_that_is_not_finished_names_what_is_still_to_be_completed():
    text = "privacy_unit: ___\ncolumns:\n  a: {type: boolean}\n  b: ___\n  c: {type: integer, lower: 0, upper: ___}\n"
    with pytest.raises(BadSchema, match=r'line 1: .* not finished. Complete privacy_unit and the columns "b", "c":'):
        parse_schema(text)
    with pytest.raises(BadSchema, match=r'line 4: .* not finished. Complete the column "d":'):
        columns("  a: {type: boolean}\n  d: {values: [x, ___]}\n")


def test_a_text_that_looks_like_a_blank_is_a_value_in_quotes():
    assert columns('  a: {values: ["___", x]}')["a"].values == ("___", "x")


pieces = st.sampled_from(
    [
        *(
            "a",
            "b: ",
            "- ",
            "[",
            "]",
            "{",
            "}",
            ", ",
            "\n",
            "\n  ",
            "'",
            '"',
            "#",
            "&a ",
            "*a",
            "!",
            "|",
            ">",
            "?",
            ": ",
        ),
        *(
            "columns:",
            "privacy_unit: row\n",
            "{type: integer, lower: 0, upper: 9}",
            "values: [",
            "\t",
            "1e5",
            "___",
            "%",
        ),
        *(
            "max_ids: 1\n",
            "row_privacy: true\n",
            "type: ",
            "int",
            "  a:\n    ",
            "engine: x\n",
            "\\",
            "\x00",
            "2024-01-01",
        ),
    ]
)


@given(st.lists(pieces, max_size=30).map("".join) | st.text())
def test_no_text_raises_anything_but_our_error(text):
    with suppress(BadSchema):
        assert isinstance(parse_schema(text), Schema)

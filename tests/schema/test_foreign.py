from pathlib import Path

import pytest

from discreet.errors import BadSchema
from discreet.schema import Boolean, Categories, Domain, Integers, Schema, Unit, parse_schema, read_schema

FIXTURES = Path(__file__).parent / "fixtures"


def test_smartnoise_metadata_is_read_table_by_table():
    schema = read_schema(FIXTURES / "smartnoise.yaml", table="residents")
    columns = {
        "age": Integers(0, 100),
        "employed": Boolean(missing="drop"),
        "children": Integers(0, 12, missing=0),
        "weeks": Integers(0, 52, missing="drop"),
    }
    assert schema == Schema("residents", Domain(columns), Unit("person", contributions=4))
    assert read_schema(FIXTURES / "smartnoise.yaml", table="dbo.residents") == schema


def test_lomas_metadata_is_read():
    columns = {
        "canton": Categories(["ZH", "NO", "01"]),
        "branch": Categories([8, 10]),
        "age": Integers(0, 120, missing="drop"),
        "employed": Boolean(),
    }
    assert read_schema(FIXTURES / "lomas.yaml") == Schema("lomas", Domain(columns))
    assert read_schema(FIXTURES / "lomas.yaml", table="income").table == "income"


def test_a_column_of_an_mbi_domain_has_exactly_its_number_of_cells():
    schema = read_schema(FIXTURES / "mbi.json")
    assert schema.domain.shape == (85, 9, 2)
    assert schema.domain["age"] == Integers(0, 84, outside="clip", missing="drop")
    assert (schema.table, schema.unit) == ("mbi", Unit())


def test_several_tables_need_a_choice():
    with pytest.raises(BadSchema, match=r'has 2 tables .*; it has "dbo.residents", "dbo.visits". Choose one'):
        read_schema(FIXTURES / "smartnoise.yaml")
    with pytest.raises(BadSchema, match=r'has no table "visit"; it has "dbo.residents"'):
        read_schema(FIXTURES / "smartnoise.yaml", table="visit")


def test_what_other_formats_do_not_say_is_named_and_never_guessed():
    with pytest.raises(BadSchema) as caught:
        read_schema(FIXTURES / "smartnoise.yaml", table="visits")
    assert '"reason" (values), "cost" (bins), "day" (bins and upper), "age" (lower and upper)' in str(caught.value)
    assert 'Run "discreet schema draft smartnoise.yaml"' in str(caught.value)
    with pytest.raises(BadSchema, match=r'"species" \(values\), "bill_length" \(bins\), "hatched" \(bins\)\. Run'):
        read_schema(FIXTURES / "lomas_incomplete.yaml")


def smartnoise(table):
    return "db:\n  '':\n    people:\n" + "".join(f"      {line}\n" for line in table.splitlines())


def test_an_empty_schema_name_and_a_table_alone_are_fine():
    schema = parse_schema(smartnoise("row_privacy: true\na: {type: boolean}"))
    assert schema == Schema("people", Domain({"a": Boolean()}))


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("a: {type: boolean}", "whom to protect is not clear: there is neither row_privacy: true nor a column"),
        ("row_privacy: false\na: {type: boolean}", "neither row_privacy"),
        (
            "row_privacy: true\nb: {type: int, private_id: true}\na: {type: boolean}",
            "both row_privacy and a private_id",
        ),
        ("b: {type: int, private_id: true}\na: {type: int, private_id: true}", "2 columns with private_id"),
        ("row_privacy: true\nmax_ids: 3\na: {type: boolean}", "max_ids is 3 with row_privacy"),
        ("max_ids: 0\nb: {type: int, private_id: true}\na: {type: boolean}", "max_ids: contributions is 0"),
        ("row_privacy: maybe\na: {type: boolean}", "row_privacy is maybe; it must be true or false"),
        (
            "row_privacy: true\na: {type: boolean, privat_id: true}",
            'no setting "privat_id"; did you mean "private_id"?',
        ),
        ("row_privacy: true\na: {type: integer}", 'line 5: column "a" has type "integer"; did you mean "int"?'),
        ("row_privacy: true\na: {lower: 1}", 'column "a" has type ""; it must be one of int, float'),
        ("row_privacy: true\na: 3", 'column "a" must be a mapping of settings'),
        ("row_privacy: true\na: {type: int, lower: x, upper: 3}", 'column "a": lower must be a number'),
        ("row_privacy: true\na: {type: int, lower: 5, upper: 3}", 'column "a": upper is 3 and lower is 5'),
        ("row_privacy: true\na: {type: int, lower: 0.5, upper: 3}", 'column "a": lower is 0.5; it must be an integer'),
        ("row_privacy: true\na: {type: int, lower: 0, upper: 3, missing_value: 9}", "missing is 9; it must be"),
        ("row_privacy: true\na: {type: datetime, lower: soon, upper: 2024-01-01}", "lower must be a day"),
        ("row_privacy: true\na: {type: string, categories: x}", "categories must be a list"),
        ("row_privacy: true\na: {type: string, cardinality: 3, categories: [x]}", "cardinality is 3 and there are 1"),
        ("row_privacy: true\na: {type: string, categories: [x, x]}", "values has 'x' twice"),
        ("b: {type: int, private_id: true}", "has no columns that may be asked about"),
    ],
)
def test_metadata_that_makes_no_sense_is_refused(table, said):
    with pytest.raises(BadSchema) as caught:
        parse_schema(smartnoise(table), name="sn.yaml")
    assert said in str(caught.value)
    assert str(caught.value).startswith("sn.yaml, line ")


@pytest.mark.parametrize("text", ['{"age": 0}', '{"age": 99999999999}'])
def test_an_mbi_domain_with_an_impossible_size_is_refused(text):
    with pytest.raises(BadSchema, match=r'column "age" has .* cells; it must have at least 1'):
        parse_schema(text, name="domain.json")


def test_a_file_of_ours_is_not_taken_for_another():
    text = "privacy_unit: row\ncolumns: {max_ids: {type: boolean}, rows: {type: integer, lower: 0, upper: 3}}"
    assert list(parse_schema(text).domain) == ["max_ids", "rows"]
    with pytest.raises(BadSchema, match="does not say whom to protect"):
        parse_schema("columns: {age: {type: boolean}}")

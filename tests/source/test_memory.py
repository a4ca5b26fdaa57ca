"""Rows that are read once and kept: the same table, for every question, under the same protection."""

import pytest

from discreet.errors import SealBroken
from discreet.mechanism import gaussian
from discreet.query import Marginal
from discreet.schema import Boolean, Categories, Domain, Integers, Schema, Unit
from discreet.source import Table, open
from discreet.source.frame import Frame
from discreet.source.source import unseal

DOMAIN = Domain(
    {
        "age": Integers(0, 9, missing="drop"),
        "city": Categories(["a", "b"], outside="drop"),
        "smoker": Boolean(missing="missing"),
    }
)
ROWS = [
    (1, 3, "a", True),
    (1, 4, "b", None),
    (1, 5, "a", False),
    (2, 40, "z", True),
    (3, None, "b", True),
    (4, 9, "b", False),
]
UNITS = [Unit(), Unit(neighbors="replace_one"), Unit(key="person", contributions=2)]


def counts(table: Table, columns: tuple[str, ...]) -> list[int]:
    exact = table.evaluate(Marginal(columns))
    return unseal(exact, exact.sensitivity).tolist()


@pytest.fixture
def path(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    names = ("person", "age", "city", "smoker")
    file = tmp_path / "people.parquet"
    parquet.write_table(pa.table(dict(zip(names, map(list, zip(*ROWS, strict=True)), strict=True))), file)
    return file


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.describe)
def test_a_table_in_memory_counts_as_the_engine_does(path, unit):
    schema = Schema("people", DOMAIN, unit)
    stays, kept = open(path, schema=schema), open(path, schema=schema, in_memory=True)
    assert isinstance(kept.source, Frame)
    assert not isinstance(stays.source, Frame)
    for columns in ((), ("age",), ("city", "smoker"), ("age", "city", "smoker")):
        assert counts(kept, columns) == counts(stays, columns)
        asked = Marginal(columns)
        assert kept.evaluate(asked).sensitivity == stays.evaluate(asked).sensitivity


def test_what_a_person_may_contribute_is_bounded_before_rows_are_kept(path):
    bounded = open(path, schema=Schema("people", DOMAIN, Unit(key="person", contributions=1)), in_memory=True)
    unbounded = open(path, schema=Schema("people", DOMAIN, Unit(key="person", contributions=3)), in_memory=True)
    assert (sum(counts(bounded, ("city",))), sum(counts(unbounded, ("city",)))) == (2, 4)


def test_an_empty_table_is_kept_too(tmp_path, path):
    from pyarrow import parquet

    parquet.write_table(parquet.read_table(path).slice(0, 0), tmp_path / "none.parquet")
    kept = open(tmp_path / "none.parquet", schema=Schema("people", DOMAIN), in_memory=True)
    assert counts(kept, ("city",)) == [0, 0]


def test_the_seal_holds_for_rows_in_memory(path):
    kept = open(path, schema=Schema("people", DOMAIN, Unit(key="person", contributions=3)), in_memory=True)
    with pytest.raises(SealBroken):
        gaussian(sigma=10, sensitivity=1).release(kept.evaluate(Marginal(("city",))))

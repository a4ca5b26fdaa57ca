"""Raw values lie in the cells of their rows: coded again they give the same codes, whatever holds them."""

import sys
from datetime import date
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import BadData, BadParameter
from discreet.release.synthetic_table import SyntheticRows, raw_rows
from discreet.schema import Bins, Boolean, Categories, Domain, Integers, Schema
from discreet.source.coding import code_column, read_table
from support.needs import needs
from support.statistics import assert_follows, rejects

# Extra cells of each of these come back: a missing value goes to the one that there is.
COLUMNS = {
    "sex": Categories(["Female", "Male"]),
    "other": Categories(["other", "none"], missing="missing"),
    "smoker": Boolean(),
    "asked": Boolean(missing="missing"),
    "grade": Categories([3, 1, 2], outside="drop", missing="drop"),
    "rate": Categories([Decimal("0.1"), 2, 0.5]),
    "feast": Categories([date(2024, 2, 29), date(1, 1, 1)]),
    "age": Integers(17, 90),
    "depth": Integers(-5, -1, outside="other", missing="outside"),
    "years": Bins([-3, 25, 65], upper=65),
    "born": Bins([date(1890, 1, 1), date(1950, 6, 1)], upper=date(2024, 12, 31)),
    "share": Bins([Decimal("0.1"), Decimal("0.3"), 1], upper=Decimal("1.5")),
    "point": Bins([0.0, 0.7], upper=0.7, missing="drop"),
}
DOMAIN = Domain(COLUMNS)


def codes_of(domain, number, seed=0):
    rng = np.random.default_rng(seed)
    return {name: rng.permutation(np.arange(number) % column.size) for name, column in domain.columns}


def coded(domain, table):
    columns = read_table(table, list(domain))
    return {name: code_column(name, column, columns[name]) for name, column in domain.columns}


def assert_same(domain, table, codes):
    found = coded(domain, table)
    for name in domain:
        np.testing.assert_array_equal(found[name], codes[name], err_msg=name)


@pytest.mark.parametrize("inside", ["anywhere", "middle"])
def test_raw_values_coded_again_give_the_same_codes(inside):
    codes = codes_of(DOMAIN, 400)
    assert_same(DOMAIN, raw_rows(codes, DOMAIN, inside=inside), codes)


@settings(max_examples=60, deadline=None)
@given(
    edges=st.one_of(
        st.lists(st.integers(-(2**70), 2**70), min_size=2, max_size=5, unique=True),
        st.lists(st.decimals(-1000, 1000, places=3), min_size=2, max_size=5, unique=True),
        st.lists(st.dates(), min_size=2, max_size=5, unique=True),
    ),
    inside=st.sampled_from(["anywhere", "middle"]),
)
def test_bins_of_any_edges_hold_their_raw_values(edges, inside):
    *starts, upper = sorted(edges)
    column = Bins(starts, upper=upper)
    codes = np.arange(40) % column.size
    values = raw_rows({"x": codes}, Domain({"x": column}), inside=inside)["x"]
    assert [column.code(value) for value in values] == codes.tolist()


def test_extra_cells_are_none_and_go_where_missing_values_go():
    domain = Domain(
        {
            "both": Categories(["a"], missing="missing"),
            "dropped": Categories(["a"], missing="drop"),
            "sent": Categories(["a", "b"], missing="b"),
        }
    )
    codes = {"both": np.array([0, 1, 2]), "dropped": np.array([0, 1, 1]), "sent": np.array([0, 1, 2])}
    values = raw_rows(codes, domain)
    assert values == {"both": ["a", None, None], "dropped": ["a", None, None], "sent": ["a", "b", None]}
    found = coded(domain, values)
    assert found["both"].tolist() == [0, 2, 2]
    assert found["dropped"].tolist() == [0, -1, -1]
    assert found["sent"].tolist() == [0, 1, 1]


def test_within_a_bin_every_value_is_as_likely():
    domain = Domain({"x": Bins([0, 10, 17], upper=20)})
    values = raw_rows({"x": np.full(7000, 1)}, domain)["x"]
    law = dict.fromkeys(range(10, 17), 1 / 7)
    assert_follows(values, law)
    assert rejects(raw_rows({"x": np.full(7000, 1)}, domain, inside="middle")["x"], law)
    decimals = np.array(raw_rows({"x": np.zeros(5000)}, Domain({"x": Bins([0.5, 2.5], upper=3)}))["x"])
    assert_follows(np.floor((decimals - 0.5) * 4), dict.fromkeys(range(8), 1 / 8))


def test_the_middle_is_what_one_would_name():
    domain = Domain(
        {
            "age": Bins([0, 10, 15], upper=15),
            "share": Bins([0.0, 0.5], upper=1),
            "born": Bins([date(2024, 1, 1)], upper=date(2024, 1, 31)),
        }
    )
    codes = {"age": [0, 1, 2], "share": [0, 1, 0], "born": [0, 0, 0]}
    found = raw_rows({name: np.array(each) for name, each in codes.items()}, domain, inside="middle")
    assert found == {"age": [4, 12, 15], "share": [0.25, 0.75, 0.25], "born": [date(2024, 1, 16)] * 3}


def test_a_schema_will_do_for_a_domain():
    domain = Domain({"smoker": Boolean()})
    assert raw_rows({"smoker": np.array([1])}, Schema("people", domain)) == {"smoker": [True]}


def test_the_same_rows_have_the_same_values_each_time():
    rows = SyntheticRows(DOMAIN, codes_of(DOMAIN, 50))
    assert rows.raw is rows.raw
    assert len(rows) == 50
    assert repr(rows).startswith("<SyntheticRows: 50 of sex, other")


@needs("pandas")
@pytest.mark.parametrize("number", [0, 1, 300])
def test_pandas_holds_the_same_rows(number):
    codes = codes_of(DOMAIN, number)
    assert_same(DOMAIN, SyntheticRows(DOMAIN, codes).to_pandas(), codes)


@needs("polars")
@pytest.mark.parametrize("number", [0, 1, 300])
def test_polars_holds_the_same_rows(number):
    codes = codes_of(DOMAIN, number)
    assert_same(DOMAIN, SyntheticRows(DOMAIN, codes).to_polars(), codes)


@needs("pyarrow")
@pytest.mark.parametrize("number", [0, 1, 300])
def test_arrow_and_parquet_hold_the_same_rows(number, tmp_path):
    from pyarrow import parquet

    codes = codes_of(DOMAIN, number)
    rows = SyntheticRows(DOMAIN, codes)
    assert_same(DOMAIN, rows.to_arrow(), codes)
    rows.write_parquet(tmp_path / "synthetic.parquet")
    assert_same(DOMAIN, parquet.read_table(tmp_path / "synthetic.parquet"), codes)


@needs("pandas")
def test_a_csv_file_holds_the_same_rows(tmp_path):
    import pandas

    codes = codes_of(DOMAIN, 300)
    SyntheticRows(DOMAIN, codes).write_csv(tmp_path / "synthetic.csv")
    # A file of texts does not say which of them are days.
    days = {name: lambda text: date.fromisoformat(text) if text else None for name in ("feast", "born")}
    table = pandas.read_csv(tmp_path / "synthetic.csv", converters=days)
    table["asked"] = table["asked"].astype("boolean")
    assert_same(DOMAIN, table, codes)


@needs("pandas", "polars", "pyarrow")
def test_a_column_of_several_types_is_for_frames_that_hold_them():
    domain = Domain({"mixed": Categories([1, "1"], outside="drop", missing="drop")})
    rows = SyntheticRows(domain, {"mixed": np.array([0, 1])})
    assert rows.to_pandas()["mixed"].tolist() == [1, "1"]
    for to in (rows.to_arrow, rows.to_polars):
        with pytest.raises(BadData, match='column "mixed" has values of several types'):
            to()


@pytest.mark.parametrize(("package", "to"), [("pandas", "to_pandas"), ("polars", "to_polars"), ("pyarrow", "to_arrow")])
def test_a_missing_package_is_named(package, to, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(BadData, match=f"needs the package {package}"):
        getattr(SyntheticRows(DOMAIN, codes_of(DOMAIN, 2)), to)()


def test_what_is_not_rows_of_the_domain_is_refused():
    with pytest.raises(BadData, match="outside 0 to"):
        SyntheticRows(Domain({"a": Boolean()}), {"a": np.array([2])})
    with pytest.raises(BadParameter, match="inside is"):
        raw_rows({"a": np.array([1])}, Domain({"a": Boolean()}), inside="below")
    with pytest.raises(BadParameter, match="inside is"):
        SyntheticRows(Domain({"a": Boolean()}), {"a": np.array([1])}, inside="below")
    narrow = Bins([Decimal(1), Decimal("1.00000000000000000001")], upper=Decimal("1.00000000000000000002"))
    with pytest.raises(BadData, match="no float lies in it"):
        raw_rows({"a": np.array([1])}, Domain({"a": narrow}))

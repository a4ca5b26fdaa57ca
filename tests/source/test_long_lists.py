"""Lists of a thousand categories and more: the same cells, without a case for each of them."""

from time import process_time

import numpy as np
import pyarrow as pa
import pytest

from discreet.query import Marginal
from discreet.schema import Bins, Categories, Domain, Unit
from discreet.source import Frame
from discreet.source.source import unseal
from support.engines import ENGINES
from support.needs import needs_postgres, needs_spark

NAMES = [
    *(name for name in ENGINES if name not in ("Postgres", "Spark")),
    pytest.param("Postgres", marks=needs_postgres),
    pytest.param("Spark", marks=needs_spark),
]
MANY = 400
CODES = [f"{number:04}'\\" for number in range(MANY)]
DOMAIN = Domain(
    {
        "code": Categories(CODES, missing="missing"),
        "zip": Categories([7 * number - 300 for number in range(MANY)]),
        "amount": Bins([10 * number for number in range(MANY)], upper=10 * MANY, outside="other"),
    }
)


def table():
    chance = np.random.default_rng(5)
    codes = [*(CODES[place] for place in chance.integers(0, MANY, 300)), None, "", "0001", "other", CODES[0]]
    zips = [*(int(number) for number in chance.integers(-400, 7 * MANY, 302)), None, 2**63 - 1, -300]
    amounts = [*(int(number) for number in chance.integers(-50, 11 * MANY, 302)), None, 10 * MANY, 9]
    types = pa.schema([("code", pa.string()), ("zip", pa.int64()), ("amount", pa.int64()), ("who", pa.int64())])
    return pa.table({"code": codes, "zip": zips, "amount": amounts, "who": list(range(len(codes)))}, schema=types)


def opened(source, name):
    exact = source.evaluate(Marginal((name,)))
    return unseal(exact, exact.sensitivity).tolist()


@pytest.mark.parametrize("unit", [Unit(), Unit(key="who")], ids=["rows", "persons"])
@pytest.mark.parametrize("name", NAMES)
def test_long_lists_are_counted_as_the_frame_counts_them(name, unit):
    source, reference = ENGINES[name](table(), DOMAIN, unit), Frame(table(), domain=DOMAIN, unit=unit)
    for column in DOMAIN:
        assert opened(source, column) == opened(reference, column)


def test_ten_thousand_categories_take_no_longer_to_write_than_to_read():
    values = [f"value {number}" for number in range(10_000)]
    domain = Domain({"x": Categories(values)})
    source = ENGINES["DuckDB"](pa.table({"x": values * 3}), domain, Unit())
    before = process_time()
    counts = opened(source, "x")
    assert process_time() - before < 4, "a case for each of them takes more than ten seconds"
    assert counts == [3] * 10_000 + [0]

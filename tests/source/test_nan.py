"""A number that is none, among numbers that are all the same."""

from math import nan

import pyarrow as pa

from discreet.query.linear import Marginal
from discreet.schema import Bins, Domain, Unit
from discreet.source.source import unseal
from support.engines import from_parquet


def test_parquet_statistics_do_not_hide_what_is_no_number():
    """They leave out nan: a column that is 0 elsewhere looks as if it were 0 throughout."""
    domain = Domain({"rate": Bins([0, 1, 2], upper=3)})
    exact = from_parquet(pa.table({"rate": [0.0, nan, 0.0]}), domain, Unit()).evaluate(Marginal(("rate",)))
    assert unseal(exact, exact.sensitivity).tolist() == [2, 0, 0, 1]

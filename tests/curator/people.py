"""A small table of people behind a desk, of which an older version wrote a ledger and a release (golden/)."""

from pathlib import Path

import numpy as np

from discreet.curator import Curator
from discreet.ledger import Budget
from discreet.schema import Categories, Domain, Integers, Schema, Unit
from discreet.source.frame import Frame
from discreet.source.table import Table

GOLDEN = Path(__file__).parents[1] / "golden" / "a2d235c.zip"
DOMAIN = Domain(
    {
        "age": Integers(0, 9),
        "sex": Categories(["Female", "Male"]),
        "city": Categories(["Bern", "Oslo", "Rome"]),
        "secret_column": Categories(["zebra", "okapi"]),
    }
)
ROWS, FIVE = 600, Budget(5, 1e-9)


def desk_of(folder, budget=FIVE):
    places = np.arange(ROWS)
    data = {
        "age": places * places % 10,
        "sex": np.array(["Female", "Male"])[places % 2],
        "city": np.array(["Bern", "Oslo", "Rome"])[places * 7 % 3],
        "secret_column": np.array(["zebra", "okapi"])[places * 5 % 2],
    }
    schema = Schema("people", DOMAIN, Unit())
    return Curator(
        Table(schema, Frame(data, domain=DOMAIN, unit=schema.unit)), budget=budget, ledger=folder / "budget.sqlite"
    )

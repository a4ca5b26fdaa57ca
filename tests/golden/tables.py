"""The tables that the golden ledgers are about: files that lie beside them, and columns that follow from a formula."""

import os
from pathlib import Path

import numpy as np

import discreet as dp

# A ledger remembers when the file of a table was written; git does not.
WRITTEN = 1_600_000_000_000_000_000
NAMES = tuple(f"x{place}" for place in range(8))
PAIR_ROWS = 20_000
# Tables with the same columns, of which each has a model of its own.
FORMULA = ("pairs", "apart", "mixed", "public")

PEOPLE = """\
table: people
version: 1
source: ../people.csv
privacy_unit: row
columns:
  age: {type: integer, lower: 0, upper: 9}
  sex: {values: [Female, Male]}
  city: {values: [Bern, Oslo, Rome], outside: drop}
  level: {values: [low, middle, high], ordered: true, missing: missing}
  income: {type: number, bins: [0, 62.5, 125, 187.5], upper: 250}
  since: {type: date, bins: [2000-01-01, 2010-06-15, 2020-01-01], upper: 2030-12-31}
  member: {type: boolean}
"""
VISITS = """\
table: visits
version: 1
source: ../people.csv
privacy_unit: who
contributions: 3
neighbors: add_remove
shares_people_with: [people]
columns:
  age: {type: integer, bins: [0, 3, 6], upper: 8}
  sex: {values: [Female, Male]}
"""
FIXED = """\
table: fixed
version: 1
source: ../people.csv
privacy_unit: row
neighbors: replace_one
columns:
  age: {type: integer, lower: 0, upper: 9}
  sex: {values: [Female, Male]}
"""
# Schemas in one folder know of each other who shares people; so each case has a folder of its own.
SCHEMAS = {
    "people/people.yaml": PEOPLE,
    "fixed/fixed.yaml": FIXED,
    "shared/people.yaml": PEOPLE,
    "shared/visits.yaml": VISITS,
    "second/people.yaml": PEOPLE.replace("version: 1", "version: 2"),
    "second/visits.yaml": VISITS,
}


def write_tables(folder: Path) -> None:
    """The made-up rows, and a schema file for each table that is read from them."""
    lines = ["age,sex,city,level,income,since,member,who"]
    for i in range(200):
        age, sex = (7 * i * i + 3 * i) % 10, "Female" if i % 3 else "Male"
        city, level = ("Rome", "Oslo", "Bern", "Paris")[(i * i + i // 7) % 4], ("low", "middle", "high", "")[i % 4]
        income, since = (37 * i) % 260 + i / 8, f"{2001 + (11 * i) % 28}-{1 + i % 12:02d}-{1 + (3 * i) % 28:02d}"
        lines.append(f"{age},{sex},{city},{level},{income},{since},{'true' if i % 5 < 2 else 'false'},{i // 2}")
    (folder / "people.csv").write_text("\n".join(lines) + "\n")
    for name, text in SCHEMAS.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)


def open_table(folder: Path, name: str) -> dp.Table:
    """A table by its schema file, say "shared/visits"; those of `FORMULA` have no file."""
    if name in FORMULA:
        unit = dp.Unit(neighbors="replace_one") if name == "public" else dp.Unit()
        schema = dp.Schema(name, dp.Domain({each: dp.Boolean() for each in NAMES}), unit)
        return dp.open(pairs(), schema=schema)
    os.utime(folder / "people.csv", ns=(WRITTEN, WRITTEN))
    return dp.open(folder / f"{name}.yaml", in_memory=True)


def pairs() -> dict[str, np.ndarray]:
    """Eight columns that go in pairs, each of which says the same nine times of ten."""
    rows = np.arange(PAIR_ROWS)

    def fraction(salt: int) -> np.ndarray:
        mixed = (rows * 2654435761 + salt * 40503) % 2**32
        mixed = (mixed ^ (mixed >> 15)) * 2246822519 % 2**32
        return ((mixed ^ (mixed >> 13)) * 3266489917 % 2**32) / 2**32

    columns = []
    for place in range(0, len(NAMES), 2):
        first = fraction(place) < 0.6
        columns += [first, first ^ (fraction(place + 1) < 0.1)]
    return dict(zip(NAMES, columns, strict=True))


def points() -> np.ndarray:
    """Two hundred points in three clumps."""
    i = np.arange(200)
    middles = np.array([[0.2, 0.2], [0.8, 0.3], [0.5, 0.9]])[i % 3]
    return middles + np.stack([(i * 7 % 20 - 10) / 150, (i * 13 % 20 - 10) / 150], axis=1)


def labels() -> np.ndarray:
    """What a holdout and a leaderboard hold out."""
    return (np.arange(2000) * 7919 % 13 < 6).astype(np.int64)

"""Statements of the fixtures of tests/query, understood and hostile, and the domain that they are about."""

import re
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from discreet.schema import Bins, Boolean, Categories, Domain, Integers

FIXTURES = Path(__file__).parents[1] / "query" / "fixtures"
ODD_TEXTS = ["", '"', "a\\", "SELECT", "(", "-- no comment", "/* no comment */", "; DROP TABLE people"]
PEOPLE = Domain(
    {
        "age": Bins([17, 25, 65], upper=90),
        "sex": Categories(["Female", "Male"]),
        "grade": Categories(["low", "middle", "high"], ordered=True, missing="missing"),
        "hours": Integers(1, 99),
        "delta": Integers(-5, 5),
        "children": Integers(0, 10, missing="drop"),
        "city": Categories(["Basel", "Bern", "Zürich", "Val d'Isère", *ODD_TEXTS], missing="missing"),
        "rate": Bins([0, Decimal("0.3"), Decimal("0.5")], upper=1),
        "since": Bins([date(2024, 1, 1), date(2024, 2, 29), date(2024, 3, 1)], upper=date(2024, 12, 31)),
        "date": Categories([date(2024, 1, 1), date(2024, 1, 2)]),
        "smoker": Boolean(missing="missing"),
        "Income": Categories(["<=50K", ">50K"]),
        "zip code": Categories([8001, 3000], outside="drop", missing="missing"),
        "x": Boolean(),
        "X": Boolean(),
    }
)


def valid_statements():
    """Pairs of a statement and its tree, from blocks of lines of which the last, indented, is the tree."""
    text = "".join(line for line in (FIXTURES / "valid.txt").open() if not line.startswith("#"))
    for block in re.split(r"\n\s*\n", text.strip()):
        *statement, tree = block.splitlines()
        yield "\n".join(statement), tree.strip()


def hostile_statements():
    """Statements and what their refusal says, by topic; see the top of hostile.txt for the notation."""
    said = ""
    for line in (FIXTURES / "hostile.txt").read_text().splitlines():
        if line.startswith("## "):
            said = line.split(": ", 1)[1]
        elif line and not line.startswith("# "):
            yield pytest.param(_written_out(line), said, id=line)


def _written_out(line):
    line = re.sub(r"\{\{(.+?)\|(\d+)\}\}", lambda match: match[1] * int(match[2]), line)
    return re.sub(r"\\(x..|u....|U........|n|t|\\)", lambda match: _character(match[1]), line)


def _character(code):
    return {"n": "\n", "t": "\t", "\\": "\\"}.get(code) or chr(int(code[1:], 16))


VALID = [statement for statement, _ in valid_statements()]
HOSTILE = [case.values[0] for case in hostile_statements()]

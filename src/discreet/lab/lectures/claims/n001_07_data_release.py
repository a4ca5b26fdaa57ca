"""Private data release: synthetic tables that answer every query of a list within α, made in three ways."""

from collections.abc import Mapping
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from discreet.curator import Curator
from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.lectures.conjunctions import answers_to_conjunctions, histogram_of_classes
from discreet.lab.textbook.mwem import mwem
from discreet.lab.textbook.small_db import sample_size, small_db
from discreet.ledger import Budget
from discreet.query import monotone_conjunctions
from discreet.schema import Boolean, Domain, Unit
from discreet.source.table import Table
from discreet.source.table import open as open_table
from discreet.types import Ints

COLUMNS, ROWS, EPSILON, DELTA, ALPHA = 2, 20_000, 1, 1e-9, 0.25
NAMES = ("a", "b")


def people() -> tuple[Table, Ints]:
    """Made-up people with two yes/no columns, as a table and as a histogram."""
    counts = histogram_of_classes(COLUMNS, ROWS)
    cells = np.repeat(np.arange(counts.size), counts)
    columns = {name: (cells >> (COLUMNS - 1 - place) & 1).astype(bool) for place, name in enumerate(NAMES)}
    domain = Domain({name: Boolean() for name in NAMES})
    return open_table(columns, domain=domain, unit=Unit(neighbors="replace_one")), counts


def releases(table: Table) -> dict[str, Ints]:
    """Synthetic rows by SmallDB, MWEM and the curator's best method, each with the whole of ε = 1."""
    queries, budget = list(monotone_conjunctions(table.domain)), Budget(epsilon=EPSILON, delta=DELTA)
    small = small_db(table, queries, epsilon=EPSILON, rows=sample_size(len(queries), ALPHA))
    model = mwem(table, queries, epsilon=EPSILON, rounds=len(queries))
    with TemporaryDirectory() as folder, Curator(table, budget=budget, ledger=f"{folder}/budget.sqlite") as desk:
        released = desk.release(queries, budget=budget)
        ways = {"SmallDB": small.codes, "MWEM": model.rows(ROWS), "the curator's release": released.rows(ROWS).codes}
        return {way: _histogram(codes) for way, codes in ways.items()}


def _histogram(codes: Mapping[str, NDArray[np.int64]]) -> Ints:
    cells = sum(codes[name].astype(np.int64) << (COLUMNS - 1 - place) for place, name in enumerate(NAMES))
    return np.bincount(np.asarray(cells), minlength=2**COLUMNS).astype(np.int64)


def largest_error(synthetic: Ints, true: Ints) -> float:
    """max |q(D) − q(D′)| over all conjunctions, of fractions."""
    answers = [answers_to_conjunctions(each / each.sum()) for each in (synthetic, true)]
    return float(np.abs(answers[0] - answers[1]).max())


def judge(way: str, synthetic: Ints, true: Ints) -> Finding:
    """Within α. SmallDB keeps it by the sampling bound, the others by far; their noise is below α/10 but for 10⁻⁸."""
    error = largest_error(synthetic, true)
    what = f"{way}, {synthetic.sum():,} rows: max |q(D) − q(D′)|"
    return Finding(what, f"at most α = {ALPHA:g}", f"{error:.4f}", error <= ALPHA)


def run() -> Outcome:
    """All four conjunctions of two columns, twenty thousand people."""
    table, true = people()
    findings = tuple(judge(way, synthetic, true) for way, synthetic in releases(table).items())
    return Outcome(findings, note=f"ε = {EPSILON} for each; δ = {DELTA:g} for the curator. n = {ROWS:,}.")


CLAIM = Claim(
    name="data-release",
    source="001 Data release",
    title="A private synthetic database",
    statement="Given D, queries Q and a target α, generate a differentially private synthetic table D′ with "
    "max_{q ∈ Q} |q(D) − q(D′)| ≤ α.",
    run=run,
)

"""What cannot be done in time poly(d), and what the product says then: 000 Theorem 19."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

import numpy as np

from discreet.errors import TooLarge
from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.textbook.multiplicative_weights import updated
from discreet.lab.textbook.pmw import PMW
from discreet.lab.textbook.small_db import small_db
from discreet.ledger import Budget, Ledger
from discreet.query.workload import monotone_conjunctions
from discreet.report.plot import Line, plot
from discreet.schema import Boolean, Domain, Unit
from discreet.source import Table
from discreet.source import open as open_table

WIDTHS = (14, 16, 18, 20, 22)


def run() -> Outcome:
    """Refusals with their numbers, and the time of one update over the number of columns."""
    times = {d: update_time(d) for d in WIDTHS}
    lines = [
        Line("one update", [(float(d), times[d]) for d in WIDTHS], "ours", dots=True),
        Line("2^d", [(float(d), times[WIDTHS[-1]] * 2.0 ** (d - WIDTHS[-1])) for d in WIDTHS], "cap"),
    ]
    title = "Seconds for one update of multiplicative weights, over the number of yes/no columns"
    figure = plot(title, lines, x="columns d", y="seconds", log_y=True)
    return Outcome((growth(times), *refusals()), figure, NOTE)


NOTE = """The theorem says that no algorithm is quick for all tables, under an assumption of cryptography; that cannot
be measured. What can: the algorithms of the notes take time in proportion to 2^d, and the product says so before
anything is paid, instead of trying."""


def growth(times: dict[int, float]) -> Finding:
    """Eight columns more are 256 times the cells; a sixteenth of that would still be exponential."""
    first, last = WIDTHS[0], WIDTHS[-1]
    factor = times[last] / times[first]
    return Finding(
        f"time of an update with {last} columns beside {first}",
        f"exponential in d: {2 ** (last - first)} times the cells",
        f"{factor:.0f} times as long",
        factor > 2 ** ((last - first) / 2),
    )


def refusals(session: Callable[..., object] = PMW, small: Callable[..., object] = small_db) -> tuple[Finding, ...]:
    """A model of too many columns, and synthetic data for all 2-way conjunctions of fewer."""
    wide, narrow = _table(30), _table(10)
    pairs = monotone_conjunctions(narrow.domain, 2)
    with TemporaryDirectory() as folder, Ledger(Path(folder) / "budget.sqlite") as ledger:
        ledger.cap(Budget(epsilon=1), table=wide.name)
        said = [
            _refusal(lambda: session(wide, ledger=ledger, epsilon=1, updates=10)),
            _refusal(lambda: small(narrow, pairs, epsilon=1, alpha=0.1, ledger=ledger)),
        ]
        left = float(ledger.remaining(table=wide.name).epsilon)
    return (
        Finding(
            "a model of 30 yes/no columns",
            "refused, with the number of cells",
            said[0],
            str(2**30) in said[0],
        ),
        Finding(
            "SmallDB for all 45 conjunctions of 2 of 10 columns",
            "refused, with the number of tables",
            said[1],
            "10^" in said[1],
        ),
        Finding("spent on what was refused", "nothing", f"{1 - left:g}", left == 1),
    )


def update_time(columns: int) -> float:
    """The least of some runs, in seconds of the processor."""
    model = np.full(2**columns, 2.0**-columns)
    query = (np.arange(2**columns) % 2).astype(np.float64)
    taken = []
    for _ in range(3 if columns > 18 else 12):
        start = process_time()
        updated(model, query, 0.6, error=0.1, rule="linear")
        taken.append(process_time() - start)
    return max(min(taken), 1e-7)


def _table(columns: int) -> Table:
    names = [f"x{place}" for place in range(columns)]
    domain = Domain({name: Boolean() for name in names})
    rows = {name: [True, False] * 50 for name in names}
    return open_table(rows, domain=domain, unit=Unit(neighbors="replace_one"))


def _refusal(tried: Callable[[], object]) -> str:
    try:
        tried()
    except TooLarge as refused:
        return str(refused).split(". ")[0]
    return "not refused"


CLAIM = Claim(
    name="limits",
    source="000 Thm. 19",
    title="What is hard is refused, with the number",
    statement="No algorithm makes useful private synthetic data for 2-way conjunctions in time poly(d), if digital "
    "signatures are secure. What needs too much is refused before anything is paid.",
    run=run,
)

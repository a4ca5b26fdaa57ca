"""SmallDB for people: a table of a few rows that stands for the true one on a list of questions."""

from collections.abc import Sequence
from math import ceil, log
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.errors import BadParameter
from discreet.ledger import Ledger
from discreet.ledger.ledger import ANYONE
from discreet.model.rows import Rows
from discreet.parameter import Number, positive, probability, whole
from discreet.query.linear import Linear
from discreet.query.workload import Workload
from discreet.release.asked import listed, require_table
from discreet.release.paid import Plain, paid, public_total
from discreet.release.small_table import choosing, require_held
from discreet.schema.domain import Domain
from discreet.source.table import Table

Notes = Literal["001", "003"]


def small_db(
    table: Table,
    queries: "Sequence[Linear] | Workload[Linear]",
    *,
    epsilon: Number,
    rows: int | None = None,
    alpha: Number | None = None,
    total: int | None = None,
    ledger: Ledger | None = None,
    analyst: str = ANYONE,
    key: str | None = None,
) -> Rows:
    """Choose, of all tables of m rows, one that answers every query nearly as the true table does: epsilon-DP.

    Each multiset y of m rows is chosen with probability ∝ exp(−e n·max_q |q(D)/n − q(y)/m|/2), exactly, if the queries
    are counts and each row is a person. Give m as `rows`, or the error `alpha` of a fraction for which the sampling
    lemma says that m rows are enough (`sample_size`). Every row of the answer stands for n/m rows, where n is the
    number of rows if it is public, or the `total` that you give, say a released count; otherwise for one.

    It needs time exponential in m: what would take more than some minutes is refused, with the number of tables and the
    time, before anything is paid or read.

    >>> import discreet as dp
    >>> people = dp.open({"old": [False, True, True] * 20}, domain=dp.Domain({"old": dp.Boolean()}))
    >>> rows = small_db(people, [dp.query.count(people.domain, dp.col("old") == True)], epsilon=20, rows=3, total=60)
    >>> rows.total, sorted(rows.codes["old"].tolist())
    (60.0, [0, 1, 1])

    [BLR08; 001 Alg. 5; 003 Thm. 5]; proof: mechanism/smalldb.md
    """
    asked = _read_queries(queries, table)
    few = _read_rows(rows, alpha, len(asked))
    known = None if total is None else whole("total", total, least=1)
    choose, imbalances = choosing(asked, table.domain, table.unit, epsilon=epsilon, rows=few)

    def release() -> Plain:
        # A public number costs nothing, but it is read from the table all the same.
        many = public_total(table) if known is None else known
        return {"cells": list(choose.release(table.evaluate(imbalances))), "total": many}

    why = f"a table of {few} rows for {len(asked)} queries (SmallDB)"
    plain = paid(ledger, choose.event, why, release, table=table, asked=asked, analyst=analyst, key=key)
    return rows_of(table.domain, plain["cells"], scale=1.0 if plain["total"] is None else plain["total"] / few)


def rows_of(domain: Domain, cells: "Sequence[int] | NDArray[np.int64]", *, scale: float) -> Rows:
    """The rows that were chosen, from their cells: the columns sorted, the last one varying fastest."""
    names = sorted(domain)
    codes = np.unravel_index(np.asarray(cells, dtype=np.int64), [domain[name].size for name in names])
    return Rows(domain, dict(zip(names, codes, strict=True)), scale=scale)


def sample_size(queries: int, alpha: Number, *, notes: Notes = "001") -> int:
    """How many rows drawn from a table answer so many queries within `alpha` of the truth, all of them, as fractions.

    The lectures' two constants: ln k/a² (001; with k > 2 such a sample exists) and 8 ln k/a² (003, Lemma 3). BLR's
    range is the second one at a/2, 32 ln k/a².

    where k is `queries` and a is `alpha`.

    >>> sample_size(1000, 0.1), sample_size(1000, 0.1, notes="003"), sample_size(1000, 0.05, notes="003")
    (691, 5527, 22105)
    """
    if notes not in ("001", "003"):
        raise BadParameter(f'notes is {notes!r}; it must be "001" or "003". Leave it out for the smaller number.')
    factor = 1 if notes == "001" else 8
    wanted = float(probability("alpha", alpha, next_step="Give the error of a fraction, say 0.1."))
    return max(1, ceil(factor * log(whole("queries", queries, least=1)) / wanted**2))


def promised_error(*, queries: int, cells: int, rows: int, epsilon: Number, beta: Number) -> float:
    """The error of a fraction that BLR's theorem promises for all counts together, with probability 1 − beta.

    It is (256 ln k ln N/(e n))^(1/3) + 8 ln(1/β)/(e n), for tables of 32 ln k/a² rows, a being that error.

    where k is `queries`, N is `cells`, n is `rows`, e is `epsilon` and β is `beta`.

    >>> round(promised_error(queries=3, cells=3, rows=10**4, epsilon=1, beta=0.05), 3)
    0.316

    [003, Thm. 5]; proof: mechanism/smalldb.md
    """
    loss = float(positive("epsilon", epsilon)) * whole("rows", rows, least=1)
    logs = log(whole("queries", queries, least=1)) * log(whole("cells", cells, least=1))
    return float((256 * logs / loss) ** (1 / 3)) - 8 * log(probability("beta", beta)) / loss


def sampled_rows(counts: "Sequence[int] | NDArray[np.int64]", number: int) -> NDArray[np.int64]:
    """The cells of so many rows, drawn with replacement from a *public* histogram: what the sampling lemma is about.

    >>> sampled_rows([0, 5, 0], 2).tolist()
    [1, 1]
    """
    exact = np.asarray(counts)
    if exact.ndim != 1 or exact.dtype.kind not in "iu" or not (exact >= 0).all() or not exact.sum() > 0:
        raise BadParameter("counts must be a list of whole numbers of at least 0, not all 0. Give a histogram.")
    edges = np.cumsum(exact.astype(np.int64))
    drawn = noise.uniform_below(int(edges[-1]), size=whole("number", number))
    return np.searchsorted(edges, drawn, side="right").astype(np.int64)


def _read_rows(rows: int | None, alpha: Number | None, queries: int) -> int:
    match rows, alpha:
        case (given, None) if given is not None:
            return whole("rows", given, least=1)
        case (None, given) if given is not None:
            return sample_size(queries, given)
    raise BadParameter(
        f"rows is {rows!r} and alpha is {alpha!r}; the size must be given in one way. Give rows=8, or alpha=0.3."
    )


def _read_queries(queries: "Sequence[Linear] | Workload[Linear]", table: Table) -> list[Linear]:
    """The queries as a list, if their matrix can be held."""
    require_table(table)
    # A workload that is too long is not listed.
    few = queries if isinstance(queries, Workload) else listed(queries)
    require_held(few.size if isinstance(few, Workload) else len(few), table.domain)
    return listed(few)

"""The page of a release: one HTML file for people that needs nothing else, no network and no script."""

from collections.abc import Mapping, Sequence

import numpy as np

from discreet.answer import error_text, visible
from discreet.release.report.card import TITLES, Card, MarginalError
from discreet.release.report.release_charts import bars_figure, curve_figure, heat_figure, matrix_figure
from discreet.report.document import document, figure, section, shown, table, tiles
from discreet.types import Numbers

# For some columns: the labels of the cells of each, and the number of rows in each cell, with an axis for each.
Counted = Mapping[tuple[str, ...], tuple[Sequence[Sequence[str]], Numbers]]

# The most bars of a column, cells at a side of a heat map, heat maps, columns in the matrix of all pairs, and marginals
# with a bar each.
MOST_BARS, MOST_SIDE, MOST_MAPS, MOST_NAMED, MOST_BARRED_MARGINALS = 40, 20, 12, 30, 12
# Neighbouring cells of these columns may be put together; of the others, the smallest.
_ORDERED = ("integers", "bins", "dates", "ordered categories")
# The extra cells come last, and are no neighbours of the others.
_EXTRA = ("other", "missing")


def page(card: Card, one_way: Counted, two_way: Counted) -> str:
    """The card, its errors, and pictures of single columns and of the pairs that depend most on each other.

    What is counted is what the release says, not what the table has.
    """
    ordered = {column.name: column.kind in _ORDERED for column in card.columns}
    dependences = {columns: dependence(counts) for columns, (_, counts) in two_way.items()}
    body = "\n".join(
        [
            _head(card),
            section("What is promised, and what is not", "", _promises(card)),
            section("How it was made", "", _facts(card)),
            *([_errors(card)] if card.errors else []),
            *([_columns(one_way, ordered)] if one_way else []),
            *([_matrix(dependences), _pairs(two_way, dependences, ordered)] if two_way else []),
            _schema(card),
            _foot(card),
        ]
    )
    return document(f"{visible(card.table)}: a private release", body)


def dependence(counts: Numbers) -> float:
    """The distance of two columns from independence: the share of the rows that would have to be in other cells.

    ½ Σ |p_ij − p_i p_j|, where p are shares of the rows.

    >>> dependence(np.array([[2.0, 2.0], [3.0, 3.0]])), dependence(np.array([[5.0, 0.0], [0.0, 5.0]]))
    (0.0, 0.5)
    """
    shares = np.maximum(counts, 0.0) / max(float(np.maximum(counts, 0.0).sum()), 1e-300)
    alone = shares.sum(axis=1, keepdims=True) * shares.sum(axis=0, keepdims=True)
    return float(np.abs(shares - alone).sum()) / 2


def gathered(
    labels: Sequence[str], counts: Numbers, axis: int, *, ordered: bool, most: int
) -> tuple[list[str], Numbers]:
    """At most `most` cells along an axis: neighbours put together if they are ordered, otherwise the smallest ones.

    >>> labels, counts = gathered(["a", "b", "c", "d"], np.array([5.0, 1.0, 7.0, 2.0]), 0, ordered=False, most=3)
    >>> labels, counts.tolist()
    (['a', 'c', 'and 2 more'], [5.0, 7.0, 3.0])
    >>> gathered(["1", "2", "3", "4", "5", "missing"], np.ones(6), 0, ordered=True, most=4)[0]
    ['1…2', '3…4', '5', 'missing']
    """
    if len(labels) <= most:
        return list(labels), counts
    if ordered:
        inside = len(labels) - sum(label in _EXTRA for label in labels[-2:])
        together = -(-inside // (most - (len(labels) - inside)))
        starts = [*range(0, inside, together), *range(inside, len(labels))]
        ends = [*(min(start + together, inside) - 1 for start in starts if start < inside), *range(inside, len(labels))]
        named = [
            labels[start] if start == end else f"{labels[start]}…{labels[end]}"
            for start, end in zip(starts, ends, strict=True)
        ]
        return named, np.add.reduceat(counts, starts, axis=axis)
    others = tuple(place for place in range(counts.ndim) if place != axis)
    # Equal ones in the order of the schema.
    largest = np.sort(np.argsort(-counts.sum(axis=others), kind="stable")[: most - 1])
    rest = np.setdiff1d(np.arange(len(labels)), largest)
    kept = np.take(counts, largest, axis=axis)
    summed = np.take(counts, rest, axis=axis).sum(axis=axis, keepdims=True)
    return [*(labels[place] for place in largest), f"and {len(rest):,} more"], np.concatenate([kept, summed], axis=axis)


def _head(card: Card) -> str:
    rows = f"{card.rows:,.0f}"
    sure = "rows: their number is public" if card.rows_error == 0 else "rows, about"
    if card.rows_error:
        sure = f"rows, ± {error_text(card.rows_error)}"
    facts = [
        (f"ε = {float(card.budget.epsilon):g}", f"the budget of this release, {_delta(card)}"),
        (rows, sure),
        (f"{len(card.columns):,}", "column" if len(card.columns) == 1 else "columns"),
    ]
    if card.errors:
        facts.append((error_text(card.error), f"mean L1 error of {card.goal}, as a share of the rows: estimated"))
    return f"""<h1>{shown(visible(card.table))}: a private release</h1>
<p class="lead">Synthetic rows, and answers to any counting question, made from noisy counts of a table that stays
private. <b>Neighbours: {shown(card.unit.describe)}.</b> Everything on this page is part of the release.</p>
{tiles(facts)}"""


def _delta(card: Card) -> str:
    return f"δ = {float(card.budget.delta):g}" if card.budget.delta else "and no δ"


def _promises(card: Card) -> str:
    parts = [
        f"<div{'' if title == 'Guaranteed' else ' class=less'}><h3>{title}</h3>\n<ul>\n"
        + "\n".join(f"<li>{shown(each)}</li>" for each in said)
        + "\n</ul></div>"
        for title, said in zip(TITLES, card.sentences, strict=True)
    ]
    return '<div class="claims">\n' + "\n".join(parts) + "\n</div>"


def _facts(card: Card) -> str:
    items = "\n".join(f"<dt>{title}</dt><dd>{shown(words)}</dd>" for title, words in card.summary)
    return f'<dl class="facts">\n{items}\n</dl>'


def _errors(card: Card) -> str:
    words = """The L1 error of a marginal is the sum of the differences of all its cells, over the number of rows: 0 is
exact, and 2 is the largest. Half of it is the share of rows that are in a wrong cell. These are estimates."""
    ranked = sorted(card.errors, key=lambda each: (each.error, each.columns))
    if len(ranked) <= MOST_BARRED_MARGINALS:
        errors = np.array([each.error for each in ranked])
        title = "The estimated error of each marginal"
        return section(
            "Errors", words, figure(bars_figure(title, [_named(each) for each in ranked], errors, error_text))
        )
    errors = np.array([each.error for each in ranked])
    low, middle, high = (error_text(float(each)) for each in np.quantile(errors, [0, 0.5, 1]))
    title = f"Estimated errors of {len(ranked):,} marginals, sorted: from {low} to {high}, half of them below {middle}"
    ends = [(shown(_named(each)), error_text(each.error)) for each in [*ranked[:3], *ranked[-3:]]]
    listed = table(["the three best and the three worst", "error"], ends)
    return section("Errors", words, figure(curve_figure(title, errors, card.error), "wide") + listed)


def _named(each: MarginalError) -> str:
    return " × ".join(map(visible, each.columns)) or "all rows"


def _columns(one_way: Counted, ordered: Mapping[str, bool]) -> str:
    figures = []
    for (name,), ((labels,), counts) in one_way.items():
        cells, values = gathered(labels, counts, 0, ordered=ordered.get(name, False), most=MOST_BARS)
        whole = max(float(counts.sum()), 1e-300)
        title = (
            f"{visible(name)}: rows in each of {len(labels):,} cells; most in {visible(cells[int(values.argmax())])}"
        )
        drawn = bars_figure(title, cells, values, lambda value, whole=whole: f"{value:,.0f} · {value / whole:.1%}")  # type: ignore[misc]
        figures.append(figure(drawn, head=f"{shown(visible(name))} <span>{len(labels):,} cells</span>"))
    words = "How many rows the release has in each cell. Where cells are many, they are put together."
    return section("Single columns", words, '<div class="charts">\n' + "\n".join(figures) + "\n</div>")


def _matrix(dependences: Mapping[tuple[str, ...], float]) -> str:
    strongest: dict[str, float] = {}
    for columns, value in dependences.items():
        for name in columns:
            strongest[name] = max(strongest.get(name, 0.0), value)
    kept = sorted(strongest, key=lambda name: -strongest[name])[:MOST_NAMED]
    names = [name for name in strongest if name in kept]
    values = np.full((len(names), len(names)), np.nan)
    for columns, value in dependences.items():
        if all(name in names for name in columns):
            one, other = sorted(names.index(name) for name in columns)
            values[other, one] = value
    left_out = len(strongest) - len(names)
    more = f" The {len(names)} columns with the strongest pairs; {left_out:,} more are not shown." if left_out else ""
    words = f"""For each pair, the share of rows that would be in other cells if the two columns were independent. Noise
adds a little to pairs with many cells.{more}"""
    title = "How much each pair of columns depends on each other"
    return section("Which columns go together", words, figure(matrix_figure(title, names, values), "wide"))


def _pairs(two_way: Counted, dependences: Mapping[tuple[str, ...], float], ordered: Mapping[str, bool]) -> str:
    chosen = sorted(two_way, key=lambda columns: (-dependences[columns], columns))[:MOST_MAPS]
    figures = []
    for columns in chosen:
        (rows, across), counts = two_way[columns]
        first, second = columns
        down, counts = gathered(rows, counts, 0, ordered=ordered.get(first, False), most=MOST_SIDE)
        right, counts = gathered(across, counts, 1, ordered=ordered.get(second, False), most=MOST_SIDE)
        names = f"{visible(first)} × {visible(second)}"
        title = f"{names}: a heat map of {len(rows):,} by {len(across):,} cells; dependence {dependences[columns]:.2f}"
        drawn = heat_figure(title, (first, second), (down, right), counts)
        figures.append(figure(drawn, head=f"{shown(names)} <span>dependence {dependences[columns]:.2f}</span>"))
    which = "All of them" if len(chosen) == len(two_way) else f"The {len(chosen)} of {len(two_way):,} that depend most"
    words = f"""{which}. The stronger the colour, the more rows, by the square root; numbers in cells are percents of
all rows."""
    return section("Pairs of columns", words, '<div class="charts">\n' + "\n".join(figures) + "\n</div>")


def _schema(card: Card) -> str:
    listed = ", ".join(
        f"<b>{shown(visible(each.name))}</b> ({shown(each.kind)}, {each.cells:,})" for each in card.columns
    )
    words = "What a row may be was declared before any row was read: each column with its kind and its number of cells."
    return section("Columns", words, f"<p>{listed}.</p>")


def _foot(card: Card) -> str:
    return f"""<footer>
<p>Made {shown(card.made[:16].replace("T", " "))} UTC by discreet {shown(card.version)}. The same facts for programs are
in card.json, beside this file.</p>
</footer>"""

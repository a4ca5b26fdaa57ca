"""The report of the demo, one HTML file with charts of the outcome of a stream. It needs no network and no script."""

from collections.abc import Iterable, Sequence
from html import escape
from math import ceil, exp, log10, pi, sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from discreet.lab.demo.demo_outcome import Outcome, Reply
from discreet.lab.demo.spending import Spending
from discreet.meaning import explain
from discreet.report.chart import Chart, Scale, Tick
from discreet.report.document import document, figure, section, tiles

WIDTH, LEFT, RIGHT, TOP = 880, 72, 130, 16
STYLES = {"Discreet": "ours", "Gaussian": "second", "Laplace": "third"}
SAMPLES = 160


def free_figure(outcome: Outcome) -> str:
    """The share of questions that were free, over the stream: of all so far, and of the last ones."""
    number = len(outcome.replies)
    chart = Chart(WIDTH, 300, "The share of questions answered for free, over the stream")
    x, y = Scale(0, number, LEFT, WIDTH - RIGHT), Scale(0, 1, 250, TOP)
    chart.across(y, [(share, f"{share:.0%}") for share in (0, 0.25, 0.5, 0.75, 1)], LEFT, WIDTH - RIGHT)
    chart.below(x, _hundreds(number), 250)
    chart.text((LEFT + WIDTH - RIGHT) / 2, 292, "questions asked", "label", "middle")
    so_far = np.cumsum(outcome.free) / np.arange(1, number + 1)
    line = [(x(place), y(so_far[place - 1])) for place in _places(number)]
    chart.area(line, 250, "ours")
    batch = max(1, number // 100)
    ends = range(batch, number + 1, batch)
    recent = [(x(end - batch / 2), y(float(outcome.free[end - batch : end].mean()))) for end in ends]
    chart.line(recent, "faint ours")
    chart.line(line, "ours")
    _end_labels(
        chart,
        [
            (line[-1][1], f"{so_far[-1]:.1%}", ["of all so far"], "ours"),
            (recent[-1][1], f"{outcome.free[-batch:].mean():.0%}", [f"of the last {batch:,}"], "muted"),
        ],
    )
    return chart.svg()


def budget_figure(spendings: Sequence[Spending]) -> str:
    """What was spent after each question, here and by the baselines, on an axis of powers of ten."""
    number, budget, floor = len(spendings[0].used), float(spendings[0].budget.epsilon), 350
    chart = Chart(WIDTH, floor + 50, "The budget that was spent, over the stream, on a logarithmic scale")
    lines = {each.name: [(place, each.epsilon(place)) for place in _places(number)] for each in spendings}
    highest = max(epsilon for line in lines.values() for _, epsilon in line)
    x = Scale(0, number, LEFT, WIDTH - RIGHT)
    y = Scale(budget / 30, 1.4 * max(highest, 3 * budget), floor, TOP + 10, log=True)
    ticks = [(budget * 10.0**power, f"{budget * 10.0**power:,g}") for power in (-1, 1, 2, 3, 4)]
    chart.bar(LEFT, y.end, WIDTH - RIGHT, y(budget), "beyond")
    chart.across(y, [tick for tick in ticks if tick[0] <= y.high], LEFT, WIDTH - RIGHT)
    chart.below(x, _hundreds(number), floor)
    chart.text((LEFT + WIDTH - RIGHT) / 2, floor + 42, "questions asked", "label", "middle")
    chart.text(LEFT, TOP + 2, "epsilon spent", "label")
    chart.line([(LEFT, y(budget)), (WIDTH - RIGHT, y(budget))], "cap")
    chart.text(LEFT - 8, y(budget) + 4, f"budget {budget:g}", "tick strong", "end")
    ends = []
    for each in spendings:
        style, line = STYLES[each.name], [(x(place), y(epsilon)) for place, epsilon in lines[each.name]]
        chart.line(line, style)
        words = [each.name if each.name == "Discreet" else f"{each.name} each"]
        if each.answered < number:
            words.append(f"gone at {each.answered + 1:,}")
            chart.dot(x(each.answered + 1), y(budget), style, 5, f"{each.name}: question {each.answered + 1:,}")
        ends.append((line[-1][1], f"ε {_short(lines[each.name][-1][1])}", words, style))
    _end_labels(chart, ends)
    # Between the two highest lines nothing else is drawn.
    high = sorted(y for y, *_ in ends)[:2]
    if len(high) == 2 and high[1] - high[0] > 40:
        chart.text(WIDTH - RIGHT - 10, min(sum(high) / 2, y(budget) - 12), "over budget", "label third", "end")
    return chart.svg()


def misses_figure(kind: str, misses: NDArray[np.float64], *, confidence: float, last: float) -> str:
    """The distances of numbers from the truth, in promised errors, up to `last` of them; those above 1 are marked."""
    width, floor, left, right = 420, 178, 16, 404
    outside = float(np.mean(misses > 1)) if misses.size else 0.0
    chart = Chart(width, 222, f"{kind}: errors in multiples of the promised one; {outside:.1%} outside")
    worst = float(misses.max(initial=0))
    edges = np.arange(0, last + 0.05, 0.1)
    counts, _ = np.histogram(misses, edges)
    density = counts / max(misses.size, 1) / 0.1
    # The law that a Gaussian answer would have whose error is exactly the promised one.
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    x, y = (
        Scale(0, last, left, right),
        Scale(0, max(float(density.max(initial=0)), 2 * z / sqrt(2 * pi)) * 1.12, floor, 34),
    )
    for place, height in enumerate(density.tolist()):
        if height:
            hint = f"{counts[place]:,} numbers: {edges[place]:.1f} to {edges[place + 1]:.1f} promised errors away"
            style = "inside" if edges[place] < 0.999 else "outside"
            chart.bar(x(edges[place]) + 0.5, min(y(height), floor - 1), x(edges[place + 1]) - 0.5, floor, style, hint)
    curve = [(x(at), y(2 * z * exp(-((at * z) ** 2) / 2) / sqrt(2 * pi))) for at in np.linspace(0, last, 80).tolist()]
    chart.line(curve, "law")
    chart.line([(x(1), 28), (x(1), floor)], "cap")
    chart.text(x(1) + 7, 40, f"{outside:.1%} outside", "label outside strong")
    chart.text(x(1) - 7, 40, f"{1 - outside:.1%} within", "label ours strong", "end")
    chart.below(x, [(tick / 2, f"{tick / 2:g}") for tick in range(int(2 * last) + 1)], floor)
    chart.text((left + right) / 2, floor + 38, "true error ÷ promised error", "label", "middle")
    if worst > 1:
        chart.line([(x(worst), floor - 14), (x(worst), floor - 2)], "worst")
        chart.text(
            x(worst), floor - 19, f"worst {worst:.2f}", "label muted", "end" if x(worst) > right - 40 else "middle"
        )
    return chart.svg()


def groups_figure(reply: Reply) -> str:
    """A table of counts with its error bars, and the truth beside it."""
    assert reply.answer is not None, "a refused question has no picture"
    labels = [
        " · ".join(map(str, row)) for row in zip(*(reply.answer.columns[n] for n in reply.question.groups), strict=True)
    ]
    rows = sorted(zip(labels, reply.values, reply.errors, reply.truth, strict=True), key=lambda row: -row[3])
    left, step = 170, 26
    floor = TOP + step * len(rows) + 6
    chart = Chart(WIDTH, floor + 50, f"Answers with error bars, and the truth: {reply.question.sql}")
    highest = max(max(value + error, true) for _, value, error, true in rows)
    lowest = min(min(value - error, 0) for _, value, error, _ in rows)
    unit = 10 ** int(log10(highest)) // 2 or 1
    x = Scale(np.floor(lowest / unit) * unit if lowest < -unit / 4 else lowest, highest * 1.02, left, WIDTH - 150)
    ticks = range(0, int(highest) + 1, unit)
    for tick in ticks:
        chart.line([(x(tick), TOP), (x(tick), floor)], "grid")
    for place, (label, value, error, true) in enumerate(rows):
        y = TOP + step * (place + 0.6)
        chart.text(left - 12, y + 4, label, "name", "end")
        missed = "outside" if abs(value - true) > error else "ours"
        chart.line([(x(value - error), y), (x(value + error), y)], f"whisker {missed}")
        chart.bar(x(true) - 1.5, y - 8, x(true) + 1.5, y + 8, "truth", f"truth {true:,}")
        chart.dot(x(value), y, missed, 4.5, f"{label}: {value:,.0f} ± {error:,.0f}; truth {true:,}")
        chart.text(WIDTH - 140, y + 4, f"{value:,.0f} ± {error:,.0f}", "number strong")
        chart.text(WIDTH - 4, y + 4, f"{true:,}", "number muted", "end")
    chart.below(x, [(tick, f"{tick:,}") for tick in ticks], floor)
    chart.text((left + WIDTH - 150) / 2, floor + 42, "people", "label", "middle")
    chart.text(WIDTH - 140, TOP - 2, "answer", "label")
    chart.text(WIDTH - 4, TOP - 2, "truth", "label", "end")
    return chart.svg()


def _places(number: int) -> list[int]:
    """Places along the stream, closer at its beginning."""
    return sorted({1, *(ceil(number * (sample / SAMPLES) ** 2) for sample in range(1, SAMPLES + 1))})


def _hundreds(number: int) -> list[Tick]:
    """Five ticks and zero, or fewer."""
    step = max(1, number // 5)
    return [(place, f"{place:,}") for place in range(0, number + 1, step)]


def _short(epsilon: float) -> str:
    return f"{epsilon:.2g}" if epsilon < 10 else f"{epsilon:,.0f}"


def _end_labels(chart: Chart, labels: list[tuple[float, str, list[str], str]]) -> None:
    """What the lines are, at their right ends, moved apart where they are close."""
    free = 0.0
    for y, number, words, style in sorted(labels):
        at = max(y, free)
        chart.text(WIDTH - RIGHT + 10, at + 4, number, f"end {style}")
        for place, word in enumerate(words):
            chart.text(WIDTH - RIGHT + 10, at + 20 + 15 * place, word, "label muted")
        free = at + 26 + 15 * len(words)


def report(
    outcome: Outcome, baselines: Sequence[Spending], examples: Iterable[tuple[int, Reply]], groups: Reply, rows: int
) -> str:
    """The whole page."""
    number = f"{len(outcome.replies):,}"
    body = "\n".join(
        [
            _head(outcome, baselines, rows),
            section("Most answers are free", FREE, figure(free_figure(outcome), "wide")),
            _budget(outcome, baselines),
            _errors(outcome),
            _groups(groups),
            _examples(examples),
            _meaning(outcome, rows),
            _notes(outcome),
        ]
    )
    return document(f"{number} questions, one privacy budget", body)


FREE = """An answer that follows from earlier answers costs nothing, for any analyst and in any wording: the noise is
already in what is known. The thick line is the share of free ones among all questions so far, the thin one that among
the last ones."""


def _head(outcome: Outcome, baselines: Sequence[Spending], rows: int) -> str:
    number = len(outcome.replies)
    ours, budget = outcome.spending, outcome.budget
    refused = f" {outcome.refused:,} were refused." if outcome.refused else ""
    gone = sorted((each for each in baselines if each.answered < number), key=lambda each: each.answered)
    names = " / ".join(each.name for each in gone)
    alone = f"questions, and the same budget is gone where each is answered by itself ({names})"
    facts = [
        (f"{outcome.free.mean():.1%}", "of all questions were free: they followed from earlier answers"),
        (f"{1 - ours.used[-1]:.0%}", f"of the budget is left after {number:,} questions"),
        *([(" / ".join(f"{each.answered:,}" for each in gone), alone)] if gone else []),
        (
            f"{outcome.held:.1%}",
            f"of {outcome.every_miss.size:,} numbers are within their error; {outcome.confidence:.0%} is expected",
        ),
    ]
    return f"""<h1>{number:,} questions,<br />one privacy budget</h1>
<p class="lead">The Adult table: <b>{rows:,} people</b> of a census survey of 1994. Analysts asked {number:,}
questions in SQL; the budget for everything that is ever released is <b>epsilon {float(budget.epsilon):g}</b> (delta
{float(budget.delta):g}).{refused} It took {outcome.seconds:.0f} seconds:
{number / max(outcome.seconds, 1e-9):,.0f} answers a second.</p>
{tiles(facts)}
<p class="note">This page shows true counts beside the private ones. Only a demonstration on a public table can do that;
no analyst ever sees them.</p>"""


def _budget(outcome: Outcome, baselines: Sequence[Spending]) -> str:
    ours, number = outcome.spending, len(outcome.replies)
    ends = ", ".join(f"{_times(each)} with one {each.name} answer for each" for each in baselines)
    words = f"""Other tools answer each new question by itself, and repeat an answer only to the same question, word for
word. For the same errors they would need the budget {ends}. Here {ours.used[-1]:.0%} of it was used, epsilon
{ours.epsilon(number):.2g}. Above the dashed line the budget is gone and a tool must stop; the lines go on only for
comparison."""
    return section("What it costs", words, figure(budget_figure([ours, *baselines]), "wide"))


def _errors(outcome: Outcome) -> str:
    worst = float(outcome.every_miss.max(initial=0))
    words = f"""Every number came with an error that holds with probability {outcome.confidence:.0%}. Here are all of
them against the truth: up to 1 the error holds, above 1 it does not. The curve is what Gaussian noise of exactly the
promised size would give. The worst of all {outcome.every_miss.size:,} numbers was {worst:.2f} promised errors away.
Answers share their noise, so one miss shows in many answers, and the share outside differs from run to run: by a point
or so for all numbers together, by a few points in the panels with few of them."""
    last = max(2.0, ceil(2 * worst + 0.2) / 2)
    panels = [
        figure(
            misses_figure(kind, misses, confidence=outcome.confidence, last=last),
            head=f"{escape(kind)} <span>{misses.size:,} numbers</span>",
        )
        for kind, misses in outcome.misses.items()
    ]
    return section("Do the errors hold?", words, '<div class="panels">\n' + "\n".join(panels) + "\n</div>")


def _groups(reply: Reply) -> str:
    if reply.answer is None:
        return ""
    price = "It was free." if reply.free else "It was paid for once, and is free from now on."
    words = f"""<code>{escape(reply.question.sql)}</code></p>
<p>A whole table costs as much as one count, because nobody is in two groups. {price}
<span class="note">(<span class="key ours"></span>answer with its error
<span class="key truth"></span>truth, also in the last column)</span>"""
    return section("A table with error bars", words, figure(groups_figure(reply), "wide"))


def _examples(examples: Iterable[tuple[int, Reply]]) -> str:
    rows = "\n".join(_example(place, reply) for place, reply in examples)
    words = "Some of the questions, as they came. <i>Left</i> is the share of the budget that is left after it."
    table = f"""<div class="scroll"><table>
<thead><tr><th>no.</th><th class="sql">SELECT COUNT(*) FROM adult WHERE …</th><th>answer</th><th>±</th><th>truth</th>
<th>left</th><th>price</th></tr></thead>
<tbody>
{rows}
</tbody></table></div>"""
    return section("A few of them", words, table)


def _example(place: int, reply: Reply) -> str:
    missed = ' class="missed"' if reply.misses.max(initial=0) > 1 else ""
    price = '<td class="free">free</td>' if reply.free else '<td class="paid">paid</td>'
    where = escape(reply.question.sql.partition(" WHERE ")[2])
    return (
        f'<tr><td>{place:,}</td><td class="sql">{where}</td><td{missed}>{reply.values[0]:,.0f}</td>'
        f"<td>{reply.errors[0]:,.0f}</td><td>{reply.truth[0]:,}</td><td>{1 - reply.used:.0%}</td>{price}</tr>"
    )


def _meaning(outcome: Outcome, rows: int) -> str:
    meaning = explain(epsilon=outcome.budget.epsilon, delta=outcome.budget.delta, rows=rows)
    items = "\n".join(f"<dt>{escape(title)}</dt><dd>{escape(text)}</dd>" for title, text in meaning.sentences[:4])
    return section("What that means to a person in the table", "", f"<dl>\n{items}\n</dl>")


def _notes(outcome: Outcome) -> str:
    kinds = ", ".join(sorted({f"±{reply.question.error:,}" for reply in outcome.replies}, key=len))
    return f"""<footer>
<p>The questions were generated, the same ones every time: counts with conditions on one to three columns and GROUP BY,
about columns that people ask about together, some more popular than others, and now and then an earlier one word for
word. Errors asked for: {kinds} at {outcome.confidence:.0%}. The noise is new every time, from the operating
system.</p>
<p>Baselines: Laplace adds up epsilons, Gaussian adds up squares and converts them exactly; a GROUP BY is one
release for both. Their spending is computed, not run.</p>
</footer>"""


def _times(spending: Spending) -> str:
    """How many budgets, in the currency in which they add up."""
    return f"{spending.used[-1]:.2g} times"

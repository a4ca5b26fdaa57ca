"""The report: one HTML file that needs nothing else, no network and no script."""

from collections.abc import Iterable, Sequence
from html import escape
from math import ceil

from discreet.demo.figures import budget_figure, free_figure, groups_figure, misses_figure
from discreet.demo.outcome import Outcome, Reply
from discreet.demo.spending import Spending
from discreet.meaning import explain
from discreet.page.frame import document, figure, section, tiles


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


FREE = """A question that follows from what was already told costs nothing, whoever asks it and in whatever words: the
noise is already in what is known. The thick line is the share of all questions so far, the thin one that of the last
ones."""


def _head(outcome: Outcome, baselines: Sequence[Spending], rows: int) -> str:
    number = len(outcome.replies)
    ours, budget = outcome.spending, outcome.budget
    refused = f" {outcome.refused:,} were refused." if outcome.refused else ""
    gone = sorted((each for each in baselines if each.answered < number), key=lambda each: each.answered)
    names = " / ".join(each.name for each in gone)
    alone = f"questions, and the same budget is gone where each is answered by itself ({names})"
    told = [
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
questions in SQL; for everything that was ever told, together, the budget is <b>epsilon {float(budget.epsilon):g}</b>
(delta {float(budget.delta):g}).{refused} It took {outcome.seconds:.0f} seconds:
{number / max(outcome.seconds, 1e-9):,.0f} answers a second.</p>
{tiles(told)}
<p class="note">This page shows true counts beside the private ones. Only a demonstration on a public table can do that;
no analyst ever sees them.</p>"""


def _budget(outcome: Outcome, baselines: Sequence[Spending]) -> str:
    ours, number = outcome.spending, len(outcome.replies)
    ends = ", ".join(f"{_times(each)} with one {each.name} answer for each" for each in baselines)
    words = f"""Other tools answer each new question by itself, and remember it for whoever asks the same, word for
word. For the same errors they would need the budget {ends}. Here {ours.used[-1]:.0%} of it was used, epsilon
{ours.epsilon(number):.2g}. Above the dashed line the budget is gone and a tool must stop; it is drawn further only to
compare."""
    return section("What it costs", words, figure(budget_figure([ours, *baselines]), "wide"))


def _errors(outcome: Outcome) -> str:
    worst = float(outcome.every_miss.max(initial=0))
    words = f"""Every number came with an error that holds with probability {outcome.confidence:.0%}. Here are all of
them against the truth: at 1 a number is exactly as wrong as was promised, beyond it the bar did not hold. The curve is
what Gaussian noise of exactly the promised size would give. The worst of all {outcome.every_miss.size:,} numbers was
{worst:.2f} promised errors away. Answers share their noise, so a miss comes back wherever it is asked about again, and
the share outside differs from run to run: by a point or so for all numbers together, by a few points in the panels with
few of them."""
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

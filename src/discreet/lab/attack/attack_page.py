"""The HTML page of the attacks: how much was learnt from each curator, and the curves of the tests. It needs no network
and no script.
"""

from collections.abc import Sequence
from html import escape

from discreet.lab.attack.attack_outcome import Outcome
from discreet.meaning import best_power
from discreet.report.chart import Chart, Scale
from discreet.report.document import document, figure, section, tiles

WIDTH, LEFT, RIGHT, STEP, TOP = 880, 236, 92, 34, 46
_TICKS = [(share / 4, f"{share / 4:.0%}") for share in range(5)]

# The colours of the style sheet: of bars, and of lines.
COLOURS = {"exact": "third", "rounded": "second", "ours": "ours"}


def learnt_figure(outcome: Outcome) -> str:
    """A bar for each answerer, beside what chance gives and what the budget permits."""
    floor = TOP + STEP * len(outcome.learnt)
    chart = Chart(WIDTH, floor + 46, f"{outcome.title}: what was learnt from whom")
    x = Scale(0, 1, LEFT, WIDTH - RIGHT)
    for share, _ in _TICKS:
        chart.line([(x(share), TOP), (x(share), floor)], "grid")
    for place, each in enumerate(outcome.learnt):
        top = TOP + STEP * place
        chart.text(LEFT - 12, top + STEP / 2 + 4, each.source, "name", "end")
        hint = f"{each.source}: {each.share:.1%} {outcome.measure}"
        chart.bar(LEFT, top + 6, x(each.share), top + STEP - 6, COLOURS[each.kind], hint)
        chart.text(WIDTH - RIGHT + 74, top + STEP / 2 + 5, f"{each.share:.1%}", "number strong", "end")
    chart.line([(x(outcome.chance), TOP - 6), (x(outcome.chance), floor)], "axis")
    chart.line([(x(outcome.limit), TOP - 6), (x(outcome.limit), floor)], "cap")
    # The two words are on either side, so that they never overlap.
    chart.text(x(outcome.chance) - 4, TOP - 14, f"knowing nothing {outcome.chance:.0%}", "label", "end")
    chart.text(x(outcome.limit) + 4, TOP - 14, f"{outcome.limit:.1%} is permitted", "label strong")
    chart.below(x, _TICKS, floor)
    chart.text((LEFT + WIDTH - RIGHT) / 2, floor + 40, outcome.measure, "label", "middle")
    return chart.svg()


def roc_figure(outcome: Outcome) -> str:
    """Hits over false alarms, and the curve that no test of a private release can cross."""
    size, left, floor = 480, 60, 420
    chart = Chart(size + 60, floor + 50, "Hits over false alarms of the tracing attack")
    x, y = Scale(0, 1, left, size), Scale(0, 1, floor, 16)
    chart.across(y, _TICKS, left, size)
    chart.below(x, _TICKS, floor)
    permitted = [(alarm / 200, _power(outcome, alarm / 200)) for alarm in range(201)]
    chart.area([(x(a), y(p)) for a, p in permitted], floor, "ours")
    chart.line([(x(0), y(0)), (x(1), y(1))], "axis")
    for curve in outcome.curves:
        chart.line([(x(a), y(p)) for a, p in curve.points], COLOURS[curve.kind] + " dashed" * (curve.kind == "rounded"))
    chart.line([(x(a), y(p)) for a, p in permitted], "cap")
    chart.text(x(0.97), y(0.06), f"permitted by {outcome.budget}: the shaded part", "label", "end")
    chart.text((left + size) / 2, floor + 42, "false alarms", "label", "middle")
    chart.text(left, 10, "hits", "label")
    return chart.svg()


def _power(outcome: Outcome, alarm: float) -> float:
    return best_power(epsilon=outcome.epsilon, delta=outcome.delta, false_alarm=alarm)


KEYS = """<p class="note"><span class="key third"></span>exact answers &nbsp;
<span class="key second"></span>rounded answers &nbsp; <span class="key ours"></span>Discreet &nbsp; the dashed line is
the most that the budget permits to anybody, on average</p>"""


def report(outcomes: Sequence[Outcome], *, table: str, public: bool = True) -> str:
    """The whole page. `public` says that the table is one whose truth everybody may see."""
    body = "\n".join([_head(outcomes, table, public), *map(_part, outcomes), _notes()])
    return document("What an attacker learns", body)


def _head(outcomes: Sequence[Outcome], table: str, public: bool) -> str:
    shares = [(f"{each.best('exact'):.0%} → {each.best('ours'):.0%}", _tile(each)) for each in outcomes]
    warned = "" if public else " It shows what is true of them: keep it as safe as the table itself."
    return f"""<h1>What an attacker learns</h1>
<p class="lead">The same attacks on <b>exact</b> answers about {escape(table)}, on <b>rounded</b> ones, and on the
<b>private</b> ones that Discreet gives. What the budget permits separates an attack from luck.{escape(warned)}</p>
{tiles(shares)}
{KEYS}"""


def _tile(outcome: Outcome) -> str:
    return f"{outcome.name}: {outcome.measure}, from exact answers and from ours; {outcome.limit:.0%} is permitted"


def _part(outcome: Outcome) -> str:
    good = "good" if outcome.holds else "bad"
    word = "Nothing was learnt that is not permitted" if outcome.holds else "More was learnt than is permitted"
    luck = "" if outcome.confidence == 1 else f" With luck, up to {outcome.luck:.1%} ({outcome.confidence:.1%} sure)."
    notes = "\n".join(f'<p class="note">{escape(note)}</p>' for note in outcome.notes)
    shown = [figure(learnt_figure(outcome), "wide")]
    if outcome.curves:
        shown.append(figure(roc_figure(outcome), "narrow"))
    verdict = f'<p class="verdict {good}">{word}.<span class="note">{escape(luck)}</span></p>'
    return section(escape(outcome.title), escape(outcome.how), "\n".join([*shown, verdict, notes]))


def _notes() -> str:
    return """<footer>
<p>What is permitted follows from epsilon and delta alone and holds against every attacker, not only against these. It
is about what an attacker learns from <i>your</i> row: somebody who can guess an income from an age and a degree can do
so with or without you in the table.</p>
<p>Everything random here is new every time, from the operating system.</p>
</footer>"""

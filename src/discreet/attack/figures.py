"""The pictures of attacks: how much was learnt from whom, and the curves of the tests."""

from discreet.attack.outcome import Outcome
from discreet.meaning import best_power
from discreet.page.chart import Chart, Scale

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
    # The two words stand on either side, so that they never meet.
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

"""The page of the attacks: one HTML file that needs nothing else, no network and no script."""

from collections.abc import Sequence
from html import escape

from discreet.attack.figures import learnt_figure, roc_figure
from discreet.attack.outcome import Outcome
from discreet.page.frame import document, figure, section, tiles

KEYS = """<p class="note"><span class="key third"></span>exact answers &nbsp;
<span class="key second"></span>rounded answers &nbsp; <span class="key ours"></span>Discreet &nbsp; the dashed line is
the most that the budget permits to anybody, on average</p>"""


def report(outcomes: Sequence[Outcome], *, table: str, public: bool = True) -> str:
    """The whole page. `public` says that the table is one whose truth everybody may see."""
    body = "\n".join([_head(outcomes, table, public), *map(_part, outcomes), _notes()])
    return document("What an attacker learns", body)


def _head(outcomes: Sequence[Outcome], table: str, public: bool) -> str:
    told = [(f"{each.best('exact'):.0%} → {each.best('ours'):.0%}", _tile(each)) for each in outcomes]
    warned = "" if public else " It shows what is true of them: keep it as safe as the table itself."
    return f"""<h1>What an attacker learns</h1>
<p class="lead">The same attacks on <b>exact</b> answers about {escape(table)}, on <b>rounded</b> ones, and on the
<b>private</b> ones that Discreet gives. An attack is told from luck by what the budget permits.{escape(warned)}</p>
{tiles(told)}
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
is about what an attacker learns from <i>your</i> row: who can tell an income from an age and a degree does so with or
without you in the table.</p>
<p>Everything random here is new every time, from the operating system.</p>
</footer>"""

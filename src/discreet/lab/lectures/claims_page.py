"""The page of all claims: one HTML file that needs nothing else, no network and no script."""

import re
from collections.abc import Iterable
from itertools import groupby

from discreet.lab.lectures.catalogue import find
from discreet.lab.lectures.claim import Claim, Finding
from discreet.lab.lectures.run import Result, Results
from discreet.report.document import document, figure, shown, tiles

# What the five lecture notes are about.
NOTES = {
    "000": "A teaser for differential privacy",
    "001": "Sparse vector and private data release",
    "002": "Composition, k-means, and what it means",
    "003": "Answering exponentially many queries",
    "004": "Private algorithms and selection",
}
TITLE = "The lecture notes, claim by claim"


def page(results: Results) -> str:
    """The whole page, grouped by note."""
    pairs = [(find(result.claim), result) for result in results]
    notes = [(note, list(each)) for note, each in groupby(pairs, key=lambda pair: pair[0].source.split()[0])]
    body = [_head(results, pairs), _contents(notes)]
    for note, each in notes:
        body.append(f'<h2 class="note-title" id="note-{note}"><span>{note}</span>{shown(NOTES.get(note, ""))}</h2>')
        body += [_claim(claim, result) for claim, result in each]
    return document(TITLE, "\n".join([*body, FOOT]))


FIXED = '<span class="fix">correction</span>'

FOOT = """<footer>
<p>Exact means: computed from the exact law of what the product does, as rigorous intervals, over all tables of the size
that is named; nothing is sampled. What is random is drawn anew on every run, from the operating system, and a true
claim fails with probability below one in a million.</p>
</footer>"""


def _head(results: Results, pairs: list[tuple[Claim, Result]]) -> str:
    corrections = sum(claim.correction for claim, _ in pairs)
    lines = sum(len(result.findings) for result in results)
    all_hold = "all of them hold" if results.holds else f"{len(results) - results.holding} do not hold"
    facts = [
        (f"{len(results)}", "claims: theorems, propositions, lemmas, examples, exercises and figures"),
        (f"{results.holding} of {len(results)}", f"hold, line by line: {lines} lines of claim beside measurement"),
        (f"{corrections}", "are corrections: the notes say something else, and this is what is true"),
        (_time(results.seconds), f"in all; {_time(sum(result.seconds for result in results))} of processor time"),
    ]
    return f"""<h1>{TITLE}</h1>
<p class="lead">Five lecture notes on differential privacy make the promises that this software keeps. Here each of
them is tried on the software itself: what is <b>claimed</b>, beside what was <b>measured</b> a moment ago;
{all_hold}.</p>
{tiles(facts)}"""


def _contents(notes: Iterable[tuple[str, list[tuple[Claim, Result]]]]) -> str:
    items = []
    for note, pairs in notes:
        items.append(f'<li class="note-name"><a href="#note-{note}">{note} · {shown(NOTES.get(note, ""))}</a></li>')
        items += [
            f'<li>{_mark(result.holds)}<a href="#{claim.name}">{formula(claim.title)}</a>'
            f'<span class="source">{shown(_place(claim))}</span>{FIXED if claim.correction else ""}</li>'
            for claim, result in pairs
        ]
    return f'<section>\n<h2>Contents</h2>\n<ul class="toc">\n{chr(10).join(items)}\n</ul>\n</section>'


def _claim(claim: Claim, result: Result) -> str:
    word = '<span class="badge yes">holds</span>' if result.holds else '<span class="badge no">does not hold</span>'
    fixed = '<span class="badge fix">correction to the notes</span>' if claim.correction else ""
    rows = "\n".join(_row(finding) for finding in result.findings)
    failed = f'<p class="missed">{shown(result.failure)}</p>' if result.failure else ""
    drawn = figure(result.figure, "wide") if result.figure else ""
    said = f'<p class="note">{formula(result.note)}</p>' if result.note else ""
    table = f"""<div class="scroll"><table>
<thead><tr><th></th><th>what</th><th>claimed</th><th>measured</th></tr></thead>
<tbody>
{rows}
</tbody></table></div>"""
    return f"""<section class="claim{"" if result.holds else " no"}" id="{claim.name}">
<div class="head"><span class="source">{shown(claim.source)}</span>{word}{fixed}
<span class="time">{_time(result.seconds)}</span></div>
<h3>{formula(claim.title)}</h3>
<p class="statement">{formula(claim.statement)}</p>
{failed}{table if rows else ""}
{drawn}
{said}
</section>"""


def _row(finding: Finding) -> str:
    style = "" if finding.holds else ' class="no"'
    return (
        f"<tr><td>{_mark(finding.holds)}</td><td>{formula(finding.what)}</td>"
        f'<td data-is="claimed">{formula(finding.claimed)}</td>'
        f'<td data-is="measured"{style}>{formula(finding.measured)}</td></tr>'
    )


def formula(words: str) -> str:
    """A text in which e^{−ε}, 2^d, x_i, A_{i−1} and 1e-05 look as they are written on paper.

    >>> formula("e^{−ε} < 2^d, x_i, 1.5e-05")
    'e<sup>−ε</sup> &lt; 2<sup>d</sup>, x<sub>i</sub>, 1.5·10<sup>−5</sup>'
    """
    powers = re.sub(r"(\d)e([+-])0*(\d+)\b", _power, shown(words))
    raised = re.sub(r"\^(?:\{([^{}]*)\}|([−±]?[\w.]*\w))", lambda found: f"<sup>{found[1] or found[2]}</sup>", powers)
    return re.sub(r"_(?:\{([^{}]*)\}|(\w)\b)", lambda found: f"<sub>{found[1] or found[2]}</sub>", raised)


def _power(found: re.Match[str]) -> str:
    """Of a number with an exponent, as programs print it."""
    digit, sign, power = found.groups()
    return f"{digit}·10^{{{'−' if sign == '-' else ''}{power}}}" if power != "0" else digit


def _mark(holds: bool) -> str:
    return '<span class="mark">✓</span>' if holds else '<span class="mark no">✗</span>'


def _place(claim: Claim) -> str:
    """Where in its note: "000 Prop. 7" is at Prop. 7."""
    return claim.source.partition(" ")[2]


def _time(seconds: float) -> str:
    if seconds < 0.1:
        return "under 0.1 s"
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds / 60:.1f} min"

"""A guarantee on one HTML page, in words and charts: beliefs, the best test, and Alice's insurance."""

import numpy as np

from discreet.meaning.guarantee import Meaning
from discreet.meaning.study import Study, learned
from discreet.meaning.tradeoff import promised_misses
from discreet.report.chart import Chart
from discreet.report.document import document, figure, section, shown
from discreet.report.plot import Line, plot


def belief_figure(meaning: Meaning) -> Chart:
    """The posterior belief that you took part, over the prior belief."""
    priors = np.linspace(0.005, 0.995, 100).tolist()
    ranges = [meaning.posterior(prior) for prior in priors]
    lines = [
        Line("at most", [(p, high) for p, (_, high) in zip(priors, ranges, strict=True)], "third"),
        Line("unchanged", [(p, p) for p in priors], "cap"),
        Line("at least", [(p, low) for p, (low, _) in zip(priors, ranges, strict=True)], "ours"),
    ]
    title = "The belief that you took part, after the results, over the belief before"
    return plot(title, lines, x="belief before", y="belief after the results", floor=0.0, ceiling=1.0)


def tradeoff_figure(meaning: Meaning) -> Chart:
    """The best test of "were you in it?", for one person and for groups: the fewest misses at each false-alarm rate."""
    alarms = np.linspace(0, 1, 201).tolist()
    lines = [Line("a guess", [(alarm, 1 - alarm) for alarm in alarms], "cap")]
    for people, style in ((1, "ours"), (2, "second"), (5, "third")):
        points = [
            (a, promised_misses(epsilon=meaning.epsilon, delta=meaning.delta, false_alarm=a, people=people))
            for a in alarms
        ]
        lines.append(Line(f"{people} {'person' if people == 1 else 'people'}", points, style))
    title = "The fewest misses of any test of whether you took part, over its false alarms"
    return plot(title, lines, x="false alarms", y="people that the best test misses", floor=0.0, ceiling=1.0)


def study_figure(study: Study) -> Chart:
    """The insurer's belief about Alice after each possible result of a study, with her row in it and without."""
    reach = 3 * study.smokers**0.5
    first = round(max(0.0, study.harmless * study.smokers - reach))
    last = round(min(float(study.smokers), study.harmful * study.smokers + reach))
    counts = sorted({round(at) for at in np.linspace(first, last, 160)})
    lines = [
        Line(name, [(n, learned(study, n, with_alice=used).ill) for n in counts], style)
        for name, used, style in (("with her row", True, "third"), ("without it", False, "ours"))
    ]
    lines.append(Line("before the study", [(first, study.belief_before), (last, study.belief_before)], "cap"))
    title = "The insurer's belief that Alice falls ill, over the result of the study"
    return plot(
        title, lines, x="smokers who fell ill, as the study reports", y="belief that Alice falls ill", floor=0.0
    )


def meaning_page(meaning: Meaning) -> str:
    """What (epsilon, delta)-DP means, as one HTML file that needs nothing else.

    >>> from discreet.meaning import explain
    >>> meaning_page(explain(epsilon=1)).count("<svg")
    3
    """
    promise = f"epsilon {meaning.epsilon:g}" + (f", delta {meaning.delta:g}" if meaning.delta else "")
    said = "\n".join(f"<dt>{shown(title)}</dt><dd>{shown(words)}</dd>" for title, words in meaning.sentences)
    warned = "\n".join(f'<p class="missed">{shown(warning)}</p>' for warning in meaning.warnings)
    study = Study(epsilon=meaning.epsilon)
    body = [
        f"<h1>What {shown(promise)} means</h1>\n{warned}",
        section("In words", "", f"<dl>\n{said}\n</dl>"),
        section("What anyone may come to believe", shown(BELIEF), figure(belief_figure(meaning).svg(), "wide")),
        section("The best possible test", shown(TEST), figure(tradeoff_figure(meaning).svg(), "wide")),
        section("What it does not hide", shown(story(study)), figure(study_figure(study).svg(), "wide")),
    ]
    return document(f"What {promise} means", "\n".join(body))


BELIEF = (
    "The belief that you took part, of somebody who knows everyone else's data, before and after the results: for all "
    "results it ends between the two lines."
)
TEST = (
    "A test from the results whether you took part misses at least this share of those who did, for this rate of false "
    "alarms. A test of whether a whole family took part may be better."
)


def story(study: Study) -> str:
    """Smoking and cancer in words: what an insurer learns about Alice from a study with her row, and without it.

    >>> from discreet.meaning import Study
    >>> "30 % if it was not" in story(Study(epsilon=1))
    True
    """
    count = round(study.harmful * study.smokers)
    used, unused = (learned(study, count, with_alice=with_alice) for with_alice in (True, False))
    return (
        f"Alice smokes, and a study of {study.smokers:,} smokers counts how many fall ill. Her insurer thinks that "
        f"{percent(study.harmless)} of smokers do if smoking is harmless and {percent(study.harmful)} if it is not, "
        f"and gave the latter {percent(study.suspicion)}: Alice falls ill with {percent(study.belief_before)}. The "
        f"study says, with noise for epsilon {float(study.epsilon):g}, that {count:,} did. Now it is "
        f"{percent(used.ill)} if Alice's row was used, and {percent(unused.ill)} if it was not. The insurer has learnt "
        "much about Alice, and little from her."
    )


def percent(share: float) -> str:
    """A share as people read it.

    >>> percent(0.3), percent(0.3039)
    ('30 %', '30.39 %')
    """
    return f"{100 * share:.4g} %"

"""Pictures of a guarantee: what is believed, the best test, and Alice."""

import numpy as np

from discreet.meaning.promise import Meaning
from discreet.meaning.study import Study, learned
from discreet.meaning.tradeoff import promised_misses
from discreet.page.chart import Chart
from discreet.page.plot import Line, plot


def belief_figure(meaning: Meaning) -> Chart:
    """How sure one can be that you took part, over how sure one was before."""
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
    """What an insurer believes of Alice after each result that a study may have, with her row in it and without."""
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
        title, lines, x="smokers who fell ill, as told by the study", y="belief that Alice falls ill", floor=0.0
    )

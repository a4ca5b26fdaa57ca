"""A guarantee on one page, in words and pictures."""

from discreet.meaning.figures import belief_figure, study_figure, tradeoff_figure
from discreet.meaning.promise import Meaning
from discreet.meaning.study import Study, learned
from discreet.page.frame import document, figure, section, shown


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
    "Somebody who knows everyone else's data, and thought it so likely that you took part, ends between the two lines, "
    "whatever the results are."
)
TEST = (
    "Whoever tests from the results whether you took part misses at least so many of those who did, for so many false "
    "alarms. A test of whether a whole family took part may be better."
)


def story(study: Study) -> str:
    """Smoking and cancer in words: what an insurer learns about Alice from a study with her row, and without it.

    >>> from discreet.meaning import Study
    >>> "30 % if it was not" in story(Study(epsilon=1))
    True
    """
    told = round(study.harmful * study.smokers)
    used, unused = (learned(study, told, with_alice=with_alice) for with_alice in (True, False))
    return (
        f"Alice smokes, and a study of {study.smokers:,} smokers counts how many fall ill. Her insurer thinks that "
        f"{percent(study.harmless)} of smokers do if smoking is harmless and {percent(study.harmful)} if it is not, "
        f"and gave the latter {percent(study.suspicion)}: Alice falls ill with {percent(study.belief_before)}. The "
        f"study says, with noise for epsilon {float(study.epsilon):g}, that {told:,} did. Now it is "
        f"{percent(used.ill)} if Alice's row was used, and {percent(unused.ill)} if it was not. The insurer has learnt "
        "much about Alice, and little from her."
    )


def percent(share: float) -> str:
    """A share as people read it.

    >>> percent(0.3), percent(0.3039)
    ('30 %', '30.39 %')
    """
    return f"{100 * share:.4g} %"

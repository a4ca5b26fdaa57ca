"""Beliefs cannot stay as they were: the first attempt at a definition is impossible. 002 §3."""

from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.meaning import Study, learned, typical_beliefs
from discreet.meaning.guarantee_page import study_figure

STUDY = Study(epsilon=1)


def run() -> Outcome:
    """What an insurer believes of Alice before and after a study that never saw her."""
    return Outcome(findings(), study_figure(STUDY))


def findings(study: Study = STUDY) -> tuple[Finding, ...]:
    """The belief moves though her row was never used; a release that moves no belief says nothing."""
    after = typical_beliefs(study, harmful=True, with_alice=False)
    silent = Study(epsilon=1, harmless=study.harmful, harmful=study.harmful)
    still = learned(silent, round(study.harmful * study.smokers), with_alice=False)
    return (
        Finding(
            "belief that Alice falls ill, before and after a study without her",
            "different: smoking turned out to be harmful",
            f"{study.belief_before:.4f} before, {after.ill:.4f} after, on average",
            after.ill > 1.4 * study.belief_before,
        ),
        Finding(
            "belief that smoking is harmful",
            "the same study must move it, or it was useless",
            f"{study.suspicion:g} before, {after.harmful:.6f} after",
            after.harmful > 0.999,
        ),
        Finding(
            "where the two worlds do not differ, so that nothing can be learnt",
            "the belief about Alice stays",
            f"{silent.belief_before:.4f} before, {still.ill:.4f} after",
            abs(still.ill - silent.belief_before) < 1e-9,
        ),
    )


CLAIM = Claim(
    name="first-attempt",
    source="002 §3",
    title="No useful release leaves all beliefs about Alice as they were",
    statement="“The attacker's beliefs about Alice are the same after the output as before” is impossible for useful "
    "releases: a study that never used Alice's row moves the belief about her.",
    run=run,
)

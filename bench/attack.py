"""The red team at full size: what is learnt from exact answers, rounded ones and ours; and what an audit finds.

Run: python bench/attack.py [--samples N]     Writes results/attack.md and results/attack.svg beside it.
"""

import argparse
import hashlib
import time
from pathlib import Path

import numpy as np

import discreet as dp
import machine
from discreet.data import ADULT
from discreet.lab.attack import (
    attack_by_differencing,
    attack_by_posterior,
    attack_by_reconstruction,
    attack_by_tracing,
    audit,
    choose_people,
    subjects,
)
from discreet.lab.attack.attack_page import learnt_figure
from discreet.lab.attack.subjects import find
from discreet.report.document import STYLE

RESULTS = Path(__file__).parent / "results"
PUBLIC = ["age", "education", "sex"]
TRACED = ("age", "education", "occupation", "hours_per_week")
REPEATS = 5


def timed(run):
    start = time.process_time()
    return run(), time.process_time() - start


def attacks(table):
    """Each attack several times, each time on other people."""

    def people(secret, value=None):
        return choose_people(table, 200, public=PUBLIC, secret=secret, value=value)

    runs = {
        "differencing": lambda: attack_by_differencing(people("income", ">50K"), trials=100),
        "reconstruction of income": lambda: attack_by_reconstruction(people("income", ">50K")),
        "reconstruction of a coin": lambda: attack_by_reconstruction(people("coin")),
        "tracing": lambda: attack_by_tracing(table, people=100, means=1500, columns=TRACED),
        "posterior": attack_by_posterior,
    }
    return {name: [timed(run) for _ in range(1 if name == "posterior" else REPEATS)] for name, run in runs.items()}


def audits(samples):
    """Every subject, and numpy's floating-point Laplace noise, which is somebody else's."""
    generator = np.random.default_rng()

    def floats(value, size):
        return value + generator.laplace(0, 1, size)

    def looked(subject, number, confidence):
        return subject, *timed(lambda: subject.audit(samples=number, confidence=confidence))

    found = [looked(subject, samples, 0.9999) for subject in subjects(1) if not subject.patient]
    found.append(looked(find("session"), 300, 0.99))
    return found, timed(lambda: audit(floats, 0.0, 1.0, samples=samples))


def report(outcomes, audited, floats, samples):
    checksum = hashlib.sha256(ADULT.with_suffix(".parquet").read_bytes()).hexdigest()[:16]
    lines = [
        "# What an attacker learns, and what an audit finds",
        "",
        f"`python bench/attack.py`, on {machine.describe('scipy')}; table Adult (sha256 {checksum}…). Shares are "
        f"medians of {REPEATS} runs on other people, with the smallest and the largest; seconds are of one processor.",
        "",
        "## Attacks",
        "",
        "*Permitted* is the most that anybody can reach on average at this budget; *with luck* is what is exceeded in "
        "one run with probability 0.001.",
        "",
        "| attack | answers | learnt | permitted | with luck | s |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for name, runs in outcomes.items():
        first, seconds = runs[0][0], float(np.median([taken for _, taken in runs]))
        for place, each in enumerate(first.learnt):
            shares = [outcome.learnt[place].share for outcome, _ in runs]
            learnt = f"{np.median(shares):.1%} ({min(shares):.1%} to {max(shares):.1%})"
            limits = (f"{first.limit:.1%}", f"{first.luck:.1%}") if each.kind == "ours" else ("", "")
            lines.append(
                f"| {name if not place else ''} | {each.source} | {learnt} | {limits[0]} | {limits[1]} | "
                f"{f'{seconds:.1f}' if not place else ''} |"
            )
    lines += [
        "",
        *(f"- {note}" for note in outcomes["posterior"][0][0].notes),
        "",
        "## Audits",
        "",
        f"Lower bounds on epsilon from up to {samples:,} draws of each of two neighbours, where epsilon 1 is claimed; "
        "confidence 0.9999 (of the session 0.99).",
        "",
        "| what | is | at delta | draws | epsilon is at least | claim | s |",
        "|---|---|---:|---:|---:|---|---:|",
    ]
    for subject, found, seconds in audited:
        refuted = "**refuted**" if found.refutes(1) else "not refuted"
        kind = "right" if subject.right else "a mistake"
        lines.append(
            f"| {subject.name}: {subject.words} | {kind} | {found.delta:g} | {found.samples:,} | {found.bound:.3f} | "
            f"{refuted} | {seconds:.1f} |"
        )
    found, seconds = floats
    refuted = "**refuted**" if found.refutes(1) else "not refuted"
    lines.append(
        f"| numpy's Laplace noise, a double | a mistake | 0 | {found.samples:,} | {found.bound:.3f} | {refuted} | "
        f"{seconds:.1f} |"
    )
    return "\n".join(lines) + "\n"


def draw_figure(outcome, path):
    """The bars of one reconstruction, as a picture that stands alone."""
    svg = learnt_figure(outcome)
    start = svg.index(">") + 1
    white = '<rect width="100%" height="100%" style="fill:#fff" />'
    style = f"<style>{STYLE.replace('color-scheme: light dark;', '')}</style>"
    head = svg[:start].replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"')
    # Alone, a picture is on white paper.
    style = style[: style.index("@media (prefers-color-scheme")] + style[style.index("* { box-sizing") :]
    path.write_text(head + style + white + svg[start:])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=1_000_000)
    samples = parser.parse_args().samples
    outcomes = attacks(dp.load_adult())
    audited, floats = audits(samples)
    text = report(outcomes, audited, floats, samples)
    print(text)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "attack.md").write_text(text)
    draw_figure(outcomes["reconstruction of income"][0][0], RESULTS / "attack.svg")


if __name__ == "__main__":
    main()

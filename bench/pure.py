"""What the Covid stream costs where delta is 0: whole marginals with Laplace noise, bought as questions come.

python bench/pure.py                  prints the table, writes bench/results/pure.md

Budget only: it does not depend on data. Beside it, one Laplace answer for each distinct question, one histogram of all
128 cells bought up front for the worst question, and what Turbo's own code spends on the same stream (SOSP '23).
"""

import sys
from pathlib import Path
from time import process_time

import workloads
from discreet.estimate.laplace_estimator import LaplaceMarginals
from discreet.estimate.measurements import LaplaceMarginal
from discreet.plan.laplace_plan import scale_for
from discreet.plan.plan import plan_steps
from machine import describe

TURBO = 0.169


def spent(stream):
    """Epsilon, and how many marginals and single numbers it bought."""
    known = LaplaceMarginals.nothing(stream.domain, stream.unit)
    known.learn_total(stream.rows)
    total, wholes, alone = 0.0, 0, 0
    for place, question in enumerate(stream.questions, start=1):
        steps = plan_steps([(question, stream.target)], known)
        for step in steps.steps:
            known.learn(step)
            wholes += isinstance(step, LaplaceMarginal)
            alone += not isinstance(step, LaplaceMarginal)
        total += steps.price
        if place % 5_000 == 0:
            print(f"{place:,} questions", file=sys.stderr, flush=True)
    return total, wholes, alone


def up_front(stream):
    """All cells at once: two rows move when one is exchanged, and half of the cells are the worst question."""
    return float(2 / scale_for((0.5,), (128,), stream.target))


def main():
    stream = workloads.covid(workloads.folder(), 20_000)
    start = process_time()
    total, wholes, alone = spent(stream)
    seconds = process_time() - start
    rows = [
        ("one Laplace answer each, exact cache", stream.laplace_epsilon()),
        ("Turbo, its own code", TURBO),
        ("**this, online**", total),
        ("one histogram up front, the workload known", up_front(stream)),
    ]
    lines = ["# Covid without delta", "", f"{describe('scipy')}. {workloads.checksums(workloads.folder())}", ""]
    lines += ["20,000 questions, within 5 % of n at 99.9 %, replace_one.", "", "| | ε |", "|---|---|"]
    lines += [f"| {name} | {epsilon:.4g} |" for name, epsilon in rows]
    lines += ["", f"It bought {wholes} marginals and {alone} single numbers; {seconds:.0f} CPU seconds.", ""]
    (Path(__file__).parent / "results" / "pure.md").write_text("\n".join(lines))
    print("\n".join(lines))


if __name__ == "__main__":
    main()

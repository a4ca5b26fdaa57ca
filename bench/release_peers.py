"""What peers make of the same tables and budgets: each run in a process of its own, with a limit of CPU seconds.

python bench/release_peers.py --install         sets the peers up in the folder DISCREET_PEERS, an environment for each
python bench/release_peers.py                   runs all of them, writes bench/results/release_peers.json
python bench/release_peers.py --only smartnoise-mst --tables nltcs --epsilons 1

smartnoise-synth 1.0.8 has AIM, MST and MWEM. mbi 2.0.0 has inference and no mechanism; AIM on top of it lies in the
repository of its authors: put the files of its folder mechanisms into DISCREET_PEERS/mechanisms, or that peer is left
out. All are run with their own settings, and are told the public domain. What is done is kept and not run again.
"""

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import redirect_stdout
from math import prod
from pathlib import Path
from time import process_time, sleep
from typing import NamedTuple

import numpy as np

from release_data import NAMES, READ, WORKLOADS, answers_of, judge, sample

DELTA = 1e-9
EPSILONS = (0.1, 1.0, 10.0)
CPU_SECONDS, MEMORY = 600, 12 * 2**30
RESULTS = Path(__file__).parent / "results"
# The threads of a peer would take the machine, and their CPU seconds say nothing then.
ALONE = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "JAX_PLATFORMS": "cpu",
}
# MWEM has a weight for each cell, and two more cells in each column while it counts: it is told to split the columns
# into as few parts as stay below this.
MOST_CELLS = 2**17


class Found(NamedTuple):
    """What a method has: a function from columns to counts, one from a number to rows, either or none; and notes."""

    answer: Callable | None
    rows: Callable | None
    notes: dict = {}  # noqa: RUF012 never changed


# The peers. They are imported where they are called: each lives in its own environment.


def smartnoise(name, **settings):
    def run(table, weights, epsilon):
        from snsynth import Synthesizer
        from snsynth.transform import LabelTransformer, TableTransformer

        known = TableTransformer([LabelTransformer(nullable=False) for _ in table.sizes])
        # The values of the domain are public: they are taught by rows that have each of them, not by the private ones.
        longest = max(table.sizes.values())
        known.fit([tuple(min(row, size - 1) for size in table.sizes.values()) for row in range(longest)])
        rows = [tuple(row) for row in table.codes.tolist()]
        made = Synthesizer.create(name, epsilon=epsilon, **settings_for(name, table, weights, settings))
        made.fit(rows, transformer=known)
        return Found(None, lambda number: np.array(made.sample(number), dtype=np.int64))

    return run


def settings_for(name, table, weights, settings):
    match name:
        case "aim":
            return settings | {"degree": max(map(len, weights)), "delta": DELTA}
        case "mst":
            return settings | {"delta": DELTA}
    largest = sorted(table.sizes.values(), reverse=True)
    wide = [width for width in range(1, len(largest) + 1) if prod(size + 2 for size in largest[:width]) <= MOST_CELLS]
    return settings | {"split_factor": max(wide)}


def aim_of_its_authors(table, weights, epsilon):
    import jax

    # As mbi asks for when it is imported.
    jax.config.update("jax_enable_x64", True)
    sys.path.insert(0, str(peers() / "mechanisms"))
    from aim import AIM
    from mbi import Dataset, Domain, estimation

    # Its file gives where to begin by the name that the argument had before mbi 2.0.
    plain = estimation.MirrorDescent.estimate
    estimation.MirrorDescent.estimate = lambda self, *args, potentials=None, **more: plain(
        self, *args, warm_start=potentials, **more
    )
    data = Dataset({name: table.codes[:, table.places[name]] for name in table.sizes}, Domain.fromdict(table.sizes))
    # Its command line leaves out what has more cells than this.
    workload = [
        (each, weight) for each, weight in weights.items() if prod(table.sizes[name] for name in each) <= 10_000
    ]
    model, _ = AIM(epsilon, DELTA).run(data, workload)

    def answer(columns):
        return np.asarray(model.project(columns).datavector(flatten=False))

    def rows(number):
        made = model.synthetic_data(rows=number).to_dict()
        return np.stack([made[name] for name in table.sizes], axis=1)

    return Found(answer, rows)


METHODS = {
    "mbi-aim": aim_of_its_authors,
    "smartnoise-aim": smartnoise("aim"),
    "smartnoise-mst": smartnoise("mst"),
    "smartnoise-mwem": smartnoise("mwem"),
}
# What each environment is made of; torch is wanted by a part of smartnoise-synth that is not run here.
PACKAGES = {"mbi": ("mbi==2.0.0", "jax==0.10.2"), "smartnoise": ("smartnoise-synth==1.0.8",)}


def peers():
    return Path(os.environ.get("DISCREET_PEERS", Path(__file__).resolve().parents[2] / "peers"))


def python_of(method):
    """The interpreter of a peer's environment, or None where it is not set up."""
    found = peers() / method.split("-")[0] / "bin" / "python"
    ready = found.exists() and (method != "mbi-aim" or (peers() / "mechanisms" / "aim.py").exists())
    return found if ready else None


def install():
    for name, packages in PACKAGES.items():
        place = peers() / name
        subprocess.run([sys.executable, "-m", "venv", place], check=True)
        subprocess.run([place / "bin" / "python", "-m", "pip", "install", "--quiet", *packages], check=True)


# One run in a process of its own.


def inside(job, methods):
    """What a child does with its job: a release, its rows, and only then a look at the truth."""
    table = sample(job["table"])
    weights = WORKLOADS[job["workload"]](table)
    # The peers draw from it, but for those that draw from the system.
    np.random.seed(job["seed"])
    start = process_time()
    # Some peers print as they go.
    with redirect_stdout(sys.stderr):
        found = methods(job["method"])(table, weights, job["epsilon"])
    seconds = process_time() - start - found.notes.get("planning", 0.0)
    said = {"seconds": seconds, "megabytes": peak()} | found.notes
    if found.answer is not None:
        start = process_time()
        said |= judge(found.answer, table, weights)
        said["judging"] = process_time() - start
    if found.rows is not None:
        start = process_time()
        codes = found.rows(table.rows)
        said["drawing"] = process_time() - start
        said |= {f"{key}_of_rows": value for key, value in judge(answers_of(codes, table), table, weights).items()}
        if job["keep"]:
            np.save(job["keep"], np.asarray(codes, dtype=np.int32))
    return said


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def outside(job, python, script, *, seconds=CPU_SECONDS, memory=MEMORY, rows=None):
    """The job and what came of it: figures, or why there are none; the rows are put where `rows` says."""
    with tempfile.TemporaryDirectory() as name:
        told, said, words = (Path(name) / each for each in ("job.json", "said.json", "words.txt"))
        told.write_text(json.dumps(job | {"keep": None if rows is None else str(rows)}))
        command = [str(python), str(script), "--child", str(told), str(said), "--cpu-seconds", str(seconds)]
        with words.open("w") as heard:
            child = subprocess.Popen(command, stdout=heard, stderr=heard, env=os.environ | ALONE)
            failure = watch(child.pid, memory)
            status, used = os.wait4(child.pid, 0)[1:]
        # Else the destructor of the process asks after a child that is gone.
        child.returncode = os.waitstatus_to_exitcode(status)
        whole = {"all_seconds": used.ru_utime + used.ru_stime, "all_megabytes": used.ru_maxrss / 1024}
        if said.exists():
            return job | json.loads(said.read_text()) | whole
        # Of a process with threads the kernel may count a few seconds less than it stops it for.
        if failure is None and child.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
            failure = f"stopped after {seconds} CPU s"
        last = [line for line in words.read_text(errors="replace").splitlines() if line.strip()]
        return job | whole | {"failure": failure or (last[-1][:200] if last else f"ended with {status}")}


def watch(pid, memory):
    """Wait for a child to end; one that takes too much memory is ended, and that is said."""
    while True:
        # A child that has ended stays there, without memory, until it is waited for.
        held = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS")]
        if not held:
            return None
        if int(held[0].split()[1]) * 1024 > memory:
            os.kill(pid, 9)
            return f"ended at {memory / 2**30:.0f} GB"
        sleep(0.2)


def be_a_child(told, said, seconds, methods):
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    os.nice(10)
    job = json.loads(Path(told).read_text())
    found = inside(job, methods)
    Path(said).write_text(json.dumps(found))


# What is kept.


def key(row):
    return tuple(row[each] for each in ("method", "table", "checksum", "epsilon", "workload", "seed"))


def kept(path):
    return {key(row): row for row in json.loads(path.read_text())} if path.exists() else {}


def keep(path, rows):
    path.parent.mkdir(exist_ok=True)
    lines = ",\n".join(json.dumps(row) for _, row in sorted(rows.items(), key=lambda each: str(each[0])))
    path.write_text(f"[\n{lines}\n]\n")


def jobs(methods, tables, epsilons, workloads, seeds):
    # What is cheap comes first, so that there is something to see.
    for seed in seeds:
        for epsilon in epsilons:
            for table in tables:
                checksum = sample(table).checksum
                for workload in workloads:
                    for method in methods:
                        job = {"method": method, "table": table, "epsilon": epsilon, "workload": workload}
                        yield job | {"checksum": checksum, "seed": seed}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--install", action="store_true")
    parser.add_argument("--child", nargs=2)
    parser.add_argument("--only", nargs="*", choices=METHODS, default=list(METHODS))
    parser.add_argument("--tables", nargs="*", choices=NAMES, default=READ)
    parser.add_argument("--epsilons", nargs="*", type=float, default=EPSILONS)
    parser.add_argument("--workloads", nargs="*", choices=WORKLOADS, default=["3-ways"])
    parser.add_argument("--seeds", nargs="*", type=int, default=[0])
    parser.add_argument("--cpu-seconds", type=int, default=CPU_SECONDS)
    parser.add_argument("--results", type=Path, default=RESULTS / "release_peers.json")
    chosen = parser.parse_args()
    if chosen.install:
        install()
    elif chosen.child:
        be_a_child(*chosen.child, chosen.cpu_seconds, METHODS.__getitem__)
    else:
        done = kept(chosen.results)
        for job in jobs(chosen.only, chosen.tables, chosen.epsilons, chosen.workloads, chosen.seeds):
            python = python_of(job["method"])
            if python is None or key(job) in done:
                continue
            row = outside(job, python, __file__, seconds=chosen.cpu_seconds)
            print(json.dumps(row), flush=True)
            # Another run may have written meanwhile.
            done = kept(chosen.results) | {key(row): row}
            keep(chosen.results, done)


if __name__ == "__main__":
    main()

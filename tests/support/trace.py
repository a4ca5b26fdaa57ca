"""What one call touches: functions, files, packages and types of discreet, in a process that has done nothing else.

`python -m support.trace ask` (with tests on the path) prints the counts and the files of one call; `traced("ask")` runs
that in a fresh process and gives it back. A file counts if one of its functions was called. Bodies of modules and
classes do not count, nor does whatever runs while a module is imported: that is not the path of the call.
"""

import inspect
import json
import os
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path

import discreet as dp

ROOT = str(Path(dp.__file__).parent) + os.sep


class Recorder:
    """The code of discreet that is called while `recording`, in every thread that starts after `install`."""

    def __init__(self):
        self.codes, self.active, self.importing = set(), False, threading.local()

    def install(self):
        threading.setprofile(self._see)
        sys.setprofile(self._see)

    def _see(self, frame, event, _):
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(ROOT):
            return
        if code.co_name == "<module>":
            self.importing.depth = getattr(self.importing, "depth", 0) + (1 if event == "call" else -1)
        elif event == "call" and self.active and not getattr(self.importing, "depth", 0) and _is_function(code):
            self.codes.add(code)

    @contextmanager
    def recording(self):
        self.active = True
        try:
            yield
        finally:
            self.active = False

    def found(self):
        files = sorted({code.co_filename.removeprefix(ROOT) for code in self.codes})
        owners = {(code.co_filename, code.co_qualname.split(".")[0]) for code in self.codes if "." in code.co_qualname}
        types = {owner for owner in owners if owner[1].lstrip("_")[:1].isupper()}
        return {
            "functions": len(self.codes),
            "files": files,
            "packages": sorted({file.split(os.sep)[0].removesuffix(".py") for file in files}),
            "types": len(types),
        }


def _is_function(code):
    # The body of a class lacks this flag; lambdas and comprehensions belong to the function around them.
    return code.co_flags & inspect.CO_OPTIMIZED and not code.co_name.startswith("<")


def _desk(folder):
    people = dp.load_adult()
    return people, dp.Curator(people, budget=dp.Budget(epsilon=1, delta=1e-9), ledger=f"{folder}/ledger.sqlite")


def _statement(people):
    return f"SELECT sex, COUNT(*) FROM {people.name} WHERE age >= 65 GROUP BY sex"


def ask(recorder, folder):
    """The first paid question of a new desk."""
    people, desk = _desk(folder)
    with recorder.recording():
        desk.ask(_statement(people), error=400)


def known(recorder, folder):
    """The same question again: its answer is known and costs nothing."""
    people, desk = _desk(folder)
    desk.ask(_statement(people), error=400)
    with recorder.recording():
        desk.ask(_statement(people), error=400)


def release(recorder, folder):
    """A release of all two-way marginals."""
    people, desk = _desk(folder)
    goal, budget = dp.marginals(people.domain, 2), dp.Budget(epsilon=0.3, delta=1e-9)
    with recorder.recording():
        desk.release(goal, budget=budget)


def kmeans(recorder, folder):
    """Three clusters of two columns."""
    _, desk = _desk(folder)
    clusters = dp.KMeans(n_clusters=3, epsilon=0.3, columns=["age", "hours_per_week"])
    with recorder.recording():
        clusters.fit(desk)


def post(recorder, folder):
    """The first paid question over HTTP, in process."""
    from support.live_server import Inside

    with Inside(Path(folder)) as inside, recorder.recording():
        reply = inside.ask("SELECT sex, COUNT(*) FROM people WHERE age >= 65 GROUP BY sex", error=400)
    assert reply.status_code == 200, reply.text


CALLS = {call.__name__: call for call in (ask, known, release, kmeans, post)}


def traced(name):
    """What this call touches, in a fresh process."""
    path = os.pathsep.join([str(Path(__file__).parents[1]), str(Path(ROOT).parent), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "support.trace", name],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    recorder = Recorder()
    recorder.install()
    with tempfile.TemporaryDirectory() as folder:
        CALLS[sys.argv[1]](recorder, folder)
    print(json.dumps(recorder.found()))

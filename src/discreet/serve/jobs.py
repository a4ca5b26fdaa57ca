"""Releases as jobs. Each has a folder that all workers see, with the request, its progress and the result.

A job is paid under a key of its own. If the worker that runs it dies, another one runs it again from the ledger, and
nothing is paid twice. The running worker holds a lock on the folder, which the system releases when the process dies.
"""

import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from math import inf, prod
from pathlib import Path
from threading import Event
from typing import Any, Literal
from uuid import uuid4

from discreet.cache import memoize
from discreet.curator import Curator, Release
from discreet.curator.release_run import held_for
from discreet.errors import BadParameter, BudgetExceeded, DiscreetError, KeyReused, ServerFailed, TooLarge
from discreet.ledger import Budget
from discreet.query.residual import axis_of
from discreet.query.workload import Workload
from discreet.release.task import Goal, Wanted, goal_of
from discreet.schema.unit import FIRST_VERSION
from discreet.wire.answer_json import Plain
from discreet.wire.problem import for_analyst, problem_of
from discreet.wire.workload_json import workload_from_plain

JobState = Literal["waiting", "running", "done", "failed"]

# At most: marginals of one release, and releases kept in memory.
MOST_MARGINALS, MOST_KEPT = 5000, 4
# At most: residuals of one marginal, residuals of all, and work of a forecast. A plan goes through each residual.
MOST_DEEP, MOST_RELEASED_RESIDUALS, MOST_FORECAST = 2**12, 2**16, 3 * 2**19
# Progress is written again when it has grown by this much.
PROGRESS_STEP = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The request for a release, and its state."""

    id: str
    table: str
    analyst: str
    made: str
    workload: dict[str, Any]
    epsilon: float
    delta: float
    version: str = FIRST_VERSION
    method: str = "auto"
    seconds: float | None = None
    memory: float | None = None
    state: JobState = "waiting"
    progress: float = 0.0
    describe: str = ""
    problem: dict[str, Any] | None = None
    all_left: bool = False

    @property
    def budget(self) -> Budget:
        """What it may cost."""
        return Budget(self.epsilon, self.delta)


class Jobs:
    """The release jobs of a server. A worker runs one at a time, so that questions do not wait for models."""

    def __init__(self, folder: Path, desk: Callable[[str, str], Curator]) -> None:
        self._folder, self._desk = folder, desk
        self._maker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="release")
        self._closing = Event()
        self.release = memoize(MOST_KEPT)(self._load)

    def start(self, job: Job) -> Job:
        """Start a job if its budget is there. If the same key started one before, return that one."""
        before = self.find(job.id)
        if before is not None:
            if asdict(_request_of(before)) != asdict(_request_of(job)):
                raise KeyReused("this key began another release before. Use a new key for every new release.")
            return before
        desk = self._desk(job.table, job.analyst)
        plan = desk.plan(workload_of(job.workload, desk), budget=job.budget, seconds=job.seconds, memory=job.memory)
        left = desk.remaining
        # As floats, as a program or a page has read what is left; the last bit is within what a release keeps back.
        if float(job.budget.epsilon) > float(left.epsilon):
            raise BudgetExceeded(
                f"a release for {job.budget} is more than is left: {left}. Give a smaller epsilon, or leave it out for "
                "all that is left."
            )
        if job.method == "auto":
            _ = plan.best
        begun = replace(job, describe=plan.goal)
        (self._folder / job.id).mkdir(parents=True, exist_ok=True)
        self._write(begun)
        self._maker.submit(self._make, job.id)
        return begun

    def resume(self) -> None:
        """Run the jobs that dead workers left unfinished."""
        for job in self.list():
            if job.state in ("waiting", "running"):
                self._maker.submit(self._make, job.id)

    def list(self, table: str | None = None) -> list[Job]:
        """All of them, the newest first."""
        names = [each.name for each in self._folder.iterdir()] if self._folder.is_dir() else []
        found = [job for job in map(self.find, names) if job is not None and table in (None, job.table)]
        return sorted(found, key=lambda job: (job.made, job.id), reverse=True)

    def find(self, number: str) -> Job | None:
        """The job of this number, if there is one."""
        if not number.isalnum():
            return None
        try:
            return Job(**json.loads((self._folder / number / "job.json").read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None

    def place(self, number: str) -> Path:
        """The folder with the result of a job."""
        return self._folder / number / "release"

    def close(self) -> None:
        """Start no more jobs. The one that runs ends with the process, and runs again when a server starts."""
        self._closing.set()
        self._maker.shutdown(wait=False, cancel_futures=True)

    def _make(self, number: str) -> None:
        with self._locked(number) as mine:
            job = self.find(number) if mine else None
            if job is None or job.state not in ("waiting", "running") or self._closing.is_set():
                return
            try:
                if job.state == "running":
                    self._give_back(job)
                self._write(replace(job, state="running"))
                self._run_release(job).save(self.place(number), force=True)
                self._write(replace(job, state="done", progress=1.0))
            except DiscreetError as error:
                self._write(replace(job, state="failed", problem=problem_of(for_analyst(error))[1]))
            except Exception:  # What a library says may quote a row; the job says only that it failed.
                said = problem_of(ServerFailed("the release failed. What was paid for is in the ledger."))[1]
                self._write(replace(job, state="failed", problem=said))
                raise

    def _run_release(self, job: Job) -> Release:
        desk, written = self._desk(job.table, job.analyst), [-inf]

        def report(done: float) -> bool | None:
            if self._closing.is_set():
                raise SystemExit
            if done >= written[0] + PROGRESS_STEP:
                written[0] = done
                self._write(replace(job, state="running", progress=min(1.0, max(0.0, float(done)))))
            return None

        return desk.release(
            workload_of(job.workload, desk),
            job.budget,
            method=job.method,
            seconds=job.seconds,
            memory=job.memory,
            key=_key(job),
            tell=report,
        )

    def _give_back(self, job: Job) -> None:
        """Close the holds of a worker that died. We have its lock, so it does not run any more."""
        ledger = self._desk(job.table, job.analyst).ledger
        for hold in ledger.holds_for(held_for(job.describe, _key(job)), table=job.table, analyst=job.analyst):
            ledger.close_hold(hold)

    def _load(self, number: str) -> Release:
        return Release.load(self.place(number))

    def _write(self, job: Job) -> None:
        place = self._folder / job.id / "job.json"
        draft = place.with_suffix(f".{os.getpid()}")
        draft.write_text(json.dumps(asdict(job)), encoding="utf-8")
        os.replace(draft, place)

    @contextmanager
    def _locked(self, number: str) -> Iterator[bool]:
        """Yields whether this worker has the lock of the job."""
        import fcntl

        with (self._folder / number / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                yield False
                return
            yield True


def workload_of(plain: Any, desk: Curator) -> Wanted:
    """The workload of a request, if it is small enough for a server."""
    wanted = workload_from_plain(plain, desk.table.domain, table=desk.table.name)
    # All of a kind that are asked of one column are one marginal.
    family = isinstance(wanted, Workload) and wanted.family is not None
    size = wanted.size if isinstance(wanted, Workload) else len(wanted)
    if size > MOST_MARGINALS and not family:
        raise BadParameter(
            f"the workload has {size:,} marginals; a server makes up to {MOST_MARGINALS:,}. Take fewer columns, or "
            "fewer at once."
        )
    if not family:
        _require_shallow(goal_of(wanted, desk.table.domain))
    return wanted


def _require_shallow(goal: Goal) -> None:
    """Refuse what would take many seconds to plan, from the workload and the schema alone."""
    residuals = {scope: prod(axis_of(goal.domain[name]).parts for name in scope) for scope in goal.scopes}
    deepest = max(residuals, key=lambda scope: residuals[scope])
    if residuals[deepest] > MOST_DEEP or sum(residuals.values()) > MOST_RELEASED_RESIDUALS:
        raise TooLarge(
            f"the workload has {sum(residuals.values()):,} residuals, and {', '.join(deepest)} alone "
            f"{residuals[deepest]:,}; a server plans for up to {MOST_RELEASED_RESIDUALS:,}, and {MOST_DEEP:,} of one "
            "marginal. Take fewer columns at once."
        )
    # A forecast visits every subset of the columns of a marginal, and every pair of columns of each.
    if sum(2 ** len(scope) * (4 + len(scope) ** 3 // 16) for scope in goal.scopes) > MOST_FORECAST:
        raise TooLarge(
            f"{len(goal.scopes)} marginals of up to {max(map(len, goal.scopes))} columns are more than a server plans "
            "at once. Take fewer columns at once, or fewer marginals."
        )


def number_of(table: str, analyst: str, key: str | None) -> str:
    """The number of a job: the same for the same key, so that a repeated request starts nothing new."""
    return uuid4().hex if key is None else sha256(json.dumps([table, analyst, key]).encode()).hexdigest()[:32]


def now() -> str:
    """When a job is begun."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def job_to_plain(job: Job) -> Plain:
    """A job as JSON."""
    return asdict(job)


def _key(job: Job) -> str:
    """The key under which a job is paid for."""
    return f"release {job.id}"


def _request_of(job: Job) -> Job:
    """The request of a job, without its state."""
    # How much "all that is left" was is not what was asked: it is less when the request is repeated.
    epsilon = 0.0 if job.all_left else job.epsilon
    return replace(job, made="", state="waiting", progress=0.0, describe="", problem=None, epsilon=epsilon)

"""Releases: start, watch and download them. Analysts see their own; owners and auditors see all."""

import io
import zipfile
from pathlib import Path
from typing import Any, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from discreet.curator import Curator
from discreet.errors import BadParameter, DiscreetError, NotFound
from discreet.ledger import Budget
from discreet.query.linear import Marginal
from discreet.query.statement import shown_values
from discreet.release.method_choice import require_method
from discreet.serve.common import (
    PROBLEMS,
    idempotency_key,
    in_thread,
    may_see,
    registry_of,
    reply,
    require_self,
    who_of,
)
from discreet.serve.forms import ReleaseForm, ReleasePlanForm
from discreet.serve.jobs import Job, Jobs, job_to_plain, now, number_of, workload_of
from discreet.wire.answer_json import Plain, answer_to_plain, release_plan_to_plain

router = APIRouter(prefix="/v1/tables/{table}/releases", tags=["releases"], responses=PROBLEMS)

# A marginal of more cells is not shown, and no more rows are made at once.
MOST_SHOWN_CELLS, MOST_DRAWN_ROWS = 2**18, 10**7


@router.post("/plan", name="plan")
async def plan_of_release(request: Request, table: str, form: ReleasePlanForm) -> Response:
    """What each method would do for a workload: its error, time and memory. Reads no row and spends nothing."""
    desk = registry_of(request).of(table, who_of(request, "owner", "analyst"))

    def planned() -> Response:
        wanted, budget = workload_of(form.workload, desk), _budget(form, desk)
        found = desk.plan(wanted, budget=budget, rows=form.rows, seconds=form.seconds, memory=form.memory)
        return reply(release_plan_to_plain(found))

    return await in_thread(planned)


@router.post("", status_code=202)
async def start(request: Request, table: str, form: ReleaseForm) -> Response:
    """Begin a release: 202, and a job to watch. What cannot be made or paid for is refused now, uncharged.

    An `Idempotency-Key` makes the request safe to repeat: it begins one job.
    """
    who, jobs = who_of(request, "owner", "analyst"), registry_of(request).jobs
    require_self(who, form.analyst)
    desk, key = registry_of(request).of(table, who), idempotency_key(request)
    require_method(form.method)
    budget = await in_thread(_budget, form, desk)
    job = Job(
        id=number_of(table, who.name, key),
        table=table,
        analyst=who.name,
        made=now(),
        workload=form.workload,
        epsilon=float(budget.epsilon),
        delta=float(budget.delta),
        version=desk.table.schema.version,
        method=form.method,
        seconds=form.seconds,
        memory=form.memory,
        all_left=form.epsilon is None,
    )
    return reply(job_to_plain(await in_thread(jobs.start, job)), 202)


@router.get("")
async def every(request: Request, table: str) -> Response:
    """The releases of a table, the newest first: an analyst sees their own, owners and auditors all of them."""
    who = who_of(request)
    _ = registry_of(request).of(table, who)
    found = await in_thread(registry_of(request).jobs.list, table)
    return reply([job_to_plain(job) for job in found if may_see(who, job.analyst)])


@router.get("/{number}")
async def one(request: Request, table: str, number: str) -> Response:
    """The progress of a release: `state` is waiting, running, done or failed, `progress` goes from 0 to 1."""
    return reply(job_to_plain(await _job(request, table, number)))


@router.get("/{number}/card")
async def card(request: Request, table: str, number: str, form: Literal["json", "html"] = Query("json")) -> Response:
    """The privacy statement: for programs, or as a page for people."""
    place = await _result_folder(request, table, number)
    text = await in_thread((place / f"card.{form}").read_text, encoding="utf-8")
    return Response(text, media_type="application/json" if form == "json" else "text/html")


@router.get("/{number}/folder")
async def folder(request: Request, table: str, number: str) -> Response:
    """All files of the release, as a zip file."""
    place = await _result_folder(request, table, number)
    return _download(await in_thread(_zipped, place), "application/zip", f"{table}-release.zip")


@router.get("/{number}/rows")
async def rows(
    request: Request,
    table: str,
    number: str,
    form: Literal["csv", "parquet"] = Query("parquet"),
    rows: int | None = Query(None, ge=0, le=MOST_DRAWN_ROWS, description="As many as the table is thought to have."),
) -> Response:
    """Synthetic rows. Each call gives other rows."""
    _ = await _result_folder(request, table, number)
    made = await in_thread(_rows, registry_of(request).jobs, number, form, rows)
    kind = "text/csv; charset=utf-8" if form == "csv" else "application/vnd.apache.parquet"
    return _download(made, kind, f"{table}-synthetic.{form}")


@router.get("/{number}/marginal")
async def marginal(
    request: Request, table: str, number: str, columns: str = Query(description="Names, with commas between.")
) -> Response:
    """What the release says of some columns, beside what is known of them for free, with its error."""
    _ = await _result_folder(request, table, number)
    desk = registry_of(request).of(table, who_of(request))
    return reply(await in_thread(_marginal, registry_of(request).jobs, number, desk, columns.split(",")))


async def _job(request: Request, table: str, number: str) -> Job:
    registry, who = registry_of(request), who_of(request)
    _ = registry.of(table, who)
    job = await in_thread(registry.jobs.find, number)
    # Analysts do not learn that a release of somebody else exists.
    if job is None or job.table != table or not may_see(who, job.analyst):
        raise NotFound(f'no release "{number[:40]}" of table "{table}". List them: GET /v1/tables/{table}/releases.')
    return job


async def _result_folder(request: Request, table: str, number: str) -> Path:
    job = await _job(request, table, number)
    if job.state != "done":
        place = f"/v1/tables/{table}/releases/{number}"
        raise BadParameter(f"this release is {job.state}; it has no result. Watch its state: GET {place}.")
    return registry_of(request).jobs.place(number)


def _budget(form: ReleaseForm | ReleasePlanForm, desk: Curator) -> Budget:
    left = desk.remaining
    epsilon, delta = form.epsilon, form.delta
    budget = Budget(left.epsilon if epsilon is None else epsilon, left.delta if delta is None else delta)
    if float(budget.delta) > float(left.delta):
        raise BadParameter(
            f"delta is {float(budget.delta):g}; it must be at most the table's, {float(left.delta):g}. Leave it out."
        )
    return budget


def _zipped(place: Path) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(place.iterdir()):
            archive.write(file, file.name)
    return made.getvalue()


def _rows(jobs: Jobs, number: str, form: str, count: int | None) -> bytes:
    from tempfile import TemporaryDirectory

    made = jobs.release(number).rows(count)
    with TemporaryDirectory() as folder:
        file = Path(folder) / f"rows.{form}"
        (made.write_csv if form == "csv" else made.write_parquet)(file)
        return file.read_bytes()


def _marginal(jobs: Jobs, number: str, desk: Curator, names: list[str]) -> Plain:
    release, domain = jobs.release(number), desk.table.domain
    query = Marginal(tuple(names))
    cells = query.size(domain)
    if cells > MOST_SHOWN_CELLS:
        raise BadParameter(
            f"{', '.join(names)} have {cells:,} cells; up to {MOST_SHOWN_CELLS:,} are shown. Take fewer."
        )
    values = release.marginal(tuple(names))
    said = release.answer(query)
    known: Any = None
    try:
        # What is known is of the current version; beside a release of another one it would be taken for the same.
        if release.schema.version == desk.table.schema.version:
            known = answer_to_plain(desk.ask(query))
    except DiscreetError:
        # Nothing is known of all its cells; what the release says is all there is.
        known = None
    labels = [[_label(value) for value in shown_values(domain[name])] for name in names]
    return {
        "columns": names,
        "labels": labels,
        "values": values.ravel().tolist(),
        "errors": answer_to_plain(said)["columns"]["value_error"],
        "origin": said.origin,
        "known": None if known is None else {name: known["columns"][name] for name in ("value", "value_error")},
    }


def _label(value: Any) -> str:
    return "missing" if value is None else str(value)


def _download(content: bytes, kind: str, name: str) -> Response:
    safe = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in name if letter.isascii())
    return Response(content, media_type=kind, headers={"content-disposition": f'attachment; filename="{safe}"'})

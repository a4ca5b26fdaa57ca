"""The application: routes behind a door, and a shortcut. One is made in every worker, from the same settings."""

import os
import sys
from asyncio import CancelledError, create_task, sleep
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib.metadata import version
from typing import Any, TextIO

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from discreet.errors import BadParameter, BadQuery, DiscreetError, NotAllowed, ServerFailed, TableChanged
from discreet.serve.desks import Desks
from discreet.serve.door import App, Door
from discreet.serve.journal import Journal
from discreet.serve.page import router as page
from discreet.serve.routes import asking, owner, releases, tables
from discreet.serve.settings import Settings
from discreet.serve.shortcut import Shortcut
from discreet.wire.problem import TYPE, problem_of

_ABOUT = """Ask a private table as many counting questions as you like, on one privacy budget.

Every answer has an error bar that holds; what follows from earlier answers is free. Send your token as
`Authorization: Bearer discreet_…`. Errors are `application/problem+json` with a sentence that says what to do.
"""


def make(settings: Settings, *, log: TextIO | None = None) -> App:
    """The application of a worker: opens the tables and the ledger now."""
    desks, journal = Desks(settings), Journal(settings.scratch, log)
    app = Shortcut(application(desks, journal), desks, journal)
    return Door(app, settings, desks.tokens, journal)


def application(desks: Desks, journal: Journal) -> FastAPI:
    """The routes, without the door: what the OpenAPI document describes."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        desks.jobs.resume()
        several, supervisor = desks.settings.workers > 1, desks.settings.supervisor
        watching = create_task(_end_with(supervisor)) if several and supervisor is not None else None
        try:
            yield
        finally:
            if watching is not None:
                watching.cancel()
                with suppress(CancelledError):
                    await watching
            desks.close()

    facts = {"title": "Discreet", "version": version("discreet"), "description": _ABOUT}
    app = FastAPI(**facts, lifespan=lifespan, redoc_url=None, docs_url=None)  # type: ignore[arg-type]
    app.state.desks, app.state.journal, app.state.warned = desks, journal, set()
    # The first that fits is taken, and looking for it takes time: what is asked most comes first.
    for router in (asking.router, tables.router, releases.router, owner.router, page):
        app.include_router(router)
    app.add_exception_handler(DiscreetError, _said)
    app.add_exception_handler(RequestValidationError, _unreadable)
    app.add_exception_handler(HTTPException, _nowhere)
    app.add_exception_handler(Exception, _failed)
    document = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            _complete(document(), list(desks.curators))
        return document()

    app.openapi = openapi  # type: ignore[method-assign]
    return app


def _complete(document: dict[str, Any], tables: list[str]) -> None:
    """Say in the OpenAPI document that a token is needed, and which tables there are."""
    for path in document["paths"].values():
        for operation in path.values():
            for given in operation.get("parameters", ()):
                if given["in"] == "path" and given["name"] == "table":
                    given["schema"]["enum"] = tables
    document.setdefault("components", {})["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    document["security"] = [{"token": []}]
    document["paths"]["/v1/health"]["get"]["security"] = []


async def _said(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, DiscreetError)
    if isinstance(error, TableChanged):
        _warn(request, str(error))
    missing = isinstance(error, BadQuery) and str(error).startswith(("no table", "no release"))
    status, problem = problem_of(error, 404 if missing else None)
    return JSONResponse(problem, status, media_type=TYPE)


def _warn(request: Request, said: str) -> None:
    """Tell the owner, once in each worker, that a table has changed: in the log, with where its rows are."""
    desks, warned = request.app.state.desks, request.app.state.warned
    if said not in warned:
        warned.add(said)
        curator = desks.curators.get(request.path_params.get("table"))
        source = None if curator is None else curator.table.schema.source
        request.app.state.journal.say("table changed", source=source, detail=said)


async def _unreadable(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"] if part != "body")[:80] or "the request"
    said = BadParameter(f"{where}: {first['msg'][:1].lower()}{first['msg'][1:]}. See /openapi.json for what is read.")
    status, problem = problem_of(said)
    return JSONResponse(problem, status, media_type=TYPE)


async def _nowhere(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    sentences = {404: "there is nothing here. See /openapi.json for what there is.", 405: "this is not done that way."}
    said: DiscreetError = BadParameter(sentences.get(error.status_code, "the request cannot be read."))
    if error.status_code in (401, 403):
        said = NotAllowed("this is not allowed.")
    problem = problem_of(said, error.status_code)[1]
    return JSONResponse(problem, error.status_code, media_type=TYPE, headers=error.headers)


async def _failed(request: Request, error: Exception) -> JSONResponse:
    # What a library says may quote a row: only the kind of the error is told, and only in the log.
    request.app.state.journal.say("failure", kind=type(error).__name__)
    problem = problem_of(ServerFailed("the server failed, and nothing more is told of it. A retry is safe."), 500)[1]
    return JSONResponse(problem, 500, media_type=TYPE)


async def _end_with(supervisor: int) -> None:
    """A worker whose supervisor was killed would keep the port, so it ends too."""
    while os.getppid() == supervisor:
        await sleep(0.5)
    sys.stderr.flush()
    os._exit(1)

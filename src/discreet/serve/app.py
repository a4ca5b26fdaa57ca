"""The ASGI application of a worker: middleware, then the handler of questions, or the routes for everything else."""

import os
import re
import sys
from asyncio import CancelledError, create_task, sleep
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib.metadata import version
from typing import Any, TextIO

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from discreet.errors import BadParameter, DiscreetError, NotAllowed, NotFound, ServerFailed, TableChanged
from discreet.serve import pages
from discreet.serve.middleware import App, AsgiScope, Middleware, Receive, RequestLog, Send
from discreet.serve.registry import Registry, Settings
from discreet.serve.routes import asking, owner, releases, tables
from discreet.wire.problem import TYPE, for_analyst, problem_of

_ASK = re.compile(r"/v1/tables/([^/]+)/ask")
# By its path the log and the metrics name a request.
_ROUTE = next(route for route in asking.router.routes if getattr(route, "endpoint", None) is asking.ask)

_ABOUT = """Ask a private table as many counting questions as you like, on one privacy budget.

Every answer has an error bar that holds; what follows from earlier answers is free. Send your token as
`Authorization: Bearer discreet_…`. Errors are `application/problem+json` with a sentence that says what to do.
"""


def make(settings: Settings, *, log: TextIO | None = None) -> App:
    """The application of a worker: opens the tables and the ledger now."""
    registry, request_log = Registry(settings), RequestLog(settings.scratch, log)
    return Middleware(AskDispatch(application(registry, request_log)), settings, registry.tokens, request_log)


class AskDispatch:
    """Calls the handler of `ask` directly; all other requests go through the routes of the framework.

    Nothing else differs: the routes would call the same handler. But on the way they take a quarter of the time of a
    known answer (100 instead of 80 µs).
    """

    def __init__(self, app: FastAPI) -> None:
        self.app = app

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        asked = _ASK.fullmatch(scope["path"]) if scope["type"] == "http" and scope["method"] == "POST" else None
        if asked is None:
            await self.app(scope, receive, send)
            return
        scope["app"], scope["route"], scope["path_params"] = self.app, _ROUTE, {"table": asked[1]}
        request = Request(scope, receive)
        try:
            reply = await asking.ask(request, asked[1])
        except DiscreetError as error:
            reply = await _problem(request, error)
        except ValidationError as error:
            reply = await _invalid_request(request, error)
        except Exception as error:
            reply = await _server_error(request, error)
        await reply(scope, receive, send)


def application(registry: Registry, request_log: RequestLog) -> FastAPI:
    """The routes, without the middleware: what the OpenAPI document describes."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        registry.jobs.resume()
        several, supervisor = registry.settings.workers > 1, registry.settings.supervisor
        watching = create_task(_exit_with(supervisor)) if several and supervisor is not None else None
        try:
            yield
        finally:
            if watching is not None:
                watching.cancel()
                with suppress(CancelledError):
                    await watching
            registry.close()

    facts = {"title": "Discreet", "version": version("discreet"), "description": _ABOUT}
    app = FastAPI(**facts, lifespan=lifespan, redoc_url=None, docs_url=None)  # type: ignore[arg-type]
    app.state.registry, app.state.request_log, app.state.warned = registry, request_log, set()
    # Routes are tried in order, so the ones used most come first.
    for router in (asking.router, tables.router, releases.router, owner.router, pages.router):
        app.include_router(router)
    app.add_exception_handler(DiscreetError, _problem)
    app.add_exception_handler(RequestValidationError, _invalid_request)
    app.add_exception_handler(ValidationError, _invalid_request)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _server_error)
    document = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            _describe_security(document(), list(registry.curators))
        return document()

    app.openapi = openapi  # type: ignore[method-assign]
    return app


def _describe_security(document: dict[str, Any], tables: list[str]) -> None:
    """Add to the OpenAPI document that a token is needed, and the names of the tables."""
    for path in document["paths"].values():
        for operation in path.values():
            for given in operation.get("parameters", ()):
                if given["in"] == "path" and given["name"] == "table":
                    given["schema"]["enum"] = tables
    document.setdefault("components", {})["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    document["security"] = [{"token": []}]
    document["paths"]["/v1/health"]["get"]["security"] = []


async def _problem(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, DiscreetError)
    if isinstance(error, TableChanged):
        _warn_owner(request, str(error))
    who = getattr(request.state, "who", None)
    said = error if who is not None and who.role != "analyst" else for_analyst(error)
    if said is not error:
        request.app.state.request_log.say("ledger failed", detail=str(error))
    status, problem = problem_of(said)
    return JSONResponse(problem, status, media_type=TYPE)


def _warn_owner(request: Request, said: str) -> None:
    """Log once in each worker that a table has changed, with its source, for the owner."""
    registry, warned = request.app.state.registry, request.app.state.warned
    if said not in warned:
        warned.add(said)
        curator = registry.curators.get(request.path_params.get("table"))
        source = None if curator is None else curator.table.schema.source
        request.app.state.request_log.say("table changed", source=source, detail=said)


async def _invalid_request(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError | ValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"] if part != "body")[:80] or "the request"
    said = BadParameter(f"{where}: {first['msg'][:1].lower()}{first['msg'][1:]}. See /openapi.json for the fields.")
    status, problem = problem_of(said)
    return JSONResponse(problem, status, media_type=TYPE)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    page = pages.unknown_page(request) if error.status_code == 404 else None
    if page is not None:
        return page
    match error.status_code:
        case 401 | 403:
            said: DiscreetError = NotAllowed("your token does not allow this. Ask the data owner.")
        case 404:
            said = NotFound("nothing is at this path. See /openapi.json for the paths that exist.")
        case 405:
            said = BadParameter(
                f"{request.method[:20]} is not allowed here. See /openapi.json for the methods of each path."
            )
        case _:
            said = BadParameter("the request cannot be read. See /openapi.json.")
    problem = problem_of(said, error.status_code)[1]
    return JSONResponse(problem, error.status_code, media_type=TYPE, headers=error.headers)


async def _server_error(request: Request, error: Exception) -> JSONResponse:
    # The message of a library may quote a row, so only the kind of the error is logged.
    request.app.state.request_log.say("failure", kind=type(error).__name__)
    problem = problem_of(
        ServerFailed(
            "the server failed; the reason is kept from clients, because it may quote a row. A retry is safe."
        ),
        500,
    )[1]
    return JSONResponse(problem, 500, media_type=TYPE)


async def _exit_with(supervisor: int) -> None:
    """Exit when the supervisor was killed; otherwise this worker would keep the port."""
    while os.getppid() == supervisor:
        await sleep(0.5)
    sys.stderr.flush()
    os._exit(1)

"""What all routes share: whose request it is, what they may do, replies, and work on another thread."""

from collections.abc import Callable
from typing import Any, TypeVar

from fastapi import Request
from pydantic import BaseModel
from pydantic_core import to_json
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from discreet.answer import Answer
from discreet.errors import BadParameter, NotAllowed
from discreet.serve.forms import LONG, Problem
from discreet.serve.middleware import RequestLog
from discreet.serve.registry import Registry
from discreet.serve.tokens import Role, Token
from discreet.wire.answer_json import Plain, answer_to_plain

Made = TypeVar("Made")

# The problems that every route may reply with, for the OpenAPI document.
PROBLEMS: dict[int | str, dict[str, Any]] = {
    code: {"model": Problem, "description": what, "content": {"application/problem+json": {}}}
    for code, what in (
        (400, "A mistake in the request: uncharged."),
        (401, "No token, or one that is not known, revoked or expired."),
        (402, "The budget is not enough: uncharged, unless the sentence says what was."),
        (403, "The token does not allow it."),
        (404, "There is no such table, release or path."),
        (409, "The key was used before, or the table has changed: uncharged."),
        (413, "The request is too long."),
        (422, "It would take too much time or memory: uncharged."),
        (429, "Too many requests: uncharged; see Retry-After."),
        (503, "Something failed; nothing was released. A retry is safe."),
    )
}


def request_body(form: type[BaseModel]) -> dict[str, Any]:
    """The body of a request for the OpenAPI document, where the handler itself reads the body."""
    content = {"application/json": {"schema": form.model_json_schema()}}
    return {"requestBody": {"content": content, "required": True}}


def who_of(request: Request, *roles: Role) -> Token:
    """The token of a request; raises NotAllowed unless it has one of these roles."""
    who: Token = request.state.who
    if roles and who.role not in roles:
        raise NotAllowed(f"this is for the {' or '.join(roles)}; your token is of an {who.role}. Ask the data owner.")
    return who


def require_self(who: Token, analyst: str | None) -> None:
    """Refuse a request in the name of another analyst."""
    if analyst not in (None, who.name):
        raise NotAllowed(f'your token is of "{who.name}"; requests in another name are refused. Leave analyst out.')


def may_see(who: Token, analyst: str) -> bool:
    """Whether somebody may see what an analyst did: an analyst sees their own, owners and auditors see all."""
    return who.role != "analyst" or who.name == analyst


def registry_of(request: Request) -> Registry:
    """The registry of this worker."""
    registry: Registry = request.app.state.registry
    return registry


def log_of(request: Request) -> RequestLog:
    """The request log of this worker."""
    request_log: RequestLog = request.app.state.request_log
    return request_log


def idempotency_key(request: Request) -> str | None:
    """The Idempotency-Key, if there is one."""
    key = request.headers.get("idempotency-key")
    if key is not None and not (0 < len(key) <= LONG and key.isprintable()):
        raise BadParameter(f"Idempotency-Key has {len(key)} characters; it must have 1 to {LONG} printable ones.")
    return key


def reply(plain: Any, status: int = 200) -> Response:
    """A JSON response, without validating it again."""
    return Response(to_json(plain, inf_nan_mode="null"), status, media_type="application/json")


def answer_json(answer: Answer) -> Plain:
    """An answer as JSON, with its price."""
    return answer_to_plain(answer) | {"price": answer.price}


async def in_thread(work: Callable[..., Made], *arguments: Any, **named: Any) -> Made:
    """Run blocking work on a thread, so that the event loop goes on."""
    return await run_in_threadpool(work, *arguments, **named)

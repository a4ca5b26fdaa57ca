"""What is known is told before the framework is asked, which would take twice as long as the answer.

Plain ASGI, between the door and the routes. Whatever is not simply known, and whatever is wrong with a request, goes on
to the routes: they say the same as if nobody had looked.
"""

import re

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response

from discreet.errors import DiscreetError
from discreet.serve.common import key_of, reply, require_self, said, who_of
from discreet.serve.desks import Desks
from discreet.serve.door import App, Receive, Scope, Send
from discreet.serve.forms import AskForm
from discreet.serve.journal import Journal
from discreet.serve.routes import asking

_ASK = re.compile(r"/v1/tables/([^/]+)/ask")
# What the journal calls it.
_ROUTE = next(route for route in asking.router.routes if getattr(route, "name", "") == "ask")


class Shortcut:
    """An application that tells what is known, and leaves the rest to another one."""

    def __init__(self, app: App, desks: Desks, journal: Journal) -> None:
        self.app, self._desks, self._journal = app, desks, journal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        asks = _ASK.fullmatch(scope["path"]) if scope["type"] == "http" and scope["method"] == "POST" else None
        told = None if asks is None else self._told(Request(scope), asks[1])
        if told is None:
            await self.app(scope, receive, send)
            return
        scope["route"] = _ROUTE
        await told(scope, receive, send)

    def _told(self, request: Request, table: str) -> Response | None:
        try:
            who, form = who_of(request, "owner", "analyst"), AskForm.model_validate_json(request.state.body)
            require_self(who, form.analyst)
            key = key_of(request)
            # A text was mostly read before, and is short; what else there is may take longer to read.
            if not isinstance(form.question, str):
                return None
            desk = self._desks.of(table, who)
            answer = desk.told(
                form.question,
                error=form.error,
                confidence=form.confidence,
                epsilon=form.epsilon,
                joint=form.joint,
                nonnegative=form.nonnegative,
                key=key,
            )
        except (DiscreetError, ValidationError):
            return None
        if answer is None:
            return None
        self._journal.answered(table, answer.origin)
        return reply(said(answer))

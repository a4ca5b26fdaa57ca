"""ASGI middleware: host check, limits of size and depth, authentication, rate limit, security headers, the request log.

Every request passes through it first, in this order, and every reply leaves through it. A request that is refused here
has touched no table and costs nothing. A refused token is answered after a fixed time (the quantum), so the time does
not reveal what was wrong with it. The rate limit is a token bucket: it fills at a steady rate, and each request takes
one. The log has one JSON line for each request, beside Prometheus counters; neither has rows or questions. Its times
are those at which replies left, on the quantum where rows may have been read: how long the work took is secret.
"""

import json
import os
import sys
from asyncio import sleep
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from datetime import UTC, datetime
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from time import monotonic
from typing import Any, TextIO
from uuid import uuid4

from discreet.cache import memoize
from discreet.errors import BadParameter, DiscreetError, NotAllowed, TooMany
from discreet.serve.registry import MOST_BYTES, MOST_DEPTH, Settings
from discreet.serve.tokens import Token, Tokens
from discreet.wire.problem import TYPE, for_analyst, problem_of

# Prometheus reads this when it is first imported, and then adds up the counters of all processes.
MULTIPROCESS = "PROMETHEUS_MULTIPROC_DIR"
_METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH")


class RequestLog:
    """The log of a worker, and its counters."""

    def __init__(self, scratch: Path | None, out: TextIO | None = None) -> None:
        if scratch is not None:
            os.environ.setdefault(MULTIPROCESS, str(scratch))
        import prometheus_client as prometheus

        prometheus.disable_created_metrics()  # type: ignore[no-untyped-call]
        self._out = out
        self._registry = prometheus.CollectorRegistry()
        own = None if scratch is not None else self._registry
        self._requests = prometheus.Counter(
            "discreet_requests", "Requests that were answered.", ["route", "method", "status"], registry=own
        )
        self._seconds = prometheus.Summary(
            "discreet_reply_seconds", "When replies left, after the request came.", ["route"], registry=own
        )
        self._answers = prometheus.Counter(
            "discreet_answers", "Answers by where they come from.", ["table", "origin"], registry=own
        )
        self._together = scratch is not None
        # There are few routes and statuses, and finding a counter takes longer than counting.
        self._of = memoize(1000)(self._counters)
        self._told = memoize(1000)(lambda table, origin: self._answers.labels(table, origin))

    def served(
        self, scope: MutableMapping[str, Any], number: str, status: int, seconds: float, who: str | None
    ) -> None:
        """Count a request, and write its line."""
        # The template of a path, never the path: it may name anything; and so may the method.
        route = getattr(scope.get("route"), "path", "other")
        method = scope["method"] if scope["method"] in _METHODS else "other"
        counted, timed = self._of(route, method, status)
        counted.inc()
        timed.observe(seconds)
        # This line is written for every request, so it is formatted by hand; nothing in it needs escaping in JSON.
        name = "null" if who is None else f'"{who}"'
        self._write(
            f'{{"at": "{_now()}", "is": "request", "id": "{number}", "route": "{route}", "method": "{method}", '
            f'"status": {status}, "who": {name}, "ms": {round(1000 * seconds)}}}'
        )

    def _counters(self, route: str, method: str, status: int) -> tuple[Any, Any]:
        return self._requests.labels(route, method, str(status)), self._seconds.labels(route)

    def answered(self, table: str, origin: str) -> None:
        """Count an answer."""
        self._told(table, origin).inc()

    def say(self, what: str, **facts: Any) -> None:
        """Write one line of JSON to the log."""
        self._write(json.dumps({"at": _now(), "is": what, **facts}))

    def _write(self, line: str) -> None:
        out = self._out or sys.stderr
        out.write(f"{line}\n")
        out.flush()

    def metrics(self, budgets: Iterable[tuple[str, float, float]]) -> bytes:
        """All counters, of all workers, and of each table what share of its cap is left, as Prometheus reads them."""
        import prometheus_client as prometheus
        from prometheus_client import multiprocess

        registry = prometheus.CollectorRegistry()
        if self._together:
            multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        left = _Budgets(list(budgets))
        registry.register(left)
        own = b"" if self._together else prometheus.generate_latest(self._registry)
        return own + prometheus.generate_latest(registry)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class _Budgets:
    """A Prometheus collector of what is left of each budget."""

    def __init__(self, budgets: list[tuple[str, float, float]]) -> None:
        self._budgets = budgets

    def collect(self) -> Iterable[Any]:
        """The two numbers of each table."""
        from prometheus_client.core import GaugeMetricFamily

        share = GaugeMetricFamily("discreet_budget_share_left", "The share of the cap that is left.", labels=["table"])
        epsilon = GaugeMetricFamily("discreet_budget_epsilon_left", "What is left, as an epsilon.", labels=["table"])
        for table, part, left in self._budgets:
            share.add_metric([table], part)
            epsilon.add_metric([table], left)
        yield share
        yield epsilon


class RateLimit:
    """Buckets by name; each begins full. A rate of 0 is no limit.

    >>> rate = RateLimit(per_second=2, burst=1)
    >>> rate.take("ana", 0.0), rate.take("ana", 0.0), rate.take("ben", 0.0), rate.take("ana", 0.5)
    (0.0, 0.5, 0.0, 0.0)
    """

    def __init__(self, per_second: float, burst: float) -> None:
        self._rate, self._burst = per_second, max(1.0, burst)
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, name: str, now: float) -> float:
        """Take one from a bucket, or say after how many seconds there will be one."""
        if not self._rate:
            return 0.0
        left, at = self._buckets.get(name, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._rate)
        taken = left >= 1
        self._buckets[name] = (left - taken, now)
        return 0.0 if taken else (1 - left) / self._rate


AsgiScope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[AsgiScope, Receive, Send], Awaitable[None]]

COOKIE = "discreet"
_SAFE = ("GET", "HEAD", "OPTIONS")
# Paths that need no token: health, and what a browser needs to sign in.
_OPEN = ("/v1/health", "/sign-in", "/static/")
# Browsers load nothing from other sites, and no proxy caches a reply.
HEADERS = (
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
        b"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
_NO_STORE = ((b"cache-control", b"no-store"),)
UNKNOWN_TOKEN = "this needs a token that is known here and neither revoked nor expired. Ask the data owner for one."


class Middleware:
    """ASGI middleware: host check, token, rate limit, body limits, security headers, request log."""

    def __init__(self, app: App, settings: Settings, tokens: Tokens, request_log: RequestLog) -> None:
        self._app, self._settings, self._tokens, self._request_log = app, settings, tokens, request_log
        self._rate = RateLimit(settings.rate / settings.workers, settings.burst / settings.workers)

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun, number = monotonic(), uuid4().hex
        state = scope.setdefault("state", {})
        state["begun"] = begun
        status = 500

        async def leave(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                own = message.get("headers", ())
                kept = () if any(name == b"cache-control" for name, _ in own) else _NO_STORE
                message["headers"] = [*own, *HEADERS, *kept, (b"x-request-id", number.encode())]
            await send(message)

        who: Token | None = None
        try:
            try:
                self._require_host(scope)
                who = await self._authenticate(scope)
                receive = await _bounded_body(scope, receive)
            except _Rejected as away:
                await self._refuse(away.error, scope, leave, away.status)
                return
            except DiscreetError as error:
                await self._refuse(error, scope, leave)
                return
            await self._app(scope, receive, leave)
        finally:
            self._request_log.served(scope, number, status, monotonic() - begun, None if who is None else who.name)

    def _require_host(self, scope: AsgiScope) -> None:
        """Reject a foreign Host header: another site may resolve its own name to this machine (DNS rebinding)."""
        host = _header(scope, b"host")
        name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
        if not self._settings.is_called(name):
            raise NotAllowed(f'this server is not called "{name[:60]}". Use {self._settings.address}.')

    async def _authenticate(self, scope: AsgiScope) -> Token | None:
        """The token of a request; None on paths that need none. Raises if it is missing, unknown or over its rate."""
        path: str = scope["path"]
        presented, by_cookie = _token_of(scope)
        who = self._tokens.find(presented)
        scope["state"]["who"] = who
        if path == "/" or path.startswith(_OPEN):
            return who
        if who is None:
            if not path.startswith(("/v1", "/docs", "/openapi")):
                # The page itself redirects to the sign-in form.
                return None
            await until_quantum(scope["state"]["begun"], self._settings.quantum)
            raise _Rejected(NotAllowed(UNKNOWN_TOKEN), 401)
        if by_cookie and scope["method"] not in _SAFE and not _same_origin(scope):
            raise NotAllowed("this request comes from the page of another server. Use the page of this one.")
        wait = self._rate.take(who.prefix, monotonic())
        if wait > 0:
            scope["state"]["retry"] = wait
            raise TooMany(
                f"more than {self._settings.rate:g} requests a second came with this token. "
                f"Wait {wait:.1f} seconds; POST …/ask-many asks many questions in one request."
            )
        return who

    async def _refuse(self, error: DiscreetError, scope: AsgiScope, send: Send, status: int | None = None) -> None:
        said = for_analyst(error)
        if said is not error:
            self._request_log.say("ledger failed", detail=str(error))
        status, problem = problem_of(said, status)
        headers = [(b"content-type", TYPE.encode())]
        if status == 401:
            headers.append((b"www-authenticate", b'Bearer realm="discreet"'))
        if status == 429:
            headers.append((b"retry-after", str(max(1, round(scope["state"]["retry"]))).encode()))
        body = json.dumps(problem).encode()
        headers.append((b"content-length", str(len(body)).encode()))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


class _Rejected(Exception):  # noqa: N818, it carries an error
    """A request is rejected with another status than the error usually has."""

    def __init__(self, error: DiscreetError, status: int | None = None) -> None:
        self.error, self.status = error, status


async def until_quantum(begun: float, quantum: float) -> None:
    """Wait until a whole number of quanta has passed since `begun`, while others are served.

    That number reveals how long the request waited for its turn and for the ledger. The time in which rows were read
    was padded before (`Executor.reading`).
    """
    if quantum:
        await sleep(-(monotonic() - begun) % quantum)


async def _bounded_body(scope: AsgiScope, receive: Receive) -> Receive:
    """Read the body, bounded in length and depth, and return a `receive` that gives it again."""
    if scope["method"] in _SAFE:
        return receive
    length = _header(scope, b"content-length")
    if length.isdecimal() and int(length) > MOST_BYTES:
        raise _too_large()
    parts, size, more = [], 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            break
        part = message.get("body", b"")
        parts.append(part)
        size, more = size + len(part), message.get("more_body", False)
        if size > MOST_BYTES:
            raise _too_large()
    body = scope["state"]["body"] = b"".join(parts)
    if body.count(b"[") + body.count(b"{") > MOST_DEPTH and _depth(body) > MOST_DEPTH:
        raise BadParameter(f"the request nests brackets more than {MOST_DEPTH} deep. Nest fewer.")
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _too_large() -> _Rejected:
    return _Rejected(BadParameter(f"the request has more than {MOST_BYTES:,} bytes. Ask for less at once."), 413)


def _depth(body: bytes) -> int:
    """How deep the brackets of a JSON text go; those in texts do not count."""
    deepest = depth = 0
    quoted = escaped = False
    for byte in body:
        if quoted:
            quoted, escaped = escaped or byte != 0x22, byte == 0x5C and not escaped
        elif byte == 0x22:
            quoted = True
        elif byte in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif byte in b"]}":
            depth -= 1
    return deepest


def _token_of(scope: AsgiScope) -> tuple[str | None, bool]:
    """The token of a request, and whether it came in a cookie, which browsers send by themselves."""
    said = _header(scope, b"authorization")
    if said[:7].lower() == "bearer ":
        return said[7:].strip(), False
    try:
        found = SimpleCookie(_header(scope, b"cookie")).get(COOKIE)
    except CookieError:
        found = None
    return (None, False) if found is None else (found.value, True)


def _same_origin(scope: AsgiScope) -> bool:
    return _header(scope, b"origin").split("://", 1)[-1] == _header(scope, b"host")


def _header(scope: AsgiScope, name: bytes) -> str:
    for key, value in scope["headers"]:
        if key == name:
            return str(value.decode("latin-1"))
    return ""

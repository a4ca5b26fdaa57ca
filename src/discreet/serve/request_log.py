"""The log of a server, one JSON line for each request, and its Prometheus counters. Neither has rows or questions.

Times are those at which replies left, on the quantum where rows may have been read. How long the work took is secret.
"""

import json
import os
import sys
from collections.abc import Iterable, MutableMapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from discreet.cache import memoize

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

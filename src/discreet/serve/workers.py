"""Start a server: its worker processes, which are restarted when they die, and the lines that say where it is."""

import gc
import os
import socket
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import uvicorn
from uvicorn.supervisors import Multiprocess

from discreet.answer import visible
from discreet.errors import BadParameter
from discreet.serve.app import make
from discreet.serve.registry import Registry, Settings

# Seconds after which an idle connection is closed, and for which a stopping worker waits for its replies.
IDLE, GRACE = 30, 5


def prepare(settings: Settings) -> str | None:
    """Open everything once, so that errors show before a worker starts. Returns the owner's token if it is new."""
    registry = Registry(settings)
    try:
        if any(token.role == "owner" and token.is_valid(datetime.now(UTC)) for token in registry.tokens.list()):
            return None
        return registry.tokens.create("owner", "owner", by="the start of the server")
    finally:
        registry.close()
        # Ibis keeps connections in reference cycles; without this the supervisor would keep the tables open.
        del registry
        gc.collect()


def run(settings: Settings, *, ready: Callable[[Settings], None]) -> None:
    """Serve until interrupted. `ready` is called with the final settings once the port is open."""
    listening = _socket(settings)
    with listening, TemporaryDirectory(prefix="discreet-") as folder:
        settings = replace(settings, port=listening.getsockname()[1], scratch=Path(folder), supervisor=os.getpid())
        config = uvicorn.Config(
            partial(make, settings),
            factory=True,
            workers=settings.workers,
            host=settings.host,
            port=settings.port,
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=settings.behind_proxy,
            ssl_certfile=settings.certificate,
            ssl_keyfile=settings.key,
            timeout_keep_alive=IDLE,
            timeout_graceful_shutdown=GRACE,
            lifespan="on",
        )
        ready(settings)
        if settings.workers > 1:
            Multiprocess(config, sockets=[listening]).run()
        else:
            uvicorn.Server(config).run(sockets=[listening])


def _socket(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host, settings.port))
        listening.listen(1024)
    except OSError as error:
        listening.close()
        raise BadParameter(
            f"port {settings.port} of {settings.host} cannot be opened: {error.strerror}. Give another --port."
        ) from None
    listening.set_inheritable(True)
    return listening


def start_server(settings: Settings, *, open_page: bool = False) -> None:
    """Serve until interrupted; say where, and the owner's token if it is new."""
    made = prepare(settings)

    def ready(found: Settings) -> None:
        print(f"Serving {', '.join(map(visible, found.schemas))} at {found.address}")
        if made is not None:
            print(f"The owner's token, shown only now:\n\n  {made}\n")
            print(f"Sign in with it: {found.address}/sign-in#{made}\n")
        print("Stop with Ctrl-C. What it does is logged on the standard error.", flush=True)
        if open_page:
            import webbrowser

            webbrowser.open(f"{found.address}/sign-in#{made}")

    run(settings, ready=ready)

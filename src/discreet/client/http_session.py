"""The connection to a server: sends and reads JSON, raises our errors for its problems, and tries again."""

import ssl
from collections.abc import Mapping
from time import monotonic, sleep
from typing import Any
from uuid import uuid4

import httpx

from discreet.errors import AnswerLost, BadParameter, ServerFailed, TooMany
from discreet.numeric import text
from discreet.wire.problem import error_from_problem

# Seconds that a reply may take, and between two tries.
TIMEOUT, PAUSE = 120.0, 0.2


class HttpSession:
    """Requests with a token. Every request that may be paid for has a key, so that it can be repeated."""

    def __init__(self, url: str, token: str, certificate: str | None, patience: float) -> None:
        self.url, self._patience = url, patience
        trusted: Any = True if certificate is None else ssl.create_default_context(cafile=certificate)
        headers = {"authorization": f"Bearer {token}"}
        try:
            # Nothing of the environment: a proxy in between would read the token.
            self._client = httpx.Client(base_url=url, headers=headers, timeout=TIMEOUT, verify=trusted, trust_env=False)
        except (UnicodeError, ValueError):
            raise BadParameter("the token has characters that no token has. Copy all of it again.") from None

    def get(self, path: str, **asked: Any) -> Any:
        """The JSON at a path."""
        given = {name: value for name, value in asked.items() if value is not None}
        return self._request("GET", path, params=given).json()

    def read(self, path: str) -> bytes:
        """The file at a path."""
        return self._request("GET", path).content

    def post(self, path: str, form: Mapping[str, Any], *, key: str | None = None) -> Any:
        """The reply to a form."""
        given = {name: value for name, value in form.items() if value is not None}
        headers = {"idempotency-key": text("key", key) if key is not None else uuid4().hex}
        return self._request("POST", path, json=given, headers=headers).json()

    def close(self) -> None:
        """Give back the connection."""
        self._client.close()

    def _request(self, method: str, path: str, **options: Any) -> httpx.Response:
        """The reply, tried again for `patience` seconds; with a key all tries are one request."""
        until, again = monotonic() + self._patience, False
        while True:
            late = monotonic() > until
            try:
                reply = self._client.request(method, path, **options)
            except (httpx.TransportError, httpx.InvalidURL) as error:
                if late or not isinstance(error, httpx.TransportError):
                    raise self._unreachable(error) from None
                again = True
                sleep(PAUSE)
                continue
            if reply.status_code < 400:
                return reply
            said = _problem(reply)
            # The answer of an earlier try may still be computed.
            if late or not (isinstance(said, TooMany) or (again and isinstance(said, AnswerLost))):
                raise said
            sleep(float(reply.headers.get("retry-after", PAUSE)))

    def _unreachable(self, error: Exception) -> ServerFailed:
        return ServerFailed(
            f"the server at {self.url} cannot be reached ({type(error).__name__}). Check the address, and that "
            "the server runs. The question may have been paid for: the same key asks again, at no further cost."
        )


def _problem(reply: httpx.Response) -> Exception:
    try:
        said = reply.json()
    except ValueError:
        said = {}
    return error_from_problem(reply.status_code, said if isinstance(said, Mapping) else {})

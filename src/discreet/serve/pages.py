"""The web page: HTML in which scripts start. They get everything else from the API that programs use."""

import gzip
import re
import subprocess
import sys
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from threading import Lock, Thread
from typing import Any
from urllib.parse import parse_qs, quote

from fastapi import APIRouter, Request
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse, RedirectResponse, Response

from discreet.cache import memoize
from discreet.errors import did_you_mean
from discreet.report.document import STYLE
from discreet.serve.common import in_thread, registry_of
from discreet.serve.middleware import COOKIE, UNKNOWN_TOKEN, until_quantum
from discreet.serve.tokens import Token

router = APIRouter(include_in_schema=False)

# The pages of a table and their titles. Auditors see all but the one that asks.
PAGES = {"ask": "Ask", "budget": "Budget", "history": "History", "release": "Release"}
_FOR_AUDITORS = ("budget", "history", "release")
_NO_PAGE = ("No such page", "Choose one of the pages above.")

_STATIC = Path(__file__).parent / "static"
_KINDS = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
# Where a sign-in may redirect to: only pages of this server, and nothing a browser takes for another host.
_WANTED = re.compile(r"/owner|/t/[\w.%~-]+/[a-z]+", re.ASCII)
_LONGEST_PATH = 500
# Files whose address contains their version may be cached for a day.
_CACHED = {"cache-control": "private, max-age=86400"}
_making = Lock()
_MAKE_VEGA = "import sys, vl_convert; sys.stdout.buffer.write(vl_convert.javascript_bundle().encode())"


@router.get("/")
async def home(request: Request) -> Response:
    """Redirect to the first table, or to the sign-in form."""
    who: Token | None = request.state.who
    return _redirect("/sign-in") if who is None else _redirect(_first(request, who))


@router.get("/sign-in")
async def sign_in(request: Request) -> Response:
    """The sign-in form. It remembers in `to` the page that was asked for."""
    return _page(request, "sign-in", said="", to=request.query_params.get("to", ""))


@router.post("/sign-in")
async def signed_in(request: Request) -> Response:
    """Keep a valid token in a cookie that scripts cannot read. A wrong one is refused on the quantum, as by the API."""
    form = parse_qs((await request.body()).decode("utf-8", "replace"))
    token, to = (form.get(name, [""])[0].strip() for name in ("token", "to"))
    registry = registry_of(request)
    who = registry.tokens.find(token) if _is_ours(request) else None
    if who is None:
        await until_quantum(request.state.begun, registry.settings.quantum)
        return _page(request, "sign-in", 401, said=UNKNOWN_TOKEN, to=to)
    reply = _redirect(to if _WANTED.fullmatch(to) else _first(request, who))
    secure = registry.settings.is_secure or request.url.scheme == "https"
    reply.set_cookie(COOKIE, token, httponly=True, samesite="strict", secure=secure, path="/")
    return reply


@router.post("/sign-out")
async def sign_out(request: Request) -> Response:
    """Forget the token in this browser."""
    reply = _redirect("/sign-in")
    if _is_ours(request):
        reply.delete_cookie(COOKIE, path="/")
    return reply


@router.get("/t/{table}")
async def of_table_first(request: Request, table: str) -> Response:
    """Redirect to the first page of a table."""
    who: Token | None = request.state.who
    return _sign_in_first(request) if who is None else _redirect(_first_page(table, who))


@router.get("/t/{table}/{page}")
async def of_table(request: Request, table: str, page: str) -> Response:
    """Ask a table, or see its budget, its history or its releases."""
    who: Token | None = request.state.who
    if who is None:
        return _sign_in_first(request)
    names = list(registry_of(request).curators)
    if table not in names:
        return _error_page(
            request, 404, "No such table", f'There is no table "{table[:60]}"; {did_you_mean(table, names)}'
        )
    if page not in PAGES:
        return _error_page(request, 404, *_NO_PAGE, table)
    if page not in _pages_of(who):
        return _error_page(request, 403, "Not for auditors", "Auditors see everything and ask nothing.", table)
    return _page(request, page, table=table)


@router.get("/owner")
async def owner(request: Request) -> Response:
    """Tables, tokens, caps and the ledger for the owner; the ledger alone for an auditor."""
    who: Token | None = request.state.who
    if who is None:
        return _sign_in_first(request)
    if who.role == "analyst":
        return _error_page(
            request, 403, "For the data owner", "Ask the data owner for what you need: tokens, or more budget."
        )
    return _page(request, "owner")


def unknown_page(request: Request) -> Response | None:
    """What a browser sees at a path that does not exist; None for a program."""
    if request.url.path.startswith("/v1/") or "text/html" not in request.headers.get("accept", ""):
        return None
    if request.state.who is None:
        return _sign_in_first(request)
    return _error_page(request, 404, *_NO_PAGE)


@router.get("/static/vega.js")
async def vega(request: Request) -> Response:
    """Vega, which draws charts. It is bundled once in each worker, after somebody has signed in."""
    packed = await in_thread(_vega)
    headers = {**_CACHED, "vary": "accept-encoding"}
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(gzip.decompress(packed), media_type="text/javascript", headers=headers)
    return Response(packed, media_type="text/javascript", headers={**headers, "content-encoding": "gzip"})


@router.get("/static/{made}/{name}")
async def static(made: str, name: str) -> Response:
    """A style sheet, a script or an icon. The path has the version, so that scripts import their own version."""
    found = _files().get(name)
    if found is None:
        return Response("There is no such file.", 404, media_type="text/plain")
    headers = _CACHED if made == _version() else {"cache-control": "no-cache"}
    return Response(found, media_type=_KINDS[Path(name).suffix], headers=headers)


def _page(request: Request, name: str, status: int = 200, *, table: str | None = None, **more: Any) -> HTMLResponse:
    who: Token | None = request.state.who
    if who is not None:
        _expect_charts()
    tables = list(registry_of(request).curators) if who else []
    facts = {
        "page": name,
        "who": who,
        "table": table,
        "nav_table": table or (tables[0] if tables else ""),
        "tables": tables,
        "pages": {each: PAGES[each] for each in _pages_of(who)} if who else {},
        "static": f"/static/{_version()}",
        "vega": f"/static/vega.js?v={_vega_version()}",
    }
    return HTMLResponse(_templates().get_template(f"{name}.html").render(facts | more), status)


def _error_page(request: Request, status: int, title: str, sentence: str, table: str | None = None) -> HTMLResponse:
    return _page(request, "sorry", status, table=table, title=title, sentence=sentence)


def _pages_of(who: Token) -> tuple[str, ...]:
    return _FOR_AUDITORS if who.role == "auditor" else tuple(PAGES)


def _first(request: Request, who: Token) -> str:
    return _first_page(next(iter(registry_of(request).curators)), who)


def _first_page(table: str, who: Token) -> str:
    return f"/t/{quote(table, safe='')}/{_pages_of(who)[0]}"


def _redirect(place: str) -> RedirectResponse:
    return RedirectResponse(place, 303)


def _sign_in_first(request: Request) -> RedirectResponse:
    # A path is as long as somebody likes, and a reply that repeats it several times as long.
    wanted = quote(request.url.path) if len(request.url.path) <= _LONGEST_PATH else ""
    return _redirect(f"/sign-in?to={quote(wanted, safe='')}" if _WANTED.fullmatch(wanted) else "/sign-in")


def _is_ours(request: Request) -> bool:
    """Whether a form was sent from a page of this server: other sites can sign nobody in or out."""
    return request.headers.get("origin", "").split("://", 1)[-1] == request.headers.get("host")


@memoize(1)
def _templates() -> Environment:
    templates = Environment(
        loader=PackageLoader("discreet.serve"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    templates.filters["path"] = lambda text: quote(text, safe="")
    return templates


@memoize(1)
def _files() -> dict[str, bytes]:
    found = {file.name: file.read_bytes() for file in sorted(_STATIC.iterdir()) if file.suffix in _KINDS}
    return found | {"style.css": STYLE.encode()}


@memoize(1)
def _version() -> str:
    return sha256(b"".join(_files().values())).hexdigest()[:12]


@memoize(1)
def _vega_version() -> str:
    try:
        return version("vl-convert-python")
    except PackageNotFoundError:
        return "none"


@memoize(1)
def _expect_charts() -> None:
    """Start to bundle Vega: a page that was opened will soon draw a chart."""
    Thread(target=_vega, daemon=True).start()


def _vega() -> bytes:
    with _making:
        return _made_vega()


@memoize(1)
def _made_vega() -> bytes:
    # Bundling takes seconds and lets no other thread run meanwhile, so another process does it.
    made = subprocess.run([sys.executable, "-c", _MAKE_VEGA], capture_output=True, check=True)
    return gzip.compress(made.stdout)

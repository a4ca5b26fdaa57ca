"""The page for people: HTML with what a script needs to begin. The rest comes from the API that programs use too."""

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
from discreet.serve.common import desks_of, elsewhere
from discreet.serve.middleware import COOKIE, UNKNOWN, until
from discreet.serve.tokens import Token

router = APIRouter(include_in_schema=False)

# What there is to see of a table, and what it is called. Auditors look, and do not ask.
PAGES = {"ask": "Ask", "budget": "Budget", "history": "History", "release": "Release"}
_FOR_AUDITORS = ("budget", "history", "release")

_STATIC = Path(__file__).parent / "static"
_KINDS = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
# Where one may want to go after signing in: a page of ours, and nothing that a browser would take for another server.
_WANTED = re.compile(r"/owner|/t/[\w.%~-]+/[a-z]+", re.ASCII)
# A browser keeps what has a version in its address for a day.
_KEPT = {"cache-control": "private, max-age=86400"}
_making = Lock()
_MAKE_VEGA = "import sys, vl_convert; sys.stdout.buffer.write(vl_convert.javascript_bundle().encode())"


@router.get("/")
async def home(request: Request) -> Response:
    """To the first table, or to the form for a token."""
    who: Token | None = request.state.who
    return _away("/sign-in") if who is None else _away(_first(request, who))


@router.get("/sign-in")
async def sign_in(request: Request) -> Response:
    """A form for a token. It remembers the page `to` which somebody wanted to go."""
    return _page(request, "sign-in", said="", to=request.query_params.get("to", ""))


@router.post("/sign-in")
async def signed_in(request: Request) -> Response:
    """Keep a token in a cookie that no script can read, or say that it is not known, as late as for any other."""
    form = parse_qs((await request.body()).decode("utf-8", "replace"))
    token, to = (form.get(name, [""])[0].strip() for name in ("token", "to"))
    desks = desks_of(request)
    who = desks.tokens.find(token) if _is_ours(request) else None
    if who is None:
        await until(request.state.begun, desks.settings.quantum)
        return _page(request, "sign-in", 401, said=UNKNOWN, to=to)
    reply = _away(to if _WANTED.fullmatch(to) else _first(request, who))
    secure = desks.settings.is_secure or request.url.scheme == "https"
    reply.set_cookie(COOKIE, token, httponly=True, samesite="strict", secure=secure, path="/")
    return reply


@router.post("/sign-out")
async def sign_out(request: Request) -> Response:
    """Forget the token in this browser."""
    reply = _away("/sign-in")
    if _is_ours(request):
        reply.delete_cookie(COOKIE, path="/")
    return reply


@router.get("/t/{table}")
async def of_table_first(request: Request, table: str) -> Response:
    """To the first page of a table."""
    who: Token | None = request.state.who
    return _sign_in_first(request) if who is None else _away(_place(table, who))


@router.get("/t/{table}/{page}")
async def of_table(request: Request, table: str, page: str) -> Response:
    """Ask a table, or see its budget, its history or its releases."""
    who: Token | None = request.state.who
    if who is None:
        return _sign_in_first(request)
    names = list(desks_of(request).curators)
    if table not in names:
        return _sorry(request, 404, "No such table", f'There is no table "{table[:60]}"; {did_you_mean(table, names)}')
    if page not in PAGES:
        return _sorry(request, 404, "No such page", "Choose one of the pages above.", table)
    if page not in _pages_of(who):
        return _sorry(request, 403, "Not for auditors", "Auditors look at everything and ask nothing.", table)
    return _page(request, page, table=table)


@router.get("/owner")
async def owner(request: Request) -> Response:
    """Tables, tokens, caps and the ledger for the owner; the ledger alone for an auditor."""
    who: Token | None = request.state.who
    if who is None:
        return _sign_in_first(request)
    if who.role == "analyst":
        return _sorry(
            request, 403, "For the data owner", "Ask the data owner for what you need: tokens, or more budget."
        )
    return _page(request, "owner")


@router.get("/static/vega.js")
async def vega(request: Request) -> Response:
    """What draws charts. It is made once in each worker, when somebody has signed in."""
    packed = await elsewhere(_vega)
    headers = {**_KEPT, "vary": "accept-encoding"}
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(gzip.decompress(packed), media_type="text/javascript", headers=headers)
    return Response(packed, media_type="text/javascript", headers={**headers, "content-encoding": "gzip"})


@router.get("/static/{made}/{name}")
async def static(made: str, name: str) -> Response:
    """A style sheet, a script or a picture. The version is in the path, so that modules import their own kind."""
    found = _files().get(name)
    if found is None:
        return Response("There is no such file.", 404, media_type="text/plain")
    headers = _KEPT if made == _version() else {"cache-control": "no-cache"}
    return Response(found, media_type=_KINDS[Path(name).suffix], headers=headers)


def _page(request: Request, name: str, status: int = 200, *, table: str | None = None, **more: Any) -> HTMLResponse:
    who: Token | None = request.state.who
    if who is not None:
        _expect_charts()
    tables = list(desks_of(request).curators) if who else []
    facts = {
        "page": name,
        "who": who,
        "table": table,
        "near": table or (tables[0] if tables else ""),
        "tables": tables,
        "pages": {each: PAGES[each] for each in _pages_of(who)} if who else {},
        "static": f"/static/{_version()}",
        "vega": f"/static/vega.js?v={_vega_version()}",
    }
    return HTMLResponse(_templates().get_template(f"{name}.html").render(facts | more), status)


def _sorry(request: Request, status: int, title: str, sentence: str, table: str | None = None) -> HTMLResponse:
    return _page(request, "sorry", status, table=table, title=title, sentence=sentence)


def _pages_of(who: Token) -> tuple[str, ...]:
    return _FOR_AUDITORS if who.role == "auditor" else tuple(PAGES)


def _first(request: Request, who: Token) -> str:
    return _place(next(iter(desks_of(request).curators)), who)


def _place(table: str, who: Token) -> str:
    return f"/t/{quote(table, safe='')}/{_pages_of(who)[0]}"


def _away(place: str) -> RedirectResponse:
    return RedirectResponse(place, 303)


def _sign_in_first(request: Request) -> RedirectResponse:
    return _away(f"/sign-in?to={quote(quote(request.url.path), safe='')}")


def _is_ours(request: Request) -> bool:
    """Whether a form was sent from a page of this server: nobody signs somebody else in or out."""
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
    """Whoever opens a page will soon want a chart."""
    Thread(target=_vega, daemon=True).start()


def _vega() -> bytes:
    with _making:
        return _made_vega()


@memoize(1)
def _made_vega() -> bytes:
    # Bundling takes seconds and lets no other thread run meanwhile, so another process does it.
    made = subprocess.run([sys.executable, "-c", _MAKE_VEGA], capture_output=True, check=True)
    return gzip.compress(made.stdout)

"""For owners and auditors: tokens, caps, holds and the ledger; and the health and metrics of the server."""

from dataclasses import asdict
from importlib.metadata import version

from fastapi import APIRouter, Request
from starlette.responses import Response

from discreet.errors import BadParameter, LedgerDamaged
from discreet.ledger import EACH, Budget, verify
from discreet.ledger.declarations import scope_of
from discreet.serve.common import PROBLEMS, in_thread, log_of, registry_of, reply, who_of
from discreet.serve.forms import CapForm, TokenForm
from discreet.serve.registry import Registry
from discreet.serve.tokens import MARK, ROLES, Token
from discreet.wire.answer_json import Plain, budget_to_plain

router = APIRouter(prefix="/v1", tags=["owner"], responses=PROBLEMS)


@router.get("/health", tags=["server"])
async def health() -> Response:
    """Whether the server lives. Anybody may ask."""
    return reply({"status": "ok", "version": version("discreet")})


@router.get("/me", tags=["server"])
async def me(request: Request) -> Response:
    """Whose token this is."""
    return reply(token_to_plain(who_of(request)))


@router.get("/metrics", tags=["server"])
async def metrics(request: Request) -> Response:
    """Counters for Prometheus, for owners and auditors: requests, answers by origin, what is left of budgets."""
    _ = who_of(request, "owner", "auditor")
    registry = registry_of(request)
    balances = [(name, registry.books.balance(name, "")) for name in registry.curators]
    left = [(name, one.share_left, float(one.remaining.epsilon)) for name, one in balances]
    return Response(log_of(request).metrics(left), media_type="text/plain; version=0.0.4; charset=utf-8")


@router.get("/tokens")
async def tokens(request: Request) -> Response:
    """All tokens, without their secrets."""
    _ = who_of(request, "owner")
    found = await in_thread(registry_of(request).tokens.list)
    return reply([token_to_plain(token) for token in found])


@router.post("/tokens", status_code=201)
async def create(request: Request, form: TokenForm) -> Response:
    """Create a token. Only this reply contains it."""
    owner, store = who_of(request, "owner"), registry_of(request).tokens
    token = await in_thread(store.create, form.name, form.role, by=owner.name, days=form.days)
    log_of(request).say("token", done="created", prefix=token[len(MARK) :][:8], role=form.role, by=owner.name)
    found = await in_thread(store.find, token)
    return reply(token_to_plain(found) | {"token": token}, 201)


@router.delete("/tokens/{prefix}")
async def revoke(request: Request, prefix: str) -> Response:
    """Revoke a token, for good."""
    owner, store = who_of(request, "owner"), registry_of(request).tokens
    if prefix == owner.prefix:
        raise BadParameter("this is the token that you use. Make another one, and revoke this with it.")
    found = await in_thread(store.revoke, prefix, by=owner.name)
    log_of(request).say("token", done="revoked", prefix=prefix[:8], by=owner.name)
    return reply(token_to_plain(found))


@router.put("/tables/{table}/caps")
async def cap(request: Request, table: str, form: CapForm) -> Response:
    """Set a cap, or raise it if it is there; the ledger keeps who did it and when. A cap is never lowered."""
    owner, registry = who_of(request, "owner"), registry_of(request)
    _ = registry.of(table, owner)
    changed = await in_thread(_cap, registry, table, form, owner)
    return reply(changed)


@router.get("/ledger/head")
async def head(request: Request) -> Response:
    """The last entry of the ledger, to be kept elsewhere: it proves that nothing before it was changed."""
    _ = who_of(request, "owner", "auditor")
    return reply({"head": str(registry_of(request).ledger.head)})


@router.post("/ledger/verify")
async def audit(request: Request) -> Response:
    """Read every entry again: every hash, every cap, every limit."""
    _ = who_of(request, "owner", "auditor")
    return reply(await in_thread(_verified, registry_of(request)))


@router.get("/ledger/holds")
async def holds(request: Request) -> Response:
    """Holds: budget that sessions and releases have set aside and not used."""
    _ = who_of(request, "owner", "auditor")
    found = registry_of(request).ledger.holds
    return reply([{"hold": number, "table": table, "analyst": analyst} for number, (table, analyst) in found.items()])


@router.delete("/ledger/holds/{hold}")
async def close(request: Request, hold: int) -> Response:
    """Give back what was set aside, say by a release that has died. One that still runs is refused its next spend."""
    _ = who_of(request, "owner")
    ledger = registry_of(request).ledger
    if hold not in ledger.holds:
        raise BadParameter(f"hold {hold} is not open. List them: GET /v1/ledger/holds.")
    await in_thread(ledger.close_hold, hold)
    return reply({"closed": hold})


def token_to_plain(token: Token | None) -> Plain:
    """A token as JSON, without its secret."""
    return {} if token is None else asdict(token) | {"roles": list(ROLES)}


def _cap(registry: Registry, table: str, form: CapForm, owner: Token) -> Plain:
    budget = Budget(form.epsilon, form.delta, form.gate)
    people = registry.ledger.sharing(table)
    scope = scope_of(None, people, form.analyst)
    raised = scope in registry.ledger.caps
    change = registry.ledger.raise_cap if raised else registry.ledger.cap
    change(budget, tables=people, analyst=form.analyst, by=owner.name)
    each = form.analyst == EACH
    return {"scope": str(scope), "cap": budget_to_plain(budget), "raised": raised, "each": each}


def _verified(registry: Registry) -> Plain:
    try:
        found = verify(registry.settings.ledger)
    except LedgerDamaged as damage:
        return {"holds": False, "detail": str(damage)}
    return {
        "holds": True,
        "detail": f"This ledger holds: {found.entries:,} entries, every hash and every cap checked.",
        "entries": found.entries,
        "spends": found.spends,
        "answered": found.answered,
        "head": str(found.head),
    }

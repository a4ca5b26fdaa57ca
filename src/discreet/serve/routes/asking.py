"""`plan`, `ask`, `ask_many` and `known`: the curator over HTTP."""

from asyncio import get_running_loop
from collections.abc import Callable

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from discreet.answer import Answer
from discreet.curator import Curator
from discreet.curator.explanation import Plan
from discreet.curator.question import Askable, PreparedQuestion, Unpaid
from discreet.serve.common import (
    PROBLEMS,
    answer_json,
    idempotency_key,
    in_thread,
    log_of,
    registry_of,
    reply,
    request_body,
    require_self,
    who_of,
)
from discreet.serve.forms import AnswerReply, AskForm, AskManyForm, PlanForm, PlanReply
from discreet.serve.middleware import until_quantum
from discreet.serve.spending_history import share_of
from discreet.wire.answer_json import free_to_plain, plan_to_plain
from discreet.wire.question_json import question_from_plain

router = APIRouter(prefix="/v1/tables/{table}", tags=["asking"], responses=PROBLEMS)


@router.post("/ask", response_model=AnswerReply, openapi_extra=request_body(AskForm))
async def ask(request: Request, table: str) -> Response:
    """The answer to a question. A known answer is free and comes at once; a paid one leaves on the quantum.

    An `Idempotency-Key` makes the request safe to repeat: the same key is paid once, and gets the same bytes again.
    """
    who = who_of(request, "owner", "analyst")
    form = AskForm.model_validate_json(request.state.body)
    require_self(who, form.analyst)
    desk, key = registry_of(request).of(table, who), idempotency_key(request)
    # A text is short and often in the cache, so the event loop parses it and checks whether its answer is known. What
    # may take longer (JSON, many numbers, waiting for a lock) is left to another thread.
    asked = _prepared(desk, form, form.question, key) if isinstance(form.question, str) else None
    found = None if asked is None else desk.look(asked, wait=False)
    if isinstance(found, Answer):
        return _answered(request, table, found)

    def known_or_unpaid() -> Response | Unpaid:
        found = desk.look(asked or _prepared(desk, form, question_from_plain(form.question, table=table), key))
        return _answered(request, table, found) if isinstance(found, Answer) else found

    unpaid = found if found is not None and found.looked else await in_thread(known_or_unpaid)
    if isinstance(unpaid, Response):
        return unpaid
    return await on_time(request, table, lambda: _answered(request, table, desk.pay(unpaid)))


def _prepared(desk: Curator, form: AskForm, question: Askable, key: str | None) -> PreparedQuestion:
    return desk.prepare(
        question,
        error=form.error,
        confidence=form.confidence,
        epsilon=form.epsilon,
        joint=form.joint,
        nonnegative=form.nonnegative,
        key=key,
    )


def _answered(request: Request, table: str, answer: Answer) -> Response:
    log_of(request).answered(table, answer.origin)
    return reply(answer_json(answer))


@router.post("/plan", response_model=PlanReply)
async def plan(request: Request, table: str, form: PlanForm) -> Response:
    """What a question would cost, before paying: reads no row and spends nothing."""
    desk = registry_of(request).of(table, who_of(request, "owner", "analyst"))

    def planned() -> Plan:
        question, joint = question_from_plain(form.question, table=table), form.joint
        error, confidence, epsilon = form.error, form.confidence, form.epsilon
        return desk.plan(question, error=error, confidence=confidence, epsilon=epsilon, joint=joint)

    found, gate = await in_thread(planned), registry_of(request).books.balance(table, desk.analyst).gate
    return reply(plan_to_plain(found) | {"share": share_of(gate, gate.charge(found.cost))})


@router.post("/ask-many", response_model=list[AnswerReply])
async def ask_many(request: Request, table: str, form: AskManyForm) -> Response:
    """The answers to several questions, planned together and paid at once: cheaper than one after the other."""
    who = who_of(request, "owner", "analyst")
    require_self(who, form.analyst)
    registry, key = registry_of(request), idempotency_key(request)
    desk = registry.of(table, who)

    def asked() -> Response:
        questions = [question_from_plain(each, table=table) for each in form.questions]
        answers = desk.ask_many(questions, error=form.error, confidence=form.confidence, key=key)
        for answer in answers:
            log_of(request).answered(table, answer.origin)
        return reply([answer_json(answer) for answer in answers])

    return await on_time(request, table, asked)


async def on_time(request: Request, table: str, asked: Callable[[], Response]) -> Response:
    """Make a reply for which rows may be read, on a thread of its own. It leaves on the quantum, also if it fails."""
    registry = registry_of(request)
    try:
        return await get_running_loop().run_in_executor(registry.payers[table], asked)
    finally:
        await until_quantum(request.state.begun, registry.settings.quantum)


@router.get("/known")
async def known(request: Request, table: str, confidence: float = Query(0.95)) -> Response:
    """Sets of columns of which every cell, range and subset is free now, and the error of one cell."""
    desk = registry_of(request).of(table, who_of(request))
    found = await in_thread(desk.known, confidence=confidence)
    return reply([free_to_plain(each) for each in found])

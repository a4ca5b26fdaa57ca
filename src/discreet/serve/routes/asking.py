"""`plan`, `ask`, `ask_many` and `known`: the curator over HTTP."""

from asyncio import get_running_loop
from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from discreet.answer import Answer
from discreet.curator.promise import Plan
from discreet.serve.books import share_of
from discreet.serve.common import (
    PROBLEMS,
    desks_of,
    elsewhere,
    journal_of,
    key_of,
    reply,
    require_self,
    said,
    who_of,
)
from discreet.serve.door import until
from discreet.serve.forms import AnswerReply, AskForm, AskManyForm, PlanForm, PlanReply
from discreet.wire.answer import free_to_plain, plan_to_plain
from discreet.wire.question import question_from_plain

router = APIRouter(prefix="/v1/tables/{table}", tags=["asking"], responses=PROBLEMS)


@router.post("/ask", response_model=AnswerReply)
async def ask(request: Request, table: str, form: AskForm) -> Response:
    """The answer to a question. What is known is free, and told at once; what is paid for leaves on the quantum.

    An `Idempotency-Key` makes the request safe to repeat: the same key is paid once, and gets the same bytes again.
    """
    who = who_of(request, "owner", "analyst")
    require_self(who, form.analyst)
    desks, key = desks_of(request), key_of(request)
    desk = desks.of(table, who)
    wish: dict[str, Any] = {"error": form.error, "confidence": form.confidence, "epsilon": form.epsilon}
    wish |= {"joint": form.joint, "nonnegative": form.nonnegative}

    def answered(found: Answer) -> Response:
        journal_of(request).answered(table, found.origin)
        return reply(said(found))

    def told() -> Response | None:
        found = desk.told(question_from_plain(form.question, table=table), **wish, patient=True, key=key)
        return None if found is None else answered(found)

    def asked() -> Response:
        return answered(desk.ask(question_from_plain(form.question, table=table), **wish, key=key))

    return await elsewhere(told) or await on_time(request, table, asked)


@router.post("/plan", response_model=PlanReply)
async def plan(request: Request, table: str, form: PlanForm) -> Response:
    """What a question would cost, before paying: reads no row and spends nothing."""
    desk = desks_of(request).of(table, who_of(request, "owner", "analyst"))

    def planned() -> Plan:
        question, joint = question_from_plain(form.question, table=table), form.joint
        error, confidence, epsilon = form.error, form.confidence, form.epsilon
        return desk.plan(question, error=error, confidence=confidence, epsilon=epsilon, joint=joint)

    found, gate = await elsewhere(planned), desks_of(request).books.balance(table, desk.analyst).gate
    return reply(plan_to_plain(found) | {"share": share_of(gate, gate.charge(found.cost))})


@router.post("/ask-many", response_model=list[AnswerReply])
async def ask_many(request: Request, table: str, form: AskManyForm) -> Response:
    """The answers to several questions, planned together and paid at once: cheaper than one after the other."""
    who = who_of(request, "owner", "analyst")
    require_self(who, form.analyst)
    desks, key = desks_of(request), key_of(request)
    desk = desks.of(table, who)

    def asked() -> Response:
        questions = [question_from_plain(each, table=table) for each in form.questions]
        answers = desk.ask_many(questions, error=form.error, confidence=form.confidence, key=key)
        for answer in answers:
            journal_of(request).answered(table, answer.origin)
        return reply([said(answer) for answer in answers])

    return await on_time(request, table, asked)


async def on_time(request: Request, table: str, asked: Callable[[], Response]) -> Response:
    """The reply to whatever may read rows, made while others are served; it leaves on the quantum, also if it fails."""
    desks = desks_of(request)
    try:
        return await get_running_loop().run_in_executor(desks.payers[table], asked)
    finally:
        await until(request.state.begun, desks.settings.quantum)


@router.get("/known")
async def known(request: Request, table: str, confidence: float = Query(0.95)) -> Response:
    """Of which columns every cell, range and subset can be answered for free now, and with what error a cell."""
    desk = desks_of(request).of(table, who_of(request))
    found = await elsewhere(desk.known, confidence=confidence)
    return reply([free_to_plain(each) for each in found])

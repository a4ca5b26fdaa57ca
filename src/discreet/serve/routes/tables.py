"""Tables and schemas, budgets and history."""

from collections.abc import Iterator
from json import dumps
from math import prod
from typing import Any, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response, StreamingResponse

from discreet.curator import Curator
from discreet.ledger.accounts import Balance
from discreet.numeric import positive
from discreet.query.statement import shown_values
from discreet.release.report.card import card_columns
from discreet.schema.column import Bins
from discreet.schema.schema import Schema
from discreet.schema.yaml.schema_file import schema_text
from discreet.serve import spending_history
from discreet.serve.common import PROBLEMS, in_thread, may_see, registry_of, reply, who_of
from discreet.serve.forms import LONG
from discreet.serve.tokens import Token
from discreet.wire.answer_json import Plain, budget_to_plain

router = APIRouter(prefix="/v1/tables", tags=["tables"], responses=PROBLEMS)

# The most values of a column that are listed.
MOST_LISTED_VALUES = 500


# The names of routes are those in the OpenAPI document.
@router.get("", name="tables")
async def list_tables(request: Request) -> Response:
    """The tables that may be asked about, each with what is left."""
    registry, who = registry_of(request), who_of(request)
    names = list(registry.curators)
    return reply([_summary(registry.of(name, who)) for name in names])


@router.get("/{table}", name="table")
async def describe_table(request: Request, table: str) -> Response:
    """A table: its columns and their values, whom it protects, and its schema as a file."""
    desk = registry_of(request).of(table, who_of(request))
    schema = desk.table.schema
    return reply(_summary(desk) | {"columns": columns(schema), "schema": public_text(schema)})


@router.get("/{table}/budget")
async def budget(
    request: Request, table: str, error: float = Query(200.0, description="How many more counts with this error?")
) -> Response:
    """What may be spent, what was spent over time and by whom, what is left in words, and what it means to a person.

    All see what is left of a cap that they share, which is what everybody together has not spent; an analyst sees over
    time and by whom only their own spends.
    """
    who, registry = who_of(request), registry_of(request)
    desk = registry.of(table, who)
    half = float(positive("error", error, next_step="Give a half-width, say 200."))
    return reply(await in_thread(_budget, desk, who, half, registry.books))


@router.get("/{table}/history")
async def history(
    request: Request,
    table: str,
    analyst: str | None = Query(None, max_length=LONG),
    text: str | None = Query(None, max_length=LONG, description="Only questions with this in them."),
    before: int | None = Query(None, ge=1, description="Only spends with a smaller number."),
    limit: int = Query(50, ge=1, le=spending_history.MOST_LINES),
    released: bool = Query(False, description="With the recorded bytes."),
) -> Response:
    """What was paid for, the newest first: who asked what, when, what it cost, and its receipt.

    An analyst sees their own; owners and auditors see all. Free answers leave no trace.
    """
    who, registry = who_of(request), registry_of(request)
    _ = registry.of(table, who)
    found = await in_thread(_lines, registry.books, table, who, analyst, text)
    newest = [line for line in reversed(found) if before is None or line.spend.sequence < before]
    gate = registry.books.balance(table, who.name).gate
    rows = [spending_history.line_to_plain(line, gate, released=released) for line in newest[:limit]]
    return reply({"spends": rows, "more": len(newest) > limit, "total": len(found)})


@router.get("/{table}/history/export")
async def export(
    request: Request,
    table: str,
    form: Literal["csv", "jsonl"] = Query("csv"),
    analyst: str | None = Query(None, max_length=LONG),
    text: str | None = Query(None, max_length=LONG),
) -> Response:
    """The whole history as a file: CSV for a spreadsheet, JSON lines with the events for other accountants."""
    who, registry = who_of(request), registry_of(request)
    _ = registry.of(table, who)
    found = await in_thread(_lines, registry.books, table, who, analyst, text)
    gate = registry.books.balance(table, who.name).gate

    def lines() -> Iterator[str]:
        plain = (spending_history.line_to_plain(line, gate, released=form == "jsonl") for line in found)
        return spending_history.csv_of(plain) if form == "csv" else (dumps(row) + "\n" for row in plain)

    kind = "text/csv; charset=utf-8" if form == "csv" else "application/jsonl"
    headers = {"content-disposition": f'attachment; filename="history.{form}"'}
    return StreamingResponse(lines(), media_type=kind, headers=headers)


def columns(schema: Schema) -> list[Plain]:
    """The columns as JSON: kind, number of cells, and values or range."""
    kinds = {each.name: each.kind for each in card_columns(schema.domain)}
    found = []
    for name, column in schema.domain.columns:
        shown = shown_values(column)
        plain: dict[str, Any] = {"name": name, "kind": kinds[name], "cells": column.size, "ordered": column.ordered}
        plain |= {"outside": str(column.outside), "missing": str(column.missing)}
        plain |= {
            "values": [_plain(value) for value in shown[:MOST_LISTED_VALUES]],
            "more": max(0, len(shown) - MOST_LISTED_VALUES),
        }
        for end in ("lower", "upper"):
            if hasattr(column, end):
                plain[end] = _plain(getattr(column, end))
        if isinstance(column, Bins):
            plain["starts"] = [_plain(start) for start in column.starts]
        plain["numeric"] = kinds[name] == "integers"
        found.append(plain)
    return found


def public_text(schema: Schema) -> str:
    """The schema file without its source, which only the owner may see."""
    from dataclasses import replace

    return schema_text(replace(schema, source=None))


def _plain(value: Any) -> Any:
    return value if isinstance(value, bool | int | float | str) or value is None else str(value)


def _summary(desk: Curator) -> Plain:
    schema = desk.table.schema
    return {
        "name": schema.table,
        "version": schema.version,
        "shares_people_with": list(desk.ledger.sharing(schema.table)),
        "protects": schema.unit.describe,
        "neighbors": schema.unit.neighbors,
        "contributions": schema.unit.contributions,
        "columns": len(schema.domain),
        "cells": str(prod(column.size for _, column in schema.domain.columns)),
        "remaining": budget_to_plain(desk.remaining),
        "spent": budget_to_plain(desk.spent),
    }


def _budget(desk: Curator, who: Token, error: float, found: spending_history.SpendingHistory) -> Plain:
    name, contributions = desk.table.name, desk.table.unit.contributions
    mine = found.ledger.balances(table=name, analyst=who.name)
    whole = found.balance(name, who.name)
    seen: list[Balance] = mine if who.role == "analyst" else found.ledger.balances(table=name)
    # An analyst does not see what others did, or when; the totals are in `remaining` and `spent`.
    lines = [line for line in found.lines(name) if may_see(who, line.spend.analyst)]
    return {
        "remaining": budget_to_plain(desk.remaining),
        "spent": budget_to_plain(desk.spent),
        "cap": budget_to_plain(whole.cap),
        "share_left": min(one.share_left for one in mine),
        "words": spending_history.in_words(mine, error=error, contributions=contributions),
        "counts": [
            {"error": each, "counts": min(one.counts_left(error=each, contributions=contributions) for one in mine)}
            for each in _errors(error)
        ],
        "accounts": [spending_history.account_to_plain(one, error=error, contributions=contributions) for one in seen],
        "over_time": spending_history.over_time(lines, whole.gate),
        "by_analyst": spending_history.by_analyst(lines, whole.gate),
        "meaning": spending_history.meaning_of(whole.cap),
        "protects": desk.table.unit.describe,
    }


def _errors(error: float) -> list[float]:
    """Some errors around the one that was named, for a small table."""
    return [error / 4, error / 2, error, 2 * error, 5 * error]


def _lines(
    found: spending_history.SpendingHistory, table: str, who: Token, analyst: str | None, text: str | None
) -> list[spending_history.HistoryLine]:
    mine = who.name if who.role == "analyst" else analyst
    lines = found.lines(table, mine)
    if who.role == "analyst" and analyst not in (None, who.name):
        return []
    wanted = (text or "").lower()
    return [line for line in lines if wanted in line.spend.why.lower()]

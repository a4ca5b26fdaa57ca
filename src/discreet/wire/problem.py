"""Errors over HTTP: problem+json (RFC 9457) with the sentence of the error, and back to the same error."""

from collections.abc import Mapping
from typing import Any

from discreet import errors
from discreet.errors import (
    AnswerLost,
    BudgetExceeded,
    DiscreetError,
    Fault,
    KeyReused,
    LedgerDamaged,
    LedgerFailed,
    Mistake,
    NotAllowed,
    NotFound,
    Refusal,
    ServerFailed,
    TableChanged,
    TooLarge,
    TooMany,
)

TYPE = "application/problem+json"

# The first that fits counts: refusals, mistakes of the caller, faults.
_STATUS: tuple[tuple[type[DiscreetError], int], ...] = (
    (BudgetExceeded, 402),
    (NotAllowed, 403),
    (AnswerLost, 409),
    (KeyReused, 409),
    (TableChanged, 409),
    (TooLarge, 422),
    (TooMany, 429),
    (NotFound, 404),
    (Mistake, 400),
    (Refusal, 403),
    (Fault, 503),
)
_TITLES = {
    BudgetExceeded: "The budget is not enough",
    NotAllowed: "Not allowed",
    AnswerLost: "The answer was lost",
    KeyReused: "The key came before with another question",
    TableChanged: "The table has changed",
    TooLarge: "Too large",
    TooMany: "Too many requests",
    NotFound: "Not found",
    Mistake: "Something to put right",
    Refusal: "Refused",
    Fault: "Something failed; nothing was released",
}


def problem_of(error: DiscreetError, status: int | None = None) -> tuple[int, dict[str, Any]]:
    """The status and the problem for an error.

    >>> problem_of(errors.BadQuery('no column "aeg"; did you mean "age"?'))[1]["detail"]
    'no column "aeg"; did you mean "age"?'
    """
    kind, found = next((kind, status) for kind, status in _STATUS if isinstance(error, kind))
    name = type(error).__name__
    problem = {"type": f"urn:discreet:{name}", "title": _TITLES[kind], "status": status or found, "error": name}
    # What was sent may be quoted, also halves of characters, which no reply can hold.
    return status or found, problem | {"detail": str(error).encode(errors="backslashreplace").decode()}


def for_analyst(error: DiscreetError) -> DiscreetError:
    """The same error with a next step for an analyst: only the owner knows where the ledger is, and can mend it."""
    match error:
        case LedgerDamaged():
            return LedgerDamaged("the ledger is damaged, and nothing is served from it. Tell the data owner.")
        case LedgerFailed():
            return LedgerFailed(
                "the ledger failed, and nothing was released. Ask again in a moment, with the same key if there was "
                "one; if it fails again, tell the data owner."
            )
    return error


def error_from_problem(status: int, problem: Mapping[str, Any]) -> DiscreetError:
    """The error that a problem describes; ServerFailed if it is not a problem of a Discreet server."""
    kind = getattr(errors, str(problem.get("error")), None)
    detail = problem.get("detail")
    if isinstance(kind, type) and issubclass(kind, DiscreetError) and isinstance(detail, str):
        return kind(detail)
    return ServerFailed(
        f"the server answered with status {status}, and not as a Discreet server would. Check the address."
    )

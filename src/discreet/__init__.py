"""A private data curator: exponentially many questions, one privacy budget.

The names below are the public surface. Each loads its module when first used, so that `import discreet` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet import accounting, data, errors, ledger, mechanism, noise, query, schema, source, verify
    from discreet.answer import Answer
    from discreet.client import connect
    from discreet.curator import Curator, Release
    from discreet.data import load_adult
    from discreet.errors import (
        AnswerLost,
        BadData,
        BadParameter,
        BadQuery,
        BadSchema,
        BudgetExceeded,
        DiscreetError,
        Fault,
        KeyReused,
        LedgerDamaged,
        LedgerFailed,
        Mistake,
        NoEntropy,
        NotAllowed,
        NotFound,
        Refusal,
        SealBroken,
        ServerFailed,
        SourceChanged,
        SourceFailed,
        SourceUnavailable,
        TableChanged,
        TooLarge,
        TooMany,
    )
    from discreet.lab import attack
    from discreet.lab.textbook.multiplicative_weights import multiplicative_weights
    from discreet.lab.textbook.mwem import mwem
    from discreet.lab.textbook.pmw import PMW
    from discreet.lab.textbook.small_db import small_db
    from discreet.learn import Holdout, KMeans, Leaderboard
    from discreet.ledger import Budget, Ledger
    from discreet.meaning import explain
    from discreet.oneshot import ask, count, histogram
    from discreet.query import (
        Linear,
        Marginal,
        Predicate,
        Ratio,
        Workload,
        all_subsets,
        col,
        conjunctions,
        everyone,
        marginals,
        monotone_conjunctions,
        point_histogram,
        prefixes,
        ranges,
    )
    from discreet.schema import Bins, Boolean, Categories, Domain, Integers, Schema, Unit
    from discreet.source import Table, open

__version__ = "0.1.0"

# In plain order, capitals first: what is wholly in capitals here is a class like the others.
__all__ = [  # noqa: RUF022
    "Answer",
    "AnswerLost",
    "BadData",
    "BadParameter",
    "BadQuery",
    "BadSchema",
    "Bins",
    "Boolean",
    "Budget",
    "BudgetExceeded",
    "Categories",
    "Curator",
    "DiscreetError",
    "Domain",
    "Fault",
    "Holdout",
    "Integers",
    "KMeans",
    "KeyReused",
    "Leaderboard",
    "Ledger",
    "LedgerDamaged",
    "LedgerFailed",
    "Linear",
    "Marginal",
    "Mistake",
    "NoEntropy",
    "NotAllowed",
    "NotFound",
    "PMW",
    "Predicate",
    "Ratio",
    "Refusal",
    "Release",
    "Schema",
    "SealBroken",
    "ServerFailed",
    "SourceChanged",
    "SourceFailed",
    "SourceUnavailable",
    "Table",
    "TableChanged",
    "TooLarge",
    "TooMany",
    "Unit",
    "Workload",
    "accounting",
    "all_subsets",
    "ask",
    "attack",
    "col",
    "conjunctions",
    "connect",
    "count",
    "data",
    "errors",
    "everyone",
    "explain",
    "histogram",
    "ledger",
    "load_adult",
    "marginals",
    "mechanism",
    "monotone_conjunctions",
    "multiplicative_weights",
    "mwem",
    "noise",
    "open",
    "point_histogram",
    "prefixes",
    "query",
    "ranges",
    "schema",
    "small_db",
    "source",
    "verify",
]

# Rooms that users open themselves; the others are imported by those who change Discreet.
_ROOMS = {"attack": "lab.attack"}
_ROOMS |= {name: name for name in ("accounting", "data", "errors", "ledger", "mechanism", "noise")}
_ROOMS |= {name: name for name in ("query", "schema", "source", "verify")}
_HOMES = {
    "answer": "Answer",
    "client": "connect",
    "curator": "Curator Release",
    "data": "load_adult",
    "errors": "AnswerLost BadData BadParameter BadQuery BadSchema BudgetExceeded DiscreetError Fault KeyReused "
    "LedgerDamaged LedgerFailed Mistake NoEntropy NotAllowed NotFound Refusal SealBroken ServerFailed SourceChanged "
    "SourceFailed SourceUnavailable TableChanged TooLarge TooMany",
    "learn": "Holdout KMeans Leaderboard",
    "ledger": "Budget Ledger",
    "meaning": "explain",
    "lab.textbook.multiplicative_weights": "multiplicative_weights",
    "oneshot": "ask count histogram",
    "query": "Linear Marginal Predicate Ratio Workload all_subsets col conjunctions everyone marginals "
    "monotone_conjunctions point_histogram prefixes ranges",
    "lab.textbook.mwem": "mwem",
    "lab.textbook.small_db": "small_db",
    "schema": "Bins Boolean Categories Domain Integers Schema Unit",
    "lab.textbook.pmw": "PMW",
    "source": "Table open",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"discreet.{_ROOMS[name]}")
    if name in _HOME:
        return getattr(import_module(f"discreet.{_HOME[name]}"), name)
    raise AttributeError(f"module 'discreet' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])

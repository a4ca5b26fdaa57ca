"""A private data curator: exponentially many questions, one privacy budget.

The names below are the public surface. Each loads its module when first used, so that `import discreet` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet import (
        curator,
        data,
        errors,
        known,
        ledger,
        mechanism,
        noise,
        plan,
        privacy,
        query,
        schema,
        source,
        verify,
    )
    from discreet.answer import Answer
    from discreet.curator import Curator
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
        Refusal,
        SealBroken,
        SourceFailed,
        TooLarge,
    )
    from discreet.ledger import Budget, Ledger
    from discreet.meaning import explain
    from discreet.once import ask, count, histogram
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

__all__ = [
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
    "Integers",
    "KeyReused",
    "Ledger",
    "LedgerDamaged",
    "LedgerFailed",
    "Linear",
    "Marginal",
    "Mistake",
    "NoEntropy",
    "Predicate",
    "Ratio",
    "Refusal",
    "Schema",
    "SealBroken",
    "SourceFailed",
    "Table",
    "TooLarge",
    "Unit",
    "Workload",
    "all_subsets",
    "ask",
    "col",
    "conjunctions",
    "count",
    "curator",
    "data",
    "errors",
    "everyone",
    "explain",
    "histogram",
    "known",
    "ledger",
    "load_adult",
    "marginals",
    "mechanism",
    "monotone_conjunctions",
    "noise",
    "open",
    "plan",
    "point_histogram",
    "prefixes",
    "privacy",
    "query",
    "ranges",
    "schema",
    "source",
    "verify",
]

_STAGES = ["errors", "schema", "query", "privacy", "noise", "source", "data", "mechanism", "verify"]
_STAGES += ["known", "plan", "ledger", "curator"]
_HOMES = {
    "answer": "Answer",
    "curator": "Curator",
    "data": "load_adult",
    "errors": "AnswerLost BadData BadParameter BadQuery BadSchema BudgetExceeded DiscreetError Fault KeyReused "
    "LedgerDamaged LedgerFailed Mistake NoEntropy Refusal SealBroken SourceFailed TooLarge",
    "ledger": "Budget Ledger",
    "meaning": "explain",
    "once": "ask count histogram",
    "query": "Linear Marginal Predicate Ratio Workload all_subsets col conjunctions everyone marginals "
    "monotone_conjunctions point_histogram prefixes ranges",
    "schema": "Bins Boolean Categories Domain Integers Schema Unit",
    "source": "Table open",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name in _STAGES:
        return import_module(f"discreet.{name}")
    if name in _HOME:
        return getattr(import_module(f"discreet.{_HOME[name]}"), name)
    raise AttributeError(f"module 'discreet' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])

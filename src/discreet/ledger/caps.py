"""All caps of a ledger, and which of them a spend must fit."""

from collections.abc import Iterator, Mapping

from discreet.ledger.scope import Scope
from discreet.privacy.gate import Gate, Grains

Accounts = tuple[tuple[Scope, Gate], ...]
# What an event costs in each currency that some cap over it counts in.
Charge = Mapping[str, Grains]

# The answers that are remembered; a ledger has few tables, and analysts come and go.
_REMEMBERED = 10_000


class Caps(Mapping[Scope, Gate]):
    """The gate of each scope that has one. Never changed: a new cap makes a new collection."""

    __slots__ = ("_gates", "_over")

    def __init__(self, gates: Mapping[Scope, Gate] | None = None) -> None:
        self._gates = dict(gates or {})
        self._over: dict[tuple[str, str], Accounts] = {}

    def __getitem__(self, scope: Scope) -> Gate:
        return self._gates[scope]

    def __iter__(self) -> Iterator[Scope]:
        return iter(self._gates)

    def __len__(self) -> int:
        return len(self._gates)

    def with_cap(self, scope: Scope, gate: Gate) -> "Caps":
        """These and one more, or one instead of the one before."""
        return Caps({**self._gates, scope: gate})

    def stands_for(self, scope: Scope, analyst: str) -> bool:
        """Whether this cap limits this analyst: what an analyst was given in person replaces what each is given."""
        mine = scope.of(analyst)
        return mine is scope or mine not in self._gates

    def over(self, table: str, analyst: str) -> Accounts:
        """Every account that a spend must fit."""
        found = self._over.get((table, analyst))
        if found is None:
            found = tuple(
                (scope.of(analyst), gate)
                for scope, gate in self._gates.items()
                if scope.covers(table, analyst) and self.stands_for(scope, analyst)
            )
            if len(self._over) >= _REMEMBERED:
                self._over.clear()
            self._over[table, analyst] = found
        return found


def covered(people: frozenset[str], accounts: Accounts) -> bool:
    """Whether one of these accounts counts all of these tables, and all analysts, together."""
    return any(covers(scope, people) for scope, _ in accounts)


def covers(scope: Scope, people: frozenset[str]) -> bool:
    """Whether a cap of this scope counts all of these tables, and all analysts, together."""
    return scope.analyst is None and (scope.tables is None or people <= set(scope.tables))

"""Which spends a cap counts: those about some tables, or all; those of one analyst, of each, or of all together."""

from typing import NamedTuple

# A cap that every analyst has on their own.
EACH = "*"


class Scope(NamedTuple):
    """The tables and the analyst whose spends are added up; None means all of them, together.

    >>> print(Scope(("people",), "ana"))
    analyst "ana", table "people"
    """

    tables: tuple[str, ...] | None = None
    analyst: str | None = None

    def covers(self, table: str, analyst: str) -> bool:
        """Whether a spend about this table by this analyst counts here."""
        return (self.tables is None or table in self.tables) and self.analyst in (None, EACH, analyst)

    def of(self, analyst: str) -> "Scope":
        """The account of this analyst: the scope itself, unless each analyst has one."""
        return self._replace(analyst=analyst) if self.analyst == EACH else self

    def __str__(self) -> str:
        who = {None: [], EACH: ["each analyst"]}.get(self.analyst, [f'analyst "{self.analyst}"'])
        if self.tables is None:
            return ", ".join(who) or "everything"
        names = ", ".join(f'"{name}"' for name in self.tables)
        return ", ".join([*who, f"table{'s' * (len(self.tables) > 1)} {names}"])

"""A model that is checked at every answer: what it is for, how it is made, and how many hits it may still have."""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from discreet.mechanism.model_coin import ModelCoin, model_coin
from discreet.plan.build import Built

# The log-odds of a check fall by so much from an answer that is right to one that is off by the whole error.
STEEPNESS = 34
# Of the failures that are allowed, this share is for answers that pass the check, the rest for those measured on a hit.
PASSED = Fraction(9, 10)


@dataclass(frozen=True)
class Session:
    """Model and coin: every answer of the model is checked with a coin, and only hits cost.

    `error` and `confidence` are what each answer keeps; `rows` is how many rows a person may have. Without `built` the
    attempt was given up: no model fits well enough.
    """

    error: Fraction
    confidence: Fraction
    rows: int
    hits_left: int
    built: Built | None

    @cached_property
    def coin(self) -> ModelCoin:
        """The check of one answer."""
        return model_coin(
            steepness=STEEPNESS / self.error,
            sensitivity=self.rows,
            error=self.error,
            confidence=1 - PASSED * (1 - self.confidence),
        )

    @property
    def after_hit(self) -> float:
        """The confidence with which a question is measured that the model did not answer."""
        return float(1 - (1 - PASSED) * (1 - self.confidence))

    @property
    def open(self) -> bool:
        """Whether it may still answer."""
        return self.built is not None and self.hits_left > 0

    def after_one(self, now: "Session | None") -> "Session | None":
        """What a hit of this session makes of the one that there is `now`; None if that is another."""
        if now is None or (now.error, now.confidence, now.rows) != (self.error, self.confidence, self.rows):
            return None
        return replace(now, hits_left=max(0, now.hits_left - 1))

    def keeps(self, error: float, confidence: float) -> bool:
        """Whether its answers are as good as somebody wants them."""
        return self.open and float(self.error) <= error and float(self.confidence) >= confidence


def session_to_plain(session: Session) -> dict[str, Any]:
    """A session as plain values."""
    built = session.built
    return {
        "error": str(session.error),
        "confidence": str(session.confidence),
        "rows": session.rows,
        "hits_left": session.hits_left,
        "model": None if built is None else [built.kind, list(built.columns), [list(scope) for scope in built.scopes]],
    }


def session_from_plain(plain: Any) -> Session:
    """The session that `session_to_plain` wrote.

    >>> one = Session(Fraction(100), Fraction(99, 100), 1, 3, Built("tree", ("a", "b"), (("a", "b"),)))
    >>> session_from_plain(session_to_plain(one)) == one
    True
    """
    built = None
    if plain["model"] is not None:
        kind, columns, scopes = plain["model"]
        built = Built(kind, tuple(columns), tuple(map(tuple, scopes)))
    return Session(Fraction(plain["error"]), Fraction(plain["confidence"]), plain["rows"], plain["hits_left"], built)

"""The secret part of a holdout or a leaderboard: comparisons with held rows, paid at the start. Proofs: holdout.md"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from math import floor
from threading import RLock
from typing import NoReturn

from discreet.errors import BadParameter, Refusal, SealBroken
from discreet.learn.design import Design
from discreet.ledger import Ledger
from discreet.ledger.ledger import ANYONE
from discreet.mechanism.model_coin import ModelCoin
from discreet.mechanism.sparse_vector import Run
from discreet.parameter import Number, positive, probability, text
from discreet.privacy.event import Nothing
from discreet.privacy.gate import Gate, gaussian_gate, pure_gate, renyi_gate
from discreet.schema.identity import Identity
from discreet.schema.unit import Unit
from discreet.session.design import gate_for
from discreet.source.exact import Exact

# The first line of the bytes; others may keep other things in the same ledger.
MAGIC = b"discreet holdout 1\n"


class Account:
    """Who pays: a table in a ledger, or, without one, nobody but this process."""

    def __init__(self, ledger: Ledger | str | os.PathLike[str] | None, table: str, analyst: str = ANYONE) -> None:
        self.table, self.analyst = text("table", table), text("analyst", analyst)
        # One held row is replaced by another: what else is paid for under this name must be so too.
        self._identity = Identity(self.table, Unit(neighbors="replace_one"))
        self._owned = ledger is not None and not isinstance(ledger, Ledger)
        self.ledger = ledger if ledger is None or isinstance(ledger, Ledger) else Ledger(ledger)

    def gates(self, epsilon: Number, delta: Number | None) -> tuple[Gate, ...]:
        """In which currencies the price may be met: on a ledger, that of the narrowest budget over the whole table."""
        price = positive("epsilon", epsilon)
        if self.ledger is None:
            if delta is None:
                return (pure_gate(price),)
            chance = probability("delta", delta)
            return pure_gate(price), gaussian_gate(price, chance), renyi_gate(price, chance)
        if delta is not None:
            raise BadParameter(f"delta is {delta}, and the ledger has its own. Leave it out.")
        over = [
            one for one in self.ledger.balances(table=self.table, analyst=self.analyst) if one.scope.analyst is None
        ]
        if not over:
            # Says how to set one.
            self.ledger.remaining(table=self.table, analyst=self.analyst)
        return (gate_for(min(over, key=lambda one: len(one.scope.tables or ()) or 10**9).gate, price),)

    def carried(self, reopen: bool) -> float:
        """ln of the number of transcripts that earlier sessions on the same rows may have had, as they said."""
        if self.ledger is None:
            if reopen:
                raise BadParameter("reopen is True, and without a ledger nothing is known of earlier sessions.")
            return 0.0
        before = [entry.released for entry in self.ledger.entries() if (entry.released or b"").startswith(MAGIC)]
        said = [json.loads(released[len(MAGIC) :]) for released in before if released]
        opened = [one for one in said if one["table"] == self.table and "nats" in one]
        if opened and not reopen:
            raise Refusal(
                f'the held rows "{self.table}" were used before, in {len(opened)} session(s), and what was learnt '
                "there makes every interval wider. Say reopen=True to pay for a new session with such intervals, or "
                "hold out fresh rows under another name."
            )
        if reopen and not opened:
            raise BadParameter(f'no session on "{self.table}" is in this ledger. Leave out reopen=True.')
        return float(opened[-1]["nats"]) if opened else 0.0

    def open(self, design: Design, why: str, nats: float) -> None:
        """Pay for everything, durably; only then may a held row be read."""
        if self.ledger is not None:
            receipt = self.ledger.spend(design.event, why, table=self._identity, analyst=self.analyst)
            self.ledger.record(receipt, self._said(opened=why, nats=nats))

    def keep(self, why: str, **said: object) -> None:
        """Record what is about to be told; it was paid for when the session opened."""
        if self.ledger is not None:
            receipt = self.ledger.spend(Nothing(), why, table=self._identity, analyst=self.analyst)
            self.ledger.record(receipt, self._said(**said))

    def close(self) -> None:
        """Give back the ledger's files if they were opened here."""
        if self._owned and self.ledger is not None:
            self.ledger.close()

    def _said(self, **said: object) -> bytes:
        return MAGIC + json.dumps({"table": self.table, **said}).encode()


class Checks:
    """Comparisons of sealed sums with public guesses; a hit tells the sum with noise, and there are only so many hits.

    What is secret, the noisy threshold, and what is limited, the hits, are in this object alone: it is in no file, and
    cannot be copied, pickled or forked. `most` is as large as any sum.
    """

    def __init__(self, design: Design, what: str, *, most: int) -> None:
        self.design, self.what, self._most = design, what, most
        self.lock, self._process, self._reading = RLock(), os.getpid(), False
        self._value, self._runs_left = design.value(), design.runs - 1
        self._coins = None if design.log_odds is None else (design.coin(), design.coin(shift=most))
        # A coin has no threshold to hide, and the same number of hits.
        self._run: Run | None = Run(design.hits, 0) if self._coins else self._started()

    @property
    def left(self) -> int:
        """How many hits there may still be."""
        return 0 if self._run is None else self._run.hits_left + self._runs_left * self.design.hits

    @property
    def is_open(self) -> bool:
        """Whether its threshold is still there; it is gone after `close`, or a step that was interrupted."""
        return self._run is not None

    def close(self) -> None:
        """Forget the threshold."""
        with self.lock:
            self.require_not_reading()
            self._run, self._runs_left = None, 0

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Held rows are read: a statistic that asks meanwhile is refused, and if this ends early, all is over."""
        run, self._run, self._reading = self._run, None, True
        try:
            yield
        finally:
            self._reading = False
        self._run = run

    def apart(self, above: Exact, below: Exact, guess: int) -> int | None:
        """The sum with fresh noise if it is off the guess by more than the threshold, about; otherwise None."""
        if self._coins:
            return self._tossed(self._coins[0], above, guess)
        found = self._stepped(above, guess)
        if found is None and (found := self._stepped(below, -guess)) is not None:
            return -found
        return found

    def above(self, exact: Exact, guess: int) -> int | None:
        """The sum with fresh noise if it is above the guess by more than the threshold, about; otherwise None."""
        if self._coins:
            # Measured from below every sum, one can only be off by being larger.
            return self._tossed(self._coins[1], exact, guess - self._most)
        return self._stepped(exact, guess)

    def _tossed(self, coin: ModelCoin, exact: Exact, guess: int) -> int | None:
        # Used once: if anything fails from here on, it is over.
        run, self._run = self._run, None
        assert run is not None, "there are hits left"
        if not coin.toss(exact, guess):
            self._run = run
            return None
        assert self._value is not None, "a coin tells no value"
        told = int(self._value.release(exact)[0])
        self._run = replace(run, hits_left=run.hits_left - 1)
        return told

    def _stepped(self, exact: Exact, guess: int) -> int | None:
        """The guess is public, so it is added to the threshold instead of taken from the sum, which stays sealed."""
        # Used once: if anything fails from here on, the run is over.
        run, self._run = self._run, None
        assert run is not None, "there are hits left"
        after, answer = self._comparison.step(replace(run, noisy_threshold=run.noisy_threshold + guess), exact)
        if answer is None or answer is False:
            self._run = run
            return None
        # The values of a run of one hit are told after its end: one after the other, not beside each other.
        told = int(answer) if self._value is None else int(self._value.release(exact)[0])
        if after.hits_left or not self._runs_left:
            self._run = replace(after, noisy_threshold=run.noisy_threshold)
        else:
            self._run, self._runs_left = self._comparison.init(), self._runs_left - 1
        return told

    def _started(self) -> Run:
        self._comparison = self.design.comparison()
        return self._comparison.init()

    def taken(self) -> Run | None:
        """The threshold, taken away while something is recorded: if that fails, nothing goes on."""
        run, self._run = self._run, None
        return run

    def put_back(self, run: Run | None) -> None:
        """The threshold, as it was taken."""
        self._run = run

    def require_not_reading(self) -> None:
        """Refuse a statistic that, while it judges held rows, asks or ends the session that calls it."""
        if self._reading:
            raise Refusal(
                f"this {self.what} is reading its rows for a question. Ask the next when that is answered, and not in "
                "a statistic."
            )

    def require_own_process(self) -> None:
        """Refuse a forked child."""
        if os.getpid() != self._process:
            raise Refusal(
                f"this {self.what} belongs to another process, from which this one was forked: two that share its "
                "secret threshold are no longer private. Ask in the process that opened it."
            )

    def _refuse_copy(self, *_: object) -> NoReturn:
        raise SealBroken(
            f"a {self.what} holds a secret threshold and cannot be copied or pickled: two that share it are one run "
            "asked twice, which no proof covers. Ask in the process that opened it; scikit-learn with n_jobs=1."
        )

    __reduce__ = __reduce_ex__ = __copy__ = __deepcopy__ = __getstate__ = _refuse_copy


def steps_of(mean_numerator: int, mean_denominator: int, rows: int) -> int:
    """A mean, as a sum over so many rows, rounded to a whole number.

    >>> steps_of(7, 2, 10)
    35
    """
    return floor(2 * mean_numerator * rows + mean_denominator) // (2 * mean_denominator)

"""Secret comparisons of held rows with public guesses, for a holdout or a leaderboard. Proofs: holdout.md"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from math import floor
from threading import RLock
from typing import NoReturn

from discreet.errors import Refusal, SealBroken
from discreet.learn.holdout.comparison_design import ComparisonDesign
from discreet.mechanism.model_coin import ModelCoin
from discreet.mechanism.sparse_vector import Run
from discreet.source.source import Exact


class Comparisons:
    """Compares sealed sums with public guesses; a hit releases the sum with noise, and the number of hits is limited.

    The secret noisy threshold and the count of hits are in this object alone: they are in no file, and the object
    cannot be copied, pickled or forked. `most` is an upper bound of every sum.
    """

    def __init__(self, design: ComparisonDesign, what: str, *, most: int) -> None:
        self.design, self.what, self._most = design, what, most
        self.lock, self._process, self._reading = RLock(), os.getpid(), False
        self._value, self._runs_left = design.value(), design.runs - 1
        self._coins = None if design.log_odds is None else (design.coin(), design.coin(shift=most))
        # A coin has no threshold to hide, and the same number of hits.
        self._run: Run | None = Run(design.hits, 0) if self._coins else self._start()

    @property
    def left(self) -> int:
        """The number of hits that are left."""
        return 0 if self._run is None else self._run.hits_left + self._runs_left * self.design.hits

    @property
    def is_open(self) -> bool:
        """Whether it still has its threshold; `close` and an interrupted step delete it."""
        return self._run is not None

    def close(self) -> None:
        """Forget the threshold."""
        with self.lock:
            self.require_not_reading()
            self._run, self._runs_left = None, 0

    @contextmanager
    def reading(self) -> Iterator[None]:
        """While held rows are read, a statistic that asks is refused; an exception within ends the session."""
        run, self._run, self._reading = self._run, None, True
        try:
            yield
        finally:
            self._reading = False
        self._run = run

    def value_if_different(self, above: Exact, below: Exact, guess: int) -> int | None:
        """The sum with fresh noise if, up to noise, it differs from the guess by more than the threshold; else None."""
        if self._coins:
            return self._toss(self._coins[0], above, guess)
        found = self._step(above, guess)
        if found is None and (found := self._step(below, -guess)) is not None:
            return -found
        return found

    def value_if_above(self, exact: Exact, guess: int) -> int | None:
        """The sum with fresh noise if, up to noise, it is above the guess by more than the threshold; else None."""
        if self._coins:
            # A guess below every sum makes the coin one-sided.
            return self._toss(self._coins[1], exact, guess - self._most)
        return self._step(exact, guess)

    def _toss(self, coin: ModelCoin, exact: Exact, guess: int) -> int | None:
        # If anything fails from here on, the session is over.
        run, self._run = self._run, None
        assert run is not None, "there are hits left"
        if not coin.toss(exact, guess):
            self._run = run
            return None
        assert self._value is not None, "a coin releases no value itself"
        value = int(self._value.release(exact)[0])
        self._run = replace(run, hits_left=run.hits_left - 1)
        return value

    def _step(self, exact: Exact, guess: int) -> int | None:
        """The guess is public, so it is added to the threshold instead of taken from the sum, which stays sealed."""
        # If anything fails from here on, the run is over.
        run, self._run = self._run, None
        assert run is not None, "there are hits left"
        after, answer = self._comparison.step(replace(run, noisy_threshold=run.noisy_threshold + guess), exact)
        if answer is None or answer is False:
            self._run = run
            return None
        # The value of a run of one hit is released after the run: they compose sequentially.
        value = int(answer) if self._value is None else int(self._value.release(exact)[0])
        if after.hits_left or not self._runs_left:
            self._run = replace(after, noisy_threshold=run.noisy_threshold)
        else:
            self._run, self._runs_left = self._comparison.init(), self._runs_left - 1
        return value

    def _start(self) -> Run:
        self._comparison = self.design.comparison()
        return self._comparison.init()

    def take(self) -> Run | None:
        """Take the threshold away while a hit is recorded: if that fails, the session is over."""
        run, self._run = self._run, None
        return run

    def put_back(self, run: Run | None) -> None:
        """Put the threshold back after the hit was recorded."""
        self._run = run

    def require_not_reading(self) -> None:
        """Raise if a statistic, while it scores held rows, asks or closes the session that calls it."""
        if self._reading:
            raise Refusal(
                f"this {self.what} is reading its rows for a question. Ask the next one after that is answered, and "
                "not within a statistic."
            )

    def require_own_process(self) -> None:
        """Raise in a forked child."""
        if os.getpid() != self._process:
            raise Refusal(
                f"this {self.what} belongs to another process, from which this one was forked: two processes that "
                "share its secret threshold are no longer private. Ask in the process that opened it."
            )

    def _refuse_copy(self, *_: object) -> NoReturn:
        raise SealBroken(
            f"a {self.what} holds a secret threshold and cannot be copied or pickled: no proof covers two copies that "
            "share it. Ask in the process that opened it; use scikit-learn with n_jobs=1."
        )

    __reduce__ = __reduce_ex__ = __copy__ = __deepcopy__ = __getstate__ = _refuse_copy


def steps_of(mean_numerator: int, mean_denominator: int, rows: int) -> int:
    """A mean as a sum over `rows` rows, rounded to a whole number.

    >>> steps_of(7, 2, 10)
    35
    """
    return floor(2 * mean_numerator * rows + mean_denominator) // (2 * mean_denominator)

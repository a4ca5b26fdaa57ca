"""Stakes: the budget of the next failed check of a model, reserved before the check is run.

So no failed check is ever seen that was not paid for. Proof: model_coin.md §3
"""

import os
from dataclasses import dataclass, replace

from discreet.accounting.event import Compose, Event
from discreet.accounting.filter import FULL_TICKS
from discreet.curator.executor import Executor
from discreet.errors import Refusal
from discreet.mechanism.model_coin import ModelCoin

OPENING_REASON = "a model answers, and a coin checks it"
_NEXT = "the next failed check"


@dataclass(frozen=True, slots=True)
class Stake:
    """A hit and its measurement, set aside by one process for one analyst before a coin is tossed.

    It is `unused` as long as every toss under it is known to have passed.
    """

    number: int
    price: Event
    process: int
    unused: bool = True


class Stakes:
    """The stakes of this process, at most one for each analyst.

    A toss may show in an answer, in an error, or in a missing reply. So `begin` is called before it, and `passed`
    only after it is known to have passed. Whatever goes wrong between them, nothing is tossed under that stake again,
    and it is paid and not given back.
    """

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        self._stakes: dict[str, Stake] = {}
        # The openings of coins that were paid here.
        self.opened: list[Event] = []

    def own(self, price: Event, analyst: str) -> Stake | None:
        """The stake of this price under which this process may toss for an analyst, if there is one."""
        stake = self._stakes.get(analyst)
        if stake is None or not stake.unused or stake.process != os.getpid() or stake.price != price:
            return None
        return stake if stake.number in self.executor.ledger.stakes else None

    def payable(self, coin: ModelCoin, price: Event, analyst: str) -> bool:
        """Whether a coin may be tossed for an analyst, or could be with what is left."""
        return self.own(price, analyst) is not None or self._fits(coin, price, analyst)

    def take(self, coin: ModelCoin, price: Event, analyst: str) -> Stake | None:
        """A stake of this price, durable, with the coin opened for the analyst; None if it cannot be paid."""
        stake = self.own(price, analyst)
        if stake is not None:
            return stake
        # A stake of another session, or of a toss that failed: its outcome may have been seen, so it is paid now.
        self.close(analyst)
        executor = self.executor
        if not self._fits(coin, price, analyst):
            return None
        try:
            for opening in self._unopened(coin, analyst):
                executor.note(None, opening, OPENING_REASON, analyst=analyst)
                self.opened.append(opening)
            number = executor.reserve(price, _NEXT, analyst=analyst, stake=True)
        except Refusal:
            return None
        self._stakes[analyst] = stake = Stake(number, price, os.getpid())
        executor.refresh()
        return stake

    def begin(self, analyst: str) -> None:
        """A coin is tossed now: until it is known to have passed, it may have hit."""
        self._stakes[analyst] = replace(self._stakes[analyst], unused=False)

    def passed(self, analyst: str) -> None:
        """The toss passed, and the stake is as it was before."""
        self._stakes[analyst] = replace(self._stakes[analyst], unused=True)

    def close(self, analyst: str | None = None) -> None:
        """Give back what is unused, and pay what may have been used."""
        # No coin may be tossed meanwhile.
        with self.executor.paying:
            for name in [analyst] if analyst is not None else list(self._stakes):
                stake = self._stakes.get(name)
                # After a fork the stake belongs to the parent.
                if stake is not None and stake.process == os.getpid():
                    self.executor.ledger.close_hold(stake.number, unused=stake.unused)
                self._stakes.pop(name, None)

    def _fits(self, coin: ModelCoin, price: Event, analyst: str) -> bool:
        return self.executor.fits(Compose((*self._unopened(coin, analyst), price)), analyst)

    def _unopened(self, coin: ModelCoin, analyst: str) -> tuple[Event, ...]:
        """The opening of a coin, unless every account over the analyst has paid it.

        The analyst who opens a session pays the opening in the accounts over them; others have accounts of their own.
        An order that it closes stays closed, whatever its limit is raised to.
        """
        for account in self.executor.accounts(analyst):
            closing = account.gate.charge(coin.opening)
            if any(price == FULL_TICKS > have for price, have in zip(closing, account.spent_ticks, strict=True)):
                return (coin.opening,)
        return ()

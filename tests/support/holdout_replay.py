"""Sessions of a holdout or a leaderboard with the noise frozen: all that is paid, drawn, recorded and told is heard."""

from functools import partial
from uuid import uuid4

import numpy as np
import pytest

from discreet import noise
from discreet.learn.holdout.holdout import Holdout
from discreet.learn.holdout.leaderboard import Leaderboard
from discreet.ledger import Budget
from support.neighbours import HeardLedger, Release, Session, listening, told

COINS = Budget(epsilon=300, delta=1e-6, gate="renyi")
BUDGETS = [Budget(epsilon=300), Budget(epsilon=300, delta=1e-6), COINS]


def heard_coin(session, rng, first, heads):
    """A toss is heard; in a second session it falls as it did in the first."""
    session.calls.append(("toss",))
    place = len(session.tosses)
    if first is None:
        session.tosses.append(rng.random() < float(heads().mid()))
    else:
        session.tosses.append(first.tosses[place] if place < len(first.tosses) else False)
    return session.tosses[-1]


def heard_session(train, held, asked, *, folder, budget, seed=0, first=None, board=False, rows_per_call=1):
    session, rng = Session(), np.random.default_rng(seed)
    # A threshold is drawn before anything is opened.
    session.releases.append(Release([], None, ()))
    session.tosses = []
    with (
        listening(session, rng, first),
        pytest.MonkeyPatch.context() as patch,
        HeardLedger(folder / f"{uuid4().hex}.sqlite") as ledger,
    ):
        patch.setattr(noise, "coin", partial(heard_coin, session, rng, first))
        ledger.session = session
        ledger.cap(budget, table="held")
        method = "coin" if budget is COINS else "best"
        named = {"epsilon": 250, "ledger": ledger, "table": "held", "method": method, "rows_per_call": rows_per_call}
        if board:
            desk = Leaderboard(held, submissions=50, step=0.1, **named)
            ask = desk.submit
        else:
            desk = Holdout(train, held, queries=50, checks=6, threshold=0.1, **named)
            ask = desk.estimate
        for question in asked:
            if hasattr(question, "meets"):
                question.meets(desk)
            try:
                outcome = told(ask(question))
            except BaseException as heard:
                outcome = f"{type(heard).__name__}: {heard}"
            session.calls.append(("outcome", outcome, repr(desk)))
    return session


def scripts(steps, hits, values):
    """Every script of so many comparisons with at most so many hits, ending at the last."""

    def go(script, left):
        if left == 0 or len(script) == steps:
            yield script
            return
        for answer in (None, *values):
            yield from go((*script, answer), left - (answer is not None))

    yield from go((), hits)

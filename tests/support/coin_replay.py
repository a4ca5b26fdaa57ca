"""Record and replay of sessions with a model: tosses and selections are heard and repeated too.

As in neighbours.py: on the second table every release is what the first's was, so the curator must do exactly the
same. Of each toss its log-odds are kept on both tables, computed from the true value that was opened.
"""

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import inf
from uuid import uuid4

import numpy as np
import pytest
from flint import arb

import discreet.curator.records
import discreet.mechanism.calibration
from discreet import noise
from discreet.accounting.event import Coin
from discreet.accounting.filter import TICK
from discreet.accounting.renyi_dp import ORDERS, bounded_range_divergence, hit_divergence
from discreet.curator import Curator
from discreet.numeric import precision
from discreet.source.source import unseal
from support.model_sessions import HeardLedger
from support.neighbours import HeardTable, Session, differences, listening, outcome


@dataclass
class Toss:
    """A toss: its log-odds, what they may move by, and what came."""

    log_odds: arb
    steepness: Fraction
    hit: bool = False


@dataclass
class Replayed(Session):
    """A session, with its tosses and the places that were chosen."""

    tosses: list[Toss] = field(default_factory=list)
    chosen: list[int] = field(default_factory=list)
    races: list[tuple[int, Fraction]] = field(default_factory=list)
    ticks: tuple[int, ...] = ()


def log_odds_of(coin, exact, expected):
    """The log-odds of the toss that a coin would make now, of its own rows."""
    heard = []

    def instead(chance):
        # Far from the threshold one side of a coin is very unlikely.
        with precision(4096):
            heads = chance()
            heard.append((heads / (1 - heads)).log())
        return False

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(discreet.mechanism.calibration, "unseal", unseal)
        patch.setattr(noise, "coin", instead)
        coin.toss(exact, expected)
    (odds,) = heard
    assert odds.is_finite()
    return odds


@contextmanager
def listening_to_coins(session, rng, first=None):
    """Hear also tosses and selections; with a `first` session, repeat its own."""
    right = discreet.curator.records.model_coin

    def model_coin(**named):
        coin = right(**named)

        def toss(exact, expected):
            session.calls.append(("toss", coin.hit, coin.threshold, expected))
            session.tosses.append(Toss(log_odds_of(coin, exact, expected), coin.hit.log_odds))
            return coin.toss(exact, expected)

        return replace(coin, toss=toss)

    def coin(chance):
        session.calls.append(("draw", "coin"))
        place = len(session.tosses) - 1
        if first is None:
            hit = bool(rng.random() < float(chance().mid()))
        else:
            hit = place < len(first.tosses) and first.tosses[place].hit
        session.tosses[place].hit = hit
        return hit

    def gumbel_race(scores, rate):
        session.calls.append(("draw", "gumbel_race", rate, len(scores)))
        place = len(session.chosen)
        if first is None:
            chosen = int(np.argmax(np.asarray(scores) * float(rate) + rng.gumbel(size=len(scores))))
        else:
            chosen = first.chosen[place] if place < len(first.chosen) else 0
        session.chosen.append(chosen)
        session.races.append((len(session.releases) - 1, Fraction(rate)))
        return chosen

    with listening(session, rng, first), pytest.MonkeyPatch.context() as patch:
        patch.setattr(discreet.curator.records, "model_coin", model_coin)
        patch.setattr(noise, "coin", coin)
        patch.setattr(noise, "gumbel_race", gumbel_race)
        yield


def replayed_session(table, questions, *, folder, budget, begin=None, seed=0, first=None):
    """A whole session of a new curator; `begin` may open a model of its own."""
    session = Replayed()
    address = folder / f"{uuid4().hex}.sqlite"
    with listening_to_coins(session, np.random.default_rng(seed), first), HeardLedger(address) as ledger:
        ledger.session = session
        heard = HeardTable(table.schema, table.source, session)
        desk = Curator(heard, budget=budget, ledger=ledger, expected_questions=100_000)
        if begin is not None:
            begin(desk)
        for how, question, wish in questions:
            session.calls.append(("outcome", outcome(desk, how, question, wish)))
        desk.close()
        (account,) = ledger.balances(table="data")
        session.ticks, session.kind = account.spent_ticks, account.gate.kind
        session.spent = session.ticks
    return session


def broken_promises(tables, questions, **named):
    """What is wrong with a session on two neighbours, as sentences; and the session on the first."""
    one, other = tables
    first = replayed_session(one, questions, **named)
    second = replayed_session(other, questions, first=first, **named)
    broken = [*differences(first, second)] or [*disorder(first), *overdrawn(first, second)]
    return list(dict.fromkeys(broken)), first


def disorder(session):
    """Whether rows are read before they are paid for, or a coin is tossed for which nothing was set aside or paid."""
    paid = held = opened = tossing = waiting = False
    for call in session.calls:
        if waiting and call[0] != "toss":
            yield "evaluate before it is paid"
        waiting = False
        match call[0]:
            case "spend":
                paid = True
                opened = opened or (isinstance(call[1], Coin) and call[1].hits == 0)
            case "record":
                paid = False
            case "reserve":
                held = True
            case "close_hold":
                held = False
            case "toss":
                tossing = True
                if not (held and opened):
                    yield "a toss before something is set aside"
            case "evaluate" if not paid:
                # Only a toss may read what it does not pay.
                waiting = True
            case "open" | "draw" if not (paid or tossing):
                yield f"{call[0]} before it is paid"
        if call[:2] == ("draw", "coin"):
            tossing = False


def overdrawn(first, second):
    """Whether two neighbours differ by more than was declared, or at some order by more than was paid."""
    for one, other in zip(first.tosses, second.tosses, strict=True):
        if abs(float((one.log_odds - other.log_odds).mid())) > float(one.steepness) * (1 + 1e-12):
            yield "log-odds move too far"
    for one, other in zip(first.releases, second.releases, strict=True):
        moves = [abs(a - b) for a, b in zip(one.values, other.values, strict=True)]
        if not one.stretches and max(moves) > one.sensitivity.linf:
            yield "more than declared"
        if one.stretches and squared_loss(one, moves) > one.sensitivity.l2_squared:
            yield "more than declared"
    drawn = sum(squared_moves(one, other) for one, other in zip(first.releases, second.releases, strict=True))
    for order, ticks in zip(ORDERS, first.ticks, strict=True):
        if loss_at(first, second, drawn, order) > ticks * TICK:
            yield "more than paid"


def squared_loss(release, moves):
    total, start = Fraction(0), 0
    for _, scale, noises in release.draws:
        total += sum(move * move for move in moves[start : start + len(noises)]) / scale**2
        start += len(noises)
    return total


def squared_moves(one, other):
    moves = [abs(a - b) for a, b in zip(one.values, other.values, strict=True)]
    if len(one.draws) == 1 and len(one.draws[0][2]) < len(moves):
        # A quantile moves no further than the furthest of its values.
        moves = [max(moves)]
    return squared_loss(one, moves)


def loss_at(first, second, drawn, order):
    """The divergence of all that was drawn at an order, with that of hits at its worst; 0 where a coin closes it."""
    total = order * drawn / 2
    for place, rate in first.races:
        one, other = first.releases[place].values, second.releases[place].values
        moved = max(abs(a - b) for a, b in zip(one, other, strict=True))
        total += bounded_range_divergence(2 * rate * moved, order)
    charges = {toss.steepness: hit_divergence(toss.steepness, order) for toss in first.tosses}
    if inf in charges.values():
        return 0
    return total + sum(charges[toss.steepness] for toss in first.tosses if toss.hit)


def distances_of(opened, expected):
    """How far each opened marginal is from the one that was expected, in L1."""
    pairs = zip(opened, expected, strict=True)
    return [sum(abs(value - int(m)) for value, m in zip(part.values, middle, strict=True)) for part, middle in pairs]

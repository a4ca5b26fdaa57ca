"""How far marginals are from what is expected, through the executor: paid, read once, released, recorded, replayed."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from math import prod
from uuid import uuid4

import numpy as np
import pytest

import discreet.curator.release_run
from discreet.accounting.event import Gaussian, Selection
from discreet.curator.records import Prints, from_bytes
from discreet.curator.release_run import RequestExecutor
from discreet.errors import BadParameter, BadQuery, BudgetExceeded, SealBroken, TooLarge
from discreet.ledger import Budget
from discreet.mechanism.distance import farthest, noisy_distances
from discreet.plan.plan import Distances, Farthest, marginal_moves, run
from discreet.schema import Boolean, Domain, Integers, Schema, Unit
from discreet.source.frame import Frame
from discreet.source.table import Table
from support.coin_replay import Replayed, distances_of, listening_to_coins
from support.model_sessions import HeardLedger
from support.neighbours import DROPS, KEEPS, UNITS, HeardTable, differences, disorder, random_pair

PLENTY = Budget(epsilon=60, delta=1e-6)
SCOPES = ((), ("age",), ("city",), ("age", "city"), ("city", "sex"), ("age", "city", "sex"))
ADD, REPLACE, PERSONS = Unit(), Unit(neighbors="replace_one"), Unit(key="who", contributions=3)


def guesses(rng, domain, scopes):
    return tuple(rng.integers(0, 6, size=prod(domain[name].size for name in scope)) for scope in scopes)


def compare(domain, *, seed=0, times=3):
    """A procedure that selects among the same marginals again and again, and asks how far off some of them are."""
    rng = np.random.default_rng(seed)
    heard = []
    for _ in range(times):
        late = tuple(rng.integers(0, 9, size=len(SCOPES)).tolist())
        heard.append((yield Farthest(SCOPES, guesses(rng, domain, SCOPES), late, Fraction(1, 2), "what is wrong")))
        some = SCOPES[heard[-1] // 2 :]
        heard.append((yield Distances(some, guesses(rng, domain, some), Fraction(5), "how wrong")).tolist())
        heard.append((yield Farthest(some, guesses(rng, domain, some), None, Fraction(1, 3), "what is wrong")))
    return heard


def teller_of(table, ledger, budget=PLENTY):
    executor = RequestExecutor(HeardTable(table.schema, table.source, ledger.session), ledger)
    executor.watch.open(budget, "anyone")
    return executor


def heard_ledger(folder, session=None):
    ledger = HeardLedger(folder / f"{uuid4().hex}.sqlite")
    ledger.session = Replayed() if session is None else session
    return ledger


# --- Record and replay ------------------------------------------------------------------------------------------------


def heard_run(table, *, folder, seed=0, first=None):
    """All that a executor does for the procedure; and what was asked of it."""
    session, requests = Replayed(), []
    with listening_to_coins(session, np.random.default_rng(seed), first), heard_ledger(folder, session) as ledger:
        executor = teller_of(table, ledger)

        def answer(request):
            requests.append(request)
            return executor.answer(request, analyst="ana")

        session.calls.append(("outcome", run(compare(table.domain, seed=seed), answer)))
        (account,) = ledger.balances(table="data")
        session.spent = account.spent_ticks
        charges = [account.gate.charge(request.event(table.domain, table.unit)) for request in requests]
        assert session.spent == tuple(map(sum, zip(*charges, strict=True)))
    return session, requests


def steps_of(session):
    """Of each payment: its event, what was opened for it, and what was drawn."""
    releases = iter(session.releases)
    for call in session.calls:
        match call[0]:
            case "spend":
                event, opened, drawn = call[1], [], []
            case "open":
                opened.append(next(releases))
            case "draw":
                drawn.append(call[1:])
            case "record":
                yield event, opened, drawn


def overdrawn(first, second, requests):
    """Whether neighbours differ by more than a seal says, or what is drawn for them by more than was paid."""
    for request, one, other in zip(requests, steps_of(first), steps_of(second), strict=True):
        event, opened, drawn = one
        for part, same in zip(opened, other[1], strict=True):
            if sum(abs(a - b) for a, b in zip(part.values, same.values, strict=True)) > part.sensitivity.l1:
                yield "more than declared"
        here, there = distances_of(opened, request.expected), distances_of(other[1], request.expected)
        moves = [a - b for a, b in zip(here, there, strict=True)]
        match drawn:
            case [("rounded_gaussian", sigma, size)]:
                assert size == len(moves)
                lost, paid = sum(move**2 for move in moves) / sigma**2, event.squared_sensitivity / event.sigma**2
            case [("gumbel_race", rate, size)]:
                assert size == len(moves)
                lost, paid = (max(moves) - min(moves)) * rate, event.epsilon
        if lost > paid:
            yield "more than paid"


def broken_promises(pair, *, folder, seed=0):
    one, other = pair.tables()
    first, requests = heard_run(one, folder=folder, seed=seed)
    second, _ = heard_run(other, folder=folder, seed=seed, first=first)
    return [*differences(first, second)] or [*disorder(first), *overdrawn(first, second, requests)]


@pytest.mark.parametrize("domain", [KEEPS, DROPS], ids=["all rows count", "rows are dropped"])
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.describe)
def test_neighbours_see_the_same_requests_and_differ_by_no_more_than_was_paid(unit, domain, tmp_path):
    for seed in range(2):
        pair = random_pair(np.random.default_rng(seed), unit=unit, domain=domain)
        assert broken_promises(pair, folder=tmp_path, seed=seed) == []


def seen(unit, folder, tries=4):
    """What is seen to be wrong on some of a few pairs of neighbours."""
    found = set()
    for seed in range(tries):
        pair = random_pair(np.random.default_rng(seed), unit=unit, domain=KEEPS)
        found |= set(broken_promises(pair, folder=folder, seed=seed))
    return found


@pytest.mark.parametrize("unit", [ADD, REPLACE], ids=lambda unit: unit.describe)
def test_a_selection_that_takes_distances_for_monotone_is_seen(unit, tmp_path, monkeypatch):
    def eager(**named):
        return replace(farthest(**{**named, "epsilon": 2 * named["epsilon"]}), event=Selection(named["epsilon"]))

    monkeypatch.setattr(discreet.curator.release_run, "farthest", eager)
    assert seen(unit, tmp_path) == {"more than paid"}


@pytest.mark.parametrize("unit", [ADD, REPLACE], ids=lambda unit: unit.describe)
def test_half_the_noise_is_seen(unit, tmp_path, monkeypatch):
    def narrow(**named):
        said = noisy_distances(**named)
        return replace(noisy_distances(**{**named, "sigma": named["sigma"] / 2}), event=said.event)

    monkeypatch.setattr(discreet.curator.release_run, "noisy_distances", narrow)
    assert seen(unit, tmp_path) == {"more than paid"}


def test_the_price_of_one_distance_for_all_is_seen(tmp_path, monkeypatch):
    def cheap(**named):
        said = noisy_distances(**named)
        return replace(said, event=Gaussian(named["sigma"], named["sensitivity"][-1].l1 ** 2))

    monkeypatch.setattr(discreet.curator.release_run, "noisy_distances", cheap)
    monkeypatch.setattr(Distances, "event", lambda *_: Gaussian(Fraction(5), Fraction(1)))
    assert seen(ADD, tmp_path) == {"more than paid"}


def test_reading_before_paying_is_seen(tmp_path, monkeypatch):
    right = RequestExecutor._release_value

    def early(self, mechanism, read, why, analyst):
        exact = read()
        return right(self, mechanism, lambda: exact, why, analyst)

    monkeypatch.setattr(RequestExecutor, "_release_value", early)
    assert seen(ADD, tmp_path, tries=1) == {"evaluate before it is paid"}


@pytest.mark.parametrize("forget", ["contributions", "replacement"])
def test_a_wrong_sensitivity_opens_no_seal(forget, tmp_path, monkeypatch):
    """Nothing is told; what was paid is gone."""
    unit = PERSONS if forget == "contributions" else REPLACE
    monkeypatch.setattr(discreet.curator.release_run, "marginal_moves", lambda *named: marginal_moves(*named[:-1], ADD))
    (table, _) = random_pair(np.random.default_rng(0), unit=unit, domain=KEEPS).tables()
    for kind in (
        lambda scopes, middle: Distances(scopes, middle, Fraction(5), "how wrong"),
        lambda scopes, middle: Farthest(scopes, middle, None, Fraction(1), "what is wrong"),
    ):
        request = kind(SCOPES[1:], guesses(np.random.default_rng(0), KEEPS, SCOPES[1:]))
        with heard_ledger(tmp_path) as ledger, pytest.raises(SealBroken):
            teller_of(table, ledger).answer(request, analyst="ana")


# --- What is read, and what is kept -----------------------------------------------------------------------------------

NAMES = tuple(f"x{place:02}" for place in range(15))
WIDE = Domain({name: Integers(0, 2, outside="drop", missing="drop") for name in NAMES})


@pytest.fixture(scope="module")
def wide():
    rng = np.random.default_rng(0)
    data = {name: rng.integers(0, 3, size=2_000) for name in NAMES}
    # One pair that is not what independent columns would be.
    data["x08"] = data["x03"]
    return Table(Schema("data", WIDE, ADD), Frame(data, domain=WIDE, unit=ADD))


def reads(ledger):
    return [call[1].columns for call in ledger.session.calls if call[0] == "evaluate"]


def test_marginals_are_read_once_for_a_whole_procedure(wide, tmp_path):
    scopes = tuple(combinations(NAMES, 2))
    rng = np.random.default_rng(1)
    with heard_ledger(tmp_path) as ledger:
        executor = teller_of(wide, ledger)
        for place in range(4):
            # As after a selection: other expectations, other handicaps, and in the end fewer candidates.
            left = scopes if place < 3 else tuple(reversed(scopes[10:]))
            expected = tuple(np.full(9, 222) + rng.integers(-2, 3, size=9) for _ in left)
            late = tuple(rng.integers(0, 5, size=len(left)).tolist())
            chosen = executor.answer(Farthest(left, expected, late, Fraction(1), "what is wrong"), analyst="ana")
            assert left[chosen] == ("x03", "x08")
        far = executor.answer(Distances(scopes[:3], expected[:3], Fraction(2), "how wrong"), analyst="ana")
        assert far.shape == (3,)
        assert sorted(reads(ledger)) == sorted(scopes)
        executor.forget_sealed()
        executor.answer(Distances(scopes[:3], expected[:3], Fraction(2), "how wrong"), analyst="ana")
        assert reads(ledger)[len(scopes) :] == list(scopes[:3])


def test_the_answers_are_near_the_truth(wide, tmp_path):
    expected = (np.full(9, 222), np.full(9, 222), np.array([600, 700, 700]))
    request = Distances((("x03", "x08"), ("x00", "x01"), ("x05",)), expected, Fraction(1), "how wrong")
    codes = {name: wide.source._codes[name].astype(int) for name in NAMES}
    pairs = [np.bincount(3 * codes[a] + codes[b], minlength=9) for a, b in request.scopes[:2]]
    truth = [np.abs(v - m).sum() for v, m in zip([*pairs, np.bincount(codes["x05"])], expected, strict=True)]
    with heard_ledger(tmp_path) as ledger:
        far = teller_of(wide, ledger).answer(request, analyst="ana")
    # Ten standard deviations.
    assert np.abs(far - truth).max() <= 10
    assert truth[0] > 2_000


def test_what_was_heard_is_in_the_ledger_with_its_price(wide, tmp_path):
    rng = np.random.default_rng(2)
    scopes = (("x00",), ("x01", "x02"))
    requests = [
        Distances(scopes, guesses(rng, WIDE, scopes), Fraction(3), "how wrong"),
        Farthest(scopes, guesses(rng, WIDE, scopes), (5, 0), Fraction(1, 10), "what is wrong"),
    ]
    with heard_ledger(tmp_path) as ledger:
        executor = teller_of(wide, ledger)
        heard = [executor.answer(request, analyst="ana") for request in requests]
        kept = [from_bytes(entry.released, "data", Prints(WIDE)) for entry in ledger.entries() if entry.released]
        assert [released.kind for released in kept] == ["heard", "heard"]
        assert [released.values.tolist() for released in kept] == [heard[0].tolist(), [heard[1]]]
        assert [spend.event for spend in ledger.history()] == [
            Gaussian(Fraction(3), Fraction(2)),
            Selection(Fraction(1, 10)),
        ]
        again = RequestExecutor(wide, ledger)
        again.refresh()
        assert again.known.version == executor.known.version == RequestExecutor(wide, ledger).known.version


# --- Refusals ---------------------------------------------------------------------------------------------------------


def both(scopes, expected, handicaps=None):
    return (
        Distances(scopes, expected, Fraction(5), "how wrong"),
        Farthest(scopes, expected, handicaps, Fraction(1), "what is wrong"),
    )


def refuses(table, requests, error, match, folder, budget=PLENTY):
    """Each is refused with such a sentence; nothing is charged and nothing is read."""
    for request in requests:
        with heard_ledger(folder) as ledger:
            executor = teller_of(table, ledger, budget)
            with pytest.raises(error, match=match):
                executor.answer(request, analyst="ana")
            assert not any(executor.balance("ana").spent_ticks)
            assert reads(ledger) == []


def test_what_cannot_be_drawn_is_not_charged(wide, tmp_path):
    three, nine = np.zeros(3, dtype=np.int64), np.zeros(9, dtype=np.int64)
    scopes = (("x00",), ("x01", "x02"))
    for expected, match in (
        ((three, three), "the marginal of x01, x02 has 9 cells and 3 are expected"),
        ((nine, nine), "the marginal of x00 has 3 cells and 9 are expected"),
        ((three,), "there are 2 marginals and 1 are expected"),
        ((three, nine + 0.5), r"expected\[1\]\[0\] is 0.5; it must be a whole number"),
    ):
        refuses(wide, both(scopes, expected), BadParameter, match, tmp_path)
    refuses(wide, both((), ()), BadParameter, "expected holds no part", tmp_path)
    refuses(wide, both((("x00", "y"),), (nine,)), BadQuery, "y", tmp_path)
    refuses(wide, both(scopes, (three, nine), (1,))[1:], BadParameter, "there are 1 handicaps and 2 parts", tmp_path)
    refuses(wide, both(scopes, (three, nine)), BudgetExceeded, "this needs", tmp_path, Budget(epsilon=0.01, delta=1e-9))


def test_marginals_that_nobody_can_move_are_refused_and_one_among_others_is_not(tmp_path):
    domain = Domain({"sex": Boolean(), "old": Boolean()})
    table = Table(Schema("data", domain, REPLACE), Frame({"sex": [True], "old": [False]}, domain=domain, unit=REPLACE))
    one, two = np.array([1]), np.array([0, 0])
    refuses(table, both(((),), (one,)), BadParameter, "public: answer it without a mechanism", tmp_path)
    with heard_ledger(tmp_path) as ledger:
        executor = teller_of(table, ledger)
        for request in both(((), ("sex",)), (one, two)):
            assert np.size(executor.answer(request, analyst="ana")) in (1, 2)


def test_a_marginal_with_too_many_cells_is_refused(tmp_path):
    domain = Domain({name: Integers(0, 5_000) for name in ("a", "b")})
    table = Table(Schema("data", domain, ADD), Frame({"a": [1], "b": [2]}, domain=domain, unit=ADD))
    refuses(table, both((("a", "b"),), (np.array([1]),)), TooLarge, "the marginal of a, b has .* cells", tmp_path)

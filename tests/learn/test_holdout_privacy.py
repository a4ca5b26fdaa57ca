"""What one held row can change in a whole session: exactly on tiny sets, and by record and replay on larger ones."""

from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest

from discreet import verify
from discreet.accounting.event import AboveThreshold, Coin, Compose, Gaussian, Repeat, total_loss
from discreet.accounting.filter import accounting_for, pure_gate
from discreet.accounting.renyi_dp import ORDERS
from discreet.learn.holdout import generalization, held_session, holdout, leaderboard, scores
from discreet.learn.holdout.comparison_design import ComparisonDesign, ComparisonTerms
from discreet.learn.holdout.holdout import Holdout
from discreet.learn.holdout.leaderboard import Leaderboard
from discreet.mechanism.protocol import LAW_BITS, Interactive, Mechanism
from discreet.mechanism.sparse_vector import Run
from discreet.mechanism.transcript import transcript_law
from discreet.numeric import ball, precision
from discreet.source.source import unseal
from support.holdout_replay import BUDGETS, heard_session, scripts
from support.neighbours import differences, told

STATISTICS = [lambda x: x == 1, lambda x: x == 2, lambda x: x != 0]


@pytest.fixture
def coarse(monkeypatch):
    """A grid of one step: sums are counts, and laws can be computed."""
    for module in (scores, held_session, holdout, generalization):
        monkeypatch.setattr(module, "GRID", 1)


def small_design(hits, *, runs=1, sigma=None, threshold=1):
    """As small as its sets: epsilon 4, divided 1 : 2 : 1, or 1 : 2 with Gaussian values."""
    terms = ComparisonTerms(pure_gate(100), 10, runs * hits, 0.1, 0, scores.sum_sensitivity())
    third = Fraction(0) if sigma else Fraction(1)
    return ComparisonDesign(terms, runs, hits, Fraction(3) + third, Fraction(1), third, sigma, threshold, 2, 2)


class Script:
    """Stands in for the noise: comparison t gives `answers[t]`; hears every true value and every guess."""

    def __init__(self, plan, answers):
        self.plan, self.answers, self.heard, self.guesses, self.said, self.values = plan, answers, [], [], [], []

    def comparison(self):
        def step(run, exact):
            value = int(unseal(exact, exact.sensitivity)[0])
            # The noisy threshold is 0 here, so what is added to it is the guess.
            self.heard.append(value - run.noisy_threshold)
            self.guesses.append(run.noisy_threshold)
            said = self.answers[len(self.said)] if len(self.said) < len(self.answers) else None
            self.said.append(said)
            answer = said if self.plan.sigma is None else said is not None
            return Run(run.hits_left - (said is not None), run.noisy_threshold), answer

        return Interactive(self.plan.event, lambda: Run(self.plan.hits, 0), step, None, None)

    def value(self):
        if self.plan.sigma is None:
            return None

        def release(exact):
            self.values.append(int(unseal(exact, exact.sensitivity)[0]))
            return np.array([self.said[-1]])

        return Mechanism(None, release, None, None)


def scripted(monkeypatch, plan, answers, session_of):
    """What a session hears and tells with this script."""
    script = Script(plan, answers)
    with monkeypatch.context() as patch:
        for module in (holdout, leaderboard):
            patch.setattr(module, "choose_design", lambda *_, **__: plan)
        patch.setattr(ComparisonDesign, "comparison", lambda _: script.comparison())
        patch.setattr(ComparisonDesign, "value", lambda _: script.value())
        return script, session_of()


def holdout_session(held, asked):
    def run():
        session = Holdout(np.array([0, 1, 2, 1]), np.array(held), epsilon=1, queries=10, checks=1)
        return tuple(told(session.estimate(one)) for one in asked if session.checks_left)

    return run


def leaderboard_session(held, asked):
    def run():
        session = Leaderboard(np.array(held), epsilon=1, submissions=10, step=0.5)
        return tuple(told(session.submit(one)) for one in asked if session.improvements_left)

    return run


def law_scales(plan):
    value = plan.hits * plan.terms.moves.linf / plan.third if plan.third else None
    return *plan.scales, value


@cache
def law_of(values, beside, threshold, hits, scales):
    return transcript_law(values, [beside], threshold, hits, scales)


def segments(script, hits):
    """Cut after every so many hits: each run has a threshold of its own."""
    start, found = 0, 0
    for place, said in enumerate(script.said):
        found += said is not None
        if found == hits or place == len(script.said) - 1:
            yield slice(start, place + 1)
            start, found = place + 1, 0


def path_loss(one, other, plan, *, scales=None, hits=None):
    """ln of the ratio of the probabilities of a transcript on two held sets: of comparisons and of Laplace values."""
    scales, loss = scales or law_scales(plan), ball(0)
    for cut in segments(one, hits or plan.hits):
        a, b = tuple(one.heard[cut]), tuple(other.heard[cut])
        here = law_of(a, b, plan.threshold, hits or plan.hits, scales)
        there = law_of(b, a, plan.threshold, hits or plan.hits, scales)
        outcome = []
        for said, guess, v, w in zip(one.said[cut], one.guesses[cut], a, b, strict=True):
            if scales[2] is None:
                outcome.append(said is not None)
            else:
                # Beyond both true values the ratio is constant, so they are its ends.
                outcome.append(None if said is None else min(max(said - guess, min(v, w)), max(v, w)))
        loss += (here.probabilities[tuple(outcome)] / there.probabilities[tuple(outcome)]).log()
    return loss


NEIGHBOURS = [((0, 1), (0, 2)), ((1, 1), (1, 2)), ((2, 2), (0, 2)), ((1, 2), (1, 0))]


def worst_loss(monkeypatch, plan, session, asked, *, values=(-1, 2), pairs=NEIGHBOURS, sides=2, **named):
    worst, looked = ball(0), 0
    with precision(LAW_BITS):
        for one, other in pairs:
            for answers in scripts(sides * len(asked), plan.checks, values):
                first, said = scripted(monkeypatch, plan, answers, session(one, asked))
                second, again = scripted(monkeypatch, plan, answers, session(other, asked))
                if len(answers) > len(first.said):
                    # A hit above leaves no test below: the script has a step that never comes.
                    continue
                looked += 1
                assert (said, first.guesses, first.said) == (again, second.guesses, second.said)
                assert all(abs(a - b) <= 1 for a, b in zip(first.values, second.values, strict=True))
                loss = path_loss(first, second, plan, **named)
                worst = max(worst, max(loss, -loss).upper())
    return worst, looked


@pytest.mark.parametrize(
    "plan", [{"hits": 1}, {"hits": 2}, {"hits": 1, "runs": 2}, {"hits": 1, "runs": 2, "sigma": Fraction(2)}], ids=str
)
def test_no_transcript_of_a_holdout_loses_more_than_was_charged(plan, coarse, monkeypatch):
    """Tiny sets, three statistics, both sides: every script. Of Gaussian values only the comparisons are counted here.

    Their noise is charged by itself, on a value that moves by at most one, which is looked at too.
    """
    made = small_design(**plan)
    worst, looked = worst_loss(monkeypatch, made, holdout_session, STATISTICS[: 4 - made.checks], pairs=NEIGHBOURS[:3])
    assert looked >= 30
    assert bool(worst <= ball(made.epsilon * made.runs))
    assert bool(worst >= ball(made.epsilon * made.runs) / 4)


def test_no_transcript_of_a_leaderboard_loses_more_than_was_charged(coarse, monkeypatch):
    made = small_design(2)
    asked = [np.array(one) for one in ([1, 1], [1, 2], [2, 2], [0, 2])]
    worst, looked = worst_loss(
        monkeypatch, made, leaderboard_session, asked, sides=1, values=(0, 2), pairs=NEIGHBOURS[1:3]
    )
    assert looked >= 40
    assert bool(worst <= ball(made.epsilon))


def test_a_quarter_of_the_noise_is_noticed(coarse, monkeypatch):
    made = small_design(1)
    less = tuple(scale / 4 for scale in law_scales(made))
    worst, _ = worst_loss(
        monkeypatch, made, holdout_session, STATISTICS, values=(0,), pairs=NEIGHBOURS[:1], scales=less
    )
    assert bool(worst > ball(made.epsilon))


def test_hits_without_a_limit_are_noticed(coarse, monkeypatch):
    """Two runs behind one threshold, as after a copy or a fork: more than one run was charged."""
    made = small_design(1, runs=2)
    asked = [STATISTICS[0], STATISTICS[1], STATISTICS[0], STATISTICS[1]]
    scales = law_scales(made)
    worst, _ = worst_loss(
        monkeypatch, made, holdout_session, asked, values=(0,), pairs=NEIGHBOURS[1:2], hits=2, scales=scales
    )
    assert bool(worst > ball(made.epsilon))


def test_telling_the_very_value_that_was_compared_is_noticed(coarse):
    """Algorithm 3 of Lyu, Su and Li, with the scales of a holdout: more than its epsilon on ⊥⊥⊥ and a value.

    Given that the value is T, the threshold's noise is at most 0, and each ⊥ that one row moves costs 1/s₂ in full.
    """
    made = small_design(1, threshold=0)
    _, second, _ = law_scales(made)
    before = 2 * int(made.epsilon * second)
    from discreet.noise.law import laplace_mass, laplace_tail

    def mass(values):
        with precision(LAW_BITS):
            whole = ball(0)
            for z in range(-200, 1):
                chance = laplace_mass(z, made.scales[0]) * laplace_mass(0 - values[-1], second)
                for value in values[:-1]:
                    chance *= 1 - laplace_tail(z - value, second)
                whole += chance
            return whole

    with precision(LAW_BITS):
        lost = (mass([0] * (before + 1)) / mass([1] * before + [0])).log()
    assert bool(lost > ball(made.epsilon))


@pytest.mark.parametrize("sigma", [None, Fraction(2)])
def test_the_mechanisms_of_a_design_are_as_private_as_their_events(sigma, coarse):
    made = small_design(1, sigma=sigma)
    streams = list(product((0, 1), repeat=3))
    for one in streams[:4]:
        other = tuple(1 - value for value in one)
        law = made.comparison().law
        assert verify.epsilon(law(one, [other]), law(other, [one])).upper <= float(made.epsilon) + 1e-9
    if sigma is not None:
        verdict = verify.check(lambda _: made.value(), [[0, 1]], scores.UNIT, epsilon=0.5, rows=2)
        assert verdict.holds


@pytest.mark.parametrize("sigma", [None, Fraction(2)])
def test_every_run_has_a_threshold_of_its_own(sigma, coarse, monkeypatch):
    """The stub draws 1000, 2000, …; what a comparison sees is that of its run, and the guess."""
    plan, drawn, seen = small_design(1, runs=3, sigma=sigma), iter(range(1000, 9000, 1000)), []
    script = Script(plan, (None, 1, None, None, 1, 1))
    right = script.comparison()

    def step(run, exact):
        seen.append(run.noisy_threshold // 500 * 500)
        return right.step(run, exact)

    script.comparison = lambda: Interactive(plan.event, lambda: Run(1, next(drawn) + 250), step, None, None)
    with monkeypatch.context() as patch:
        patch.setattr(holdout, "choose_design", lambda *_, **__: plan)
        patch.setattr(ComparisonDesign, "comparison", lambda _: script.comparison())
        patch.setattr(ComparisonDesign, "value", lambda _: script.value())
        holdout_session((0, 1), STATISTICS * 2)()
    assert seen == [1000, 1000, 2000, 2000, 2000, 3000]


def test_the_best_never_falls(coarse, monkeypatch):
    """A hit whose noisy value is below the best changes nothing: the bound counts sequences that do not fall."""
    plan, asked = small_design(3), [np.array([1, 1])] * 3
    _, told_ = scripted(monkeypatch, plan, (2, 1, 2), leaderboard_session((1, 1), asked))
    bests = [dict(one)["best"] for one in told_]
    assert bests == ["1.0", "1.0", "1.0"]
    assert [dict(one)["improved"] for one in told_] == ["True", "False", "False"]


def test_the_events_say_all_that_is_done():
    moves = scores.sum_sensitivity().l2_squared
    run, tell = AboveThreshold(Fraction(3)), Gaussian(Fraction(2), moves)
    assert small_design(2).event == AboveThreshold(Fraction(4))
    assert small_design(1, runs=2, sigma=Fraction(2)).event == Repeat(Compose((run, tell)), 2)
    tossing = coin_design(7, Fraction(1, 5))
    assert tossing.event == Compose((Coin(Fraction(1, 5), 7), Repeat(Gaussian(Fraction(3), moves), 7)))


# --- The coin ---------------------------------------------------------------------------------------------------------


def coin_design(hits, log_odds):
    terms = ComparisonTerms(pure_gate(100), 10, hits, 0.5, 0, scores.sum_sensitivity())
    zero = Fraction(0)
    return ComparisonDesign(terms, 1, hits, zero, zero, zero, Fraction(3), 0, 1, 2, log_odds=log_odds)


def tossed(monkeypatch, plan, heads, session_of):
    """A session in which toss t is `heads[t]`, and every hit tells one row: how likely each toss was what it was."""
    likely, right = [], ComparisonDesign.coin

    def coin_of(self, *, shift=0):
        made = right(self, shift=shift)

        def toss(exact, guess):
            passes = made.passes(int(unseal(exact, exact.sensitivity)[0]) - guess)
            hit = heads[len(likely)] if len(likely) < len(heads) else False
            likely.append(1 - passes if hit else passes)
            return hit

        return replace(made, toss=toss)

    with monkeypatch.context() as patch:
        for module in (holdout, leaderboard):
            patch.setattr(module, "choose_design", lambda *_, **__: plan)
        patch.setattr(ComparisonDesign, "coin", coin_of)
        patch.setattr(ComparisonDesign, "value", lambda _: Mechanism(None, lambda _: np.array([1]), None, None))
        return session_of(), likely


def divergences(monkeypatch, plan, session, asked, pair, orders):
    """E_Q[(P/Q)^a] over all transcripts of tosses, for each order."""
    sums = dict.fromkeys(orders, 0.0)
    for heads in product((False, True), repeat=len(asked)):
        (said, p), (again, q) = (tossed(monkeypatch, plan, heads, session(held, asked)) for held in pair)
        assert said == again
        # A session that has had its hits is not asked again: the same transcript, counted once.
        if any(heads[len(p) :]):
            continue
        for order in orders:
            sums[order] += np.prod(q) * (np.prod(p) / np.prod(q)) ** order
    return sums


@pytest.mark.parametrize("session", [holdout_session, leaderboard_session])
@pytest.mark.parametrize("hits", [1, 2])
def test_tosses_diverge_by_no_more_than_was_charged(session, hits, coarse, monkeypatch):
    """Exactly, at every open order: [model_coin.md, (1)] for the real sessions on tiny sets. Hits alone are charged."""
    plan = coin_design(hits, Fraction(1, 5))
    asked = STATISTICS * 2 if session is holdout_session else [np.array(one) for one in product((1, 2), repeat=2)]
    charge = total_loss(Coin(plan.log_odds, hits), accounting_for("renyi"))
    found = {float(order): float(loss) for order, loss in zip(ORDERS, charge, strict=True) if loss < 10}
    orders = [order for order in found if order in (1.5, 2.0, 3.0, 4.0)]
    assert len(orders) >= 2
    for pair in NEIGHBOURS[:2]:
        for order, moment in divergences(monkeypatch, plan, session, asked, pair, orders).items():
            assert 1 - 1e-9 <= moment <= np.exp((order - 1) * found[order]) * (1 + 1e-9)


def test_log_odds_that_are_steeper_than_was_charged_are_noticed(coarse, monkeypatch):
    plan, charged = coin_design(1, Fraction(1, 2)), Coin(Fraction(1, 20), 1)
    charge = dict(zip(map(float, ORDERS), total_loss(charged, accounting_for("renyi")), strict=True))
    moment = divergences(monkeypatch, plan, holdout_session, STATISTICS * 2, NEIGHBOURS[1], [2.0])[2.0]
    assert moment > np.exp(float(charge[2.0]))


# --- Record and replay -----------------------------------------------------------------------------------------------


def random_statistic(rng):
    cell, power, odd = int(rng.integers(0, 5)), float(rng.uniform(0.2, 3)), int(rng.integers(0, 4))

    def judged(x):
        if odd == 1 and (x == 9).any():
            raise ValueError(f"nine among {len(x)} rows")
        if odd == 2:
            return np.where(x == cell, np.nan, (x / 4) ** power)
        return np.clip(x / 4, 0, 1) ** power if odd == 3 else x == cell

    return judged


def replayed(seed, folder, *, board=False):
    rng = np.random.default_rng([11, seed])
    rows = int(rng.integers(20, 60))
    train, held = rng.integers(0, 5, rows), rng.integers(0, 5, rows)
    held[: rows // 2] = rng.integers(0, 2, rows // 2)
    other = held.copy()
    # The row that is exchanged may be one on which a statistic fails.
    other[rng.integers(rows)] = [9, 9, 0, 4, -3][seed % 5]
    asked = [rng.integers(0, 5, rows) if board else random_statistic(rng) for _ in range(12)]
    budget = BUDGETS[seed % 3]
    first = heard_session(train, held, asked, folder=folder, budget=budget, seed=seed, board=board)
    second = heard_session(train, other, asked, folder=folder, budget=budget, first=first, board=board)
    return first, second


@pytest.mark.parametrize("board", [False, True], ids=["holdout", "leaderboard"])
@pytest.mark.parametrize("seed", [0, 1, 2, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(3, 40))])
def test_neighbours_see_the_same_course_of_events_and_sums_within_the_noise(seed, board, tmp_path):
    first, second = replayed(seed, tmp_path, board=board)
    assert list(differences(first, second)) == []
    assert [call[0] for call in first.calls][:2] == ["spend", "record"]
    for one, other in zip(first.releases[1:], second.releases[1:], strict=True):
        assert abs(one.values[0] - other.values[0]) <= one.sensitivity.linf == scores.GRID


def test_the_sessions_have_hits_and_passes(tmp_path):
    """Otherwise the test above would look at nothing."""
    for seed in (0, 2):
        text = repr(replayed(seed, tmp_path)[0].calls).replace('"', "")
        assert "'training'" in text
        assert "'holdout'" in text
        assert ("'toss'" in text) == (seed == 2)


def _counting(stat, rows, rows_per_call):
    """A broken twin: fails as a whole where one row fails."""
    moves = scores.sum_sensitivity()
    try:
        total = int(np.rint(np.clip(np.nan_to_num(stat(*rows.parts)), 0, 1) * scores.GRID).sum())
    except ValueError:
        total = 0
    return scores.Exact(np.array([total]), moves), scores.Exact(np.array([-total]), moves)


def _peeking(self, asked):
    """Another broken twin: an error that follows the held rows."""
    found = _right(self, asked)
    return type(found)(*[getattr(found, name) for name in found.__slots__[:-1]], int(np.sum(self._held.parts[0])))


_right = Holdout.estimate


@pytest.mark.parametrize("twin", ["fails as a whole", "peeks"])
def test_a_session_that_looks_at_the_rows_is_noticed(twin, tmp_path, monkeypatch):
    if twin == "peeks":
        monkeypatch.setattr(Holdout, "estimate", _peeking)
    else:
        monkeypatch.setattr(held_session, "held_sums", _counting)
    caught = 0
    for seed in range(3):
        first, second = replayed(seed, tmp_path)
        moves = [abs(a.values[0] - b.values[0]) for a, b in zip(first.releases[1:], second.releases[1:], strict=False)]
        caught += bool(list(differences(first, second))) or max(moves) > scores.GRID
    assert caught

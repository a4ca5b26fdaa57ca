"""What one person can change in a whole session, exactly: every transcript of tiny tables, against the price."""

from fractions import Fraction
from functools import partial
from itertools import permutations

import pytest

from discreet.accounting.event import total_loss
from discreet.accounting.filter import accounting_for
from discreet.mechanism.protocol import LAW_BITS
from discreet.numeric import precision
from discreet.verify.check import neighboring_tables
from lab.textbook.scripted import (
    design_of,
    exact,
    fresh_runs_loss,
    path_loss,
    reused_noise_loss,
    rows_loss,
    scales_of,
    scripted,
    subset,
    subsets,
    unit_of,
)
from support.holdout_replay import scripts

NEIGHBORS = ["add_remove", "replace_one"]


def worst_loss(unit, pairs, streams, design, monkeypatch, *, values, loss_of=path_loss):
    """The largest loss of any transcript, either way, and how many transcripts were looked at."""
    worst, looked = Fraction(0), 0
    with precision(LAW_BITS):
        worst = exact(worst)
        for one, other in pairs:
            for stream in streams:
                for script in scripts(2 * len(stream), design.updates, values):
                    runs = [
                        scripted(counts, unit, stream, script, design, rows=2, monkeypatch=monkeypatch)
                        for counts in (one, other)
                    ]
                    if len(script) > len(runs[0].said):
                        # A hit above leaves no test below: the script has a step that never comes.
                        continue
                    looked += 1
                    assert (runs[0].guesses, runs[0].said, runs[0].told) == (
                        runs[1].guesses,
                        runs[1].said,
                        runs[1].told,
                    )
                    loss = loss_of(*runs, design)
                    size = max(loss, -loss) + exact(rows_loss(*runs, design))
                    worst = max(worst, size.upper())
    return worst, looked


def charged(design):
    return exact(Fraction(total_loss(design.event, accounting_for("pure"))))


@pytest.mark.parametrize("neighbors", NEIGHBORS)
def test_no_transcript_of_one_update_loses_more_than_was_charged(neighbors, monkeypatch):
    """All neighbours with two cells and at most two rows; both counts, in both orders."""
    unit = unit_of(neighbors)
    design = design_of(unit, hits=1)
    pairs = list(neighboring_tables(2, 2, unit))
    worst, looked = worst_loss(unit, pairs, list(permutations(subsets(2))), design, monkeypatch, values=(-2, 5))
    assert looked >= 35
    assert bool(worst <= charged(design))


@pytest.mark.parametrize("neighbors", NEIGHBORS)
def test_no_transcript_of_two_updates_loses_more_than_was_charged(neighbors, monkeypatch):
    """After the first update the model, and with it every later guess, depends on what was released."""
    unit = unit_of(neighbors)
    design = design_of(unit, hits=2)
    pairs = [pair for pair in neighboring_tables(2, 2, unit) if sum(pair[0]) + sum(pair[1]) > 1]
    worst, looked = worst_loss(unit, pairs, [tuple(subsets(2))], design, monkeypatch, values=(-1, 3))
    assert looked >= 30
    assert bool(worst <= charged(design))


@pytest.mark.parametrize("neighbors", NEIGHBORS)
def test_runs_with_thresholds_of_their_own_lose_no_more_than_was_charged(neighbors, monkeypatch):
    unit = unit_of(neighbors)
    design = design_of(unit, hits=1, runs=2)
    pairs = [((0, 1), (0, 2)) if neighbors == "add_remove" else ((1, 1), (0, 2))]
    worst, looked = worst_loss(
        unit, pairs, [tuple(subsets(2))], design, monkeypatch, values=(-1, 3), loss_of=fresh_runs_loss
    )
    assert looked >= 15
    assert bool(worst <= charged(design))


def long_stream(unit, monkeypatch, design, loss_of=path_loss):
    """All six counts of three cells, tables that differ where it matters."""
    pairs = [((0, 0, 1), (0, 0, 2)) if unit.neighbors == "add_remove" else ((0, 1, 1), (0, 0, 2))]
    stream = [subset(3, [2]), subset(3, [1, 2]), subset(3, [0, 2]), subset(3, [0]), subset(3, [1]), subset(3, [0, 1])]
    return worst_loss(unit, pairs, [stream, stream[::-1]], design, monkeypatch, values=(0, 4), loss_of=loss_of)


@pytest.mark.parametrize("neighbors", NEIGHBORS)
def test_a_long_stream_loses_no_more_than_was_charged(neighbors, monkeypatch):
    unit = unit_of(neighbors)
    design = design_of(unit, hits=1)
    worst, looked = long_stream(unit, monkeypatch, design)
    assert looked >= 30
    assert bool(worst <= charged(design))
    # And not much less: 4.3 of 5, and 2.9 of 4.
    assert bool(worst >= charged(design) * 7 / 10)


# --- The power of these tests: broken sessions are caught ------------------------------------------------------------


@pytest.mark.parametrize("neighbors", NEIGHBORS)
def test_half_of_the_noise_is_noticed(neighbors, monkeypatch):
    unit = unit_of(neighbors)
    design = design_of(unit, hits=1)
    half = tuple(scale / 2 for scale in scales_of(design))
    worst, _ = long_stream(unit, monkeypatch, design, partial(path_loss, scales=half))
    assert bool(worst > charged(design))


@pytest.mark.parametrize("neighbors", NEIGHBORS)
def test_a_threshold_that_serves_a_second_run_is_noticed(neighbors, monkeypatch):
    """As after a crash, a copy, a fork, or with a count of hits for each side: two hits for the price of one."""
    unit = unit_of(neighbors)
    one, two = design_of(unit, hits=1), design_of(unit, hits=1, runs=2)
    pairs = [((0, 0, 1), (0, 0, 2)) if neighbors == "add_remove" else ((0, 1, 1), (0, 0, 2))]
    stream = [subset(3, [2]), subset(3, [1, 2]), subset(3, [0, 2])]
    shared = partial(path_loss, hits=2)
    worst, _ = worst_loss(unit, pairs, [stream], two, monkeypatch, values=(0,), loss_of=shared)
    assert bool(worst > charged(one))


@pytest.mark.parametrize("neighbors", NEIGHBORS)
def test_telling_the_noisy_value_that_was_compared_is_noticed(neighbors, monkeypatch):
    """It saves the price of fresh noise, and loses more than what is left."""
    unit = unit_of(neighbors)
    design = design_of(unit, hits=1)

    def reused(one, other, design):
        return reused_noise_loss(one, other, design) if any(answer is not None for answer in one.said) else exact(0)

    worst, _ = long_stream(unit, monkeypatch, design, reused)
    saved = exact(design.third + (design.third if design.tells_rows else 0))
    rows = exact(design.third if design.tells_rows else 0)
    assert bool(worst - rows > charged(design) - saved)

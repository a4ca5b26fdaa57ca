"""What is promised, what it costs, and what is refused: before anything is paid."""

from dataclasses import replace
from fractions import Fraction
from math import log

import pytest

from discreet.accounting.filter import charge_of, gate_for, gaussian_gate, pure_gate, renyi_gate
from discreet.errors import BadParameter
from discreet.lab.textbook.pmw_design import Terms, calibrated, comparison_scales, solved
from discreet.lab.textbook.pmw_lectures import textbook
from discreet.mechanism.sparse_vector_error import alarm_chance, pass_chance

GATES = [pure_gate(1), gaussian_gate(1, 1e-9), renyi_gate(1, 1e-9)]


def terms(gate, queries=1000, failure=0.05, moves=1, tells_rows=True):
    return Terms(gate, queries, failure, moves, tells_rows)


@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.kind)
@pytest.mark.parametrize("updates", [1, 30])
def test_a_design_keeps_its_promises_at_its_price(gate, updates):
    asked = terms(gate)
    design = calibrated(asked, updates=updates)
    assert design.updates == updates
    assert gate.fits(gate.nothing, charge_of(gate.kind, design.event))
    # All of the price is used, but for rounding.
    dearer = replace(design, epsilon=design.epsilon * Fraction(1002, 1000), third=design.third * Fraction(1002, 1000))
    assert not gate.fits(gate.nothing, charge_of(gate.kind, dearer.event))
    tests = {"scales": comparison_scales(design), "queries": asked.queries, "runs": design.runs}
    assert pass_chance(threshold=design.threshold, error=design.error, **tests) <= 0.025
    assert alarm_chance(threshold=design.threshold, off=design.value_error, **tests) <= 0.025
    # No smaller number would do.
    assert pass_chance(threshold=design.threshold, error=design.error - 1, **tests) > 0.025
    assert alarm_chance(threshold=design.threshold - 1, off=design.value_error, **tests) > 0.025


def test_the_mechanism_adds_the_noise_that_was_promised():
    design = calibrated(terms(pure_gate(1)), updates=5)
    mechanism = design.mechanism()
    assert mechanism.event.epsilon == design.epsilon
    first, second = comparison_scales(design)
    assert first == float(1 / design.first)
    assert second == float(2 * 5 / (design.epsilon - design.first - design.third))


def test_with_delta_many_updates_get_thresholds_of_their_own():
    """Then the noise grows with the square root of their number."""
    pure, gaussian = (calibrated(terms(gate), updates=400) for gate in GATES[:2])
    assert (pure.runs, gaussian.runs) == (1, 400)
    few = calibrated(terms(GATES[1]), updates=100)
    assert gaussian.error < 2.2 * few.error
    assert pure.error > 3.9 * calibrated(terms(GATES[0]), updates=100).error


def test_two_of_three_give_the_third_and_agree():
    gate = pure_gate(2)
    asked = terms(gate)
    given = solved(gate, asked, error=None, updates=30, epsilon=Fraction(2))
    longest = solved(gate, asked, error=given.error, updates=None, epsilon=Fraction(2))
    assert longest.updates == 30
    cheapest = solved(gate, asked, error=given.error, updates=30, epsilon=None)
    rows, run = cheapest.event.events
    assert Fraction(19, 10) < rows.sensitivity / rows.scale + run.epsilon <= 2


def test_a_larger_error_raises_the_threshold():
    """So that more of the model's mistakes are let pass, and fewer updates are used."""
    tight = calibrated(terms(pure_gate(1)), updates=10)
    loose = calibrated(terms(pure_gate(1)), updates=10, error=3 * tight.error)
    assert loose.error == 3 * tight.error
    assert loose.threshold >= tight.threshold + 2 * tight.error


def test_what_cannot_be_promised_is_refused_with_what_can():
    gate = pure_gate(1)
    with pytest.raises(BadParameter, match=r"error is 20; .* with a single update, is \d+"):
        solved(gate, terms(gate), error=20, updates=None, epsilon=Fraction(1))
    with pytest.raises(BadParameter, match=r"error is 200; .*20 updates .* the least that can be promised is \d+"):
        solved(gate, terms(gate), error=200, updates=20, epsilon=Fraction(1))
    with pytest.raises(BadParameter, match=r"even the whole budget, epsilon 1, can promise \d+ only"):
        solved(gate, terms(gate), error=200, updates=20, epsilon=None)


# --- The lectures' settings ------------------------------------------------------------------------------------------


def errors(setting, gate, rows, cells=2**16):
    asked = terms(gate, tells_rows=False)
    return [textbook(setting, asked, cells=cells, rows=n).error / n for n in rows]


@pytest.mark.parametrize("setting", ["bun", "root"])
def test_without_delta_the_error_falls_like_the_cube_root_of_n_and_with_it_like_the_square_root(setting):
    rows = [10**7, 10**9]
    for gate, power in ((pure_gate(1), 1 / 3), (gaussian_gate(1, 1e-9), 1 / 2)):
        early, late = errors(setting, gate, rows)
        # Logarithms of the number of updates come on top.
        assert log(early / late) / log(100) == pytest.approx(power, abs=0.04)


def test_the_cube_setting_is_the_cube_root_whatever_the_budget():
    rows = [10**8, 10**10]
    for gate in (pure_gate(3), gaussian_gate(1, 1e-9)):
        early, late = errors("cube", gate, rows)
        assert log(early / late) / log(100) == pytest.approx(1 / 3, abs=0.05)


@pytest.mark.parametrize("setting", ["bun", "cube", "root"])
def test_a_theorem_sets_aside_all_updates_that_can_be_needed(setting):
    cells, rows = 2**16, 10**9
    design = textbook(setting, terms(gaussian_gate(1, 1e-9), tells_rows=False), cells=cells, rows=rows)
    noise, rate = design.value_error / rows, design.rate
    gap = design.threshold / rows - 2 * noise
    step = rate if design.rule == "exponential" else -log(1 - rate)
    # Lemma 2 of lab/textbook/multiplicative_weights.md at the smallest gap that can be
    # found wrong; a row more or less by rounding.
    assert design.updates >= log(cells) / (step * gap - step**2 / 8) * (1 - 1e-3) - 1
    assert design.error == design.threshold + 2 * design.value_error


def test_the_textbook_never_learns_at_real_sizes():
    asked = terms(pure_gate(1), tells_rows=False)
    with pytest.raises(BadParameter, match="its error would be all rows"):
        textbook("root", asked, cells=2**20, rows=20_000)
    assert calibrated(asked, updates=10).error < 20_000 / 20


def test_a_price_is_in_the_currency_of_the_ledger():
    for gate in GATES:
        half = gate_for(gate, Fraction(1, 2))
        assert (half.kind, half.epsilon, half.delta) == (gate.kind, Fraction(1, 2), gate.delta)

"""A claim can fail: whatever is wrong with what it measures, a line of it says so."""

import re
from dataclasses import replace
from fractions import Fraction
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from flint import arb

from discreet.lab.lectures import claims
from discreet.lab.lectures.claim import Finding, Outcome
from discreet.lab.lectures.laws import loss_over_sets
from discreet.mechanism import gaussian, histogram, laplace, name_and_shame, randomized_response, sparse_vector
from discreet.mechanism.protocol import Law


def part(file):
    return import_module(f"discreet.lab.lectures.claims.{file}")


def careless(make, *, factor=2):
    """A mechanism that promises epsilon and spends more."""

    def made(*, epsilon, **options):
        right, wrong = make(epsilon=epsilon, **options), make(epsilon=factor * Fraction(epsilon), **options)
        return replace(wrong, event=right.event)

    return made


HALF = careless(laplace)


def fails(findings):
    found = (findings,) if isinstance(findings, Finding) else tuple(findings)
    return not Outcome(found).holds


def test_every_claim_of_these_notes_has_a_wrong_version_here():
    files = {claim.run.__module__.rpartition(".")[2] for claim in claims() if claim.source.startswith(("000", "002"))}
    assert files == set(re.findall(r'part\("(\w+)"\)', Path(__file__).read_text()))


def test_nothing_found_is_nothing_shown():
    assert not Outcome(()).holds


CASES = {
    "prop6: half of the noise": lambda: part("n000_06_prop6_posterior").findings(
        lambda epsilon: laplace(epsilon=2 * epsilon, sensitivity=1)
    ),
    "utility": lambda: part("n000_07_utility").findings(HALF),
    "prop7: half of the noise": lambda: part("n000_09_prop7_randomized_response").findings(
        careless(randomized_response)
    ),
    "the notes' p": lambda: part("n000_10_prop7_setting").findings(lambda epsilon: (1 + epsilon) / 2),
    "response, k answers": lambda: part("n000_11_response_many").findings(careless(randomized_response)),
    "response, deviation": lambda: part("n000_08_response_deviation").findings(
        lambda epsilon: randomized_response(epsilon=2 * epsilon).law(part("n000_08_response_deviation").TRUTH)
    ),
    "laplace deviation": lambda: part("n000_12_laplace_deviation").findings(HALF),
    "prop8: half of the noise": lambda: part("n000_13_prop8_laplace").findings(HALF),
    "prop8: too much noise is not tight": lambda: part("n000_13_prop8_laplace").findings(
        careless(laplace, factor=Fraction(1, 2))
    ),
    "prop10": lambda: part("n000_15_prop10_groups").findings(HALF),
    "prop11": lambda: part("n000_16_prop11_basic").findings(HALF),
    "half of the noise for (ε, δ)": lambda: part("n000_17b_def12_delta").findings(
        lambda *, epsilon, delta, sensitivity: gaussian(epsilon=2 * epsilon, delta=delta, sensitivity=sensitivity)
    ),
    "typical loss": lambda: part("n000_17_typical_loss").findings(epsilon=1.0),
    "advanced composition with half of the bound": lambda: part("n000_18_prop13_advanced").findings(
        lambda k, each, delta: part("n000_18_prop13_advanced").advanced(k, each, delta) / 2
    ),
    "expected loss": lambda: part("n000_19_expected_loss").findings(careless(randomized_response)),
    "adaptive composition": lambda: part("n002_02_lem11_adaptive").findings(HALF),
    "no shared cap": lambda: part("n002_01_hospitals").kept_by_the_ledger(together=False),
    "joint loss": lambda: part("n002_01_hospitals").joint_loss(second=Fraction(1, 2)),
    "split budget": lambda: part("n002_04_ex14_split").findings(
        lambda *, epsilon, sensitivity: laplace(epsilon=max(epsilon, Fraction(1, 15)), sensitivity=sensitivity)
    ),
    "histogram with sensitivity 1": lambda: part("n002_05_ex15_histogram").findings(careless(histogram)),
    "lemma 1.7": lambda: part("n002_07_lem17_groups").findings(HALF),
    "useful": lambda: part("n002_08_useful").findings(careless(laplace, factor=3)),
    "a round of k-means whose sums are free": lambda: part("n002_09_prop21_kmeans").findings(
        part("n002_09_prop21_kmeans").half_noise
    ),
    "theorem 3.1": lambda: part("n002_12_thm31_posterior").findings(HALF),
    "smoking": lambda: part("n002_13_smoking").findings(lambda study: 3 * float(study.epsilon)),
    "additive secrecy": lambda: part("n002_14_additive").findings(lambda *, delta: name_and_shame(delta=3 * delta)),
    "name and shame (i)": lambda: part("n002_15_ex33_secrecy").findings(
        lambda *, delta: name_and_shame(delta=2 * delta)
    ),
    "name and shame (ii)": lambda: part("n002_16_ex33_exposure").exposure(delta=Fraction(1, 2500)),
    "noise where answers should be exact": lambda: part("n000_24_false_discovery").findings(sigma=3.0),
}


@pytest.mark.parametrize("case", CASES)
def test_a_wrong_measurement_fails_the_claim(case):
    assert fails(CASES[case]())


def test_a_histogram_that_is_off_by_one_row_is_noticed():
    file = part("n000_01_ex2_histogram")
    table = np.zeros((4, 1000), dtype=np.int64)
    right = [1.0] + [0.0] * 15
    assert not fails(file.findings(right, table))
    assert fails(file.findings([0.999, 0.001] + [0.0] * 14, table))


def test_a_conjunction_that_is_missing_is_noticed():
    file = part("n000_02_ex3_conjunctions")
    from math import comb

    table = np.ones((8, 500), dtype=np.int64)
    right = {k: [500.0] * comb(8, k) for k in range(1, 9)}
    assert not fails(file.findings(right, table))
    assert fails(file.findings(right | {2: [500.0] * 27}, table))


def test_a_curator_who_answers_exactly_loses_matt():
    file = part("n000_03_differencing")
    assert fails(file.findings(lambda count: count, lambda count: count))
    assert file.hits(lambda count: count // 7) < file.TRIALS


def test_a_curator_who_answers_exactly_loses_everybody():
    file = part("n000_04_reconstruction")
    assert fails(file.findings(private=lambda counts: counts))


def test_loss_by_outcome_and_by_set_are_told_apart(monkeypatch):
    file = part("n000_05_def5_loss")
    one, other = randomized_response(epsilon=1).law([0]), randomized_response(epsilon=1).law([1])
    assert file.finding("right", one, other).holds
    larger = randomized_response(epsilon=2)
    monkeypatch.setattr(file, "loss_over_sets", lambda *_: loss_over_sets(larger.law([0]), larger.law([1])))
    assert not file.finding("wrong", one, other).holds


def test_a_map_that_looks_at_the_row_again_is_no_post_processing():
    file = part("n000_14_prop9_postprocessing")
    assert fails(file.findings(extra=lambda law, mine: Law({mine: arb(1)}, arb(0))))


def test_too_many_updates_are_noticed():
    file = part("n000_21_claim15_updates")
    learned = file.attacked(64, 0.1)
    assert not fails(file.findings({(64, 0.1): learned}))
    assert fails(file.findings({(64, 0.1): replace(learned, potentials=tuple(np.linspace(4, 0, 3000)))}))


def test_answers_of_a_session_that_are_ten_times_as_far_off_are_noticed():
    assert fails(part("n000_23_prop16_accuracy").session(noise=10.0))


def test_an_answer_that_is_far_from_the_population_is_noticed():
    assert fails(part("n000_25_thm17_transfer").measured(answer=lambda query: float(query.mean()) + 0.2))


def test_a_limit_that_is_not_refused_is_noticed():
    file = part("n000_27_thm19_limits")
    assert fails(file.refusals(session=lambda *_, **__: None))
    assert fails(file.growth(dict.fromkeys(file.WIDTHS, 1.0)))


def test_accurate_answers_that_call_themselves_private_are_traced():
    file = part("n000_28_thm20_tracing")
    assert fails(file.findings(private=file.accurate))


def test_a_stage_that_costs_more_than_it_says_is_noticed():
    file = part("n002_03_lem12_basic")
    wrong = lambda epsilon, past, rows: file.adaptive_stage(2 * epsilon, past, rows)
    assert fails(file.findings(wrong))


def test_a_second_stage_that_tells_all_is_noticed():
    file = part("n002_06_lem16_postprocessing")
    assert fails(file.findings(lambda told, mine: Law({mine: arb(1)}, arb(0))))


def test_k_means_whose_centres_are_noise_is_noticed():
    file = part("n002_10_fig2_kmeans")
    lost = [file.execute(epsilon=0.001) for _ in range(12)]
    assert fails(file.findings(lost))


def test_fewer_rows_than_are_needed_are_noticed(monkeypatch):
    file = part("n000_26_thm18_rows")
    monkeypatch.setattr(file, "rows_needed", lambda alpha, queries, cells: 1e9 / alpha * np.log(queries) ** 2)
    assert fails(file.findings())


def test_an_analyst_who_learns_nothing_is_noticed():
    file = part("n002_11_first_attempt")
    from discreet.meaning import Study

    assert fails(file.findings(Study(epsilon=1, smokers=100, harmless=0.3, harmful=0.3)))


def test_answers_with_twice_the_noise_are_noticed():
    assert fails(part("n000_20_prop14_many").findings(careless(laplace, factor=Fraction(1, 3))))


def test_a_noisy_test_with_a_third_of_the_noise_is_noticed(monkeypatch):
    file = part("n000_22_prop16_privacy")
    monkeypatch.setattr(file, "LENGTHS", (4,))
    assert not fails(file.one_run())
    assert fails(file.one_run(careless(sparse_vector, factor=3)))


def test_the_figure_of_k_means_has_a_panel_for_every_stage():
    from discreet.lab.lectures.claims.n002_10_fig2_kmeans import execute, figure

    svg = figure(execute()).svg()
    assert svg.count(">t = ") == 7
    # Two arms for each of three centres of two algorithms in seven panels, seven edges, and two crosses that say which.
    assert svg.count("<path") == 7 * (2 * 3 * 2 + 1) + 2 * 2

"""The claims of notes 001, 003 and 004 hold; fed with a wrong mechanism, constant or number, each fails."""

from dataclasses import replace
from fractions import Fraction
from importlib import import_module
from math import exp, inf

import numpy as np
import pytest
from flint import arb

from discreet.lab.lectures import claims, find
from discreet.lab.lectures.claim import Finding
from discreet.lab.lectures.streams import Variant, law, loss_of
from discreet.lab.lectures.worst import worst_loss
from discreet.mechanism import best_price, exponential, laplace, most_common, noisy_max
from discreet.mechanism.protocol import Law
from discreet.noise.law import laplace_tail
from discreet.report.plot import Line, plot
from discreet.verify import Interval

OURS = [claim for claim in claims() if claim.source.startswith(("001", "003", "004"))]
# Near a second each, or more.
SLOW = {"sparse-vector", "sparse-vector-variants", "gaussian-noise", "noise-and-sampling-error", "noisy-max"}
SLOW |= {"blr-accuracy", "data-release"}
ONE = Fraction(1)


def of(name):
    """The module of a claim."""
    return import_module(f"discreet.lab.lectures.claims.{name}")


@pytest.mark.parametrize(
    "claim",
    [pytest.param(claim, marks=[pytest.mark.long] * (claim.name in SLOW)) for claim in OURS],
    ids=lambda c: c.name,
)
def test_a_claim_holds(claim):
    outcome = claim.run()
    assert outcome.holds, [finding for finding in outcome.findings if not finding.holds]


def test_there_is_a_claim_for_each_part_of_the_notes():
    assert len(OURS) == 42
    assert sum(claim.correction for claim in OURS) == 7


@pytest.mark.parametrize("claim", OURS, ids=lambda claim: claim.name)
def test_a_claim_is_short_and_says_where_it_stands(claim):
    assert find(claim.name) is claim
    assert len(claim.title) <= 60
    assert len(claim.statement) <= 250


# One wrong version of each claim: what is fed in, by the name of the claim.

WRONG = {}


def wrong(name):
    def keep(function):
        assert name not in WRONG
        WRONG[name] = function
        return function

    return keep


@pytest.mark.parametrize("name", [claim.name for claim in OURS])
def test_a_wrong_measurement_does_not_pass(name):
    found = WRONG[name]()
    findings = [found] if isinstance(found, Finding) else list(found)
    assert findings
    assert not any(finding.holds for finding in findings), findings


@wrong("n-counts")
def _():
    module = of("n001_01_many_counts")
    half = module.errors(lambda queries: module.basic(queries) / 2)
    return module.judge_basic(half), module.judge_advanced(module.errors(module.basic))


@wrong("noise-and-sampling-error")
def _():
    module = of("n001_02_sampling_error")
    found = {rows: module.most(rows, module.basic) for rows in module.ROWS}
    return module.judge("advanced", 1.0, found), module.judge_drawn(35, module.compare(140), module.compare(8))


@wrong("sparse-vector")
def _():
    module = of("n001_03_sparse_vector")
    linear = {length: 3.0 * length for length in module.LENGTHS}
    late = module.judge_stream(1, 2000)
    return module.judge_loss(4, 1, module.loss(2 * ONE, 4, 1)), module.judge_growth(linear), late


@wrong("sparse-vector-variants")
def _():
    module = of("n001_04_variants")
    right = [module.broken(1, length) for length in module.LENGTHS]
    broken = module.judge_right("Alg. 6", module.right(module.variants(2)[6]))
    return broken, *(module.judge_broken(number, "", right) for number in (3, 4, 5, 6))


@wrong("not-named-marco")
def _():
    module = of("n001_05_not_marco")
    _, twice = module.losses(module.EPSILON)
    prices = module.judge_prices([0.2, 0.1], [0.1, 0.3], 0.2)
    return module.judge_losses(twice, twice), module.judge_errors(60, 31), *prices


@wrong("linear-queries")
def _():
    module = of("n001_06_linear_queries")
    weights = module.QUERIES["all weights"]
    little = laplace(epsilon=2, sensitivity=module.TENTHS)
    loss = worst_loss(little, module.pairs(weights))
    return module.judge_loss("", loss, True), module.judge_move("", Fraction(1, 2), Fraction(1, 2))


@wrong("data-release")
def _():
    module = of("n001_07_data_release")
    return module.judge("none at all", np.array([25, 25, 25, 25]), np.array([0, 0, 0, 100]))


@wrong("smalldb-privacy")
def _():
    module = of("n001_08_smalldb_privacy")
    domain = module.DOMAINS["2 cells, 2 points"]
    return module.judge("", module.measure(*domain, module.Unit(neighbors="replace_one"), 2 * ONE))


@wrong("smalldb-accuracy")
def _():
    module = of("n001_09_smalldb_accuracy")
    blind = module.measure(1000, Fraction(1, 10**6))
    return module.judge(1000, blind), module.judge_falls({10: 0.4, 1000: blind.beyond(module.ALPHA)})


@wrong("sampling-bound")
def _():
    module = of("n001_10_sampling_bound")
    lemma = module.sample_size(module.QUERIES, module.ALPHA)
    few = module.measure(module.histogram_of_classes(module.COLUMNS, module.ROWS), lemma // 16)
    # With ln|Q| for 2 ln|Q| in the exponent.
    weak = {queries: module.bound(queries, module.log(queries) / module.ALPHA**2 / 2) for queries in (2, 3, 10)}
    biased = module.judge_mean(module.FIVE, module.mean_of_samples(module.FIVE[1:], 3))
    return module.judge(lemma, few), module.judge_condition(weak), biased


@wrong("chernoff-bound")
def _():
    module = of("n001_11_chernoff")

    def sharper(away, size):
        return 2 * np.exp(-3 * away**2 * size)

    return module.judge("", module.worst_coins(sharper)), module.judge("", module.worst_coins(lambda a, n: a * 0 + 0.9))


@wrong("many-laplace-answers")
def _():
    module = of("n003_01_thm02_laplace")
    large = module.failure(10, module.theorem(10), Fraction(20))
    small = module.failure(1000, 0.9 * module.theorem(1000), Fraction(500))
    return module.judge_loss(2, module.loss(2, ONE)), module.judge_failure(10, large), module.judge_tight(small)


@wrong("laplace-needs-few-queries")
def _():
    module = of("n003_02_thm02_nontrivial")
    many = module.most_queries(100, Fraction(1000))
    quiet = module.useless(100, 100, Fraction(1))
    return module.judge_bound(100, many), module.judge_noise(100, quiet, quiet)


@wrong("small-sample")
def _():
    module = of("n003_03_lem03_sample")
    large = module.judge_dimension({10**3: 1e5, 10**9: 1e9})
    return module.judge(4437, module.measure(100)), module.judge_proof(1), large


@wrong("exponential-privacy")
def _():
    module = of("n003_04_thm04_exponential")
    half, twice = module.measure(ONE / 2, 1, 1), module.measure(2 * ONE, 1, 1)
    return module.judge(ONE, twice), module.judge(ONE, half), module.judge_misjudged(module.measure(ONE, 1, 1))


@wrong("laplace-as-exponential")
def _():
    module = of("n003_05_laplace_as_exponential")
    minus, half = module.by_score(-1, ONE), module.by_noise(ONE / 2)
    # As the notes say it: the same law for ε, and the plus sign for the minus.
    return module.judge(minus, module.by_noise(ONE), half, minus)


@wrong("score-sensitivity")
def _():
    module = of("n003_06_score_sensitivity")
    return module.judge("", module.largest_move([[2, 0, 0]])), module.judge_product([[2, 0]])


@wrong("blr-accuracy")
def _():
    module = of("n003_07_thm05_blr")
    case = module.CASES[0]
    off, chances = module.errors(case, Fraction(1, 10**4))
    return module.judge(case, off, chances), module.judge_exists(case, off + 1)


@wrong("blr-proof")
def _():
    module = of("n003_08_thm05_proof")
    small = {case: module.alpha(case, 64, 2) for case in module.cases()}
    ratios = {case: module.log_ratio(case, error) for case, error in small.items()}
    needs = [module.needed(case, error) for case, error in small.items()]
    return module.judge_ratio(ratios), module.judge_whole(ratios), module.judge_n(needs)


@wrong("laplace-against-blr")
def _():
    module = of("n003_09_crossover")
    laplace, blr = ({d: needs(d) for d in module.COLUMNS} for needs in (module.laplace_needs, module.blr_needs))
    return *module.judge(blr, laplace), *(module.judge_small("", found) for found in module.measured(ONE / 100))


@wrong("blr-inefficient")
def _():
    module = of("n003_10_inefficient")
    few = module.judge_refusal(1, module.refusal(1), 60)
    return module.judge({5: 10**3}), few, module.judge_refusal(5, "there are about 10^3 multisets", 10**48)


@wrong("weights-direction")
def _():
    module = of("n003_12_alg1_direction")
    every = module.rounds()
    # As if the true answers were on the other side of the guesses.
    turned = module.judge([replace(each, above=-each.above) for each in every])
    # As if the minus sign were printed; and as if both signs were turned round.
    signed = module.judge(every, module.right)
    opposite = module.judge(every, lambda above: {"up": "down", "down": "up"}.get(module.right(above), "stay"))
    return turned[0], turned[3], signed[2], opposite[1]


@wrong("weights-potential")
def _():
    module = of("n003_13_lem06_potential")
    return module.judge(0.1, module.least_excess(0.1, 0.02)), module.judge(0.1, module.least_excess(0.1, 0.4))


@wrong("weights-updates")
def _():
    module = of("n003_14_cor07_updates")
    learned = module.learn(module.truths()["all in one cell"], 0.1)
    return module.judge("", 0.5, learned), module.judge("", 0.2, learned)


@wrong("borderline-update")
def _():
    module = of("n003_15_sec32_borderline")
    first, noisy = module.measure(module.first_idea), module.measure(module.noisy_test)
    return module.judge(noisy, first, Interval(inf, inf))


@wrong("pmw-needs-delta")
def _():
    module = of("n003_16_thm08_delta")
    calm = {k: module.Quiet(1e-9 * k, -1.0) for k in (10, 100)}
    return *module.judge(calm), module.judge_design(laplace(epsilon=1, sensitivity=1).event)


@wrong("pmw-accuracy")
def _():
    module = of("n003_17_thm08_shape")
    root = {rows: module.promised("root", rows) for rows in module.ROWS}
    return module.judge_power("", 1 / 3, "", root), module.judge_session(100, 101, 1)


@wrong("pmw-proof")
def _():
    module = of("n003_18_thm08_proof")
    noise = module.scale(10**8)
    same = module.judge_cases([module.border_share(Fraction(2), 30)] * 3)
    often = module.judge_noise(module.exceeds(noise, module.threshold(noise, 1)))
    return same, often, module.judge_updates(10**8, 1 / 2)


@wrong("musicals-or-tragedies")
def _():
    module = of("n003_11_musicals")
    return module.judge([replace(module.guess(), after=-0.5) for _ in range(3)])


@wrong("adjacency")
def _():
    module = of("n004_01_adjacency")
    found = module.measure(module.HISTOGRAM, "replace_one")
    counted = module.matrix_sensitivity(module.COUNT, module.Unit(neighbors="replace_one"))
    one = module.Moves(1, 1)
    return module.judge("", one, found, counted), module.judge("", one, one, replace(counted, l1=Fraction(2)))


@wrong("membership-inference")
def _():
    module = of("n004_02_membership")
    return module.judge(module.Traced(150, 300), module.Traced(290, 300), module.best_advantage(ONE / 2))


@wrong("laplace-repeated")
def _():
    module = of("n004_03_lem03_laplace")
    return module.judge(ONE, 2, module.measure(ONE / 2, 2)), module.judge(ONE, 2, module.measure(ONE, 1))


@wrong("gaussian-noise")
def _():
    module = of("n004_04_exercise1_gaussian")
    delta = module.DELTAS[0]
    half = module.judge_moderate(ONE, delta, module.notes(ONE, delta) / 4)
    return half, module.judge_large(delta, None), module.judge_large(delta, Fraction(5))


@wrong("most-common-condition")
def _():
    module = of("n004_05_example1_most_common")
    eager = module.measure_loss(2 * module.EPSILON)
    blind = most_common(module.CONDITIONS, epsilon=Fraction(1, 1000), unit=module.UNIT).law([100, 50, 0, 0, 0, 0])
    return module.judge(eager, module.miss([100, 50, 0, 0, 0, 0], blind, 8.0), 8.0)


@wrong("best-price")
def _():
    module = of("n004_06_example2_price")
    revenue = [1000] + [0] * 98
    blind = best_price(list(module.PRICES), epsilon=Fraction(1, 1000), unit=module.UNIT).law(revenue)
    return module.judge(module.measure_loss(3 * module.EPSILON), module.miss(revenue, blind, 100.0), 100.0, 1000)


@wrong("exponential-mechanism")
def _():
    module = of("n004_07_thm04_exponential")
    return module.judge(module.measure_all(2 * ONE), module.measure_far(ONE / 2), module.measure_one_way(2 * ONE))


@wrong("noisy-max")
def _():
    module = of("n004_08_exercise2_noisy_max")
    sampled = exponential(epsilon=1, sensitivity=1)
    noisy, law_of = noisy_max(epsilon=1, sensitivity=1), sampled.law(module.SCORES)
    worse = module.never_worse(sampled, noisy, [module.SCORES])
    # As the notes say it: all three are one.
    said = module.judge(law_of, module.permute_and_flip(module.SCORES, module.RATE), law_of, worse)
    return *said, module.judge_gumbel(module.gumbel(2 * module.RATE), law_of)


@wrong("noise-and-outputs")
def _():
    module = of("n004_09_noise_and_outputs")
    told, chosen = [module.loss_of_all(ONE, 4)], Interval(2.0, 2.0)
    return module.judge(told, chosen, [5.0], [5.0])


@wrong("exponential-tails")
def _():
    module = of("n004_10_lem05_tails")

    def twice(number, t):
        return module.largest_tail(number, t / 2)

    def union(number, t):  # the equality that the notes print
        return module.exp_minus(t)

    return module.judge_one(ONE, twice), module.judge_largest(10, ONE, union), module.judge_largest(10, ONE, twice)


@wrong("laplace-absolute-values")
def _():
    module = of("n004_11_lem05_laplace")
    wide = module.worst_ratio(ONE, lambda t, scale: laplace_tail(t, 2 * scale))
    return module.judge_one(ONE, wide), module.judge_largest(761, 758, module.beyond(Fraction(200), 761))


@wrong("exponential-accuracy")
def _():
    module = of("n004_12_thm06_accuracy")
    weak = module.worst_tail(100, 53, Fraction(1, 10))
    tight = module.judge_constant(lambda d, t: module.theorem(d, t) / 3, "")
    return module.judge_tail(100, 2.0, 53, weak), tight, module.judge_expectation({10: 10.0})


@wrong("best-statistical-query")
def _():
    module = of("n004_13_thm06_queries")
    root = {(d, n): d / n**0.5 for d in module.QUERIES for n in module.PEOPLE}
    return *module.judge_shape(root), module.judge_failure(2.0, module.exact_failure(10, 2))


# The shared parts.


def test_the_law_of_a_stream_agrees_with_the_product():
    from discreet.mechanism import sparse_vector

    half = Fraction(1, 2)
    product = sparse_vector(epsilon=1, epsilon_threshold=half, sensitivity=1, threshold=0, hits=2).law([0, 1, -1])
    ours = law(Variant("Alg. 1", Fraction(2), Fraction(8), 2), [0, 1, -1])
    assert ours.probabilities.keys() == product.probabilities.keys()
    assert all(
        abs(float((mass - product.probabilities[said]).mid())) < 1e-15 for said, mass in ours.probabilities.items()
    )


def test_a_stream_without_noise_on_its_values_tells_all():
    assert loss_of(Variant("Alg. 5", Fraction(2), None), [0, 1], [1, 0], [False, True]) == inf


def test_the_worst_loss_of_too_little_noise_is_too_large():
    assert worst_loss(laplace(epsilon=2, sensitivity=1), [([0], [1])]).lower > 1


def test_conjunctions_are_counted_as_one_by_one():
    from discreet.lab.lectures.conjunctions import answers_to_conjunctions, conjunction_effects

    histogram = np.arange(1, 17)
    assert answers_to_conjunctions(histogram).tolist() == (conjunction_effects(4) @ histogram).tolist()


def test_a_chart_leaves_out_what_has_no_place_and_keeps_names_apart():
    lines = [Line(name, [(1, exp(-1)), (10, value)]) for name, value in (("one", 0.5), ("other", 0.5), ("none", 0.0))]
    chart = plot("three lines", lines, x="x", y="y", log_x=True, log_y=True)
    places = {
        text.text: float(text.get("y")) for text in chart.root.iter("text") if text.text in ("one", "other", "none")
    }
    assert len(places) == 3
    assert abs(places["one"] - places["other"]) > 16


def test_a_law_that_never_says_what_the_other_does_is_infinitely_far():
    from discreet.lab.lectures.laws import loss

    assert loss(Law({0: arb(1)}, arb(0)), Law({1: arb(1)}, arb(0))).lower == inf

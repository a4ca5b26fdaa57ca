"""SmallDB: exactly the exponential mechanism over all multisets, drawn without storing them."""

from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import comb, prod

import numpy as np
import pytest
from flint import arb

from discreet import noise, verify
from discreet.accounting.sensitivity import Sensitivity, matrix_sensitivity
from discreet.errors import BadParameter, SealBroken, TooLarge
from discreet.mechanism import exponential, imbalance_effects, small_table
from discreet.mechanism.protocol import LAW_BITS
from discreet.mechanism.smalldb import draw_level, levels, multisets, unrank
from discreet.noise.law import exp_minus
from discreet.numeric import ball, precision
from support.broken_mechanisms import pretend
from support.mechanism_values import ADD, ONE, REPLACE, UNITS, floats, sealed, total
from support.statistics import assert_follows, rejects

# Overlapping counts, a sum with weights of both signs, and queries that do not tell all cells apart.
QUERIES = {
    "counts": [[1, 1, 0], [0, 1, 1], [1, 0, 0]],
    "sums": [[0, 1, 2, -1], [1, 0, 0, 1]],
    "alike": [[1, 1, 0, 0], [0, 0, 1, 1]],
    "one cell": [[1], [0]],
}
SIZES = [1, 2, 3, 4]


def score(effects, rows, counts, table):
    """From the definition: the largest |m q_i(D) − n q_i(y)|."""
    return max(
        abs(rows * sum(effect[x] * c for x, c in enumerate(counts)) - sum(counts) * sum(effect[x] for x in table))
        for effect in effects
    )


def brute_force(effects, rows, counts, rate):
    """Every multiset with its probability, from the definition and nothing else."""
    weights = {}
    with precision(LAW_BITS):
        for table in combinations_with_replacement(range(len(effects[0])), rows):
            weights[table] = exp_minus(rate * score(effects, rows, counts, table))
        whole = sum(weights.values(), arb(0))
        return {table: weight / whole for table, weight in weights.items()}


def drawn_exactly(effects, rows, imbalances, rate, monkeypatch):
    """The law of the sampler itself: every outcome of every coin and of the die is followed, with its probability."""
    matrix = np.array(effects)
    every = multisets(matrix, rows)
    look, distances = levels(imbalances, matrix, rows)
    counts, _, _ = every.walk(look)
    assert counts.sum() == every.count == comb(matrix.shape[1] + rows - 1, rows)
    chances, flips = {}, [[]]
    with precision(LAW_BITS):
        while flips:
            wanted, chance = flips.pop(), [arb(1)]
            taken = list(wanted)

            def coin(probability, wanted=wanted, chance=chance, taken=taken):
                heads = wanted.pop(0) if wanted else True
                if len(taken) < len(chance):
                    taken.append(heads)
                    flips.append([*taken[:-1], False])
                chance.append(probability() if heads else 1 - probability())
                return heads

            monkeypatch.setattr(noise, "coin", coin)
            level = draw_level(counts, distances, rate)
            mass = arb(1)
            for factor in chance:
                mass *= factor
            assert level not in chances
            chances[level] = mass
        found = {}
        for level, mass in chances.items():
            for index in range(int(counts[level])):
                _, kinds, which = every.walk(look, level, index)
                table = every.cells_of(kinds, which)
                assert table not in found
                found[table] = mass / int(counts[level])
    return found


# --- The distribution, exactly ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", SIZES)
@pytest.mark.parametrize("effects", QUERIES.values(), ids=QUERIES)
def test_law_and_sampler_are_the_exponential_mechanism_over_all_multisets(effects, rows, monkeypatch):
    cells, moves = len(effects[0]), imbalance_effects(effects, rows=rows)
    mechanism = small_table(effects, epsilon=Fraction(3, 2), sensitivity=2, rows=rows)
    rate = Fraction(3, 2) / 4
    for counts in [(1,) * cells, (4, *[0] * (cells - 1)), tuple(range(cells)), (0,) * cells]:
        imbalances = moves @ np.array(counts)
        wanted = brute_force(effects, rows, counts, rate)
        law = mechanism.law(imbalances)
        drawn = drawn_exactly(effects, rows, imbalances, rate, monkeypatch)
        assert set(law.probabilities) == set(wanted) == set(drawn)
        assert all(abs(law.probabilities[table] - mass) < 1e-50 for table, mass in wanted.items())
        assert all(abs(drawn[table] - mass) < 1e-50 for table, mass in wanted.items())


def test_every_domain_of_up_to_four_cells_and_every_matrix_of_two_counts():
    for cells, rows in product(range(1, 5), SIZES):
        for bits in range(0, 4**cells, 7):
            effects = [[bits >> (2 * x + i) & 1 for x in range(cells)] for i in range(2)]
            every = multisets(np.array(effects), rows)
            true = list(range(1, cells + 1))
            look, distances = levels(imbalance_effects(effects, rows=rows) @ true, np.array(effects), rows)
            counts, _, _ = every.walk(look)
            tables = combinations_with_replacement(range(cells), rows)
            scores = [score(effects, rows, true, table) for table in tables]
            assert [scores.count(distance) for distance in distances] == counts.tolist()
            seen = {every.cells_of(*every.walk(look, level, index)[1:])
                    for level in range(look.levels) for index in range(counts[level])}  # fmt: skip
            assert len(seen) == every.count


def test_draws_follow_the_law_and_the_law_of_sequences_is_noticed():
    effects, rows = QUERIES["counts"], 3
    moves = imbalance_effects(effects, rows=rows)
    values, sensitivity = moves @ [2, 1, 1], matrix_sensitivity(moves, ADD)
    mechanism = small_table(effects, epsilon=2, sensitivity=sensitivity, rows=rows)
    exact = sealed(values, sensitivity)
    draws = [mechanism.release(exact) for _ in range(2_500)]
    law = floats(mechanism.law(values))
    assert_follows(draws, law)
    # X^m with its order forgotten: each multiset as often as it has orders.
    orders = {table: 6 / prod([1, 1, 2, 6][table.count(x)] for x in set(table)) for table in law}
    whole = sum(law[table] * orders[table] for table in law)
    assert rejects(draws, {table: law[table] * orders[table] / whole for table in law})
    assert rejects(draws, floats(small_table(effects, epsilon=4, sensitivity=sensitivity, rows=rows).law(values)))


def test_compiled_and_plain_walks_agree(monkeypatch):
    from discreet.mechanism import smalldb

    rng = np.random.default_rng(3)
    effects = rng.integers(0, 3, size=(5, 7))
    every = multisets(effects, 5)
    look, _ = levels(imbalance_effects(effects, rows=5) @ rng.integers(0, 9, size=7), effects, 5)
    plain = every.walk(look)[0]
    level = int(plain.argmax())
    places = [every.walk(look, level, index)[1:] for index in (0, int(plain[level]) // 2, int(plain[level]) - 1)]
    monkeypatch.setattr(smalldb, "_FEW", 0)
    assert every.walk(look)[0].tolist() == plain.tolist()
    for index, place in zip((0, int(plain[level]) // 2, int(plain[level]) - 1), places, strict=True):
        assert every.walk(look, level, index)[1:] == place


def test_levels_far_beyond_a_double_are_drawn_all_the_same(monkeypatch):
    """A level e^−5000 times as likely: the coin asks for its exact share, and no share is rounded to zero."""
    shares = []

    def coin(probability):
        with precision(96):
            shares.append(probability())
        return False

    monkeypatch.setattr(noise, "coin", coin)
    assert draw_level(np.array([1, 1]), [0, 10_000], Fraction(1, 2)) == 1
    with precision(96):
        assert 0 < 1 - shares[0] < 1e-300 or shares[0].contains(ball(1))
    monkeypatch.setattr(noise, "coin", lambda probability: bool(probability() < Fraction(1, 2).numerator / 2))
    assert draw_level(np.array([0, 1, 0, 5]), [0, 1, 2, 3], Fraction(1, 10)) in (1, 3)


@pytest.mark.parametrize(("cells", "rows"), [(1, 3), (3, 1), (3, 4), (5, 2)])
def test_unranking_numbers_all_multisets(cells, rows):
    listed = [tuple(unrank(index, cells, rows)) for index in range(comb(cells + rows - 1, rows))]
    assert sorted(listed) == list(combinations_with_replacement(range(cells), rows))


# --- Privacy ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.describe)
@pytest.mark.parametrize("effects", [QUERIES["counts"], QUERIES["sums"]], ids=["counts", "sums"])
@pytest.mark.parametrize("rows", [1, 2])
def test_the_claimed_epsilon_holds_over_all_small_tables(unit, effects, rows):
    make = lambda moves: small_table(effects, epsilon=1, sensitivity=moves, rows=rows)
    verdict = verify.check(make, imbalance_effects(effects, rows=rows), unit, rows=3 if len(effects) == 3 else 2)
    assert verdict.holds
    assert verdict.exact.lower > 0.2


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.describe)
@pytest.mark.parametrize("effects", QUERIES.values(), ids=QUERIES)
def test_a_row_moves_an_imbalance_by_m_times_the_range_of_the_weights(unit, effects):
    widest = max(max(row) - min(row) for row in effects)
    assert matrix_sensitivity(imbalance_effects(effects, rows=5), unit).linf == 5 * widest * unit.contributions


def test_the_loss_has_bounded_range():
    moves = imbalance_effects(QUERIES["counts"], rows=2)
    mechanism = small_table(QUERIES["counts"], epsilon=1, sensitivity=2, rows=2)
    for one, other in verify.neighboring_tables(3, 3, ADD):
        here, there = (mechanism.law(moves @ table).probabilities for table in (one, other))
        losses = [float((here[table] / there[table]).log().mid()) for table in here]
        assert max(losses) - min(losses) <= 1 + 1e-12


@pytest.mark.parametrize("unit", [ADD, REPLACE], ids=lambda unit: unit.describe)
def test_twice_the_rate_and_a_forgotten_factor_m_are_refuted(unit):
    effects = [[1, 0]]
    moves = imbalance_effects(effects, rows=3)
    right = lambda epsilon: small_table(effects, epsilon=epsilon, sensitivity=3, rows=3)
    # Sixty rows of the second cell, and one that may be of the first.
    pairs = [(moves @ [0, 60], moves @ ([1, 60] if unit is ADD else [1, 59]))]
    assert 0.8 < verify.check_pairs(right(1), pairs).exact.lower <= 1
    # A score taken for monotone, a score in units of m rows taken for one in rows, and a third too much.
    for factor in (2, 3, Fraction(4, 3)):
        verdict = verify.check_pairs(pretend(right(1).event, right(factor).law), pairs)
        assert verdict.refuted
        assert verdict.exact.lower > 0.8 * factor


def test_values_that_move_further_than_declared_stay_sealed():
    wide = Sensitivity(Fraction(3), Fraction(9), Fraction(3))
    mechanism = small_table(QUERIES["alike"], epsilon=1, sensitivity=2, rows=2)
    with pytest.raises(SealBroken):
        mechanism.release(sealed([0] * 6, wide))
    with pytest.raises(BadParameter, match="there are 2 imbalances; this mechanism takes 6"):
        mechanism.release(sealed([1, 2]))
    with pytest.raises(BadParameter, match="there are 2 imbalances; this mechanism takes 6"):
        mechanism.law([1, 2])


# --- Size -------------------------------------------------------------------------------------------------------------


def test_the_error_holds_and_is_that_of_the_exponential_mechanism():
    effects, counts = QUERIES["counts"], [200, 100, 400]
    mechanism = small_table(effects, epsilon=Fraction(1, 10), sensitivity=4, rows=4)
    wide = mechanism.error(0.9)
    assert wide == pytest.approx(exponential(epsilon=Fraction(1, 10), sensitivity=4).error(0.9, candidates=15) / 4)
    law = floats(mechanism.law(imbalance_effects(effects, rows=4) @ counts))
    worst = {table: score(effects, 4, counts, table) / 4 for table in law}
    assert sum(mass for table, mass in law.items() if worst[table] <= min(worst.values()) + wide) >= 0.9


def test_a_large_domain_with_few_kinds_is_small():
    effects = np.zeros((2, 1000), dtype=np.int64)
    effects[0, :10], effects[1, 5:] = 1, 1
    moves = imbalance_effects(effects, rows=4)
    sensitivity = matrix_sensitivity(moves, ADD)
    counts = np.bincount([0, 999], minlength=1000) * 50
    chosen = small_table(effects, epsilon=20, sensitivity=sensitivity, rows=4).release(
        sealed(moves @ counts, sensitivity)
    )
    assert list(chosen) == sorted(chosen)
    assert 0 <= min(chosen) <= max(chosen) < 1000
    assert effects[:, list(chosen)].sum(axis=1).tolist() == [2, 2]


@pytest.mark.parametrize(
    ("cells", "rows", "said"), [(32, 20, "10^13.9"), (4096, 8, "10^24.3"), (64, 40, "years"), (64, 10_000, "years")]
)
def test_what_cannot_be_listed_is_refused_with_the_number_when_the_mechanism_is_built(cells, rows, said):
    effects = np.random.default_rng(5).integers(0, 2, size=(64, cells))
    with pytest.raises(TooLarge, match="multisets") as caught:
        small_table(effects, epsilon=1, sensitivity=1, rows=rows)
    assert said in str(caught.value)


@pytest.mark.parametrize("effects", [[], [[]], [1, 2], [[0.5]], [["a"]], [[True]]])
def test_effects_must_be_a_matrix_of_whole_numbers(effects):
    with pytest.raises(BadParameter, match="effects has shape"):
        small_table(effects, epsilon=1, sensitivity=1, rows=2)


def test_bad_sizes_are_refused():
    for rows in (0, 1.5, None, True):
        with pytest.raises(BadParameter, match="rows is"):
            small_table([[1, 0]], epsilon=1, sensitivity=1, rows=rows)
    with pytest.raises(TooLarge, match="different answers"):
        small_table([[2**26, 0]], epsilon=1, sensitivity=1, rows=2)


def test_values_at_the_ends_of_64_bits_do_not_wrap_round():
    look, distances = levels(np.array([-(2**63), 2**63 - 1, 0]), np.array([[1, 0]]), 2)
    assert distances == [0, 2**62]
    assert look.ranks.tolist() == [1, 1, 0]


def test_laws_sum_to_one():
    law = small_table(QUERIES["sums"], epsilon=1, sensitivity=2, rows=4).law(range(18))
    assert abs(total(law) - 1) < 1e-50


@pytest.mark.long
def test_thirty_two_cells_and_eight_rows_take_less_than_a_minute():
    from time import perf_counter

    rng = np.random.default_rng(1)
    effects = rng.integers(0, 2, size=(64, 32))
    imbalances = imbalance_effects(effects, rows=8) @ rng.multinomial(2000, rng.dirichlet(np.ones(32)))
    mechanism = small_table(effects, epsilon=1, sensitivity=8, rows=8)
    start = perf_counter()
    chosen = mechanism.release(sealed(imbalances, ONE))
    assert perf_counter() - start < 60
    assert len(chosen) == 8

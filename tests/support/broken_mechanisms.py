"""Broken twins of the mechanisms: each claims what the right one claims, and `verify` must refute it.

They live here only. They have an event and a law and cannot release anything.
"""

from fractions import Fraction

from flint import arb

from discreet.accounting.event import AboveThreshold, Pure
from discreet.accounting.sensitivity import Sensitivity
from discreet.mechanism import exponential, gaussian, laplace, noisy_max, randomized_response, sparse_vector
from discreet.mechanism.protocol import LAW_BITS, Interactive, Law, Mechanism
from discreet.noise.law import laplace_mass, laplace_tail
from discreet.numeric import precision


def _never(*_, **__):
    raise AssertionError("a broken mechanism must not be run")


def pretend(event, law):
    """A mechanism that claims `event` and in truth follows `law`."""
    return Mechanism(event, _never, _never, law)


def laplace_too_little_noise(*, epsilon, sensitivity):
    right = laplace(epsilon=epsilon, sensitivity=sensitivity)
    return pretend(right.event, laplace(epsilon=Fraction(epsilon) / Fraction(9, 10), sensitivity=sensitivity).law)


def gaussian_too_little_noise(*, sigma, sensitivity):
    right = gaussian(sigma=sigma, sensitivity=sensitivity)
    return pretend(right.event, gaussian(sigma=Fraction(sigma) * Fraction(9, 10), sensitivity=sensitivity).law)


def gaussian_rounded_value_plus_float(*, sigma, sensitivity):
    """The float implementation: the true value leaves its fingerprint in the last bits, here in the parity."""
    right = gaussian(sigma=sigma, sensitivity=sensitivity)

    def law(values, beside=()):
        fine = right.law(values, beside)
        kept = {out: mass for out, mass in fine.probabilities.items() if (out[0] - values[0]) % 2 == 0}
        with precision(LAW_BITS):
            whole = sum(kept.values(), arb(0))
            return Law({out: mass / whole for out, mass in kept.items()}, fine.rest)

    return pretend(right.event, law)


def selection_twice_too_eager(make):
    """exp(e s/Δ) although scores move in opposite ways: the factor two of the non-monotone case forgotten."""

    def build(*, epsilon, sensitivity):
        right = make(epsilon=epsilon, sensitivity=sensitivity)
        return pretend(right.event, make(epsilon=2 * epsilon, sensitivity=sensitivity).law)

    return build


exponential_twice_too_eager = selection_twice_too_eager(exponential)
noisy_max_twice_too_eager = selection_twice_too_eager(noisy_max)


def noisy_max_with_its_value(*, epsilon, sensitivity):
    """Report noisy max that also tells the winning noisy score, on the grid of integers (geometric noise)."""
    rate = Fraction(epsilon) / 2

    def law(scores, beside=()):
        every = [score for table in (scores, *beside) for score in table]
        low, high = min(every), max(every) + 40 * int(1 / rate)
        with precision(LAW_BITS):
            fall = (-arb(rate.numerator) / rate.denominator).exp()

            def at_most(k, score):  # Pr[score + geometric ≤ k]
                return arb(0) if k < score else 1 - fall ** (k - score + 1)

            found = {}
            for place, score in enumerate(scores):
                for y in range(low, high):
                    mass = at_most(y, score) - at_most(y - 1, score)
                    for other, rival in enumerate(scores):
                        # Ties go to the first.
                        mass = mass * (1 if other == place else at_most(y - (other < place), rival))
                    found[place, y] = mass
            return Law(found, 1 - sum(found.values(), arb(0)))

    return pretend(Pure(Fraction(epsilon)), law)


def response_too_honest(*, epsilon, categories=2):
    right = randomized_response(epsilon=epsilon, categories=categories)
    return pretend(right.event, randomized_response(epsilon=Fraction(epsilon) * 11 / 10, categories=categories).law)


# --- Sparse vector: the variants of Lyu, Su and Li, by number, and two more -----------------------------------------


def stream_law(values, *, threshold, threshold_scale, query_scale, hits=None, refresh=False, tell=False):
    """A sparse vector written out: an oracle independent of `transcript.py`.

    `refresh` draws the threshold anew after a hit; `tell` releases the very noisy value that was compared. Threshold
    noise runs over a window; what is beyond is a bound on each outcome.
    """
    hits = len(values) if hits is None else hits
    reach = int(84 * threshold_scale) + 2
    shifts = list(range(-reach, reach + 1))
    with precision(LAW_BITS):
        fresh = [laplace_mass(shift, threshold_scale) for shift in shifts]
        beyond = (2 * (hits + 1) * laplace_tail(reach + 1, threshold_scale)).union(arb(0))
        span = int(20 * query_scale) + 2
        found, missing = {}, arb(0)

        def go(answers, left, weights):
            nonlocal missing
            time = len(answers)
            if time == len(values) or left == 0:
                found[answers] = sum(weights, arb(0)) + beyond
                return
            value = values[time]
            below = [1 - laplace_tail(threshold + z - value, query_scale) for z in shifts]
            go((*answers, None if tell else False), left, [w * b for w, b in zip(weights, below, strict=True)])
            if tell:
                for y in range(value - span, value + span + 1):
                    mass = laplace_mass(y - value, query_scale)
                    go(
                        (*answers, y),
                        left - 1,
                        [w * mass if threshold + z <= y else arb(0) for w, z in zip(weights, shifts, strict=True)],
                    )
                missing += 2 * laplace_tail(span + 1, query_scale)
            else:
                hit = [w * (1 - b) for w, b in zip(weights, below, strict=True)]
                go((*answers, True), left - 1, [sum(hit, arb(0)) * f for f in fresh] if refresh else hit)

        go((), hits, fresh)
        return Law(found, missing)


def variant(epsilon, **noise):
    def law(values, beside=()):
        return stream_law(values, **noise)

    return Interactive(AboveThreshold(Fraction(epsilon)), _never, _never, _never, law)


def algorithm_1(epsilon, *, threshold, hits):
    """[LSL17, Alg. 1], right: e₁ = e₂ = e/2, query noise 2cΔ/e₂."""
    half = Fraction(epsilon) / 2
    return variant(epsilon, threshold=threshold, threshold_scale=1 / half, query_scale=2 * hits / half, hits=hits)


def algorithm_2(epsilon, *, threshold, hits):
    """[DR14, Alg. 2], right: threshold noise cΔ/e₁, drawn anew after each hit; query noise 2cΔ/e₁."""
    half = Fraction(epsilon) / 2
    return variant(
        epsilon, threshold=threshold, threshold_scale=hits / half, query_scale=2 * hits / half, hits=hits, refresh=True
    )


def algorithm_3(epsilon, *, threshold, hits):
    """[Roth 2011], broken: the noise that was compared is released."""
    half = Fraction(epsilon) / 2
    return variant(
        epsilon, threshold=threshold, threshold_scale=1 / half, query_scale=hits / half, hits=hits, tell=True
    )


def algorithm_4(epsilon, *, threshold, hits):
    """[Lee, Clifton 2014], broken: query noise not scaled by c; it is ((1 + 6c)/4)e-DP."""
    quarter = Fraction(epsilon) / 4
    return variant(epsilon, threshold=threshold, threshold_scale=1 / quarter, query_scale=1 / (3 * quarter), hits=hits)


def algorithm_5(epsilon, *, threshold):
    """[Stoddard et al. 2014], broken: no query noise, no limit."""
    scale, reach = 2 / Fraction(epsilon), 50

    def law(values, beside=()):
        with precision(LAW_BITS):
            found = {}
            for shift in range(-reach, reach + 1):
                answers = tuple(value >= threshold + shift for value in values)
                # Beyond the window the answers are what they are at its ends.
                mass = laplace_mass(shift, scale) if abs(shift) < reach else laplace_tail(reach, scale)
                found[answers] = found.get(answers, arb(0)) + mass
            return Law(found, arb(0))

    return Interactive(AboveThreshold(Fraction(epsilon)), _never, _never, _never, law)


def algorithm_6(epsilon, *, threshold):
    """[Chen et al. 2015], broken: query noise Δ/e₂, no limit."""
    half = Fraction(epsilon) / 2
    return variant(epsilon, threshold=threshold, threshold_scale=1 / half, query_scale=1 / half)


def query_noise_reused(epsilon, *, threshold):
    """One draw of query noise for the whole stream: the comparison becomes exact again, as in Algorithm 5."""
    half = Fraction(epsilon) / 2
    threshold_scale, query_scale, reach = 1 / half, 2 / half, 60

    def law(values, beside=()):
        with precision(LAW_BITS):
            found, listed = {}, arb(0)
            for a in range(-reach, reach + 1):
                for b in range(-reach, reach + 1):
                    answers = []
                    for value in values:
                        answers.append(value + b >= threshold + a)
                        if answers[-1]:
                            break
                    mass = laplace_mass(a, threshold_scale) * laplace_mass(b, query_scale)
                    found[tuple(answers)] = found.get(tuple(answers), arb(0)) + mass
                    listed += mass
            return Law(found, 1 - listed)

    return Interactive(AboveThreshold(Fraction(epsilon)), _never, _never, _never, law)


def sparse_vector_one_way_by_mistake(epsilon, *, threshold, hits):
    """Query noise cΔ/e₂ although the queries move in opposite ways: a direction claimed and not kept."""
    half, up = Fraction(epsilon) / 2, Sensitivity(Fraction(1), Fraction(1), Fraction(1), direction=1)
    return sparse_vector(epsilon=epsilon, epsilon_threshold=half, sensitivity=up, threshold=threshold, hits=hits)

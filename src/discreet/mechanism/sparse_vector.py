"""Sparse vector: ask of a stream of values which are above a threshold, and pay only for those that are."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from discreet import noise
from discreet.accounting.event import AboveThreshold
from discreet.accounting.sensitivity import Sensitivity, read_sensitivity
from discreet.errors import BadParameter, Refusal
from discreet.mechanism.calibration import opened, require_size
from discreet.mechanism.laplace import laplace_half_width
from discreet.mechanism.protocol import Interactive, Law
from discreet.mechanism.transcript import transcript_law
from discreet.noise.sample import read_scale
from discreet.numeric import Number, positive, probability, whole
from discreet.source.source import Exact

# The answer for one value: whether it is above; or, where values are released, the noisy value or None for below.
StreamAnswer = bool | int | None


@dataclass(frozen=True, slots=True)
class Run:
    """The state of a run. The noisy threshold is secret: with it, the protection of every answer can be undone.

    Use each state once. Stepping twice from the same state is a second run behind the same threshold, and no proof
    covers it.
    """

    hits_left: int
    noisy_threshold: int = field(repr=False)


def above_threshold(
    *, epsilon: Number, sensitivity: Sensitivity | Number, threshold: int
) -> Interactive[Run, StreamAnswer]:
    """Release for each value in a stream whether it is above a threshold, until the first that is.

    Releases whether v_t + b_t ≥ T + a, with a ~ Lap(2Δ/e) and b_t ~ Lap(4Δ/e) (2Δ/e if neighbours move all values
    the same way), discrete. The whole run, however long, is e-DP.

    where e is `epsilon`, Δ the largest move of one value (linf), T is `threshold` and v_t the exact value at time t.

    >>> above_threshold(epsilon=1, sensitivity=1, threshold=100).event
    AboveThreshold(epsilon=Fraction(1, 1))

    [DR14, Thm. 3.23]; proof, and the price of the usual mistakes: sparse_vector.md
    """
    half = positive("epsilon", epsilon) / 2
    return sparse_vector(epsilon=epsilon, epsilon_threshold=half, sensitivity=sensitivity, threshold=threshold)


def sparse_vector(
    *,
    epsilon: Number,
    sensitivity: Sensitivity | Number,
    threshold: int,
    hits: int = 1,
    epsilon_threshold: Number | None = None,
    epsilon_values: Number | None = None,
) -> Interactive[Run, StreamAnswer]:
    """Release for each value in a stream whether it is above a threshold, until `hits` are.

    Releases whether v_t + b_t ≥ T + a, with a ~ Lap(Δ/e₁) drawn once and b_t ~ Lap(2cΔ/e₂) fresh each time (cΔ/e₂ if
    neighbours move all values the same way), discrete; with e₃, of each value above also v_t + Lap(cΔ/e₃), fresh.
    The whole run, however long, is (e₁ + e₂ + e₃)-DP. After the last hit it refuses.

    where c is `hits`, e₁ `epsilon_threshold`, e₃ `epsilon_values`, e₂ what they leave of `epsilon`, Δ the largest move
    of one value (linf), T is `threshold` and v_t the exact value at time t. Without e₁, e₁ : e₂ is about 1 : (2c)^⅔
    (1 : c^⅔), which makes the noise of the comparison smallest.

    A sensitivity with a direction (counts under `add_remove`) gets the smaller noise, and every value of the stream
    must then move in that direction: a count and the negative of a count do not fit in one run.

    `error(confidence, queries=k)` is an α such that, with this probability, each of k values called above is at least
    T − α and each called below is less than T + α.

    >>> watch = sparse_vector(epsilon=1, sensitivity=1, threshold=100, hits=3)
    >>> watch.event, watch.error(0.95, queries=1000)
    (AboveThreshold(epsilon=Fraction(1, 1)), 99.0)

    [LSL17, Alg. 7; 001]; proof for discrete noise, and the price of the usual mistakes: sparse_vector.md
    """
    calibrated = _whole_moves(read_sensitivity(sensitivity, "linf"))
    level = whole("threshold", threshold, least=-(2**62), most=2**62)
    most = whole("hits", hits, least=1, most=10**6)
    total = positive("epsilon", epsilon)
    first, second, third = _split(total, epsilon_threshold, epsilon_values, most, calibrated.monotone)
    moves = calibrated.linf
    threshold_scale = read_scale("scale", moves / first)
    query_scale = read_scale("scale", most * moves / second * (1 if calibrated.monotone else 2))
    value_scale = read_scale("scale", most * moves / third) if third else None

    def init() -> Run:
        return Run(most, level + noise.discrete_laplace(threshold_scale))

    def step(run: Run, exact: Exact) -> tuple[Run, StreamAnswer]:
        if run.hits_left == 0:
            raise Refusal(
                f"this sparse vector has found its {most} value{'s' if most > 1 else ''} above the threshold; "
                "it must stop there. Pay for a new one to go on."
            )
        require_size(exact, 1, 1)
        value = int(opened(exact, calibrated, "linf")[0])
        if value + noise.discrete_laplace(query_scale) < run.noisy_threshold:
            return run, False if value_scale is None else None
        # Fresh noise: the draw that won the comparison would reveal the threshold.
        answer = True if value_scale is None else value + noise.discrete_laplace(value_scale)
        return replace(run, hits_left=run.hits_left - 1), answer

    def error(confidence: Number, *, queries: int) -> float:
        # Half of the failure to the threshold, half to all the queries together.
        each = (1 + probability("confidence", confidence, next_step="Give one, say 0.95.")) / 2
        return laplace_half_width(threshold_scale, each) + laplace_half_width(query_scale, each, joint=queries)

    def law(values: Sequence[int], beside: Sequence[Sequence[int]] = ()) -> Law:
        return transcript_law(values, beside, level, most, (threshold_scale, query_scale, value_scale))

    return Interactive(AboveThreshold(total), init, step, error, law)


def run_stream(mechanism: Interactive[Run, StreamAnswer], stream: Iterable[Exact]) -> tuple[StreamAnswer, ...]:
    """The answers to a whole stream, ending at the last hit: a convenience for experiments.

    >>> from discreet.source.source import Exact
    >>> one = Sensitivity(l1=Fraction(1), l2_squared=Fraction(1), linf=Fraction(1))
    >>> run_stream(above_threshold(epsilon=10, sensitivity=1, threshold=500), [Exact(0, one), Exact(1000, one)])
    (False, True)
    """
    run, answers = mechanism.init(), list[StreamAnswer]()
    for exact in stream:
        if run.hits_left == 0:
            break
        run, answer = mechanism.step(run, exact)
        answers.append(answer)
    return tuple(answers)


def _whole_moves(sensitivity: Sensitivity) -> Sensitivity:
    if sensitivity.linf.denominator != 1:
        raise BadParameter(
            f"the linf sensitivity is {sensitivity.linf}; sparse vector needs a whole number, because its proof shifts "
            "integers by it. Round it down: integers that move by at most that move by at most its whole part."
        )
    return sensitivity


def _split(
    total: Fraction, threshold: Number | None, values: Number | None, hits: int, one_way: bool
) -> tuple[Fraction, Fraction, Fraction]:
    third = Fraction(0) if values is None else positive("epsilon_values", values)
    left = total - third
    if threshold is None:
        # Any split is private, so the cube root may be rounded.
        shares = Fraction((hits if one_way else 2 * hits) ** (2 / 3)).limit_denominator(100)
        first = left / (1 + shares)
    else:
        first = positive("epsilon_threshold", threshold)
    if left - first <= 0:
        raise BadParameter(
            f"epsilon is {total}; epsilon_threshold takes {first} of it and epsilon_values {third}. Some must be left "
            "for the queries. Give smaller parts."
        )
    return first, left - first, third

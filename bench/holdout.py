"""A holdout that is used again and again: naive, ours, and fresh rows beside them; and a leaderboard under attack.

python bench/holdout.py           writes bench/results/holdout.md and holdout.svg
python bench/holdout.py --quick   fewer rows and one seed, nothing written
"""

import argparse
import resource
import sys
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from time import process_time

import numpy as np

import discreet as dp
from discreet.learn.holdout.generalization import bassily, deviation, gaussian_answers, jung, splitting
from machine import describe

RESULTS = Path(__file__).parent / "results"
SIGNAL, CHECKS, CONFIDENCE = 20, 12, 0.95
KINDS = ("noise", "signal")


@dataclass(frozen=True)
class Sample:
    """Rows of signs, stored column by column, and their labels."""

    x: np.ndarray
    y: np.ndarray


def sample(rng, rows, features, bias):
    """Every feature is a fair coin; with a bias the first few agree with the label more often than not."""
    y = (rng.integers(0, 2, rows) * 2 - 1).astype(np.int8)
    x = np.empty((rows, features), dtype=np.int8, order="F")
    for at in range(0, features, 1000):
        bits = np.unpackbits(np.frombuffer(rng.bytes(125 * rows), dtype=np.uint8)).reshape(1000, rows)
        x[:, at : at + 1000] = (bits[: features - at].T.astype(np.int8) * 2) - 1
    for at in range(SIGNAL if bias else 0):
        x[:, at] = np.where(rng.random(rows) < bias, y, x[:, at])
    return Sample(x, y)


def agreement(found):
    """Of each feature, how often it is the label."""
    y = found.y.astype(np.float32)
    parts = [y @ found.x[:, at : at + 500].astype(np.float32) for at in range(0, found.x.shape[1], 500)]
    return 0.5 + np.concatenate(parts) / (2 * len(y))


def one_feature(at, sign):
    return lambda x, y: x[:, at] == sign * y


def vote(chosen, weights):
    """Whether a weighted vote of features is right; a tie says 1."""
    weights = weights.astype(np.float32)
    return lambda x, y: (np.where(x[:, chosen].astype(np.float32) @ weights >= 0, 1, -1)) == y


def chance_of(at, sign, bias):
    """How often a feature is right in the population."""
    return 0.5 + sign * bias / 2 * (at < SIGNAL)


def vote_chance(chosen, signs, bias):
    """How often a vote of signs is right in the population: exactly, by convolution."""
    law = np.ones(1)
    for at, sign in zip(chosen, signs, strict=True):
        right = chance_of(at, sign, bias)
        law = np.convolve(law, [1 - right, 0, right])
    margin = np.arange(len(law)) - len(chosen)
    return float(law[margin > 0].sum() + law[margin == 0].sum() / 2)


# --- Two ways to answer ----------------------------------------------------------------------------------------------


class Naive:
    """The mean over the held rows, as often as one likes."""

    def __init__(self, held):
        self.held, self.told = held, []

    def ask(self, statistic, truth):
        value = float(np.mean(statistic(self.held.x, self.held.y)))
        self.told.append((value, 0.0, truth, True))
        return value


class Ours:
    """The same through a `Holdout`; keeps of each answer what it stated, and the truth."""

    def __init__(self, train, held, epsilon, queries):
        self.holdout = dp.Holdout(
            (train.x, train.y),
            (held.x, held.y),
            epsilon=epsilon,
            queries=queries,
            checks=CHECKS,
            confidence=CONFIDENCE,
        )
        self.told = []

    def ask(self, statistic, truth):
        found = self.holdout.estimate(statistic)
        self.told.append((found.value, found.error, truth, truth is None or found.low <= truth <= found.high))
        return found.value


# --- Two analysts ----------------------------------------------------------------------------------------------------


def published(train_mean, ask, sizes, bias, rows):
    """The experiment of [DFHPRR15]: features that are 1/√n from a coin on both sets, and agree; votes of the best k.

    Asks of every feature that passes on the training rows. Yields the votes with their scores and their truth.
    """
    margin = 1 / (2 * sqrt(rows))
    ranked = [at for at in np.argsort(-np.abs(train_mean - 0.5)) if abs(train_mean[at] - 0.5) >= margin]
    signs = np.where(train_mean >= 0.5, 1, -1)
    kept = [at for at in ranked if ask(one_feature(at, signs[at]), chance_of(at, signs[at], bias)) >= 0.5 + margin]
    for size in sizes:
        chosen = np.array(kept[:size])
        truth = vote_chance(chosen, signs[chosen], bias)
        statistic = vote(chosen, signs[chosen])
        yield size, ask(statistic, truth), truth, statistic


def thousand(train_mean, ask, sizes, bias, rows):
    """A sharper analyst with a thousand questions: weighs the best features by what the holdout says of them."""
    ranked = np.argsort(-np.abs(train_mean - 0.5))[: 1000 - len(sizes)]
    signs = np.where(train_mean >= 0.5, 1, -1)
    heard = np.array([ask(one_feature(at, signs[at]), chance_of(at, signs[at], bias)) for at in ranked]) - 0.5
    for size in sizes:
        chosen = ranked[np.argsort(-np.abs(heard))[:size]]
        weights = (signs[ranked] * heard)[np.argsort(-np.abs(heard))[:size]]
        truth = 0.5 if bias == 0 else None
        yield size, ask(vote(chosen, weights), truth), truth, vote(chosen, weights)


ANALYSTS = {"published": published, "thousand": thousand}


@dataclass(frozen=True)
class Course:
    """What one analyst heard, with one holdout, on one draw of the rows."""

    analyst: str
    kind: str
    who: str
    seed: int
    sizes: list[int]
    scores: list[float]
    fresh: list[float]
    stated: list[float]
    answers: int
    held: int
    misses: float
    largest_stated: float
    hits: int
    bound: str


def courses(rows, features, sizes, seeds, epsilon):
    found = []
    for kind in KINDS:
        bias = 6 / sqrt(rows) if kind == "signal" else 0.0
        for seed in seeds:
            rng = np.random.default_rng([seed, KINDS.index(kind)])
            train, held, fresh = (sample(rng, rows, features, bias) for _ in range(3))
            train_mean = agreement(train)
            for name, analyst in ANALYSTS.items():
                steps = sizes[name]
                queries = 1000 if name == "thousand" else features // 2
                found += [
                    course(name, analyst, kind, who, seed, steps, train_mean, fresh, bias, rows)
                    for who in (Naive(held), Ours(train, held, epsilon, queries))
                ]
            print(f"{kind}, seed {seed}: {process_time():.0f} CPU s", file=sys.stderr)
    return found


def course(name, analyst, kind, who, seed, sizes, train_mean, fresh, bias, rows):
    votes = list(analyst(train_mean, who.ask, sizes, bias, rows))
    outside = [float(np.mean(statistic(fresh.x, fresh.y))) for *_, statistic in votes]
    told = [one for one in who.told if one[2] is not None]
    ours = isinstance(who, Ours)
    return Course(
        name,
        kind,
        "ours" if ours else "naive",
        seed,
        [size for size, *_ in votes],
        [score for _, score, *_ in votes],
        outside,
        [error for _, error, *_ in who.told[-len(votes) :]],
        len(who.told),
        sum(one[3] for one in told),
        max(abs(value - truth) for value, _, truth, _ in told),
        max(error for _, error, *_ in who.told),
        CHECKS - who.holdout.checks_left if ours else 0,
        who.holdout.bound if ours else "–",
    )


def courses_text(found, rows, features, epsilon):
    yield "## Features chosen by looking at the holdout"
    yield ""
    yield (
        f"{rows:,} rows to train and as many held out, {features:,} features that are fair coins, labels ±1; *signal*: "
        f"{SIGNAL} features agree with the label {0.5 + 3 / sqrt(rows):.2f} of the time. The *published* analyst "
        "[DFHPRR15] asks the holdout of each feature that is 1/√n from a coin on the training rows, keeps those that "
        "are so on the holdout too, and then asks of votes of the best k. The analyst with a *thousand* questions asks "
        "of the best features, weighs each by what the holdout said, and asks of votes of those with the largest "
        f"weights. Ours: `dp.Holdout(…, epsilon={epsilon}, checks={CHECKS})`, confidence {CONFIDENCE:.0%}. *Says* and "
        "*fresh* are of the largest vote, on average; fresh is measured on rows that nobody has seen. *Miss* is the "
        "largest distance of any answer from the truth, in any run; *stated* the largest error that any answer stated."
    )
    yield ""
    yield "| analyst | data | holdout | questions | says | fresh | miss | stated | answers within | hits |"
    yield "|---" * 10 + "|"
    for analyst in ANALYSTS:
        for kind in KINDS:
            for who in ("naive", "ours"):
                here = [one for one in found if (one.analyst, one.kind, one.who) == (analyst, kind, who)]
                answers = [one.answers for one in here]
                checked = sum(one.answers - (len(one.sizes) if _unknown(one) else 0) for one in here)
                stated = f"{max(one.largest_stated for one in here):.3f}" if who == "ours" else "–"
                within = f"{sum(one.held for one in here):,} of {checked:,}" if who == "ours" else "–"
                hits = f"{min(one.hits for one in here)}–{max(one.hits for one in here)}" if who == "ours" else "–"
                yield (
                    f"| {analyst} | {kind} | {who} | {min(answers):,}–{max(answers):,} | "
                    f"**{np.mean([one.scores[-1] for one in here]):.3f}** | "
                    f"{np.mean([one.fresh[-1] for one in here]):.3f} | {max(one.misses for one in here):.3f} | "
                    f"{stated} | {within} | {hits} |"
                )
    ours = [one for one in found if one.who == "ours"]
    yield ""
    yield (
        f"{len({one.seed for one in found})} seeds. The bound taken: {', '.join({one.bound for one in ours})}. "
        "(Of a weighted vote with signal the truth is not computed; it is beside, on fresh rows.)"
    )


def _unknown(one):
    return one.analyst == "thousand" and one.kind == "signal"


# --- What each bound would have said ---------------------------------------------------------------------------------


def bounds_text(sizes, epsilons):
    yield "## The bounds"
    yield ""
    yield (
        f"The error that can be stated for 1,000 questions and {CHECKS} checks, confidence {CONFIDENCE:.0%}: of the "
        "first answer and of the last by description length, which is what is taken, and of the last with a delta of "
        "1e-6; of any answer by the transfer theorem of [JLNRSS20] and by that of [BNSSSU16], for the noise without "
        "delta; and, whatever epsilon is, by Gaussian noise on every answer with [JLNRSS20], by sample splitting, and "
        "by Hoeffding's bound for questions that were fixed in advance."
    )
    yield ""
    others = "[JLNRSS20] | [BNSSSU16] | Gaussian, all | splitting | not adaptive"
    yield f"| rows | epsilon | first | last | with delta | {others} |"
    yield "|---" * 10 + "|"
    for rows in sizes:
        for epsilon in epsilons:
            zeros, whole = np.zeros(rows, dtype=np.int8), rows * 2**20
            holdout = dp.Holdout(zeros, zeros, epsilon=epsilon, checks=CHECKS)
            tossing = dp.Holdout(zeros, zeros, epsilon=epsilon, delta=1e-6, checks=CHECKS)

            def accuracy(chance, holdout=holdout, whole=whole):
                return max(holdout.design.errors(chance)) / whole

            failure = 1 - CONFIDENCE
            private = {"epsilon": epsilon, "delta": 0.0, "failure": failure}
            others = [
                tossing.worst_error,
                min(jung(accuracy, **private), 1.0),
                bassily(accuracy, **private),
                gaussian_answers(rows=rows, queries=1000, failure=failure),
                splitting(rows=rows, queries=1000, failure=failure),
                deviation(rows, np.log(2000 / failure)),
            ]
            numbers = " | ".join(f"{one:.3f}" for one in others)
            yield f"| {rows:,} | {epsilon:g} | {holdout.error:.3f} | **{holdout.worst_error:.3f}** | {numbers} |"


# --- The leaderboard -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Climb:
    """After so many random submissions: what the majority scores on the naive board, on ours, and in truth."""

    submissions: int
    naive: list[float]
    ours: list[float]
    high: list[float]


def climbs(rows, numbers, seeds):
    found = []
    for submissions in numbers:
        naive, ours, high = [], [], []
        for seed in seeds:
            rng = np.random.default_rng([seed, submissions])
            labels = rng.integers(0, 2, rows)
            guesses = rng.integers(0, 2, size=(submissions, rows), dtype=np.int8)
            better = np.mean(guesses == labels, axis=1) > 0.5
            naive.append(float(np.mean(majority(guesses[better], rng) == labels)))
            board = dp.Leaderboard(labels, epsilon=4, start=0.5, submissions=submissions + 1)
            told = np.array([board.submit(guess).improved for guess in guesses])
            last = board.submit(majority(guesses[told], rng))
            ours.append(last.best)
            high.append(last.high)
        found.append(Climb(submissions, naive, ours, high))
    return found


def majority(kept, rng):
    votes = 2 * kept.sum(axis=0, dtype=np.int64) - len(kept)
    return np.where(votes == 0, rng.integers(0, 2, kept.shape[1]), votes > 0)


def climbs_text(found, rows):
    yield "## The leaderboard"
    yield ""
    yield (
        f"The boosting attack of [BH15] on {rows:,} labels: random submissions, then the majority of those that the "
        "board called better than a guess. The truth is 0.5. Ours: `dp.Leaderboard(labels, epsilon=4, start=0.5)`, "
        "step by its own rule; *at most* is the upper end of what it says of the best submission in the population."
    )
    yield ""
    yield "| submissions | a naive board says | ours says | at most |"
    yield "|---" * 4 + "|"
    for one in found:
        naive, ours, high = (np.mean(scores) for scores in (one.naive, one.ours, one.high))
        yield f"| {one.submissions:,} | **{naive:.3f}** | {ours:.3f} | {high:.3f} |"


def draw(found, climbed, path):
    import matplotlib

    matplotlib.use("svg")
    # The same figure is the same bytes.
    matplotlib.rcParams |= {"svg.hashsalt": "holdout", "svg.fonttype": "none", "font.size": 8}
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, 3, figsize=(13, 4.2), layout="constrained")
    for axes, kind in zip(panels, KINDS, strict=False):
        for who, color in (("naive", "C3"), ("ours", "C0")):
            here = [one for one in found if (one.analyst, one.kind, one.who) == ("published", kind, who)]
            sizes = here[0].sizes
            scores, fresh = (np.mean([getattr(one, name) for one in here], axis=0) for name in ("scores", "fresh"))
            axes.plot(sizes, scores, "o-", ms=3, color=color, label=f"{who}: what it says")
            axes.plot(sizes, fresh, "--", lw=1, color=color, label=f"{who}: the same votes on fresh rows")
            if who == "ours":
                stated = np.mean([one.stated for one in here], axis=0)
                axes.fill_between(
                    sizes, scores - stated, scores + stated, color=color, alpha=0.12, lw=0, label="stated"
                )
        axes.set(title=f"Votes of chosen features: {kind}", xlabel="features", ylabel="accuracy", ylim=(0.35, 0.75))
    right = panels[2]
    numbers = [one.submissions for one in climbed]
    right.plot(numbers, [np.mean(one.naive) for one in climbed], "o-", ms=3, color="C3", label="naive: what it says")
    right.plot(numbers, [np.mean(one.ours) for one in climbed], "o-", ms=3, color="C0", label="ours: what it says")
    right.plot(numbers, [np.mean(one.high) for one in climbed], ":", color="C0", label="ours: at most")
    right.axhline(0.5, color="k", lw=0.8, label="truth")
    right.set(title="A leaderboard under attack", xlabel="random submissions", ylabel="accuracy", ylim=(0.35, 0.75))
    for axes in panels:
        axes.legend(fontsize=7)
        axes.grid(alpha=0.2)
    figure.savefig(path, metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rows and one seed, nothing written")
    quick = parser.parse_args().quick
    rows = features = 2_000 if quick else 10_000
    epsilon = 4
    largest = 100 if quick else 500
    steps = [largest * part // 10 for part in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)]
    sizes = {"published": steps, "thousand": [part * 99 for part in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)]}
    found = courses(rows, features, sizes, range(1) if quick else range(5), epsilon)
    climbed = climbs(
        500 if quick else 4000, (10, 100) if quick else (10, 50, 100, 200, 400, 700, 1000), range(1 if quick else 5)
    )
    lines = ["# The reusable holdout", "", describe("scipy"), "", "![](holdout.svg)", ""]
    lines += [*courses_text(found, rows, features, epsilon), ""]
    lines += [*bounds_text((1000, 10_000, 100_000, 1_000_000), (0.1, 1, 4)), ""]
    lines += [*climbs_text(climbed, 500 if quick else 4000), ""]
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    lines += [f"All of this took {process_time():.0f} CPU seconds and {most:.1f} GB.", ""]
    print("\n".join(lines))
    if not quick:
        (RESULTS / "holdout.md").write_text("\n".join(lines))
        draw(found, climbed, RESULTS / "holdout.svg")


if __name__ == "__main__":
    main()

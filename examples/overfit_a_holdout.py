"""Choose features by looking at a holdout set, until it says 60 % where the truth is 50 %; then ask a `Holdout`."""

import numpy as np

import discreet as dp

draw = np.random.default_rng(4)  # 2,000 coins for each of 1,000 features, and labels that have nothing to do with them
rows, features = 2000, 1000
train, held, fresh = (
    (draw.integers(0, 2, (rows, features), dtype=np.int8), draw.integers(0, 2, rows, dtype=np.int8)) for _ in range(3)
)
ranked = np.argsort(-np.abs((train[0] == train[1][:, None]).mean(axis=0) - 0.5))[:500]


def choose(ask):
    """Keep the features of which the holdout says that they help, and vote."""
    kept = [at for at in ranked if ask(lambda x, y, at=at: x[:, at] == y) > 0.5]
    return lambda x, y: (x[:, kept].mean(axis=1) > 0.5) == y


def naive(statistic):
    """The mean on the held rows."""
    return statistic(*held).mean()


holdout = dp.Holdout(train, held, epsilon=4, queries=600, checks=5)
for name, ask in (("naive", naive), ("ours", lambda statistic: holdout.estimate(statistic).value)):
    vote = choose(ask)
    said = f"{naive(vote):.3f}" if name == "naive" else str(holdout.estimate(vote))
    print(f"{name:>6} says {said}")
    print(f"       on fresh rows it is {vote(*fresh).mean():.3f}")

"""Learning under the same guarantee: private k-means, a holdout set that can be used again and again, a leaderboard.

Each name loads its module when first used: an estimator loads scikit-learn, a holdout does not.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.learn.holdout.holdout import Holdout
    from discreet.learn.holdout.leaderboard import Leaderboard
    from discreet.learn.kmeans.clustering import KMeans

__all__ = ["Holdout", "KMeans", "Leaderboard"]

_HOMES = {"Holdout": "holdout.holdout", "KMeans": "kmeans.clustering", "Leaderboard": "holdout.leaderboard"}


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module(f"discreet.learn.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'discreet.learn' has no attribute {name!r}")

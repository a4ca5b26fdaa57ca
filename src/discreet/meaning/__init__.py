"""What a guarantee means to a person: odds, beliefs, utility, the best possible test, families, and what is not hidden.

`explain` computes it from (epsilon, delta) alone; the others compute it exactly from the law of a mechanism on small
tables. They load when first used, so that explaining a number is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from discreet.meaning.guarantee import GroupGuarantee, Meaning, best_power, explain

if TYPE_CHECKING:
    from discreet.meaning.belief import Shift, Worlds, attained_shift, possible_worlds, posteriors, worst_shift
    from discreet.meaning.guarantee_page import meaning_page
    from discreet.meaning.secrecy import Exposure, additive_secrecy, name_and_shame_exposure
    from discreet.meaning.study import (
        Learned,
        Study,
        largest_difference,
        learned,
        run_study,
        typical_beliefs,
        typical_difference,
    )
    from discreet.meaning.tradeoff import Tradeoff, best_test, gaussian_misses, promised_misses
    from discreet.meaning.utility import expected_utility, least_share

__all__ = [
    "Exposure",
    "GroupGuarantee",
    "Learned",
    "Meaning",
    "Shift",
    "Study",
    "Tradeoff",
    "Worlds",
    "additive_secrecy",
    "attained_shift",
    "best_power",
    "best_test",
    "expected_utility",
    "explain",
    "gaussian_misses",
    "largest_difference",
    "learned",
    "least_share",
    "meaning_page",
    "name_and_shame_exposure",
    "possible_worlds",
    "posteriors",
    "promised_misses",
    "run_study",
    "typical_beliefs",
    "typical_difference",
    "worst_shift",
]

_HOMES = {
    "belief": "Shift Worlds attained_shift possible_worlds posteriors worst_shift",
    "guarantee_page": "meaning_page",
    "secrecy": "Exposure additive_secrecy name_and_shame_exposure",
    "study": "Learned Study largest_difference learned run_study typical_beliefs typical_difference",
    "tradeoff": "Tradeoff best_test gaussian_misses promised_misses",
    "utility": "expected_utility least_share",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"discreet.meaning.{_HOME[name]}"), name)
    raise AttributeError(f"module 'discreet.meaning' has no attribute {name!r}")

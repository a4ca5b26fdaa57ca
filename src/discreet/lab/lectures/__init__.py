"""Each theorem, example and figure of the lecture notes: the claim beside the measurement."""

from discreet.lab.lectures.catalogue import claims, find
from discreet.lab.lectures.claim import Claim, Finding, Outcome

__all__ = ["Claim", "Finding", "Outcome", "claims", "find"]

"""The curator: many questions, one budget. The only object with effects."""

from discreet.curator.curator import Curator
from discreet.curator.explanation import Plan
from discreet.curator.release import Bill, Release

__all__ = ["Bill", "Curator", "Plan", "Release"]

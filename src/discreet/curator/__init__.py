"""The curator: many questions, one budget. The only object with effects."""

from discreet.curator.curator import Curator
from discreet.curator.promise import Plan

__all__ = ["Curator", "Plan"]

"""Offline: the questions are known in advance, and one table answers them all."""

from discreet.release.mwem import mwem
from discreet.release.smalldb import promised_error, sample_size, sampled_rows, small_db

__all__ = ["mwem", "promised_error", "sample_size", "sampled_rows", "small_db"]

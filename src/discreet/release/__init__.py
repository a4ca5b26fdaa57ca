"""Releases: the questions are known in advance, and one model answers them all."""

"""Offline: the questions are known in advance, and one table answers them all."""

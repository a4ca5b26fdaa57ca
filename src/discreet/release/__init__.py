"""Releases: the workload is known in advance, and one model answers all of it."""

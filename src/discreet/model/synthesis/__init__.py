"""Synthetic rows: whole rows whose counts are close to those of a model."""

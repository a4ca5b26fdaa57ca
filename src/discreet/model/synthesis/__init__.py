"""Synthetic rows: whole rows whose counts are near those of a model."""

"""Predicted errors of a release: what noise adds, and what a model leaves out."""

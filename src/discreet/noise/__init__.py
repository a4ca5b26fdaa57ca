"""Exact integer samplers on the randomness of the operating system."""

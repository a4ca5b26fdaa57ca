"""A real table to try things on: Adult, 48,842 people of a census survey of 1994. Its card is adult.md."""

from pathlib import Path

__all__ = ["ADULT"]

# The schema file; it names the Parquet file beside it.
ADULT = Path(__file__).with_name("adult.yaml")

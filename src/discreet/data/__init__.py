"""A real table to try things on: Adult, 48,842 people of a census survey of 1994. Its card is adult.md."""

from pathlib import Path

from discreet.source.table import Table, open

__all__ = ["ADULT", "load_adult"]

# The schema file; it names the Parquet file beside it.
ADULT = Path(__file__).with_name("adult.yaml")


def load_adult() -> Table:
    """The bundled census table, under protection.

    >>> load_adult().domain["education"].labels[-1]
    'Doctorate'
    """
    return open(ADULT, in_memory=True)

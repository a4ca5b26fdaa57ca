"""Where the private rows are."""

from discreet.source.effect import sensitivity_of
from discreet.source.exact import Exact
from discreet.source.frame import Frame
from discreet.source.source import Source
from discreet.source.table import Table, open

__all__ = ["Exact", "Frame", "Source", "Table", "open", "sensitivity_of"]

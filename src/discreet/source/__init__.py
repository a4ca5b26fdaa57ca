"""Where the private rows are."""

from discreet.source.effect import sensitivity_of
from discreet.source.exact import Exact
from discreet.source.frame import Frame
from discreet.source.table import Source, Table, open

__all__ = ["Exact", "Frame", "Source", "Table", "open", "sensitivity_of"]

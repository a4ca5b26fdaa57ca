"""Where the private rows are."""

from discreet.source.frame import Frame
from discreet.source.query_sensitivity import sensitivity_of
from discreet.source.source import Exact, Source
from discreet.source.table import Table, open

__all__ = ["Exact", "Frame", "Source", "Table", "open", "sensitivity_of"]

"""What has been revealed, as a lattice: estimate and variance of any query."""

from discreet.known.bars import Bars, estimate, number_bars
from discreet.known.known import Estimate, Known

__all__ = ["Bars", "Estimate", "Known", "estimate", "number_bars"]

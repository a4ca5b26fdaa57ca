"""The types of arrays, and tuples of column names: defined here only."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Columns = tuple[str, ...]

Floats = NDArray[np.float64]
# The same, where counts and estimates are meant.
Numbers = Floats
Singles = NDArray[np.float32]
# Single or double precision.
Reals = NDArray[np.floating[Any]]
Complexes = NDArray[np.complex128]
Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]
Words = NDArray[np.uint64]
Bools = NDArray[np.bool_]
# The cell of each row in one column, in as few bytes as hold the number of cells.
CellCodes = NDArray[np.integer[Any]]

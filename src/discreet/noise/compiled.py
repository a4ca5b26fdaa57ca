"""The kernels, compiled when many draws are wanted and plain when few: a handful must not wait for a compiler."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from discreet import jit
from discreet.noise.kernel import evaluate, quantile, split, split_by_bits
from discreet.noise.table import Table
from discreet.types import Ints

# Loading the compiler and the machine code takes as long as this many plain draws: rent until you would have bought.
MANY = 250_000
_drawn: Counter[Callable[..., None]] = Counter()


def runner(loop: Callable[..., None], draws: int) -> Callable[..., None]:
    """One of the loops of kernel.py, ready for arrays: plain Python until `MANY` draws were wanted of it."""
    _drawn[loop] += draws
    if draws >= 64 and _drawn[loop] >= MANY:
        machine_code = compiled_kernel(loop)
        return lambda words, table, *rest: machine_code(words, table.array, *rest)
    return lambda words, table, *rest: _plain(loop, words, table, *rest)


def _plain(loop: Callable[..., None], words: Ints, table: Table, *rest: Any) -> None:
    # Python's own ints and floats are several times faster, one by one, than numpy's.
    loop(words.tolist(), table.plain, *rest)


def compiled_kernel(loop: Callable[..., None]) -> Callable[..., None]:
    """A loop of kernel.py as machine code."""
    jit.inline(quantile)
    jit.inline(evaluate)
    jit.substitute(split, split_by_bits)
    # A fused multiply-add omits a rounding, so the error budget of the kernel covers it.
    return jit.compiled(loop, fused=True)

"""The kernels, compiled when many draws are wanted and plain when few: a handful must not wait for a compiler."""

from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any

from discreet.noise import kernel
from discreet.noise.entropy import Words
from discreet.noise.table import Table

# Loading the compiler and the machine code takes as long as so many plain draws: rent until you would have bought.
MANY = 250_000
_drawn: Counter[Callable[..., None]] = Counter()


def runner(loop: Callable[..., None], draws: int) -> Callable[..., None]:
    """One of the loops of kernel.py, ready for arrays: plain Python until so many draws were wanted of it."""
    _drawn[loop] += draws
    if draws >= 64 and _drawn[loop] >= MANY:
        machine_code = _compiled(loop)
        return lambda words, table, *rest: machine_code(words, table.array, *rest)
    return lambda words, table, *rest: _plain(loop, words, table, *rest)


def _plain(loop: Callable[..., None], words: Words, table: Table, *rest: Any) -> None:
    # Python's own ints and floats are several times faster, one by one, than numpy's.
    loop(words.tolist(), table.plain, *rest)


@cache
def _compiled(loop: Callable[..., None]) -> Callable[..., None]:
    """Kept on disk between runs where that is possible."""
    from numba import njit

    _let_numba_use_the_plain_functions()
    # A fused multiply-add omits a rounding, so the error budget of the kernel covers it.
    options: dict[str, Any] = {"nogil": True, "fastmath": {"contract"}}
    try:
        machine_code: Callable[..., None] = njit(loop, cache=True, **options)
    except RuntimeError:
        # There is no folder to write to: compile anew in each process.
        machine_code = njit(loop, **options)
    return machine_code


@cache
def _let_numba_use_the_plain_functions() -> None:
    from numba.extending import overload, register_jitable

    register_jitable(kernel.quantile)
    register_jitable(kernel.evaluate)

    @overload(kernel.split)
    def implementation(value: float) -> Any:
        return kernel.split_by_bits

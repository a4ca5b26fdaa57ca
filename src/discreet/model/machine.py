"""Kernels as machine code, made when first called: importing must not load a compiler."""

from collections.abc import Callable
from functools import cache
from typing import Any


@cache
def compiled(loop: Callable[..., Any], *, any_order: bool = True) -> Callable[..., Any]:
    """A kernel as machine code, kept on disk between runs where that is possible.

    Sums may be taken in `any_order`, the same each time: the machine code is fixed.
    """
    from numba import njit

    options: dict[str, Any] = {"nogil": True, "fastmath": {"contract", "reassoc", "nsz"} if any_order else False}
    try:
        machine_code: Callable[..., Any] = njit(loop, cache=True, **options)
    except RuntimeError:
        # There is no folder to write to: compile anew in each process.
        machine_code = njit(loop, **options)
    return machine_code

"""Kernels as machine code, made when first called: importing must not load a compiler. And one processor for a fit."""

from collections.abc import Callable
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

# Fixed machine code is not enough for the same bits each time: a loop that writes to one array and reads others has two
# ways, and takes the one with vectors only if the arrays lie far enough apart in memory. So an order is free only where
# they are always as far apart as the loop is long; and how many numbers are added at once depends on the machine.
_ANY_ORDER = {"contract", "reassoc", "nsz"}


@cache
def part(function: Callable[..., Any], *, any_order: bool = False) -> None:
    """Let kernels call a function; within it, sums are taken as they are written, or in `any_order`."""
    from numba.extending import register_jitable

    register_jitable(fastmath=_ANY_ORDER if any_order else False)(function)


@cache
def compiled(loop: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel as machine code, kept on disk between runs where that is possible; sums are taken as it says."""
    from numba import njit

    options: dict[str, Any] = {"nogil": True}
    try:
        machine_code: Callable[..., Any] = njit(loop, cache=True, **options)
    except RuntimeError:
        # There is no folder to write to: compile anew in each process.
        machine_code = njit(loop, **options)
    return machine_code


def on_one_processor(function: Callable[P, R]) -> Callable[P, R]:
    """The same function, and no product of matrices in it takes more than one processor.

    Ours are small: on two processors they took twice the CPU seconds, and no less time.
    """

    @wraps(function)
    def alone(*args: P.args, **named: P.kwargs) -> R:
        from threadpoolctl import threadpool_limits

        with threadpool_limits(limits=1, user_api="blas"):
            return function(*args, **named)

    return alone

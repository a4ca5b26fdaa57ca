"""Kernels compiled by numba when first called (importing must not load a compiler), and fits on one BLAS thread."""

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from discreet.cache import memoize

_P = ParamSpec("_P")
_R = TypeVar("_R")

# Fixed machine code is not enough for the same bits each time: numba compiles a loop that writes to one array and reads
# others twice, and takes the vectorised version only if the arrays lie far enough apart in memory. So sums may be
# reordered only where the arrays are always as far apart as the loop is long; and how many numbers a vector holds
# depends on the processor.
_ANY_ORDER = {"contract", "reassoc", "nsz"}


@memoize(256)
def inline(function: Callable[..., Any], *, any_order: bool = False) -> None:
    """Let kernels call a function. Its sums are taken as they are written, or in `any_order`."""
    from numba.extending import register_jitable

    register_jitable(fastmath=_ANY_ORDER if any_order else False, forceinline=not any_order)(function)


@memoize(256)
def substitute(function: Callable[..., Any], by: Callable[..., Any]) -> None:
    """Let kernels that call `function`, of one argument, run `by` instead."""
    from numba.extending import overload

    @overload(function, strict=False)
    def implementation(_: Any) -> Any:
        return by


@memoize(256)
def compiled(loop: Callable[..., Any], *, fused: bool = False) -> Callable[..., Any]:
    """A kernel as machine code, cached on disk where that is possible.

    Sums are taken as they are written; `fused` allows a multiply-add with one rounding instead of two.
    """
    from numba import njit

    options: dict[str, Any] = {"nogil": True, "fastmath": {"contract"} if fused else False}
    try:
        machine_code: Callable[..., Any] = njit(loop, cache=True, **options)
    except RuntimeError:
        # There is no folder to write to: compile anew in each process.
        machine_code = njit(loop, **options)
    return machine_code


def on_one_processor(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """The same function, whose matrix products use one BLAS thread.

    Our matrices are small: on two processors they took twice the CPU seconds, and no less time.
    """

    @wraps(function)
    def limited(*args: _P.args, **named: _P.kwargs) -> _R:
        from threadpoolctl import threadpool_limits

        with threadpool_limits(limits=1, user_api="blas"):
            return function(*args, **named)

    return limited

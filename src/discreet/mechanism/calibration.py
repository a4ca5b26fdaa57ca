"""What every mechanism does before it draws: read its sensitivity, and open the seal with it."""

from collections.abc import Sequence
from fractions import Fraction
from numbers import Rational
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.sensitivity import NORMS, Sensitivity, SensitivityNorm
from discreet.errors import BadParameter
from discreet.source.source import Exact, unseal


def opened(exact: Exact, calibrated: Sensitivity, norm: SensitivityNorm) -> NDArray[np.int64]:
    """The true integers, if their sensitivity, in the norm that the noise uses, is at most the calibrated one."""
    if isinstance(exact, Exact):
        moves = {name: getattr(calibrated if name == norm else exact.sensitivity, name) for name in NORMS}
        calibrated = Sensitivity(**moves, direction=calibrated.direction if norm == "linf" else 0)
    return unseal(exact, calibrated)


def read_values(values: Sequence[Any] | NDArray[np.int64], name: str = "values") -> tuple[Fraction, ...]:
    """True values handed to a law: at least one, all of them exact numbers.

    >>> read_values([1, float("nan")], "scores")
    Traceback (most recent call last):
    discreet.errors.BadParameter: scores[1] is nan; it must be a whole number or a Fraction. A law takes true integers.
    """
    listed = values.tolist() if isinstance(values, np.ndarray) else list(values)
    if not listed:
        raise BadParameter(f"{name} is empty; it must hold at least one number. Give a list of ints.")
    for place, value in enumerate(listed):
        if isinstance(value, bool) or not isinstance(value, Rational | np.integer):
            raise BadParameter(
                f"{name}[{place}] is {value!r}; it must be a whole number or a Fraction. A law takes true integers."
            )
    return tuple(Fraction(int(value)) if isinstance(value, np.integer) else Fraction(value) for value in listed)


def read_integers(values: Sequence[Any] | NDArray[np.int64], name: str = "values") -> tuple[int, ...]:
    """True values to which discrete noise is added: at least one, all of them whole."""
    exact = read_values(values, name)
    if any(value.denominator != 1 for value in exact):
        raise BadParameter(f"{name} has a fraction; the noise is for integers. Scale the query to integers.")
    return tuple(int(value) for value in exact)


def require_size(exact: Exact, least: int, most: int | None = None, *, what: str = "values") -> None:
    """Refuse a vector of the wrong length. The schema decides lengths, so they are public."""
    if isinstance(exact, Exact) and (exact.size < least or (most is not None and exact.size > most)):
        match most:
            case None:
                rule = f"at least {least}"
            case _ if most == least:
                rule = f"{least}"
            case _:
                rule = f"{least} to {most}"
        raise BadParameter(f"there are {exact.size} {what}; this mechanism takes {rule}. Check the measurement.")

"""The sealed true value: integers that only a mechanism may open."""

from fractions import Fraction
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from discreet.errors import SealBroken
from discreet.privacy.sensitivity import Sensitivity


class Exact:
    """True integers computed from private rows, with the sensitivity of how they were computed.

    It shows its shape and nothing else; it cannot be compared, hashed, copied, pickled, iterated or made an array.
    Only `mechanism/` opens it, by `unseal`, which checks that the noise was calibrated for it.
    """

    __slots__ = ("_Exact__values", "sensitivity", "stretches")
    __values: NDArray[np.int64]
    sensitivity: Sensitivity
    # If not empty, the sensitivity is that of the values divided by these standard deviations, stretch by stretch.
    stretches: tuple[tuple[Fraction, int], ...]

    def __init__(
        self, values: NDArray[np.int64], sensitivity: Sensitivity, stretches: tuple[tuple[Fraction, int], ...] = ()
    ) -> None:
        sealed = np.array(values, dtype=np.int64, ndmin=1)
        sealed.setflags(write=False)
        object.__setattr__(self, "_Exact__values", sealed)
        object.__setattr__(self, "sensitivity", sensitivity)
        object.__setattr__(self, "stretches", stretches)

    @property
    def size(self) -> int:
        """How many integers there are; the schema decides it, so it is public."""
        return int(self.__values.size)

    def __repr__(self) -> str:
        return f"<Exact, sealed: {self.size} integer{'s' if self.size != 1 else ''}>"

    def _refuse(self, *_: object) -> NoReturn:
        raise SealBroken("an Exact is sealed: only a mechanism may open it. Pass it to a mechanism's release().")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __hash__ = _refuse
    __bool__ = __iter__ = __len__ = __getitem__ = __array__ = _refuse
    __int__ = __float__ = __index__ = __add__ = __sub__ = __mul__ = _refuse
    __reduce__ = __reduce_ex__ = __copy__ = __deepcopy__ = __getstate__ = _refuse
    __setattr__ = __delattr__ = _refuse


def unseal(
    exact: Exact, calibrated: Sensitivity, *, stretches: tuple[tuple[Fraction, int], ...] = ()
) -> NDArray[np.int64]:
    """The true integers, for noise calibrated to `calibrated`. For `mechanism/` alone (the architecture test looks)."""
    if not isinstance(exact, Exact):
        raise SealBroken(f"a mechanism takes an Exact from a source, not {type(exact).__name__}.")
    if exact.stretches != stretches:
        raise SealBroken(
            "the values were measured for other noise than this mechanism adds. Build it for the same measurement."
        )
    if not calibrated.covers(exact.sensitivity):
        raise SealBroken(
            f"the noise is calibrated to {calibrated} and the value moves by {exact.sensitivity}. "
            "Build the mechanism with sensitivity=exact.sensitivity."
        )
    values: NDArray[np.int64] = exact._Exact__values  # type: ignore[attr-defined]
    return values

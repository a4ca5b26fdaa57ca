"""Several sealed values one after the other: each keeps its own seal, and is opened for how far a person moves it."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from discreet.errors import BadParameter, SealBroken
from discreet.mechanism.calibration import opened, read_integers, read_sensitivity
from discreet.parameter import Number
from discreet.privacy.sensitivity import Sensitivity
from discreet.source.exact import Exact
from discreet.types import Ints

# Within these no difference of a value, an expected one and a handicap leaves 64 bits.
FARTHEST = 2**60


class Parts(Exact):
    """Sealed values, say the marginals that a source evaluated one by one, as one thing that a mechanism takes.

    It holds the sealed values themselves and no integer of its own. So there is nothing to declare: how far one person
    moves each part is what its own seal says, and a mechanism that is not made for parts finds nothing to open.

    >>> one = Sensitivity(Fraction(1), Fraction(1), Fraction(1))
    >>> Parts([Exact(np.array([3, 4]), one), Exact(np.array([7]), one)])
    <Exact, sealed: 3 integers>
    """

    __slots__ = ("parts",)
    parts: tuple[Exact, ...]

    def __init__(self, parts: Sequence[Exact]) -> None:
        held = tuple(parts)
        for part in held:
            if not isinstance(part, Exact) or isinstance(part, Parts):
                raise SealBroken(f"a part is a {type(part).__name__}; it must be an Exact from a source.")
        if not held:
            raise BadParameter("there are no parts; there must be at least one. Give the sealed values of marginals.")
        moves = Sensitivity(
            l1=sum((part.sensitivity.l1 for part in held), Fraction(0)),
            l2_squared=sum((part.sensitivity.l2_squared for part in held), Fraction(0)),
            linf=max(part.sensitivity.linf for part in held),
        )
        super().__init__(np.zeros(0, dtype=np.int64), moves, tuple((Fraction(1), part.size) for part in held))
        object.__setattr__(self, "parts", held)

    @property
    def size(self) -> int:
        """How many integers there are in all parts."""
        return sum(part.size for part in self.parts)


def opened_parts(exact: Exact, calibrated: Sequence[Sensitivity], sizes: Sequence[int]) -> Ints:
    """The true integers of all parts, if there are so many in each and none moves further in L1 than was calibrated."""
    # What is no Exact at all is refused when it is opened.
    parts = exact.parts if isinstance(exact, Parts) else (exact,)
    found = [part.size if isinstance(part, Exact) else 0 for part in parts]
    if isinstance(exact, Exact) and found != list(sizes):
        raise BadParameter(
            f"there are {len(found)} parts with together {sum(found)} values; this mechanism takes {len(sizes)} with "
            f"together {sum(sizes)}, and as many in each as are expected. Check the measurement."
        )
    return np.concatenate([opened(part, one, "l1") for part, one in zip(parts, calibrated, strict=True)])


def read_moves(sensitivity: Sequence[Sensitivity | Number], parts: int) -> tuple[Sensitivity, ...]:
    """How far one person moves each part. Some may not move at all, as a column with one cell; but not all."""
    given = tuple(sensitivity) if isinstance(sensitivity, Sequence) else ()
    if len(given) != parts:
        raise BadParameter(
            f"sensitivity has {len(given)} parts and {parts} are expected; there must be one for each. "
            "Give [part.sensitivity for part in parts]."
        )
    moves = tuple(
        each if isinstance(each, Sensitivity) and not each.l1 else read_sensitivity(each, "l1") for each in given
    )
    if not any(each.l1 for each in moves):
        raise BadParameter(
            "the l1 sensitivity of every part is 0; noise needs one above 0. "
            "A value that no person can move is public: answer it without a mechanism."
        )
    return moves


def read_parts(expected: "Sequence[Sequence[int] | Ints]") -> tuple[Ints, tuple[int, ...]]:
    """Public integers for every cell of every part, one part after the other; and how many each has."""
    if isinstance(expected, str) or not isinstance(expected, Sequence) or not expected:
        raise BadParameter(
            "expected holds no part; it must be a list with the integers of each. Give one array for each marginal."
        )
    parts = [read_public(part, f"expected[{place}]") for place, part in enumerate(expected)]
    return np.concatenate(parts), tuple(part.size for part in parts)


def read_public(values: "Sequence[int] | Ints", name: str) -> Ints:
    """Public integers within 2^60, at least one.

    >>> read_public([1, 2**61], "handicaps")
    Traceback (most recent call last):
    discreet.errors.BadParameter: handicaps has a value beyond 2^60; it must hold smaller integers. Give counts of rows.
    """
    if isinstance(values, np.ndarray) and values.ndim == 1 and values.size and values.dtype == np.int64:
        exact = values
    elif isinstance(values, Sequence | np.ndarray) and not isinstance(values, str):
        listed = read_integers(values, name)
        exact = np.array([max(-FARTHEST - 1, min(FARTHEST + 1, value)) for value in listed], dtype=np.int64)
    else:
        raise BadParameter(f"{name} is a {type(values).__name__}; it must be a list of integers. Give counts of rows.")
    if exact.max() > FARTHEST or exact.min() < -FARTHEST:
        raise BadParameter(f"{name} has a value beyond 2^60; it must hold smaller integers. Give counts of rows.")
    return exact


def true_integers(values: Sequence[int], expected: Ints) -> Ints:
    """The true integers of which a law is asked, clamped as those of a table are."""
    exact = read_integers(values)
    if len(exact) != expected.size:
        raise BadParameter(
            f"there are {len(exact)} values and {expected.size} expected ones; there must be one for each. "
            "Give the true integers of all parts, one after the other."
        )
    return np.array([max(-FARTHEST, min(FARTHEST, value)) for value in exact], dtype=np.int64)

"""All claims: every file in `claims/` has one, called CLAIM."""

from importlib import import_module
from pkgutil import iter_modules

from discreet.cache import memoize
from discreet.errors import BadParameter, did_you_mean
from discreet.lab.lectures import claims as folder
from discreet.lab.lectures.claim import Claim


@memoize(1)
def claims() -> tuple[Claim, ...]:
    """Every claim, in the order of the notes.

    >>> len({claim.name for claim in claims()}) == len(claims())
    True
    """
    names = sorted(module.name for module in iter_modules(folder.__path__))
    return tuple(import_module(f"{folder.__name__}.{name}").CLAIM for name in names)


def find(name: str) -> Claim:
    """The claim of this name.

    >>> find("no such thing")
    Traceback (most recent call last):
    discreet.errors.BadParameter: there is no claim "no such thing"; …
    """
    every = {claim.name: claim for claim in claims()}
    if name not in every:
        raise BadParameter(
            f'there is no claim "{name}"; {did_you_mean(name, every)} See them all: discreet reproduce --list.'
        )
    return every[name]

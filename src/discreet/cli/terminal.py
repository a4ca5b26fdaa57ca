"""What all commands need: safe texts on a terminal, and files that are not overwritten by accident."""

from collections.abc import Iterable
from pathlib import Path

from discreet.errors import BadParameter


def visible(text: str, *, longest: int | None = None) -> str:
    """A text of somebody else's, so that a terminal shows it and does not obey it.

    Characters that are not seen (escape sequences, line ends, changes of direction) are written out.

    >>> print(visible("how many?\\x1b[2J"))
    how many?\\x1b[2J
    >>> visible("a long story", longest=6)
    'a lon…'
    """
    if longest is not None and len(text) > longest:
        text = text[: longest - 1] + "…"
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)


def write_new(pieces: Iterable[str], output: Path, *, force: bool) -> None:
    """Write a text into a file that was not there, or over one that was if so told."""
    try:
        with output.open("w" if force else "x", encoding="utf-8") as file:
            try:
                file.writelines(pieces)
            except BaseException:
                # Half of a text must not look like all of it.
                if not force:
                    output.unlink(missing_ok=True)
                raise
    except FileExistsError:
        raise BadParameter(
            f'"{output}" is there already and is not overwritten. Say --force, or another --output.'
        ) from None
    except OSError as error:
        raise BadParameter(f'"{output}" cannot be written: {error.strerror}. Choose another --output.') from None

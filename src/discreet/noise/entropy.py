"""Random words from the operating system.

A few words come straight from `os.urandom`. Many come from an AES-256-CTR keystream under a fresh key from
`os.urandom`, dropped when the call is done: no generator outlives a call, so nothing can be seeded, shared by two
threads, or copied into a forked child. If the system gives no randomness, the call fails and nothing is released.
"""

import os
from collections.abc import Callable

import numpy as np

from discreet.errors import NoEntropy
from discreet.types import Ints

# Below this, one system call is cheaper than setting up a cipher.
_FEW = 512
_ZEROS = bytes(1 << 16)


def _urandom(count: int) -> bytes:
    try:
        return os.urandom(count)
    except (OSError, NotImplementedError) as cause:
        raise NoEntropy(
            "the operating system gave no randomness; nothing was released. Try again when it does."
        ) from cause


def word() -> int:
    """One uniform 64-bit word."""
    return int.from_bytes(_urandom(8), "little")


def secret(count: int) -> bytes:
    """So many random bytes, for a token."""
    return _urandom(count)


def filler(count: int) -> Callable[[Ints], None]:
    """A function that fills arrays with independent uniform words, some `count` in all.

    It holds the cipher's key: use it within one call, then let it go.
    """
    return _from_system if count <= _FEW else _keystream()


def _from_system(out: Ints) -> None:
    out[:] = np.frombuffer(_urandom(out.nbytes), dtype=np.int64)


def _keystream() -> Callable[[Ints], None]:
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    stream = Cipher(algorithms.AES(_urandom(32)), modes.CTR(bytes(16))).encryptor()

    def fill(out: Ints) -> None:
        view = memoryview(out.view(np.uint8))  # type: ignore[arg-type]
        for start in range(0, len(view), len(_ZEROS)):
            piece = view[start : start + len(_ZEROS)]
            stream.update_into(_ZEROS[: len(piece)], piece)

    return fill

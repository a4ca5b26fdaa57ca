"""The stamp on every entry: when, and by whose hand."""

import os
from datetime import UTC, datetime
from itertools import count
from typing import Any
from uuid import uuid4

from discreet.cache import memoize

_NUMBERS = count()


def stamp(after: str, kind: str) -> dict[str, Any]:
    """What every entry says first: its kind, when it was written, after the entry before, and by whom.

    Time only moves forward: if the clock was set back, the last time is repeated. Nothing depends on it; the order is
    that of the entries. `by` makes every entry different from all others, so that no two can be taken for one.
    """
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    return {"is": kind, "at": max(now, after), "by": f"{_writer(os.getpid())}-{next(_NUMBERS)}"}


@memoize(1)
def _writer(process: int) -> str:
    # After a fork the number of the process is another one, and so is the writer.
    return f"{uuid4().hex[:16]}-{process}"

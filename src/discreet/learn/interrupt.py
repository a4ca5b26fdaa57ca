"""Tells what a signal raises (Ctrl-C, a timer), which stops a question, from what a statistic raises at a row."""

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self

Handler = Any


class Interrupts:
    """While it is entered, remembers what a signal handler raised in the middle of other code.

    Signals are handled in the main thread alone, so elsewhere there is nothing to remember. A handler that raises
    nothing is none of our business: it runs, and that is all.
    """

    def __init__(self) -> None:
        self._raised: list[BaseException] = []
        self._replaced: dict[signal.Signals | int, Handler] = {}

    def pass_on(self) -> None:
        """Raise what a signal raised, although the code that it met may have swallowed it."""
        if self._raised:
            raise self._raised[0]

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in signal.valid_signals():
                handler = signal.getsignal(number)
                if callable(handler):
                    self._replaced[number] = handler
                    signal.signal(number, self._noted)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for number, handler in self._replaced.items():
            signal.signal(number, handler)
        if kind is None:
            self.pass_on()

    def _noted(self, number: int, frame: FrameType | None) -> None:
        try:
            self._replaced[number](number, frame)
        except BaseException as raised:
            self._raised.append(raised)
            raise

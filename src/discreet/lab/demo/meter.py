"""The live budget meter: what is left, what was free, and how fast it goes."""

from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table as Grid
from rich.text import Text

from discreet.lab.demo.demo_outcome import Reply


class Meter:
    """Three bars that follow a stream; it is gone when the stream has ended."""

    def __init__(self, console: Console, number: int) -> None:
        self._number, self._asked, self._free, self._left, self._seconds = number, 0, 0, 1.0, 0.0
        self._live = Live(console=console, get_renderable=self._drawn, refresh_per_second=10, transient=True)

    def __enter__(self) -> "Meter":
        self._live.__enter__()
        return self

    def __exit__(self, *failure: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._live.__exit__(*failure)  # type: ignore[arg-type]

    def watch(self, reply: Reply, seconds: float) -> None:
        """One more was answered."""
        self._asked += 1
        self._free += reply.free
        self._left, self._seconds = 1 - reply.used, seconds

    def _drawn(self) -> Grid:
        grid = Grid.grid(padding=(0, 2))
        speed = self._asked / self._seconds if self._seconds else 0
        rows = [
            ("budget left", self._left, "green" if self._left > 0.25 else "yellow", f"{self._left:.1%}"),
            ("answered for free", self._free / max(self._asked, 1), "cyan", f"{self._free:,} of {self._asked:,}"),
            ("questions", self._asked / self._number, "magenta", f"{self._asked:,}, {speed:,.0f} a second"),
        ]
        for name, share, colour, words in rows:
            bar = ProgressBar(total=1, completed=share, width=40, complete_style=colour, finished_style=colour)
            grid.add_row(Text(name), bar, Text(words, style=colour))
        return grid

"""`discreet reproduce`: the lecture notes, claim beside measurement."""

from os import cpu_count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.errors import BadParameter

if TYPE_CHECKING:
    from rich.console import Console

    from discreet.lab.lectures.run import Result


def reproduce(
    claims: Annotated[
        list[str] | None, typer.Argument(help="Names of claims, or of notes: 000 to 004.", show_default=False)
    ] = None,
    listing: Annotated[bool, typer.Option("--list", help="Say which claims there are.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Try them all and write one page.")] = False,
    report: Annotated[
        Path | None, typer.Option(help="Where to write the page; with --all out/reproduce.html.", show_default=False)
    ] = None,
    jobs: Annotated[int, typer.Option(min=0, max=64, help="How many processes; 0: one for each processor.")] = 0,
) -> None:
    """Try the theorems, examples and figures of the lecture notes: what is claimed beside what is measured.

    The exit code is 1 if a claim does not hold.
    """
    from rich.console import Console

    from discreet.lab.lectures import claims as every
    from discreet.lab.lectures.claim_output import show_list, show_result, show_summary
    from discreet.lab.lectures.run import claims_named, try_claims

    console = Console(highlight=False)
    wanted = every() if everything else claims_named(claims or [])
    if listing or not wanted:
        show_list(console, wanted or every())
        return
    path = report or (Path("out/reproduce.html") if everything else None)
    if path is not None:
        _make_room(path)
    with _Bar(console, len(wanted)) as bar:
        results = try_claims(wanted, jobs=_processes(jobs, len(wanted)), watch=bar.watch)
    if everything or len(results) > 5:
        show_summary(console, results)
    for result in results:
        if not result.holds or not (everything or len(results) > 5):
            show_result(console, result)
    if path is not None:
        from discreet.lab.lectures.claims_page import page

        path.write_text(page(results), encoding="utf-8")
        console.print(f"\nThe page, with pictures: [bold]{path.resolve()}[/bold]")
    if not results.holds:
        raise typer.Exit(1)


class _Bar:
    """A bar that is gone when all is done; without a terminal there is none."""

    def __init__(self, console: "Console", number: int) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}")
        self._progress = Progress(*columns, console=console, transient=True)
        self._task = self._progress.add_task("", total=number)

    def __enter__(self) -> "_Bar":
        self._progress.__enter__()
        return self

    def __exit__(self, *failure: Any) -> None:
        self._progress.__exit__(*failure)

    def watch(self, result: "Result") -> None:
        """One more is done."""
        self._progress.update(self._task, advance=1, description=result.claim)


def _processes(jobs: int, claims: int) -> int:
    """A process takes a second to start, so few claims are tried in this one."""
    return jobs or (1 if claims < 4 else min(cpu_count() or 1, 8))


def _make_room(path: Path) -> None:
    """Fail before the claims and not after them, if the page cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("a").close()
    except OSError as error:
        raise BadParameter(f"the page cannot be written to {path} ({error.strerror}). Give another path.") from None

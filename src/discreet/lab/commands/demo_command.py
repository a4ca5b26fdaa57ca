"""`discreet demo`: thousands of questions to a census table on one budget, with a report."""

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.serve_commands import needing_server


def demo(
    questions: Annotated[int, typer.Option(min=1, help="How many questions to ask.")] = 10_000,
    report: Annotated[Path, typer.Option(help="Where to write the report, one HTML file.")] = Path("out/demo.html"),
    no_report: Annotated[bool, typer.Option("--no-report", help="Write no report.")] = False,
    serving: Annotated[bool, typer.Option("--serve", help="Instead: the page on this table, to play with.")] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="With --serve: the port.")] = 8711,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="With --serve: open no browser.")] = False,
) -> None:
    """Ask a census table thousands of questions on one budget: what was free, what was spent, whether errors held.

    With --serve the page opens on this table, with a sample token and a budget that is forgotten when you stop.
    """
    if serving:
        with needing_server():
            from discreet.lab.demo.served import play
        play(port, open_page=not no_browser)
        return
    from discreet.lab.demo import run

    run(questions, report=None if no_report else report)

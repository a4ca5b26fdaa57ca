"""The `discreet` command. Heavy imports happen inside the commands, so that help is instant."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from discreet.cli import attack, desk, explain, ledger, release, reproduce, schema, serve
from discreet.cli.terminal import visible
from discreet.errors import DiscreetError, Mistake

app = typer.Typer(
    name="discreet",
    help="A private data curator: exponentially many questions, one privacy budget.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

COMMANDS: list[Callable[..., None]] = [
    desk.ask,
    desk.plan,
    desk.known,
    desk.budget,
    desk.history,
    release.release,
    serve.serve,
]
COMMANDS += [explain.explain, attack.attack, attack.audit, reproduce.reproduce]
for command in COMMANDS:
    app.command()(command)
app.add_typer(schema.app)
app.add_typer(ledger.app)
app.add_typer(serve.token)


@app.callback()
def discreet() -> None:
    """A private data curator: exponentially many questions, one privacy budget."""


@app.command()
def demo(
    questions: Annotated[int, typer.Option(min=1, help="How many questions to ask.")] = 10_000,
    report: Annotated[Path, typer.Option(help="Where to write the report, one HTML file.")] = Path("out/demo.html"),
    no_report: Annotated[bool, typer.Option("--no-report", help="Write no report.")] = False,
    serving: Annotated[bool, typer.Option("--serve", help="Instead: the page on this table, to play with.")] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="With --serve: the port.")] = 8711,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="With --serve: open no browser.")] = False,
) -> None:
    """A census table, thousands of questions, one budget: what was free, what was spent, and if the errors held.

    With --serve the page opens on it, with a sample token and a budget that is forgotten when you stop.
    """
    if serving:
        with serve.needing_server():
            from discreet.demo.served import play
        play(port, open_page=not no_browser)
        return
    from discreet.demo import run

    run(questions, report=None if no_report else report)


def main() -> None:
    """Run a command; an error of ours is one sentence on stderr, with exit code 2 for mistakes and 1 for the rest."""
    try:
        app()
    except DiscreetError as error:
        # A message may name an analyst; the only line ends of its own are before a next step.
        said = "\n    ".join(map(visible, str(error).split("\n    ")))
        print(f"{type(error).__name__}: {said}", file=sys.stderr)
        sys.exit(2 if isinstance(error, Mistake) else 1)

"""The `discreet` command. Heavy imports happen inside the commands, so that help is instant."""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from discreet.cli import ask_commands as desk
from discreet.cli import explain_command as explain
from discreet.cli import ledger_commands as ledger
from discreet.cli import release_command as release
from discreet.cli import schema_commands as schema
from discreet.cli import serve_commands as serve
from discreet.cli.output import visible
from discreet.errors import DiscreetError, Mistake

# The commands of the lab as module:function. The product never imports the lab; a command is looked up when it is used.
LAB = {
    "attack": "discreet.lab.commands.attack_commands:attack",
    "audit": "discreet.lab.commands.attack_commands:audit",
    "reproduce": "discreet.lab.commands.reproduce_command:reproduce",
    "demo": "discreet.lab.commands.demo_command:demo",
}


class Commands(TyperGroup):
    """The product's commands, and those of the lab once somebody wants one of them or a list of all."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of all commands."""
        self._add_lab()
        return super().list_commands(ctx)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command by its name."""
        if cmd_name not in self.commands:
            self._add_lab()
        return super().get_command(ctx, cmd_name)

    def _add_lab(self) -> None:
        for name, (module, function) in ((name, where.split(":")) for name, where in LAB.items()):
            alone = typer.Typer(add_completion=False)
            alone.command(name, rich_help_panel="Lab")(getattr(import_module(module), function))
            self.commands[name] = get_command(alone)


app = typer.Typer(
    name="discreet",
    help="A private data curator: exponentially many questions, one privacy budget.",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

PRODUCT: list[Callable[..., None]] = [
    desk.ask,
    desk.plan,
    desk.known,
    desk.budget,
    desk.history,
    release.release,
    serve.serve,
    explain.explain,
]
for command in PRODUCT:
    app.command()(command)
app.add_typer(schema.app)
app.add_typer(ledger.app)
app.add_typer(serve.token)


@app.callback()
def discreet() -> None:
    """A private data curator: exponentially many questions, one privacy budget."""


def main() -> None:
    """Run a command. A DiscreetError is one sentence on stderr: exit code 2 for mistakes of the user, 1 for others."""
    try:
        app()
    except DiscreetError as error:
        # A message may name an analyst; the only line ends of its own are before a next step.
        said = "\n    ".join(map(visible, str(error).split("\n    ")))
        print(f"{type(error).__name__}: {said}", file=sys.stderr)
        sys.exit(2 if isinstance(error, Mistake) else 1)

"""The `discreet` command. Heavy imports happen inside the commands, so that help is instant."""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from discreet.cli import (
    ask_commands,
    explain_command,
    ledger_commands,
    release_command,
    schema_commands,
    serve_commands,
)
from discreet.cli.output import printable
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

# In the order in which help lists them.
PRODUCT: dict[str, Callable[..., None]] = {
    "ask": ask_commands.ask,
    "plan": ask_commands.plan_question,
    "known": ask_commands.list_known,
    "budget": ask_commands.budget_of_table,
    "history": ask_commands.history_of_table,
    "release": release_command.release,
    "serve": serve_commands.serve,
    "explain": explain_command.explain_guarantee,
}
for name, command in PRODUCT.items():
    app.command(name)(command)
app.add_typer(schema_commands.app)
app.add_typer(ledger_commands.app)
app.add_typer(serve_commands.token)


@app.callback()
def discreet() -> None:
    """A private data curator: exponentially many questions, one privacy budget."""


def main() -> None:
    """Run a command. A DiscreetError is one sentence on stderr: exit code 2 for mistakes of the user, 1 for others."""
    try:
        app()
    except DiscreetError as error:
        # A message may name an analyst; the only line ends of its own are before a next step.
        said = "\n    ".join(map(printable, str(error).split("\n    ")))
        print(f"{type(error).__name__}: {said}", file=sys.stderr)
        sys.exit(2 if isinstance(error, Mistake) else 1)

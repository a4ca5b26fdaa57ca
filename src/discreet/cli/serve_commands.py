"""`discreet serve` and `discreet token`: the curator for a team."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.ledger_address import ledger_of
from discreet.cli.output import printable
from discreet.errors import BadParameter

if TYPE_CHECKING:
    from discreet.serve.registry import Settings

token = typer.Typer(
    name="token", help="Tokens: who may ask, audit and decide on a server.", no_args_is_help=True, add_completion=False
)

LedgerOption = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        metavar="ADDRESS",
        help="The path of the ledger, or postgresql://host/database. Without it SCHEMA.ledger.sqlite, beside the "
        "schema file; of tables that share people, shared.ledger.sqlite.",
    ),
]


def serve(
    schemas: Annotated[
        list[Path], typer.Argument(metavar="SCHEMA…", help="The schema files of the tables.", show_default=False)
    ],
    ledger: LedgerOption = None,
    budget: Annotated[
        float | None, typer.Option("--budget", help="The epsilon that may ever be spent on a table; needed once.")
    ] = None,
    delta: Annotated[float, typer.Option(help="With --budget: the probability that more leaks, say 1e-9.")] = 0.0,
    host: Annotated[str, typer.Option(help="The address to serve on; others than loopback need TLS.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")] = 8711,
    workers: Annotated[int, typer.Option(min=1, help="Number of worker processes; they share one ledger.")] = 1,
    quantum: Annotated[
        float, typer.Option(min=0, help="Paid replies leave after a multiple of this time, in milliseconds.")
    ] = 50,
    rate: Annotated[float, typer.Option(min=0, help="Requests a second of one token; 0 is no limit.")] = 100,
    in_memory: Annotated[bool, typer.Option("--in-memory", help="Read the rows once, at the start.")] = False,
    releases: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where releases are kept; beside the ledger, if not said.")
    ] = None,
    certificate: Annotated[Path | None, typer.Option(metavar="FILE", help="TLS: the certificate (PEM).")] = None,
    key: Annotated[Path | None, typer.Option(metavar="FILE", help="TLS: its key (PEM).")] = None,
    behind_proxy: Annotated[
        bool, typer.Option("--behind-proxy", help="A proxy in front has TLS; serve other addresses without.")
    ] = False,
) -> None:
    """Serve tables: an HTTP API and a web page, on loopback unless you say otherwise.

    The first start makes a token for the owner and shows it once; the owner makes the others, on the page.
    """
    from discreet.ledger import Budget

    address = _address(schemas, ledger)
    settings = _settings(
        schemas=tuple(map(str, schemas)),
        ledger=address,
        releases=releases or _releases_folder(address, schemas[0]),
        budget=None if budget is None else Budget(budget, delta),
        host=host,
        port=port,
        workers=workers,
        quantum=quantum / 1000,
        rate=rate,
        burst=2 * rate,
        in_memory=in_memory,
        certificate=certificate,
        key=key,
        behind_proxy=behind_proxy,
    )
    with needing_server():
        from discreet.serve.workers import start_server
    start_server(settings)


@token.command("create")
def create_token(
    schema: Annotated[Path, typer.Argument(help="The schema file of a table of the server.")],
    name: Annotated[str, typer.Option(help="Whose it is; caps and the history go by this name.")],
    role: Annotated[str, typer.Option(help="owner, analyst or auditor.")] = "analyst",
    days: Annotated[float | None, typer.Option(help="Days until it expires; without it, never.")] = None,
    ledger: LedgerOption = None,
) -> None:
    """Make a token and show it, once."""
    from discreet.serve.tokens import Tokens

    print(Tokens(_existing_address([schema], ledger)).create(name, role, by="the command line", days=days))
    print("It is shown only now. Send it as: Authorization: Bearer …", file=sys.stderr)


@token.command("list")
def list_tokens(
    schema: Annotated[Path, typer.Argument(help="The schema file of a table of the server.")],
    ledger: LedgerOption = None,
) -> None:
    """List all tokens, without their secrets."""
    from discreet.serve.tokens import Tokens

    for each in Tokens(_existing_address([schema], ledger)).list():
        end = f"revoked {each.revoked}" if each.revoked else f"expires {each.expires or 'never'}"
        print(f"{each.prefix}…  {each.role:8}  {printable(each.name)}  created {each.created}, {end}")


@token.command("revoke")
def revoke_token(
    schema: Annotated[Path, typer.Argument(help="The schema file of a table of the server.")],
    prefix: Annotated[str, typer.Argument(help="The first letters of the token, as the list shows them.")],
    ledger: LedgerOption = None,
) -> None:
    """Revoke a token, for good; servers that run notice within a second."""
    from discreet.serve.tokens import MARK, Tokens

    store = Tokens(_existing_address([schema], ledger))
    print(f"{store.revoke(prefix.removeprefix(MARK)[:8], by='the command line').prefix}… is revoked.")


def _settings(**given: object) -> "Settings":
    from discreet.serve.registry import Settings

    return Settings(**given)  # type: ignore[arg-type]


@contextmanager
def needing_server() -> Iterator[None]:
    """Say how to install what the server needs, if it is not here."""
    try:
        yield
    except ModuleNotFoundError as missing:
        raise BadParameter(
            f"the server needs the package {missing.name}, which is not here. Install it: "
            'pip install "discreet[server]"'
        ) from None


def _address(schemas: list[Path], ledger: str | None) -> str:
    addresses = {ledger_of(schema, ledger) for schema in schemas}
    if len(addresses) > 1:
        raise BadParameter("several tables share one ledger, and none is named. Say where: --ledger team.sqlite")
    return addresses.pop()


def _existing_address(schemas: list[Path], ledger: str | None) -> str:
    address = _address(schemas, ledger)
    if "://" not in address and not Path(address).exists():
        raise BadParameter(f'there is no ledger at "{address}". Start the server once: discreet serve {schemas[0]}')
    return address


def _releases_folder(address: str, schema: Path) -> Path:
    """Where releases are kept: beside the ledger, or beside the schema if the ledger is in a server."""
    return Path(f"{schema if '://' in address else address}.releases")

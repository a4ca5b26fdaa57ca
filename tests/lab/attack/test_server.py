"""A real server is attacked over HTTP: by its own answers, on its own budget."""

import pytest
import typer
from typer.testing import CliRunner

from discreet.lab.commands import attack_commands
from discreet.ledger import Budget
from support.live_server import Live, settings

pytestmark = pytest.mark.server

SCHEMA = """
table: people
source: people.csv
privacy_unit: row
neighbors: replace_one
columns:
  age: {type: integer, lower: 0, upper: 99}
  smokes: {values: ["no", "yes"], outside: drop, missing: drop}
"""
app = typer.Typer()
app.command()(attack_commands.attack)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("attacked")
    (folder / "people.yaml").write_text(SCHEMA)
    rows = [f"{age},{'yes' if age % 3 else 'no'}" for age in range(20, 80)]
    (folder / "people.csv").write_text("\n".join(["age,smokes", *rows]))
    with Live(settings(folder, schemas=(str(folder / "people.yaml"),), budget=Budget(epsilon=1))) as live:
        live.ana = live.token("ana")
        yield live


def left(live):
    with live.web(live.ana) as web:
        return web.get("/tables/people/budget").json()["remaining"]["epsilon"]


def test_a_server_is_attacked_at_the_price_of_its_own_budget_and_tells_no_more_than_it_permits(server):
    assert left(server) == 1
    asked = (
        "reconstruction",
        "--server",
        server.address,
        "--token",
        server.ana,
        "--schema",
        server.settings.schemas[0],
    )
    command = CliRunner().invoke(
        app, [*asked, "--public", "age", "--secret", "smokes=yes", "--questions", "60", "--no-report"]
    )
    assert command.exit_code == 0, command.output
    assert "exact counts" in command.output
    assert "100.0%" in command.output
    assert "Nothing was learnt that is not permitted" in command.output
    assert left(server) < 0.1

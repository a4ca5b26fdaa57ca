"""`discreet serve` and `discreet token`, as people run them."""

import re
import signal
import subprocess
import sys
from socket import socket

import pytest
from typer.testing import CliRunner

import discreet as dp
from discreet.cli import app
from discreet.serve.tokens import MARK, Tokens
from support.ledger_places import PLACES, new_database, new_file
from support.live_server import people


@pytest.fixture(params=PLACES)
def address(request, tmp_path):
    if request.param == "sqlite":
        yield new_file(tmp_path)
        return
    with new_database() as found:
        yield found


def quick(*arguments):
    """A command within this process."""
    return CliRunner().invoke(app, [str(each) for each in arguments])


def test_tokens_are_the_same_wherever_the_ledger_lies(address):
    one, other = Tokens(address), Tokens(address)
    token = one.create("ana", "analyst", days=1)
    assert other.find(token).name == "ana"
    assert other.find(token + "x") is None
    assert [each.role for each in other.list()] == ["analyst"]
    other.revoke(token[len(MARK) :][:8], by="the owner")
    assert other.find(token) is None
    assert one.list()[0].revoked_by == "the owner"
    one.close()
    other.close()


@pytest.mark.server
def test_a_server_starts_is_asked_and_stops(tmp_path):
    schema = people(tmp_path)
    with pytest.raises(dp.BadParameter, match="--budget 1 --delta 1e-9"):
        raise quick("serve", schema, "--port", 0).exception
    command = [sys.executable, "-m", "discreet", "serve", schema, "--budget", "2", "--delta", "1e-9", "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        said = ""
        while "Stop with Ctrl-C" not in said:
            said += server.stdout.readline()
        address = re.search(r"at (http://127\.0\.0\.1:\d+)", said)[1]
        token = re.search(r"^  (discreet_\S+)$", said, flags=re.M)[1]
        assert f"{address}/sign-in#{token}" in said
        with dp.connect(address, token) as desk:
            assert desk.ask("age >= 65", error=100).origin == "measured"
            assert desk.analyst == "owner"
        made = quick("token", "create", schema, "--name", "ana", "--days", 7)
        assert made.exit_code == 0, made.output
        with dp.connect(address, made.stdout.strip()) as desk:
            assert desk.analyst == "ana"
        listed = quick("token", "list", schema).stdout
        assert "analyst   ana" in listed
        assert made.stdout.strip() not in listed
        prefix = made.stdout.strip()[len(MARK) :][:8]
        assert "is revoked" in quick("token", "revoke", schema, prefix).stdout
        assert "revoked 20" in quick("token", "list", schema).stdout
    finally:
        server.send_signal(signal.SIGINT)
        _, log = server.communicate(timeout=30)
    assert server.returncode in (0, 130, -signal.SIGINT)
    assert "Traceback" not in log


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--host", "0.0.0.0"], "--certificate and --key"),
        (["--certificate", "c.pem"], "one of them is missing"),
        (["other.yaml"], "--ledger team.sqlite"),
        (["--port", "taken"], "cannot be opened"),
    ],
)
def test_a_start_that_makes_no_sense_is_refused(tmp_path, arguments, said):
    with socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        chosen = [taken.getsockname()[1] if each == "taken" else each for each in arguments]
        found = quick("serve", people(tmp_path), *chosen, "--budget", 1, "--delta", 1e-9)
    assert isinstance(found.exception, dp.BadParameter)
    assert said in str(found.exception)


def test_tokens_of_a_server_that_never_started_are_not_there(tmp_path):
    assert "Start the server once" in str(quick("token", "list", people(tmp_path)).exception)


@pytest.mark.parametrize("command", [["demo", "--serve"], ["serve", "people.yaml", "--budget", "1", "--delta", "1e-9"]])
def test_without_the_packages_of_the_server_it_says_how_to_install_them(command):
    hidden = "import sys; sys.modules['uvicorn'] = None; from discreet.cli import main; "
    hidden += f"sys.argv = {['discreet', *command]!r}; main()"
    found = subprocess.run([sys.executable, "-c", hidden], capture_output=True, text=True, check=False)
    assert found.returncode == 2
    assert 'pip install "discreet[server]"' in found.stderr

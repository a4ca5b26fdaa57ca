"""The demonstration runs from end to end."""

import pytest

from discreet.cli import app
from discreet.errors import BadParameter
from discreet.lab import demo


@pytest.fixture
def wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")


def test_it_asks_answers_explains_and_writes_a_report(wide, capsys, tmp_path):
    demo.run(60, report=tmp_path / "new" / "page.html")
    shown = capsys.readouterr().out
    assert "60 questions" in shown
    assert "answered for free" in shown
    assert "one Gaussian answer each" in shown
    assert "each paid before a row was read" in shown
    assert "this needs epsilon" in " ".join(shown.split())
    assert "What that means to a person" in shown
    assert "page.html" in "".join(shown.split())
    assert (tmp_path / "new" / "page.html").read_text().startswith("<!DOCTYPE html>")


def test_the_command_writes_where_it_is_told_or_nowhere(wide, tmp_path, monkeypatch):
    from typer.testing import CliRunner

    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(app, ["demo", "--questions", "5", "--no-report"]).exit_code == 0
    assert list(tmp_path.iterdir()) == []
    assert CliRunner().invoke(app, ["demo", "--questions", "5", "--report", "here.html"]).exit_code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["here.html"]
    assert CliRunner().invoke(app, ["demo", "--questions", "5"]).exit_code == 0
    assert (tmp_path / "out" / "demo.html").exists()


def test_a_report_that_cannot_be_written_is_refused_before_a_question_is_asked(tmp_path):
    with pytest.raises(BadParameter, match="Give another path"):
        demo.run(10**9, report=tmp_path)

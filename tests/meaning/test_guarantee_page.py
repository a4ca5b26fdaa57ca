"""`discreet explain`, with a story and with pictures; the page is well-formed and asks nobody for anything."""

import re
from xml.etree import ElementTree

import pytest
from typer import Typer
from typer.testing import CliRunner

from discreet.cli.explain_command import explain_guarantee as command
from discreet.meaning import Study, explain, meaning_page
from discreet.meaning.guarantee_page import belief_figure, story, study_figure, tradeoff_figure


def run(*arguments):
    app = Typer()
    app.command()(command)
    return CliRunner().invoke(app, ["--epsilon", "1", *map(str, arguments)])


def test_the_page_is_well_formed_and_asks_nobody_for_anything():
    page = meaning_page(explain(epsilon=1, delta=1e-9, rows=2))
    root = ElementTree.fromstring(page.removeprefix("<!DOCTYPE html>\n"))
    assert len(list(root.iter("svg"))) == 3
    assert not re.search(r"https?://|src=|url\(|@import|<link|<script", page)
    assert "delta 1e-09" in page
    assert "too small" in page
    assert "\\n" not in page


@pytest.mark.parametrize("draw", [belief_figure, tradeoff_figure])
def test_a_picture_has_a_line_for_each_thing_that_it_names(draw):
    names = [text.text for text in ElementTree.fromstring(draw(explain(epsilon=1)).svg()).iter("text")]
    assert {"at most", "at least", "unchanged"} <= set(names) or {"a guess", "1 person", "5 people"} <= set(names)


def test_the_picture_of_the_study_shows_both_worlds():
    names = {
        text.text for text in ElementTree.fromstring(study_figure(Study(epsilon=1, smokers=100)).svg()).iter("text")
    }
    assert {"with her row", "without it", "before the study"} <= names


def test_the_story_says_what_is_believed_before_and_after():
    told = story(Study(epsilon=1))
    assert "20 %" in told
    assert "30 % if it was not" in told


def test_the_command_tells_the_story_beside_what_it_always_said():
    output = " ".join(run("--story", "smoking").output.split())
    assert "The promise at epsilon 1" in output
    assert "Smoking and cancer" in output
    assert "the promise is e^2" in output


def test_without_asking_there_is_no_story():
    assert "Alice" not in run().output


def test_the_command_writes_a_page(tmp_path):
    result = run("--picture", tmp_path / "meaning.html")
    assert result.exit_code == 0
    assert "<svg" in (tmp_path / "meaning.html").read_text()


def test_a_page_that_cannot_be_written_is_a_mistake(tmp_path):
    result = run("--picture", tmp_path / "nowhere" / "meaning.html")
    assert result.exit_code == 1
    assert "cannot be written" in str(result.exception)

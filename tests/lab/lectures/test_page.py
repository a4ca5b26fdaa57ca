"""Running claims, the page of all of them, and the command."""

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from typer import Typer
from typer.testing import CliRunner

from discreet.errors import BadParameter
from discreet.lab.commands.reproduce_command import reproduce
from discreet.lab.lectures import Claim, Finding, Outcome, catalogue, claims
from discreet.lab.lectures.claims_page import formula, page
from discreet.lab.lectures.run import Result, Results, claims_named, try_claim, try_claims
from discreet.report.chart import Chart
from discreet.report.plot import Line, plot

NASTY = "<script>alert('&')</script>"


def made(name, holds=True, correction=False, raises=False):
    def run():
        if raises:
            raise ValueError(NASTY)
        chart = Chart(10, 10, NASTY)
        chart.text(1, 1, NASTY)
        return Outcome((Finding(NASTY, "e^{−ε}", "x_i", holds),), chart, "over\n    two lines")

    return Claim(name, f"002 {NASTY}", f"{NASTY} {name}", "a statement", run, correction)


@pytest.fixture
def invented(monkeypatch):
    """Three claims: one holds, one does not, one raises."""
    every = (made("right", correction=True), made("wrong", holds=False), made("broken", raises=True))
    monkeypatch.setattr(catalogue, "claims", lambda: every)
    monkeypatch.setattr("discreet.lab.lectures.run.claims", lambda: every)
    monkeypatch.setattr("discreet.lab.lectures.claims", lambda: every)
    return every


def command(*arguments):
    app = Typer()
    app.command()(reproduce)
    return CliRunner().invoke(app, list(map(str, arguments)))


def test_whoever_raises_has_shown_nothing_and_stops_nobody(invented):
    results = try_claims(invented)
    assert [result.holds for result in results] == [True, False, False]
    assert results.holding == 1
    assert not results.holds
    assert results.results[2].failure == f"ValueError: {NASTY}"


def test_results_are_told_as_they_come_and_kept_in_order(invented):
    seen = []
    results = try_claims(invented, watch=lambda result: seen.append(result.claim))
    assert seen == [result.claim for result in results] == ["right", "wrong", "broken"]


@pytest.mark.long
def test_two_processes_find_what_one_finds():
    names = ["randomized-response-privacy", "laplace-privacy", "histogram"]
    wanted = [claim for claim in claims() if claim.name in names]
    results = try_claims(wanted, jobs=2)
    assert [result.claim for result in results] == [claim.name for claim in wanted]
    assert results.holds


def test_a_claim_without_findings_does_not_hold():
    assert not Result("x", (), "", "", 0.0).holds


def test_the_page_is_well_formed_asks_nobody_for_anything_and_marks_what_failed(invented):
    text = page(try_claims(invented))
    root = ElementTree.fromstring(text.removeprefix("<!DOCTYPE html>\n"))
    assert len(list(root.iter("svg"))) == 2
    assert not list(root.iter("script"))
    assert not re.search(r"https?://|src=|url\(|@import|<link", text)
    assert text.count('class="badge no"') == 2
    assert text.count('class="badge fix"') == 1
    assert "1 of 3" in text
    assert "2 do not hold" in text
    assert "over two lines" in text
    assert "e<sup>−ε</sup>" in text


def test_every_link_of_the_contents_leads_to_a_claim(invented):
    text = page(try_claims(invented))
    places = set(re.findall(r' id="([^"]+)"', text))
    assert set(re.findall(r'href="#([^"]+)"', text)) <= places
    assert {"right", "wrong", "broken", "note-002"} <= places


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("e^ε and 2^d", "e<sup>ε</sup> and 2<sup>d</sup>"),
        ("a_{i−1} < x_i", "a<sub>i−1</sub> &lt; x<sub>i</sub>"),
        ("10^354.8 tables.", "10<sup>354.8</sup> tables."),
        ("replace_one", "replace_one"),
        ("1.05e-05, 2e+283 and 0.0e+00", "1.05·10<sup>−5</sup>, 2·10<sup>283</sup> and 0.0"),
        ("0.375e for a name like c1e2x", "0.375e for a name like c1e2x"),
        (NASTY, "&lt;script&gt;alert(&#x27;&amp;&#x27;)&lt;/script&gt;"),
    ],
)
def test_formulas_are_raised_and_lowered_and_nothing_is_a_tag(words, shown):
    assert formula(words) == shown


def test_a_name_or_a_note_chooses_claims_in_the_order_of_the_notes():
    names = [claim.name for claim in claims_named(["002", "histogram"])]
    assert names[0] == "histogram"
    assert len(names) == 1 + sum(claim.source.startswith("002") for claim in claims())
    with pytest.raises(BadParameter, match="there is no claim"):
        claims_named(["histogramm"])


def test_nothing_named_is_refused():
    with pytest.raises(BadParameter, match="no claim was named"):
        try_claims([])


def test_the_command_lists_all_claims():
    for arguments in ([], ["--list"]):
        result = command(*arguments)
        assert result.exit_code == 0
        flat = re.sub(r"\s", "", result.output)
        assert all(claim.name in flat for claim in claims())


def test_the_command_shows_a_claim_beside_what_was_measured(tmp_path):
    result = command("randomized-response-privacy", "--report", tmp_path / "one.html")
    assert result.exit_code == 0
    assert "It holds." in result.output
    assert "measured" in result.output
    assert "<svg" not in (tmp_path / "one.html").read_text()


def test_the_command_tries_all_and_fails_where_one_does_not_hold(invented, tmp_path, monkeypatch):
    result = command("--all", "--jobs", 1, "--report", tmp_path / "deep" / "all.html")
    assert result.exit_code == 1
    assert "1 of 3 claims hold" in result.output
    assert "It does not hold." in result.output
    assert (tmp_path / "deep" / "all.html").exists()


def test_without_a_path_the_page_of_all_is_in_out(invented, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command("--all", "--jobs", 1)
    assert (tmp_path / "out" / "reproduce.html").exists()


def test_a_page_that_cannot_be_written_is_refused_before_anything_is_tried(tmp_path):
    (tmp_path / "file").write_text("")
    result = command("histogram", "--report", tmp_path / "file" / "page.html")
    assert isinstance(result.exception, BadParameter)
    assert "It holds" not in result.output


def test_an_unknown_claim_is_one_sentence():
    result = command("histogramm")
    assert isinstance(result.exception, BadParameter)
    assert "histogram" in str(result.exception)


@pytest.mark.long
def test_the_page_of_all_claims_is_well_formed():
    results = try_claims(claims(), jobs=2)
    text = page(results)
    ElementTree.fromstring(text.removeprefix("<!DOCTYPE html>\n"))
    assert not re.search(r"https?://|src=|url\(|@import|<link", text)
    assert results.holds


@pytest.mark.parametrize("log", [False, True])
def test_a_plot_names_its_lines_and_keeps_them_inside(log):
    lines = [Line(f"line {place}", [(1, 1 + place / 100), (1000, 50 + place)]) for place in range(6)]
    root = ElementTree.fromstring(plot("t", lines, x="across", y="up", log_x=log, log_y=log).svg())
    texts = list(root.iter("text"))
    assert {"across", "up", *(f"line {place}" for place in range(6))} <= {each.text for each in texts}
    heights = sorted(float(each.get("y")) for each in texts if each.text.startswith("line"))
    assert all(later - earlier >= 16.9 for earlier, later in pairwise(heights))
    assert heights[-1] <= 330
    assert Results((), 0.0).holding == 0


def test_a_result_that_is_there_has_its_time():
    assert try_claim("histogram").seconds >= 0

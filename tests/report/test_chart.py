"""Charts are well-formed whatever is written in them, and their marks are where the numbers are."""

from xml.etree import ElementTree

import pytest

from discreet.report.chart import Chart, Scale

NASTY = "<script>alert('&')</script> \"quoted\" ]]>"


def parsed(chart):
    return ElementTree.fromstring(chart.svg())


def test_texts_are_escaped():
    chart = Chart(100, 50, NASTY)
    chart.text(1, 2, NASTY)
    chart.dot(1, 2, "ours", hint=NASTY)
    chart.bar(0, 0, 1, 1, "ours", NASTY)
    root = parsed(chart)
    assert "<script" not in chart.svg()
    assert root.get("aria-label") == NASTY
    assert [each.text for each in root.iter("text")] == [NASTY]
    assert [each.text for each in root.iter("title")] == [NASTY, NASTY]


def test_lines_and_areas_go_through_their_points():
    chart = Chart(100, 50, "t")
    chart.line([(0, 1), (2.5, 3)], "ours")
    chart.area([(0, 1), (2, 3)], 9, "ours")
    chart.area([], 9, "ours")
    assert [path.get("d") for path in parsed(chart).iter("path")] == ["M0,1L2.5,3", "M0,1L2,3L2,9L0,9Z"]


def test_a_bar_never_has_a_negative_size():
    chart = Chart(100, 50, "t")
    chart.bar(10, 10, 5, 5, "ours")
    (bar,) = parsed(chart).iter("rect")
    assert (bar.get("width"), bar.get("height")) == ("0", "0")


def test_axes_have_a_word_for_each_tick():
    chart = Chart(100, 50, "t")
    chart.across(Scale(0, 1, 50, 0), [(0, "none"), (1, "all")], 10, 90)
    chart.below(Scale(0, 10, 10, 90), [(5, "five")], 40)
    assert [each.text for each in parsed(chart).iter("text")] == ["none", "all", "five"]


@pytest.mark.parametrize(("value", "place"), [(1, 0), (10, 50), (100, 100), (0.1, 0), (0, 0), (1e9, 100)])
def test_a_logarithmic_scale_is_even_by_powers_and_ends_at_its_ends(value, place):
    assert Scale(1, 100, 0, 100, log=True)(value) == place

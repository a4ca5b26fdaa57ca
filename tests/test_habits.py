"""What a stranger reads first agrees with the package: versions, licence, Python versions, commands."""

import re
import tomllib
from pathlib import Path

import discreet

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def read(name):
    return (ROOT / name).read_text()


def test_the_version_is_one():
    assert PROJECT["version"] == discreet.__version__
    assert f"\nversion: {discreet.__version__}\n" in read("CITATION.cff")
    assert f"| {discreet.__version__} |" in read("docs/versioning.md")


def test_the_licence_is_one():
    assert PROJECT["license"] == "Apache-2.0"
    assert "\nlicense: Apache-2.0\n" in read("CITATION.cff")
    assert "Version 2.0, January 2004" in read("LICENSE")


def test_the_workflow_tests_every_python_that_is_promised():
    promised = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))
    assert re.findall(r'"(3\.\d+)"', re.search(r"python: \[(.*)\]", read(".github/workflows/test.yml"))[1]) == promised
    assert PROJECT["requires-python"] == f">={promised[0]}"


def test_ci_runs_what_people_run():
    assert re.search(r"^make check test test-all demo$", read(".ci/run"), flags=re.M)
    for command in ("check", "test", "test-all", "test-long", "fix", "demo"):
        assert re.search(rf"^{command}:", read("Makefile"), flags=re.M)
        assert f"`make {command}" in read("docs/testing.md") or command == "demo"

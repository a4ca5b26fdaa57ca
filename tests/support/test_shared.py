"""A harness that several folders of tests use is in tests/support, and its page lists it."""

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
FILES = sorted(TESTS.rglob("*.py"))


def imported(path):
    """The files of the tests that a file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        files = (TESTS / (name.replace(".", "/") + ".py") for name in names)
        yield from (file.relative_to(TESTS) for file in files if file.exists())


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(TESTS)))
def test_tests_import_their_own_folder_and_the_support(path):
    room = path.relative_to(TESTS).parts[0]
    assert not [str(file) for file in imported(path) if file.parts[0] not in (room, "support")]


def test_every_harness_is_on_the_page():
    page = (TESTS / "support" / "README.md").read_text()
    harnesses = [path.stem for path in (TESTS / "support").glob("*.py") if not path.stem.startswith("test_")]
    assert harnesses
    assert not [name for name in harnesses if f"| `{name}`" not in page and f", `{name}` |" not in page]

"""README, the documentation and the examples are executed; their links lead somewhere."""

import re
import runpy
import tokenize
from pathlib import Path

import pytest

from discreet.schema import parse_schema

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PROOFS = sorted((ROOT / "src").rglob("*.md"))
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def name(path):
    return str(path.relative_to(ROOT))


def blocks(path):
    return re.findall(r"^```python\n(.*?)^```", path.read_text(), flags=re.M | re.S)


# Pages whose programs take more than 2 CPU seconds.
SLOW = {"README.md", "docs/many.md"}
PROGRAMS = [pytest.param(path, marks=[pytest.mark.slow] * (name(path) in SLOW)) for path in PAGES]


@pytest.mark.parametrize("path", PROGRAMS, ids=name)
def test_the_code_on_a_page_runs(path, tmp_path, monkeypatch):
    """All blocks of a page are one program; a block with `>>>` is checked like a doctest."""
    import doctest

    monkeypatch.chdir(tmp_path)
    space = {"__name__": "page"}
    for block in blocks(path):
        if ">>>" in block:
            test = doctest.DocTestParser().get_doctest(block, space, name(path), str(path), 0)
            runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
            results = runner.run(test, clear_globs=False)
            assert results.failed == 0
            space.update(test.globs)
        else:
            exec(compile(block, name(path), "exec"), space)


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_a_schema_on_a_page_is_a_schema(path):
    for block in re.findall(r"^```yaml\n(.*?)^```", path.read_text(), flags=re.M | re.S):
        if "columns:" in block:
            parse_schema(block)


def test_the_readme_shows_a_schema():
    assert "columns:" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("path", EXAMPLES, ids=name)
def test_an_example_runs(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(path), run_name="__main__")


@pytest.mark.parametrize("path", [*PAGES, *PROOFS, *ROOT.glob("*.md")], ids=name)
def test_links_inside_the_repository_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", path.read_text()):
        if not target.startswith(("http://", "https://", "mailto:")):
            assert (path.parent / target).exists(), f"{name(path)} links to {target}"


def prose(path):
    """The text of a page; of a program its strings and comments, because `list[Ints32]` is no citation."""
    if path.suffix != ".py":
        return path.read_text()
    with tokenize.open(path) as file:
        tokens = list(tokenize.generate_tokens(file.readline))
    return "\n".join(token.string for token in tokens if token.type in (tokenize.STRING, tokenize.COMMENT))


def test_every_reference_key_is_in_the_bibliography():
    keys = set(re.findall(r"^@\w+\{(\w+),", (ROOT / "references.bib").read_text(), flags=re.M))
    cited = {}
    for path in [*PAGES, *PROOFS, *sorted((ROOT / "src").rglob("*.py"))]:
        for bracket in re.findall(r"\[([^\][]*)\]", prose(path)):
            for key in re.findall(r"\b[A-Z][A-Za-z]+\d\d\b", bracket):
                cited.setdefault(key, name(path))
    assert len(cited) > 5
    assert not {key: where for key, where in cited.items() if key not in keys}


def test_the_readme_names_the_two_commands():
    text = (ROOT / "README.md").read_text()
    assert "make demo" in text
    assert "make test" in text

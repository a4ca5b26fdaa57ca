"""README, the documentation and the examples are executed; their links lead somewhere; what they name exists."""

import ast
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


# Pages that say what something was called before.
HISTORY = {"CHANGELOG.md", "docs/decisions/13-rooms-and-names.md"}
WRITTEN = [*PAGES, *PROOFS, *ROOT.glob("*.md"), ROOT / "tests/support/README.md"]
HOUSE = ROOT / "src/discreet"
FILES = {folder: sorted((ROOT / folder).rglob("*.py")) for folder in ("src", "tests")}
ROOMS = {path.parent.name for path in HOUSE.glob("*/__init__.py")}
# What begins with one of these is a path; the last line has rooms of earlier versions.
PATHS = ROOMS | {"src", "tests", "docs", "bench"}
PATHS |= {"attack", "demo", "known", "page", "privacy", "reproduce", "session"}


def defined(path):
    """The names that a module defines or imports, and the members of its classes as `Class.member`."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ClassDef):
            parts = [part for part in ast.walk(node) if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)]
            yield from (f"{node.name}.{part.name}" for part in parts)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in node.names)


def is_file(said, page):
    """Whether a path leads somewhere: from the repository, from the package, or from the page that names it."""
    if "NAME" in said or "*" in said:
        return True
    places = [place / said for place in (ROOT, HOUSE, page.parent)]
    return any(place.exists() or place.with_suffix(".py").exists() for place in places)


def is_python(said):
    """Whether `discreet.room.module.name` exists, to its last part."""
    place, parts = HOUSE, said.split(".")[1:]
    while parts and (place / parts[0]).is_dir():
        place /= parts.pop(0)
    if parts and (place / f"{parts[0]}.py").exists():
        names, parts = set(defined(place / f"{parts[0]}.py")), parts[1:]
    else:
        names = set(defined(place / "__init__.py")) | set(re.findall(r'"(\w+)"', (place / "__init__.py").read_text()))
    return not parts or ".".join(parts[:2]) in names or parts[0] in names


def beside(page):
    """The names of the files that a page may call by their names alone: tests, and if it is no proof page, all."""
    return {path.name for folder in ["tests", *([] if page in PROOFS else ["src"])] for path in FILES[folder]}


def missing(text, page):
    """The paths, modules and functions that a text names between backticks and that are not there."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    for said in re.findall(r"`([^`\s]+)`", prose):
        path = re.fullmatch(r"[\w.-]+(/[\w.*-]+)+/?", said) and said.split("/")[0] in PATHS
        if path and not is_file(said, page):
            yield said
        if re.fullmatch(r"discreet(\.\w+)+", said) and not is_python(said):
            yield said
        # A proof page speaks of the modules beside it, other pages of any.
        if re.fullmatch(r"\w+\.py", said) and not (is_file(said, page) or said in beside(page)):
            yield said
    for where, what in re.findall(r"`([\w/]+\.py)` `([A-Za-z_.]+)`", prose):
        if not (HOUSE / where).exists() or what not in set(defined(HOUSE / where)):
            yield f"{where} {what}"


@pytest.mark.parametrize("path", [path for path in WRITTEN if name(path) not in HISTORY], ids=name)
def test_the_modules_and_functions_that_a_page_names_exist(path):
    assert list(missing(path.read_text(), path)) == []


def test_the_table_of_renamed_modules_leads_from_what_is_gone_to_what_is_there():
    rows = re.findall(r"^\| (`.*`) \| `(.*)` \|$", (ROOT / "docs/decisions/13-rooms-and-names.md").read_text(), re.M)
    assert len(rows) > 150
    for was, now in rows:
        assert (HOUSE / now).is_dir() or (HOUSE / f"{now}.py").exists(), now
        assert not [each for each in re.findall("`(.*?)`", was) if (HOUSE / f"{each}.py").exists()]


def test_the_check_of_names_sees_what_is_not_there():
    page = ROOT / "docs/architecture.md"
    proof = PROOFS[0]
    assert list(missing("`gone.py`, `transaction.py`", page)) == ["gone.py"]
    assert list(missing("`transaction.py`", proof)) == ["transaction.py"]
    assert list(missing("`ledger/gone.py` and `discreet.privacy.event`, `ledger/ledger.py` `Ledger.gone`", page)) == [
        "ledger/gone.py",
        "discreet.privacy.event",
        "ledger/ledger.py Ledger.gone",
    ]
    there = "`ledger/ledger.py` `Ledger.spend`, `discreet.ledger.transaction.transact`, `discreet.noise`, `dp/x`"
    assert list(missing(there, page)) == []


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

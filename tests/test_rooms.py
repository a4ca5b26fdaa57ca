"""The shape of the house: rooms of few modules, no way back, one name for one thing, short functions, stored forms."""

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

import discreet

ROOT = Path(discreet.__file__).parent
DOCS = ROOT.parents[1] / "docs"
FILES = sorted(ROOT.rglob("*.py"))

# Where textbook algorithms, lecture claims, attacks and the demo are: in lab/.
LAB = {"lab"}
LAB_COMMANDS = {"lab/commands/attack_commands.py", "lab/commands/demo_command.py", "lab/commands/reproduce_command.py"}
MOST_MODULES, MOST_LINES = 15, 40
# Catalogues: one module for each claim of the lectures, one for each mechanism.
CATALOGUES = {"lab/lectures/claims", "mechanism"}
# Names that mean the same wherever they are, or that users know in two rooms.
SAME_NAME = {
    "router": "FastAPI's name for the routes of a module",
    "app": "Typer's name for the commands of a module",
    "run": "what a catalogue calls in each of its modules",
    "count": "dp.count answers at once, query.count makes a query",
    "ask": "dp.ask answers at once, a desk and a route ask",
    "histogram": "dp.histogram answers at once, the mechanism measures",
    "connect": "dp.connect to a desk; others connect to their own",
    "discrete_gaussian": "noise.discrete_gaussian draws, mechanism.discrete_gaussian adds the draws to values",
    "epsilon": "accounting.epsilon is of an event, verify.epsilon of two exact laws",
}
# Calls whose arguments are hashed, signed or stored, and functions that make what is.
STORES = {"sha256", "blake2b", "md5", "sha3_256", "spend", "record", "reserve", "digest", "hmac"}
STORES |= {"key_hash", "answer_key_hash"}
MAKES_STORED = re.compile(r"(^|_)(key|digest|hash|fingerprint|to_plain|to_bytes|identity)(_|$)")


@cache
def tree(path):
    return ast.parse(path.read_text())


def module_of(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def package_of(path):
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports(path, *, lazy=True):
    """The modules of discreet that a file imports: anywhere in it, or only those that its own import needs."""
    nodes = ast.walk(tree(path)) if lazy else tree(path).body
    modules = {module_of(each) for each in FILES}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "discreet":
            below = tuple(node.module.split(".")[1:])
            for alias in node.names:
                yield (*below, alias.name) if (*below, alias.name) in modules else below
        elif isinstance(node, ast.Import):
            yield from (tuple(each.name.split(".")[1:]) for each in node.names if each.name.startswith("discreet."))


def cycles(edges):
    """Nodes that lead back to themselves: what is left when ends and beginnings are taken away again and again."""
    left = {node: set(targets) for node, targets in edges.items()}
    while True:
        within = {node: {each for each in targets if each in left} for node, targets in left.items()}
        reached = {each for targets in within.values() for each in targets}
        kept = {node: targets for node, targets in within.items() if targets and node in reached}
        if len(kept) == len(left):
            return sorted(kept)
        left = kept


def functions():
    for path in FILES:
        for node in ast.walk(tree(path)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield path, node


def top_names(path):
    for node in tree(path).body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Assign):
            yield from (each.id for target in node.targets for each in ast.walk(target) if isinstance(each, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


def defined_twice():
    """Public names of the product that several modules define."""
    found = defaultdict(list)
    for path in FILES:
        if not in_lab(path):
            for name in set(top_names(path)):
                if not name.startswith("_") and name not in SAME_NAME:
                    found[name].append(str(path.relative_to(ROOT)))
    return {name: paths for name, paths in found.items() if len(paths) > 1}


def long_functions():
    """Functions of more than 40 lines, their docstrings apart; compiled kernels may be longer."""
    for path, node in functions():
        described = ast.get_docstring(node) is not None
        start = node.body[1].lineno if described and len(node.body) > 1 else node.lineno
        lines = node.end_lineno - start + 1
        kernel = any("jit" in ast.unparse(each) or "compiled" in ast.unparse(each) for each in node.decorator_list)
        if lines > MOST_LINES and not kernel:
            yield f"{path.relative_to(ROOT)}: {node.name} has {lines} lines"


def shows_python(node):
    """Whether an expression holds Python's way to print a value."""
    return any(
        (isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and each.func.id == "repr")
        or (isinstance(each, ast.FormattedValue) and each.conversion == ord("r"))
        for each in ast.walk(node)
    )


def stored_reprs():
    """Places where Python's way to print a value reaches a hash or a record: renaming a class would change it."""
    for path in FILES:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Call):
                called = getattr(node.func, "attr", getattr(node.func, "id", ""))
                given = [*node.args, *(each.value for each in node.keywords)]
                if called in STORES and any(map(shows_python, given)):
                    yield f"{path.relative_to(ROOT)}:{node.lineno}"
    for path, node in functions():
        raised = {id(part) for each in ast.walk(node) if isinstance(each, ast.Raise) for part in ast.walk(each)}
        if MAKES_STORED.search(node.name):
            said = [each for each in ast.walk(node) if isinstance(each, (ast.Call, ast.JoinedStr))]
            if any(shows_python(each) for each in said if id(each) not in raised):
                yield f"{path.relative_to(ROOT)}: {node.name}"


def in_lab(path):
    return package_of(path) in LAB or str(path.relative_to(ROOT)) in LAB_COMMANDS


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_product_never_imports_the_lab(path):
    # The package itself names both for type checkers, and loads either only when it is used.
    if not in_lab(path) and package_of(path) != "__init__":
        assert not {".".join(name) for name in imports(path) if name and name[0] in LAB}


def test_no_module_leads_back_to_itself():
    edges = {module_of(path): set(imports(path, lazy=False)) - {module_of(path)} for path in FILES}
    # A package imports its modules, which Python allows to import the package's other modules.
    edges = {module: targets for module, targets in edges.items() if not (ROOT / Path(*module)).is_dir()}
    assert cycles(edges) == []


def test_no_room_leads_back_to_itself():
    edges = defaultdict(set)
    for path in FILES:
        if package_of(path) != "__init__":
            edges[package_of(path)] |= {name[0] for name in imports(path) if name} - {package_of(path)}
    assert cycles(edges) == []


@pytest.mark.parametrize(
    "folder", sorted({path.parent for path in FILES}), ids=lambda folder: str(folder.relative_to(ROOT))
)
def test_a_folder_has_few_modules(folder, request):
    name = str(folder.relative_to(ROOT))
    modules = [path for path in folder.glob("*.py") if not path.name.startswith("__")]
    if name not in CATALOGUES and len(modules) > MOST_MODULES:
        raise AssertionError(f"{name} has {len(modules)} modules; the limit is {MOST_MODULES}. Make a folder in it.")


def test_a_public_name_is_defined_once():
    assert defined_twice() == {}


def test_functions_are_short():
    found = sorted(long_functions())
    assert not found, "\n".join(found)


def test_no_text_of_python_reaches_a_hash_or_a_record():
    found = sorted(stored_reprs())
    assert found == []


def test_the_page_of_the_rooms_lists_exactly_those_there_are():
    page = DOCS / "architecture.md"
    listed = set(re.findall(r"^\| *\[?`(\w+)/`", page.read_text(), re.MULTILINE))
    assert listed == {path.parent.name for path in ROOT.glob("*/__init__.py")}


def test_the_page_of_the_rooms_lists_every_module_of_the_product():
    lines = re.findall(
        r"^- `([\w/]+)/`: (.*?)(?=^- |^$)", (DOCS / "architecture.md").read_text(), re.MULTILINE | re.DOTALL
    )
    listed = {(folder, name) for folder, text in lines for name in re.findall(r"`(\w+)`", text)}
    there = {
        (str(path.parent.relative_to(ROOT)), path.stem)
        for path in FILES
        if not in_lab(path) and path.parent != ROOT and path.stem != "__init__"
    }
    assert listed == there


def test_the_checks_see_what_they_look_for():
    assert shows_python(ast.parse("sha256(repr(x).encode())"))
    assert shows_python(ast.parse("f'{x!r}'"))
    assert not shows_python(ast.parse("f'{x}'"))
    assert cycles({1: {2}, 2: {3}, 3: {2}, 4: {1}}) == [2, 3]
    assert cycles({1: {2}, 2: {3}}) == []

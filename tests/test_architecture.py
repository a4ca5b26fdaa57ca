"""The tree tells the story: a stage imports only earlier stages, and few files have effects."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import discreet

ROOT = Path(discreet.__file__).parent

# The order of the stages. What stands in one line may not import each other's siblings to the right.
STAGES = [
    "errors",
    "types",
    "numeric",
    "cache",
    "jit",
    "values",
    "schema",
    "query",
    "accounting",
    "noise",
    "source",
    "data",
    "mechanism",
    "verify",
    "estimate",
    "model",
    "plan",
    "ledger",
    "answer",
    "report",
    "oneshot",
    "release",
    "curator",
    "meaning",
    "learn",
    "wire",
    "client",
    "serve",
    "cli",
    "__main__",
    "lab",
]

FILES = sorted(ROOT.rglob("*.py"))


def stage_of(path):
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports(path):
    """Every discreet module that a file imports, anywhere in it, as a tuple of its parts after `discreet`."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (tuple(alias.name.split(".")[1:]) for alias in node.names if alias.name.startswith("discreet"))
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "discreet":
            below = tuple(node.module.split(".")[1:])
            yield from ((*below, alias.name) for alias in node.names)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_stage_imports_only_itself_and_earlier_stages(path):
    stage = stage_of(path)
    if stage == "__init__":
        return
    for name in imports(path):
        assert STAGES.index(name[0]) <= STAGES.index(stage), f"{stage} imports discreet.{'.'.join(name)}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_product_never_imports_the_lab(path):
    stage = stage_of(path)
    if stage not in ("__init__", "lab"):
        assert not [name for name in imports(path) if name[0] == "lab"]


def test_the_check_sees_an_import_of_a_later_stage(tmp_path):
    (tmp_path / "wrong.py").write_text("def f():\n    from discreet.mechanism.laplace import laplace\n")
    assert list(imports(tmp_path / "wrong.py")) == [("mechanism", "laplace", "laplace")]


def test_only_mechanisms_open_a_sealed_value():
    users = {stage_of(path) for path in FILES if any(name[-1] == "unseal" for name in imports(path))}
    assert users == {"mechanism"}


def test_only_the_noise_asks_for_randomness():
    """No seedable generator anywhere."""
    generators = {"random", "secrets", "numpy.random"}
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            names = {alias.name for alias in node.names} if isinstance(node, ast.Import) else set()
            names |= {node.module} if isinstance(node, ast.ImportFrom) else set()
            if isinstance(node, ast.Attribute) and node.attr in ("random", "urandom", "default_rng"):
                names |= {"numpy.random"}
            if names & generators:
                assert path == ROOT / "noise" / "sample.py", f"{path.name} draws randomness of its own"


def test_array_types_are_defined_in_types_py_only():
    for path in FILES:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript):
                array = ast.unparse(node.value).startswith(
                    ("NDArray[np.float64", "NDArray[np.int64", "NDArray[np.bool_")
                )
                assert not array or path == ROOT / "types.py", f"{path.name}: {ast.unparse(node)}"
                assert ast.unparse(node) != "Columns = tuple[str, ...]" or path == ROOT / "types.py", path.name


def test_only_cache_py_memoises():
    """So every cache has a bound."""
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            names = {alias.name for alias in node.names} if isinstance(node, ast.ImportFrom) else set()
            if names & {"lru_cache", "cache", "OrderedDict"} and node.module in ("functools", "collections"):
                assert path == ROOT / "cache.py", f"{path.name} has a cache of its own"
            if isinstance(node, ast.Attribute) and node.attr in ("lru_cache", "OrderedDict"):
                raise AssertionError(f"{path.name} has a cache of its own")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_file_is_two_ideas(path):
    assert len(path.read_text().splitlines()) <= 400


def mechanisms():
    """Every public function that makes a mechanism."""
    from discreet import mechanism

    for name in mechanism.__all__:
        made = str(getattr(getattr(mechanism, name), "__annotations__", {}).get("return"))
        if "Mechanism" in made or "Interactive" in made:
            yield getattr(mechanism, name)


def test_every_mechanism_names_a_proof_page_that_lies_beside_it():
    found = list(mechanisms())
    assert len(found) >= 11
    for make in found:
        pages = re.findall(r"(\w+)\.md", make.__doc__)
        assert pages, f"{make.__name__} names no proof page"
        assert all((ROOT / "mechanism" / f"{page}.md").exists() for page in pages)


def test_importing_discreet_loads_nothing_heavy():
    code = "import discreet, sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "scipy", "numba", "flint", "pandas", "polars", "pyarrow", "sqlalchemy", "typer"} & set(loaded)


def calls(path, *names):
    """The methods of these names that a file calls, each with the line."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in names:
            yield node.func.attr, node.lineno


def test_only_the_transaction_spends_and_records():
    """Pay, read, add noise, record, know: written once, so that its order holds for everybody."""
    found = {str(path.relative_to(ROOT)) for path in FILES if any(calls(path, "spend", "record"))}
    # Claims of the lectures use the ledger as a user would.
    assert {name for name in found if name.split("/")[0] != "lab"} == {"ledger/transaction.py"}


def test_no_representation_reaches_the_ledger():
    """What is stored or hashed has a wire form: a class that is renamed must not change a key."""
    for path in FILES:
        if path.relative_to(ROOT).parts[0] in ("curator", "ledger", "learn", "lab") and path.name != "legacy.py":
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "repr":
                    asked = ast.unparse(node)
                    assert asked == "repr(target.confidence)", f"{path.name} writes {asked}"


KINDS = re.compile(
    r"\.pure\b|isinstance\([^)]*(GaussianLattice|LaplaceMarginals)|case (GaussianLattice|LaplaceMarginals)"
)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_only_estimators_and_plans_ask_which_estimator_it_is(path):
    """Others ask it for what they need: intervals, variances, steps, or what it can do."""
    if stage_of(path) not in ("estimate", "plan"):
        found = KINDS.findall(path.read_text().replace("discreet.plan.laplace_plan", ""))
        assert not found, f"{path.name} asks which estimator it has"

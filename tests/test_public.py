"""The public names, the two commands' cost, and that every name is documented."""

import importlib
import resource
import subprocess
import sys
from pathlib import Path

import pytest

import discreet

DOCS = Path(__file__).parent.parent / "docs"
ROOT = Path(discreet.__file__).parent


def test_the_public_names_are_sorted_and_all_there():
    assert discreet.__all__ == sorted(discreet.__all__)
    for name in discreet.__all__:
        assert getattr(discreet, name) is not None
    assert set(discreet._HOME) | set(discreet._ROOMS) == set(discreet.__all__)


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'colour'"):
        _ = discreet.colour


def public_objects():
    """Every name in an `__all__`, of all packages: those that users open, and those that only we import."""
    for path in sorted(ROOT.rglob("__init__.py")):
        package = ".".join(("discreet", *path.parent.relative_to(ROOT).parts))
        if package == "discreet":
            continue
        module = importlib.import_module(package)
        for name in getattr(module, "__all__", []):
            yield pytest.param(getattr(module, name), id=f"{package}.{name}")


@pytest.mark.parametrize("thing", list(public_objects()))
def test_every_public_function_and_class_says_what_it_is(thing):
    if callable(thing) and getattr(thing, "__module__", "").startswith("discreet"):
        assert (thing.__doc__ or "").strip()


def test_every_error_is_in_the_tree_on_top_of_its_file():
    from discreet import errors

    tree = errors.__doc__
    named = [
        name for name, thing in vars(errors).items() if isinstance(thing, type) and thing.__module__ == errors.__name__
    ]
    assert len(named) > 8
    for name in named:
        assert name in tree


def test_every_public_name_and_error_is_in_the_documentation():
    text = "\n".join(path.read_text() for path in [*DOCS.glob("*.md"), DOCS.parent / "README.md"])
    for name in discreet.__all__:
        assert name in text, f"{name} is documented nowhere"


def cpu_seconds(*command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


ONE_OFF = """
import discreet as dp
people = dp.open({"age": [31, 64, 70] * 50}, domain=dp.Domain({"age": dp.Integers(0, 99)}))
print(dp.count(people, dp.col("age") >= 65, epsilon=0.1))
"""


@pytest.mark.parametrize(
    ("limit", "command"),
    [
        (0.4, [sys.executable, "-c", "import discreet"]),
        (0.6, [sys.executable, "-m", "discreet", "--help"]),
        (2.0, [sys.executable, "-c", ONE_OFF]),
    ],
    ids=["import", "help", "one count"],
)
def test_a_cold_start_is_quick(limit, command):
    # The best of three: this measures our imports, not what else the machine is doing.
    assert min(cpu_seconds(*command) for _ in range(3)) < limit


def test_a_handful_of_draws_does_not_load_the_compiler():
    code = ONE_OFF + "import sys; assert 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_a_million_draws_are_compiled():
    code = "import sys, discreet.noise as noise; noise.discrete_laplace(10, 10**6); print('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "True\n"

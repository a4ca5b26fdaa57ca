"""Optional packages and services: skip where they are missing, unless everything is required."""

import os
import shutil
from importlib.util import find_spec

import pytest


def needs(*modules: str, command: str | None = None) -> pytest.MarkDecorator:
    """Mark a test that needs optional packages; with DISCREET_REQUIRE_ALL=1 a missing one is a failure, not a skip."""
    missing = [module for module in modules if find_spec(module) is None]
    if command is not None and shutil.which(command) is None:
        missing.append(command)
    if missing and os.environ.get("DISCREET_REQUIRE_ALL") == "1":
        raise ModuleNotFoundError(f"DISCREET_REQUIRE_ALL=1 and not installed: {', '.join(missing)}")
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")

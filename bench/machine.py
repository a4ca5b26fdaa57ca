"""What the figures were measured on."""

import importlib.metadata
import platform
from pathlib import Path


def describe(*packages):
    model = "unknown processor"
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        model = names[0] if names else model
    versions = [f"{name} {importlib.metadata.version(name)}" for name in ("numpy", "numba", *packages)]
    return f"{model}, Python {platform.python_version()}, {', '.join(versions)}"

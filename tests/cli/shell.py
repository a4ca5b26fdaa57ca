"""Running the command as people run it."""

import subprocess
import sys


def run(*arguments, **options):
    """What `discreet …` prints, and its exit code."""
    command = [sys.executable, "-m", "discreet", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)

"""Several ledgers on one file in one process, and another process that comes and goes."""

import subprocess
import sys

import pytest

from discreet.accounting import Laplace
from discreet.ledger import Budget, Ledger, verify


@pytest.mark.parametrize("look", [verify, lambda file: Ledger(file).close()], ids=["verify", "open"])
def test_a_second_look_from_the_same_process_does_not_undo_what_is_spent_afterwards(tmp_path, look):
    """To close a file drops all locks of the process on it; another process would then remove the log under us."""
    file = str(tmp_path / "budget.sqlite")
    with Ledger(file) as service:
        service.cap(Budget(epsilon=1), table="people")
        look(file)
        other = f"from discreet.ledger import verify; verify({file!r})"
        subprocess.run([sys.executable, "-c", other], check=True)
        service.spend(Laplace(2, 1), "half of the budget", table="people")
        seen = f"from discreet.ledger import Ledger; print(Ledger({file!r}).head.sequence)"
        result = subprocess.run([sys.executable, "-c", seen], capture_output=True, text=True, check=False)
        assert result.stdout == f"{service.head.sequence}\n", result.stderr

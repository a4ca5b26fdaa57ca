"""The page on the bundled table, to play with: a temporary ledger, and a few questions that were asked already."""

from pathlib import Path
from tempfile import TemporaryDirectory

from discreet.curator import Curator
from discreet.data import load_adult
from discreet.ledger import Budget
from discreet.serve.registry import Settings
from discreet.serve.workers import start_server

BUDGET = Budget(epsilon=1, delta=1e-9)

# Asked by two analysts before the page opens, so that there is something to see.
ASKED = (
    ("ana", "SELECT COUNT(*) FROM adult WHERE age >= 65 AND sex = 'Female'", 200),
    ("ben", "SELECT sex, income, COUNT(*) FROM adult GROUP BY sex, income", 500),
    ("ana", "SELECT education, COUNT(*) FROM adult GROUP BY education", 400),
)


def play(port: int, *, open_page: bool) -> None:
    """Serve the bundled table until interrupted."""
    with TemporaryDirectory(prefix="discreet-demo-") as folder:
        ledger = str(Path(folder) / "budget.sqlite")
        with Curator(load_adult(), budget=BUDGET, ledger=ledger) as desk:
            for analyst, question, error in ASKED:
                desk.ask(question, error=error, analyst=analyst)
        releases = Path(folder) / "releases"
        start_server(Settings(schemas=("adult",), ledger=ledger, releases=releases, port=port), open_page=open_page)

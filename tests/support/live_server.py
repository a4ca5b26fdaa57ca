"""A real server in a process of its own, and the same application within this one."""

import os
import re
import signal
import subprocess
import sys
from io import StringIO

import httpx
from starlette.testclient import TestClient

from discreet.ledger import Budget
from discreet.serve.app import make
from discreet.serve.registry import Settings

# What is planted in the data and must never be seen again.
CANARIES = ("CANARY-4f1d", "canary@example.org", "31415926535")

# What an error for people must not name: they read it in a browser, in SQL or in a program that is not Python.
_PYTHON = re.compile(
    r"\b(?:dp|desk|ledger)\.\w+|\b(?:Budget|Fraction|Decimal|Marginal|Integers|Bins|Categories|col|isin)\(|\.\w+\(\)|"
    r"\b[a-z_]+=(?:True|False|None)\b|\ban int\b"
)

SCHEMA = """
table: people
source: people.parquet
privacy_unit: row
columns:
  age:    {type: integer, lower: 0, upper: 99, bins: [0, 18, 30, 45, 65, 80]}
  sex:    {values: [Female, Male]}
  city:   {values: [Bern, Chur, Genf, Thun]}
  hours:  {type: integer, lower: 0, upper: 60}
"""


def names_python(detail):
    """What of Python an error names, beside the texts that it quotes from the request."""
    return _PYTHON.findall(re.sub(r"\"[^\"]*\"|'[^']*'", "", detail))


def people(folder, rows=4000, *, without=None):
    """The schema file of a table that is always the same; one row can be left out."""
    import numpy as np
    import polars as pl

    folder.mkdir(parents=True, exist_ok=True)
    # Rows need no secrecy here, and tests want them to be the same; digits of a recurrence will do.
    digits = np.array([(place * 2654435761) % 2**32 for place in range(4 * rows)], dtype=np.int64).reshape(4, rows)
    city = np.array(["Bern", "Chur", "Genf", "Thun", CANARIES[0]])[digits[2] // 7 % 5]
    frame = pl.DataFrame(
        {
            "age": digits[0] // 11 % 110,
            "sex": np.array(["Female", "Male"])[digits[1] // 5 % 2],
            "city": city,
            "hours": digits[3] // 3 % 70,
            "mail": [CANARIES[1]] * rows,
            "salary": [int(CANARIES[2])] * rows,
        }
    )
    if without is not None:
        frame = frame.with_row_index().filter(pl.col("index") != without).drop("index")
    frame.write_parquet(folder / "people.parquet")
    # A copy that was made with its time is the same file to a ledger.
    os.utime(folder / "people.parquet", (10**9, 10**9))
    (folder / "people.yaml").write_text(SCHEMA)
    return folder / "people.yaml"


def settings(folder, **changes):
    """What a server in this folder is told."""
    schema = people(folder) if "schemas" not in changes else None
    given = {
        "schemas": (str(schema),),
        "ledger": str(folder / "ledger.sqlite"),
        "releases": folder / "releases",
        "budget": Budget(epsilon=20, delta=1e-9),
        "port": 0,
        "quantum": 0.0,
        "rate": 0.0,
    }
    return Settings(**(given | changes))


class Inside:
    """The application within this process, with its log, and a token for each role."""

    def __init__(self, folder, **changes):
        self.log = StringIO()
        self.settings = settings(folder, **changes)
        self.app = make(self.settings, log=self.log)
        self.desks = self.app._app.app.state.registry
        self.tokens = {role: self.desks.tokens.create(role, role) for role in ("owner", "analyst", "auditor")}
        self.web = TestClient(self.app, base_url="http://127.0.0.1:8711", raise_server_exceptions=False)

    def __enter__(self):
        self.web.__enter__()
        return self

    def __exit__(self, *error):
        self.web.__exit__(*error)
        # Other tests watch what is called in this process; a release that is still being made would be among it.
        self.desks.jobs._maker.shutdown(wait=True)

    def call(self, method, path, role="analyst", **options):
        """A request of somebody with this role."""
        headers = {"authorization": f"Bearer {self.tokens[role]}", **options.pop("headers", {})}
        return self.web.request(method, f"/v1{path}", headers=headers, **options)

    def ask(self, question, role="analyst", headers=None, **wish):
        """A question about the table."""
        return self.call("POST", "/tables/people/ask", role, json={"question": question, **wish}, headers=headers or {})

    @property
    def entries(self):
        """How many entries the ledger has: it tells whether anything was charged."""
        return self.desks.ledger.head.sequence


SERVE = """
import sys
from pathlib import Path
from discreet.ledger import Budget
from discreet.serve.registry import Settings
from discreet.serve.workers import start_server
start_server(eval(sys.argv[1], {"Settings": Settings, "Budget": Budget, "Path": Path, "PosixPath": Path}))
"""


class Live:
    """A server in processes of its own, on a free port."""

    def __init__(self, chosen, log=None):
        self.settings, self._log = chosen, log
        self.process = self.address = self.owner = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *error):
        self.stop()

    def start(self):
        """Start it and wait until it answers; the first start tells the owner's token."""
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVE, repr(self.settings)],
            stdout=subprocess.PIPE,
            stderr=self._log or subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        said = ""
        while "Stop with Ctrl-C" not in said:
            line = self.process.stdout.readline()
            assert line, f"the server did not start: {said}"
            said += line
        self.address = re.search(r"at (https?://\S+)", said)[1]
        found = re.search(r"^  (discreet_\S+)$", said, flags=re.M)
        self.owner = found[1] if found else self.owner
        transport = httpx.HTTPTransport(retries=20, verify=False)
        with httpx.Client(transport=transport, base_url=self.address, timeout=60) as web:
            assert web.get("/v1/health").status_code == 200

    def kill(self):
        """No farewell: the supervisor and all workers at once."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self):
        """Stop it as a person would."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()
        self.process.stdout.close()

    def web(self, token=None):
        """A client of the API."""
        headers = {"authorization": f"Bearer {token or self.owner}"}
        return httpx.Client(base_url=f"{self.address}/v1", headers=headers, timeout=60)

    def token(self, name, role="analyst"):
        """A token for somebody."""
        with self.web() as web:
            return web.post("/tokens", json={"name": name, "role": role}).json()["token"]

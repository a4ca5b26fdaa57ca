"""A curator on a server: the same methods and answers as a local one, over HTTP."""

import io
import zipfile
from collections.abc import Iterator, Sequence
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from time import sleep
from types import TracebackType
from typing import Any, overload
from urllib.parse import quote, urlsplit

from discreet.answer import Answer
from discreet.client.http_session import PAUSE, HttpSession
from discreet.curator.explanation import Free, Plan
from discreet.curator.question import Askable, read_accuracy
from discreet.curator.release import Release
from discreet.errors import BadParameter, NotFound, SourceFailed, did_you_mean
from discreet.ledger import Budget, Spend
from discreet.model.mixture.ensemble import Tell
from discreet.numeric import Number, confidence_of, positive, text
from discreet.release.task import AUTO, ReleasePlan, Wanted, limits_of
from discreet.schema.yaml.schema_file import parse_schema
from discreet.source.source import CellBatch, Source
from discreet.source.table import Table
from discreet.wire import answer_json
from discreet.wire.problem import error_from_problem
from discreet.wire.question_json import question_to_plain
from discreet.wire.workload_json import workload_to_plain

# Seconds for which a request is retried when the server is down or busy.
RETRY_SECONDS = 30.0
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
# Spends fetched at once.
_PAGE = 1000


def connect(
    url: str,
    token: str,
    *,
    table: str | None = None,
    certificate: str | None = None,
    patience: Number = RETRY_SECONDS,
) -> "RemoteCurator":
    """A desk on a server: asks, plans and releases like a local `Curator`, in the name of the token.

    `table` chooses one where the server has several. `certificate` is a file with the certificate of a server that
    made its own. A server that cannot be reached is tried again for `patience` seconds; because every request has a
    key, nothing is paid twice.

        desk = dp.connect("http://127.0.0.1:8711", "discreet_…")
        desk.ask("SELECT COUNT(*) FROM people WHERE age >= 65", error=200)
    """
    parts = urlsplit(text("url", url))
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadParameter(f'url is {url!r}; it must be the address of a server, like "http://127.0.0.1:8711".')
    if parts.scheme == "http" and parts.hostname not in _LOOPBACK:
        raise BadParameter(f'"{url}" is not protected on its way: the token would be read by others. Use https://.')
    wait = float(positive("patience", patience, next_step="Give seconds, say 30."))
    session = HttpSession(url, text("token", token), certificate, wait)
    try:
        return RemoteCurator(session, _choose_table(session, table), session.get("/v1/me")["name"])
    except BaseException:
        session.close()
        raise


def _choose_table(session: "HttpSession", table: str | None) -> str:
    names = [each["name"] for each in session.get("/v1/tables")]
    if table is None and len(names) == 1:
        return str(names[0])
    if table is None:
        raise BadParameter(
            f"the server has {len(names)} tables: {', '.join(names)}. Say which one: table={names[0]!r}."
        )
    if table not in names:
        raise NotFound(f'no table "{table[:60]}" on the server; {did_you_mean(table, names)}')
    return table


class RemoteCurator:
    """What `connect` gives. Its `table` has the schema; the rows stay on the server."""

    def __init__(self, session: "HttpSession", table: str, analyst: str) -> None:
        self._session, self.analyst = session, analyst
        self._path = f"/v1/tables/{quote(table, safe='')}"
        schema = parse_schema(session.get(self._path)["schema"], name=table)
        self.table = Table(schema, RemoteRows(schema.domain, schema.unit))

    def ask(
        self,
        question: Askable,
        *,
        error: Number | None = None,
        confidence: Number = 0.95,
        epsilon: Number | None = None,
        joint: bool = False,
        nonnegative: bool = False,
        analyst: str | None = None,
        key: str | None = None,
    ) -> Answer:
        """The answer to a question, as `Curator.ask` gives it."""
        form = {"question": question_to_plain(question), "nonnegative": nonnegative, "analyst": analyst}
        form |= _accuracy_form(error, confidence, epsilon, joint)
        return answer_json.answer_from_plain(self._session.post(f"{self._path}/ask", form, key=key))

    def ask_many(
        self,
        questions: Sequence[Askable],
        *,
        error: Number,
        confidence: Number = 0.95,
        analyst: str | None = None,
        key: str | None = None,
    ) -> list[Answer]:
        """The answers to several questions, planned together and paid at once."""
        accuracy = _accuracy_form(error, confidence, None, False)
        if not questions:
            return []
        form = {"questions": [question_to_plain(each) for each in questions], "analyst": analyst}
        form |= {"error": accuracy["error"], "confidence": accuracy["confidence"]}
        return [
            answer_json.answer_from_plain(each) for each in self._session.post(f"{self._path}/ask-many", form, key=key)
        ]

    # fmt: off
    @overload
    def plan(self, question: Askable, *, error: Number | None = None, confidence: Number = 0.95,
             epsilon: Number | None = None, joint: bool = False) -> Plan: ...
    @overload
    def plan(self, question: Wanted, *, budget: Budget, rows: Number | None = None, seconds: Number | None = None,
             memory: Number | None = None) -> ReleasePlan: ...
    # fmt: on
    def plan(
        self,
        question: Any,
        *,
        error: Number | None = None,
        confidence: Number = 0.95,
        epsilon: Number | None = None,
        joint: bool = False,
        budget: Budget | None = None,
        rows: Number | None = None,
        seconds: Number | None = None,
        memory: Number | None = None,
    ) -> Plan | ReleasePlan:
        """What a question would cost, before paying; with a `budget`, what a release would be."""
        if budget is not None:
            about = None if rows is None else float(positive("rows", rows, next_step="Say about how many there are."))
            form = {"workload": workload_to_plain(question), "epsilon": float(budget.epsilon), "rows": about}
            form |= {"delta": float(budget.delta)} | _limits(seconds, memory)
            return answer_json.release_plan_from_plain(self._session.post(f"{self._path}/releases/plan", form))
        form = {"question": question_to_plain(question)} | _accuracy_form(error, confidence, epsilon, joint)
        return answer_json.plan_from_plain(self._session.post(f"{self._path}/plan", form))

    def release(
        self,
        workload: Wanted,
        budget: Budget | None = None,
        *,
        method: str = AUTO,
        seconds: Number | None = None,
        memory: Number | None = None,
        analyst: str | None = None,
        key: str | None = None,
        tell: Tell | None = None,
    ) -> Release:
        """A model of the whole table that is right about a workload, made on the server and brought here."""
        form: dict[str, Any] = {"workload": workload_to_plain(workload), "method": method, "analyst": analyst}
        form |= _limits(seconds, memory)
        if budget is not None:
            form |= {"epsilon": float(budget.epsilon), "delta": float(budget.delta)}
        place = f"{self._path}/releases"
        job = self._session.post(place, form, key=key)
        while job["state"] in ("waiting", "running"):
            if tell is not None:
                tell(job["progress"])
            sleep(PAUSE)
            job = self._session.get(f"{place}/{job['id']}")
        if job["state"] != "done":
            raise error_from_problem(500, job["problem"] or {})
        with TemporaryDirectory() as folder:
            _unpack(self._session.read(f"{place}/{job['id']}/folder"), Path(folder))
            return Release.load(folder)

    @property
    def remaining(self) -> Budget:
        """What one more release could cost, as an epsilon at the table's delta."""
        return answer_json.budget_from_plain(self._session.get(self._path)["remaining"])

    @property
    def spent(self) -> Budget:
        """What was spent on the table so far, as an epsilon at its delta."""
        return answer_json.budget_from_plain(self._session.get(self._path)["spent"])

    def known(self, *, confidence: Number = 0.95) -> list[Free]:
        """What can be answered for free now."""
        chance = confidence_of(confidence)
        found = self._session.get(f"{self._path}/known", confidence=chance)
        return [answer_json.free_from_plain(each) for each in found]

    def history(self) -> list[Spend]:
        """The spends on this table, in order: one's own, or all of them for owners and auditors."""
        return list(reversed(list(self._newest_first())))

    def close(self) -> None:
        """Give back the connection."""
        self._session.close()

    def __enter__(self) -> "RemoteCurator":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<RemoteCurator: {self.table.name} at {self._session.url}; {self.remaining} left>"

    def _newest_first(self) -> Iterator[Spend]:
        asked: dict[str, Any] = {"limit": _PAGE, "released": True}
        more = True
        while more:
            page = self._session.get(f"{self._path}/history", **asked)
            yield from (answer_json.spend_from_plain(each) for each in page["spends"])
            more = page["more"]
            asked["before"] = page["spends"][-1]["sequence"] if more else None


class RemoteRows(Source):
    """The rows of a table that is on a server: they are not here."""

    def cells(self, columns: tuple[str, ...]) -> Iterator[CellBatch]:
        """Rows are read on the server, by the curator there."""
        raise SourceFailed("the rows of this table are on a server and are never sent. Ask the curator of connect().")


def _accuracy_form(error: Number | None, confidence: Number, epsilon: Number | None, joint: bool) -> dict[str, Any]:
    """The accuracy for a request; nonsense is refused here, with the sentence that the server would send."""
    wanted = read_accuracy(error=error, confidence=confidence, epsilon=epsilon, joint=joint)
    return {"error": wanted.error, "confidence": wanted.confidence, "epsilon": wanted.epsilon, "joint": bool(joint)}


def _limits(seconds: Number | None, memory: Number | None) -> dict[str, Any]:
    limits = limits_of(seconds, memory)
    return {
        "seconds": None if limits.seconds == inf else limits.seconds,
        "memory": None if limits.memory == inf else limits.memory,
    }


def _unpack(archive: bytes, folder: Path) -> None:
    """The files of a release; a name never leads out of the folder."""
    with zipfile.ZipFile(io.BytesIO(archive)) as found:
        for name in found.namelist():
            (folder / Path(name).name).write_bytes(found.read(name))

"""Wrote the golden files of `v1` with the code of commit 988c215, the last one before the redesign (issue 22).

    PYTHONPATH=src:tests python tests/golden/make.py tests/golden/v1

It is kept to be read: what is in the files, and how it came there. Noise is drawn anew whenever it is run, and the
names of modules that it replaces to make things fail are those of that commit; so the files are not written again. When
a new form is stored, a new folder is made beside it (`v2`), and the old ones stay.
"""

import json
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import numpy as np

import discreet as dp
import discreet.curator.checked_model
import discreet.plan.build_model
import discreet.plan.model_forecast
from discreet.accounting.event import (
    AboveThreshold,
    Approximate,
    Compose,
    DiscreteGaussian,
    Gaussian,
    Laplace,
    Nothing,
    Pure,
    Repeat,
    Selection,
)
from discreet.curator.records import Session
from discreet.plan.build_model import Built
from golden.observe import arithmetic, observed
from golden.tables import NAMES, labels, write_tables
from golden.work import FAILED, HALF, KEYED, LOST, REOPENED, SPLIT, WISH, Place, Plain, Request, conjunctions, plain

ONE = Fraction(1)


def main(folder: Path) -> None:
    """Write everything."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    write_tables(folder)
    expected: dict[str, Plain] = {"arithmetic": arithmetic(), "ledgers": {}, "releases": {}}
    for name, write in (("pure", pure), ("gaussian", gaussian), ("renyi", renyi), ("shared", shared)):
        path = folder / f"{name}.sqlite"
        with Place(folder, path) as at:
            told = write(at, folder)
        settle(path)
        expected["ledgers"][name] = {"told": told, **observed(name, folder, path)}
        settle(path)
    expected["reopened"] = {
        name: {what: reopened(request, name, folder) for what, request in REOPENED[name].items()} for name in REOPENED
    }
    for place in sorted((folder / "releases").iterdir()):
        expected["releases"][place.name] = plain(dp.Release.load(place))
    (folder / "expected.json").write_text(json.dumps(expected, indent=0) + "\n")


def reopened(request: Request, name: str, folder: Path) -> Plain:
    """What is told when a session is opened again, on a copy."""
    with TemporaryDirectory() as other:
        shutil.copy(folder / f"{name}.sqlite", other)
        with Place(folder, Path(other) / f"{name}.sqlite") as at:
            return request(at)


def settle(path: Path) -> None:
    """All of a ledger in one file."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def tell(name: str, at: Place, folder: Path, *, leave: tuple[str, ...] = ()) -> dict[str, Plain]:
    """What was told under each key; releases are kept in folders of their own."""
    told = {}
    for label, request in KEYED[name].items():
        if label in leave:
            continue
        answer = request(at)
        if isinstance(answer, dp.Release):
            answer.save(folder / "releases" / f"{name}-{label.removeprefix('release ')}")
        told[label] = plain(answer)
    return told


def pure(at: Place, folder: Path) -> dict[str, Plain]:
    """Laplace noise, delta 0."""
    ledger = at.ledger
    ledger.cap(dp.Budget(60), table="people")
    ledger.cap(dp.Budget(20), table="people", analyst="*", by="carla")
    ledger.cap(dp.Budget(0.2), table="people", analyst="cleo")
    ledger.cap(dp.Budget(20), table="points")
    ledger.cap(dp.Budget(20), table="pairs")
    ledger.cap(dp.Budget(60), table="public")
    ledger.cap(dp.Budget(20), table="fixed")
    ledger.cap(dp.Budget(10), table="holdout")
    ledger.cap(dp.Budget(10), table="leaderboard")
    told = tell("pure", at, folder)
    desk = at.desk("people/people")
    desk.ask("SELECT age, sex, COUNT(*) FROM people GROUP BY age, sex", error=20)
    desk.ask("age >= 4 AND city = 'Oslo' AND member AND level = 'low'", error=9)
    sessions(at)
    for event in (
        Laplace(10, 1),
        Pure(Fraction(1, 7)),
        Selection(Fraction(1, 3)),
        AboveThreshold(Fraction(1, 5)),
        Nothing(),
    ):
        ledger.record(ledger.spend(event, "an event by itself", table=at.table("people/people").identity), b"told")
    ledger.spend(Repeat(Laplace(30, 1), 3), "never recorded", table=at.table("people/people").identity)
    # After all that was spent: it begins with a sum.
    ledger.cap(dp.Budget(400), by="carla")
    ledger.raise_cap(dp.Budget(80), table="people", by="carla")
    return told


def gaussian(at: Place, folder: Path) -> dict[str, Plain]:
    """Gaussian noise: the currency is squared mu."""
    ledger = at.ledger
    for table in ("people", "points", "pairs", "apart", "fixed", "holdout"):
        ledger.cap(dp.Budget(30, 1e-9), table=table)
    ledger.cap(dp.Budget(0.2, 1e-9), table="people", analyst="cleo")
    told = tell("gaussian", at, folder)
    desk = at.desk("people/people")
    desk.ask("SELECT age, sex, COUNT(*) FROM people GROUP BY age, sex", error=20)
    desk.ask("age >= 4 AND city = 'Oslo' AND member AND level = 'low' AND income >= 62.5", error=9)
    sessions(at)
    with interrupted_after(4):
        HALF["gaussian"]["release"](at)
    people = at.table("people/people").identity
    used = ledger.reserve(Repeat(Gaussian(Fraction(50), ONE), 4), "set aside, and used", table=people, analyst="ana")
    ledger.record(ledger.spend(Gaussian(Fraction(50), ONE), "from it", table=people, analyst="ana", hold=used), b"one")
    ledger.close_hold(used)
    ledger.reserve(Repeat(Gaussian(Fraction(50), ONE), 4), "set aside, and open", table=people, analyst="ana")
    parts = Compose((Laplace(10, 1), Repeat(Gaussian(Fraction(20), ONE), 2), Pure(Fraction(1, 9))))
    ledger.record(ledger.spend(parts, "several events", table=people), b"told")
    ledger.raise_cap(dp.Budget(40, 1e-9), table="people")
    return told


def renyi(at: Place, folder: Path) -> dict[str, Plain]:
    """A model that is checked with a coin; and orders of Rényi."""
    ledger = at.ledger
    for table in ("pairs", "apart", "mixed", "people", "leaderboard"):
        ledger.cap(dp.Budget(20, 1e-9, "renyi"), table=table)
    ledger.cap(dp.Budget(15, 1e-9, "renyi"), table="pairs", analyst="*")
    with eager():
        desk = at.desk("pairs", "ana", expected_questions=100_000)
        for question in conjunctions(30):
            desk.ask(question, **WISH)
        models(at)
        told = tell("renyi", at, folder)
        apart = at.desk("apart", "ben")
        for question in SPLIT:
            apart.ask(question, **WISH)
    with dp.Leaderboard(labels(), epsilon=4, ledger=ledger, submissions=50) as board:
        board.submit(np.zeros(len(labels())), name="nothing")
        board.submit(labels(), name="all")
    pairs = at.table("pairs").identity
    for event in (
        DiscreteGaussian(Fraction(90), ONE),
        Approximate(Fraction(1, 50), Fraction(0)),
        Selection(Fraction(1, 9)),
    ):
        ledger.record(ledger.spend(event, "an event by itself", table=pairs), b"told")
    paid = ledger.reserve(Gaussian(Fraction(300), ONE), "a stake that is paid", table=pairs, stake=True)
    ledger.close_hold(paid)
    back = ledger.reserve(Gaussian(Fraction(300), ONE), "a stake that goes back", table=pairs, stake=True)
    ledger.close_hold(back, unused=True)
    ledger.reserve(Gaussian(Fraction(300), ONE), "a stake that is open", table=pairs, stake=True)
    return told


def models(at: Place) -> None:
    """Sessions with models of one's own: one that is often wrong, a mixture, and one that was given up."""
    own = (
        ("apart", NAMES, Built("tree", NAMES, ())),
        ("mixed", NAMES, Built("mixture", NAMES, ())),
        ("people/people", ("member",), None),
    )
    for table, names, built in own:
        desk = at.desk(table, expected_questions=100_000)
        for name in names:
            desk.ask(name, error=50, confidence=0.99)
        session = Session(Fraction(200), Fraction(99, 100), 1, 3, built)
        desk._teller.note(session, session.coin.opening if built else Nothing(), "a model of one's own", analyst="ben")


def shared(at: Place, folder: Path) -> dict[str, Plain]:
    """Two tables that share people, a second version, and what fails."""
    ledger = at.ledger
    ledger.cap(dp.Budget(30, 1e-9), tables=("people", "visits"))
    first = at.desk("shared/people", "ana")
    first.ask("age >= 4", error=20, key="k-first")
    told = tell("shared", at, folder, leave=("second version", "after a failure"))
    again = KEYED["shared"]["after a failure"]
    failed(again, at)
    told["after a failure"] = plain(again(at))
    with mock.patch.object(dp.Ledger, "record", side_effect=KeyboardInterrupt), suppress(KeyboardInterrupt):
        LOST["shared"]["ask"](at)
    # Nothing is measured on that table afterwards: the same question then is the same payment.
    for request in FAILED["shared"].values():
        failed(request, at)
    told["second version"] = plain(KEYED["shared"]["second version"](at))
    return {label: told[label] for label in KEYED["shared"]}


def failed(request: Request, at: Place) -> None:
    """The rows are gone when it is paid for."""
    away = mock.patch.object(dp.Table, "evaluate", side_effect=dp.SourceFailed("the rows are away."))
    with away, suppress(dp.SourceFailed):
        request(at)


def sessions(at: Place) -> None:
    """Textbook multiplicative weights, and held rows."""
    ledger, pure = at.ledger, at.ledger.caps and any(one.gate == "pure" for one in at.ledger.caps.values())
    with dp.PMW(at.table("pairs"), ledger=ledger, epsilon=6, updates=4, queries=50, name="golden") as session:
        for question in ("x0 AND x1", "x0", "x2 AND x3", "x0 AND x1 AND x2", "x4 AND NOT x5", "x1", "x6 AND x7"):
            with suppress(dp.Refusal):
                session.ask(question)
    for setting in ("bun", "root") if pure else ():
        with dp.PMW(at.table("public"), ledger=ledger, epsilon=20, setting=setting, queries=5, name=setting) as session:
            session.ask("x0 AND x1 AND x2 AND x3 AND x4")
    ours = labels()
    # Rows that disagree, so that a check is used.
    with dp.Holdout(np.zeros(len(ours)), ours, epsilon=4, ledger=ledger, queries=50, checks=3) as holdout:
        holdout.estimate(lambda y: y == 1)
        holdout.estimate(lambda y: y >= 0)
    if pure:
        with dp.Leaderboard(ours, epsilon=4, ledger=ledger, submissions=50) as board:
            board.submit(np.zeros(len(ours)), name="nothing")
            board.submit(ours, name="all")


@contextmanager
def interrupted_after(spends: int) -> Iterator[None]:
    """The process ends at a later payment."""
    left, right = [spends], dp.Ledger.spend

    def spend(self: dp.Ledger, *given: object, **named: object) -> object:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return right(self, *given, **named)  # type: ignore[arg-type]

    with mock.patch.object(dp.Ledger, "spend", spend), suppress(KeyboardInterrupt):
        yield


@contextmanager
def eager() -> Iterator[None]:
    """Models are built early, and have few hits."""
    settings = (
        (discreet.plan.model_forecast, "WORTH", 1e-6),
        (discreet.curator.checked_model, "WORTH", 1e-3),
        (discreet.plan.model_forecast, "SETTLED", 6),
        (discreet.plan.build_model, "PROBES", 300),
        (discreet.plan.build_model, "SELECTIONS", (2, 1)),
        (discreet.curator.checked_model, "SHARE_FOR_HITS", 1e6),
        (discreet.curator.checked_model, "MOST_HITS", 3),
    )
    with ExitStack() as stack:
        for module, name, value in settings:
            stack.enter_context(mock.patch.object(module, name, value))
        yield


if __name__ == "__main__":
    main(Path(sys.argv[1]))

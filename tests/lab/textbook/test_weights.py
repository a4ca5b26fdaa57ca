"""A session of private multiplicative weights: paid once, right as promised, and its threshold is nobody else's."""

import copy
import os
import pickle
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from discreet import noise
from discreet.accounting.event import AboveThreshold, Compose, Laplace, Nothing
from discreet.accounting.filter import gaussian_gate
from discreet.errors import (
    BadParameter,
    BadQuery,
    BadSchema,
    BudgetExceeded,
    LedgerFailed,
    Refusal,
    SealBroken,
    TooLarge,
)
from discreet.lab.textbook.pmw import PMW
from discreet.ledger import Budget, Ledger
from discreet.mechanism.sparse_vector import Run
from discreet.query import Marginal, col, count
from discreet.schema import Boolean, Domain, Integers, Schema, Unit
from discreet.source.frame import Frame
from discreet.source.table import Table
from lab.textbook.scripted import Account, Notebook

DOMAIN = Domain({"age": Integers(0, 7, missing="drop"), "a": Boolean(), "b": Boolean()})
# Nothing is dropped, so the number of rows is public where rows are replaced.
PUBLIC = Domain({"age": Integers(0, 7), "a": Boolean(), "b": Boolean()})


def rows_of(seed=0, number=4000):
    rng = np.random.default_rng(seed)
    old = rng.beta(1, 3, size=number)
    return {
        "age": np.minimum(8 * old, 7).astype(int).tolist(),
        "a": (rng.random(number) < old).tolist(),
        "b": (rng.random(number) < 0.8 * old).tolist(),
    }


def table_of(rows=None, unit=None, domain=DOMAIN, source=Frame):
    unit = Unit() if unit is None else unit
    return Table(Schema("people", domain, unit), source(rows or rows_of(), domain=domain, unit=unit))


@pytest.fixture
def ledger(tmp_path):
    with Ledger(tmp_path / "budget.sqlite") as opened:
        opened.cap(Budget(epsilon=20), table="people")
        yield opened


def questions(domain=DOMAIN):
    """Many different counts, of one to three columns."""
    for low in range(8):
        for where in (col("age") >= low, (col("age") == low) & (col("a") == True)):  # noqa: E712
            yield where
            yield where & (col("b") == (low % 2 == 0))


def ask_all(session):
    return [session.ask(where) for where in questions()]


def ask_while_it_lasts(session):
    return [session.ask(where) for where in questions() if session.updates_left]


def truth(rows, where, domain=DOMAIN):
    counted = count(domain, where)
    cells = np.zeros(domain.shape, dtype=np.int64)
    np.add.at(cells, (np.array(rows["age"]), np.array(rows["a"], dtype=int), np.array(rows["b"], dtype=int)), 1)
    names = list(domain)
    order = [names.index(name) for name in sorted(names)]
    return counted.answer(cells.transpose(order), sorted(names))


# --- Answers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", [Unit(), Unit(neighbors="replace_one")], ids=lambda unit: unit.neighbors)
def test_all_answers_are_within_the_error_and_most_are_free(unit, ledger):
    """Fails by chance only if a promise of 1 − 1e-9 does."""
    rows = rows_of()
    session = PMW(table_of(rows, unit), ledger=ledger, epsilon=20, updates=12, confidence=1 - 1e-9, queries=100)
    origins = []
    for where in questions():
        answer = session.ask(where)
        assert abs(answer.value - truth(rows, where)) <= answer.error <= session.error
        assert answer.error == (session.error if answer.origin == "model" else session.design.value_error)
        origins.append(answer.origin)
    assert set(origins) == {"model", "measured"}
    assert origins.count("measured") == 12 - session.updates_left
    assert session.queries_left == 100 - len(origins)


def test_a_threshold_that_is_too_high_would_be_noticed(ledger, monkeypatch):
    """The power of the test above."""
    rows = rows_of()
    session = PMW(table_of(rows), ledger=ledger, epsilon=20, updates=12, confidence=1 - 1e-9, queries=100)
    session._run = Run(session._run.hits_left, session._run.noisy_threshold + 10**6)
    assert any(abs(session.ask(where).value - truth(rows, where)) > session.error for where in questions())


def test_the_model_learns_all_that_was_measured(ledger):
    rows = rows_of()
    session = PMW(table_of(rows), ledger=ledger, epsilon=20, updates=12, queries=100)
    ask_while_it_lasts(session)
    assert len(session._fitted.measured) >= 3
    for found in session._fitted.measured:
        off = session._fitted.model.answer(found.query) - found.value
        assert abs(off) <= 3 * max(found.scale, 1.0)


def test_a_question_comes_in_many_forms_and_is_answered_once(ledger):
    session = PMW(table_of(), ledger=ledger, epsilon=5, updates=5)
    first = session.ask("age >= 4")
    for form in ("SELECT COUNT(*) FROM people WHERE age >= 4", col("age") >= 4, count(DOMAIN, col("age") >= 4)):
        again = session.ask(form)
        assert (again.value, again.error, again.origin) == (first.value, first.error, "known")
    assert session.asked == 1
    assert first.cost == Nothing()
    assert first.neighbors == "one row is added or removed"


@pytest.mark.parametrize(
    "question",
    [
        "SELECT SUM(age) FROM people",
        "SELECT a, COUNT(*) FROM people GROUP BY a",
        "SELECT COUNT(*), SUM(age) FROM people",
        Marginal(("age",)),
        2 * count(DOMAIN, col("age") >= 4),
        count(DOMAIN, col("age") >= 4) - count(DOMAIN, col("a") == True),  # noqa: E712
        17,
    ],
    ids=str,
)
def test_what_is_no_count_is_refused_and_costs_nothing(question, ledger):
    session = PMW(table_of(), ledger=ledger, epsilon=5, updates=5)
    before = session._run
    with pytest.raises(BadQuery, match="A session answers counts"):
        session.ask(question)
    assert session._run is before
    assert session.asked == 0


# --- Paying ----------------------------------------------------------------------------------------------------------


class Watched(Frame):
    """A source that notes in a ledger's calls when it is read."""

    calls: list

    def evaluate(self, question):
        self.calls.append(("read",))
        return super().evaluate(question)


def watched_session(notebook, unit, **named):
    table = table_of(unit=unit, source=Watched, domain=PUBLIC)
    table.source.calls = notebook.calls
    return PMW(table, ledger=notebook, **named)


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_everything_is_paid_before_a_row_is_read(neighbors):
    notebook = Notebook()
    session = watched_session(notebook, Unit(neighbors=neighbors), epsilon=2, updates=4)
    kinds = [call[0] for call in notebook.calls]
    assert kinds == ["spend", "read", "record"]
    assert notebook.calls[0][1] == session.cost
    assert session.cost == (AboveThreshold(Fraction(2)) if neighbors == "replace_one" else Compose(session.cost.events))
    notebook.calls.clear()
    ask_while_it_lasts(session)
    paid = [call[1] for call in notebook.calls if call[0] == "spend"]
    assert paid == [Nothing()] * 4


@pytest.mark.parametrize("updates", [1, 4])
def test_the_noise_has_the_scales_that_were_paid_for(updates, monkeypatch):
    """Of the number of rows, the threshold, every comparison and every value that is told."""
    scales, draw = [], noise.discrete_laplace

    def listen(scale, size=None):
        scales.append(scale)
        return draw(scale, size=size)

    monkeypatch.setattr(noise, "discrete_laplace", listen)
    session = watched_session(Notebook(), Unit(), epsilon=2, updates=updates)
    design = session.design
    assert session.cost == Compose((Laplace(design.value_scale, Fraction(1)), AboveThreshold(design.epsilon)))
    assert design.value_scale == updates / design.third
    assert scales == [design.value_scale, 1 / design.first]
    scales.clear()
    session._run = Run(updates, -(10**9))
    session.ask("age < 3")
    assert scales == [2 * updates / (design.epsilon - design.first - design.third), design.value_scale]


def test_every_run_has_a_threshold_of_its_own(monkeypatch):
    """With delta there are as many runs as updates, and the price is that of fresh thresholds."""
    gate = gaussian_gate(100, Fraction(1, 10**6))
    monkeypatch.setattr(Notebook, "balances", lambda self, **_: [Account(gate)])
    session = watched_session(Notebook(), Unit(), epsilon=50, updates=400)
    assert (session.design.runs, session.design.hits) == (400, 1)
    # So low that every comparison is a hit, and drawn from numbers that say which.
    drawn = iter(range(-(10**9), 0))
    session._mechanism = replace(session._mechanism, init=lambda: Run(1, next(drawn)))
    session._run = session._mechanism.init()
    seen = []
    for where in list(questions())[:5]:
        seen.append(session._run.noisy_threshold)
        assert session.ask(where).origin == "measured"
    assert seen == list(range(-(10**9), -(10**9) + 5))


def test_a_session_costs_what_it_says_and_no_question_costs_more(ledger):
    session = PMW(table_of(), ledger=ledger, epsilon=3, updates=8)
    left = ledger.remaining(table="people")
    assert Fraction(1699, 100) < left.epsilon - 0 <= Fraction(1701, 100)
    for where in questions():
        if session.updates_left:
            assert session.ask(where).remaining == left
    assert ledger.remaining(table="people") == left


def test_a_session_that_does_not_fit_is_refused_and_nothing_is_paid_or_read(ledger):
    ledger.bind(table_of().identity)
    notebook_before = ledger.head.sequence
    with pytest.raises(BudgetExceeded, match="epsilon"):
        PMW(table_of(), ledger=ledger, epsilon=50, updates=8)
    with pytest.raises(BadParameter, match="least that can be promised"):
        PMW(table_of(), ledger=ledger, epsilon=1, updates=8, error=3)
    with pytest.raises(BadParameter, match="two of epsilon, error and updates"):
        PMW(table_of(), ledger=ledger, epsilon=1)
    with pytest.raises(BadParameter, match="setting is"):
        PMW(table_of(), ledger=ledger, epsilon=1, updates=3, setting="best")
    huge = Domain({f"c{at}": Integers(0, 99) for at in range(6)})
    with pytest.raises(TooLarge, match="cells and needs"):
        PMW(table_of({name: [1] for name in huge}, domain=huge), ledger=ledger, epsilon=1, updates=3)
    assert ledger.head.sequence == notebook_before


def test_a_table_without_a_budget_is_told_how_to_get_one(tmp_path):
    with Ledger(tmp_path / "none.sqlite") as empty, pytest.raises(BadParameter, match="discreet ledger cap"):
        PMW(table_of(), ledger=empty, epsilon=1, updates=3)


def test_a_price_at_the_table_s_delta(tmp_path):
    with Ledger(tmp_path / "delta.sqlite") as ledger:
        ledger.cap(Budget(epsilon=2, delta=1e-6), table="people")
        session = PMW(table_of(), ledger=ledger, epsilon=2, updates=30)
        assert session.design.runs == 30
        assert ledger.remaining(table="people").epsilon < 0.2
        assert len(ask_while_it_lasts(session)) >= 8


# --- The end ---------------------------------------------------------------------------------------------------------


def test_when_the_updates_are_gone_it_stops_and_says_what_to_do(ledger):
    session = PMW(table_of(), ledger=ledger, epsilon=20, updates=1)
    with pytest.raises(Refusal, match=r"has used its 1 updates. PMW\(…, reopen=True\)"):
        ask_all(session)
    assert session.updates_left == 0


def test_no_more_questions_than_the_confidence_covers(ledger):
    session = PMW(table_of(), ledger=ledger, epsilon=20, updates=10, queries=2)
    session.ask("age >= 1")
    session.ask("age >= 2")
    with pytest.raises(Refusal, match="answered its 2 questions"):
        session.ask("age >= 3")
    # What was told once may be told again.
    assert session.ask("age >= 2").origin == "known"


def test_a_closed_session_answers_nothing_new(tmp_path, ledger):
    with PMW(table_of(), ledger=ledger, epsilon=5, updates=3) as session:
        session.ask("age >= 1")
    with pytest.raises(Refusal, match="was closed or interrupted"):
        session.ask("age >= 2")
    assert ledger.remaining(table="people").epsilon > 0  # a ledger of somebody else's stays open


# --- The secret ------------------------------------------------------------------------------------------------------


def test_the_threshold_is_shown_nowhere(ledger, tmp_path):
    session = PMW(table_of(), ledger=ledger, epsilon=5, updates=3)
    secret = 987_654_321_012
    session._run = Run(session._run.hits_left, secret)
    session.ask("age >= 1")
    session._run = Run(session._run.hits_left, -secret)
    answer = session.ask("age < 2")
    assert answer.origin == "measured"
    shown = repr(session) + repr(answer) + str(answer) + repr(session.design) + repr(session._run)
    stored = b"".join((entry.released or b"") + entry.body.encode() for entry in ledger.entries())
    assert str(secret) not in shown
    assert str(secret).encode() not in stored
    assert b"noisy" not in stored


@pytest.mark.parametrize("take", [pickle.dumps, copy.copy, copy.deepcopy], ids=lambda take: take.__name__)
def test_a_session_cannot_be_copied(take, ledger):
    session = PMW(table_of(), ledger=ledger, epsilon=5, updates=3)
    with pytest.raises(SealBroken, match="cannot be copied or pickled"):
        take(session)


def test_a_forked_child_refuses(ledger):
    session = PMW(table_of(), ledger=ledger, epsilon=5, updates=3)
    session.ask("age >= 1")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        # Whatever happens here must not run the tests of the parent again.
        said = b"no refusal"
        try:
            session.ask("age >= 2")
        except Refusal as refused:
            said = str(refused).encode()
        finally:
            os.write(writing, said)
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as pipe:
        assert b"belongs to another process" in pipe.read()
    session.ask("age >= 2")


def test_a_run_is_over_if_anything_fails_after_noise_was_drawn(ledger, monkeypatch):
    session = PMW(table_of(), ledger=ledger, epsilon=20, updates=10)

    def broken(*_, **__):
        raise LedgerFailed("the disk is full. Try again.")

    monkeypatch.setattr(ledger, "record", broken)
    with pytest.raises(LedgerFailed):
        ask_all(session)
    monkeypatch.undo()
    with pytest.raises(Refusal, match="was closed or interrupted"):
        session.ask("age >= 7")
    # What was drawn and not recorded is known to nobody: not to the model, and not to the next session.
    assert session._fitted.measured == []


def test_a_run_is_over_if_a_draw_is_interrupted(ledger, monkeypatch):
    """Half a comparison is nobody's to repeat: it would be a second look at the same threshold."""
    session = PMW(table_of(), ledger=ledger, epsilon=20, updates=10)
    monkeypatch.setattr(noise, "discrete_laplace", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        session.ask("age >= 7")
    monkeypatch.undo()
    with pytest.raises(Refusal, match="was closed or interrupted"):
        session.ask("age >= 6")


def test_a_source_that_fails_ends_nothing(ledger, monkeypatch):
    session = PMW(table_of(), ledger=ledger, epsilon=5, updates=3)
    before = session._run
    monkeypatch.setattr(type(session.table), "evaluate", lambda *_: (_ for _ in ()).throw(OSError("gone")))
    with pytest.raises(OSError, match="gone"):
        session.ask("age >= 1")
    monkeypatch.undo()
    assert session._run is before
    assert session.ask("age >= 1").origin in ("model", "measured")


# --- Again -----------------------------------------------------------------------------------------------------------


def test_after_a_crash_the_model_is_rebuilt_and_going_on_is_paid_in_full(ledger):
    session = PMW(table_of(), ledger=ledger, epsilon=5, updates=6)
    ask_while_it_lasts(session)
    assert session.updates_left < 6
    known = [session._fitted.answer(count(DOMAIN, where)) for where in questions()]
    spent = ledger.remaining(table="people")
    with pytest.raises(Refusal, match=r"was opened before and made \d+ updates. .* full price .* reopen=True"):
        PMW(table_of(), ledger=ledger, epsilon=5, updates=6)
    assert ledger.remaining(table="people") == spent
    again = PMW(table_of(), ledger=ledger, epsilon=5, updates=6, reopen=True)
    assert [again._fitted.answer(count(DOMAIN, where)) for where in questions()] == known
    # The number of rows is not measured again; all the rest is a new run.
    assert again.cost == AboveThreshold(Fraction(5))
    assert spent.epsilon - ledger.remaining(table="people").epsilon == 5
    assert again.updates_left == 6


CRASH = """
import os, sys
sys.path.insert(0, sys.argv[2])
from discreet.ledger import Ledger
from lab.textbook.test_weights import PMW, questions, table_of
session = PMW(table_of(), ledger=Ledger(sys.argv[1]), epsilon=5, updates=6)
for where in list(questions())[:6]:
    if session.updates_left:
        answer = session.ask(where)
        print(answer.value, answer.origin, flush=True)
os.kill(os.getpid(), 9)
"""


def test_a_process_that_is_killed_leaves_all_it_told_and_no_threshold(tmp_path):
    address = tmp_path / "killed.sqlite"
    with Ledger(address) as ledger:
        ledger.cap(Budget(epsilon=20), table="people")
    tests = str(Path(__file__).parents[2])
    killed = subprocess.run(
        [sys.executable, "-c", CRASH, str(address), tests], capture_output=True, text=True, check=False
    )
    assert killed.returncode == -9, killed.stderr
    told = [line.split() for line in killed.stdout.splitlines()]
    measured = [int(value) for value, origin in told if origin == "measured"]
    assert measured
    with Ledger(address) as ledger:
        with pytest.raises(Refusal, match=f"made {len(measured)} updates"):
            PMW(table_of(), ledger=ledger, epsilon=5, updates=6)
        again = PMW(table_of(), ledger=ledger, epsilon=5, updates=6, reopen=True)
        assert [found.value for found in again._fitted.measured] == measured


def test_sessions_of_other_names_and_tables_do_not_meet(ledger):
    ledger.cap(Budget(epsilon=20), table="others")
    PMW(table_of(), ledger=ledger, epsilon=1, updates=3)
    PMW(table_of(), ledger=ledger, epsilon=1, updates=3, name="second")
    table = table_of()
    other = Table(Schema("others", DOMAIN, Unit()), table.source)
    assert PMW(other, ledger=ledger, epsilon=1, updates=3)._fitted.measured == []
    with pytest.raises(BadParameter, match='no session "third"'):
        PMW(table_of(), ledger=ledger, epsilon=1, updates=3, name="third", reopen=True)


def test_a_model_of_other_columns_is_not_taken_for_this_one(ledger):
    PMW(table_of(), ledger=ledger, epsilon=1, updates=3)
    changed = Domain({"age": Integers(0, 8, missing="drop"), "a": Boolean(), "b": Boolean()})
    with pytest.raises(BadSchema, match="declared otherwise"):
        PMW(table_of(domain=changed), ledger=ledger, epsilon=1, updates=3, reopen=True)


# --- The lectures' settings ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", ["bun", "cube", "root"])
def test_a_theorem_s_session_answers_within_its_error(setting, tmp_path):
    """On a small domain with a generous budget, where they say something: then also the model learns."""
    rows = rows_of(number=4000)
    with Ledger(tmp_path / "theorem.sqlite") as ledger:
        ledger.cap(Budget(epsilon=1000), table="people")
        session = PMW(_public(rows), ledger=ledger, epsilon=900, setting=setting, confidence=0.999999, queries=100)
        assert session.error < 4000
        for where in questions():
            answer = session.ask(where)
            assert abs(answer.value - truth(rows, where, PUBLIC)) <= answer.error
        with pytest.raises(BadParameter, match="error and updates follow"):
            PMW(_public(rows), ledger=ledger, epsilon=1, updates=3, setting=setting, name="other")


def _public(rows):
    return table_of(rows, Unit(neighbors="replace_one"), PUBLIC)


def test_a_theorem_needs_a_public_number_of_rows(ledger):
    with pytest.raises(BadParameter, match="needs a public number of rows"):
        PMW(table_of(), ledger=ledger, epsilon=1, setting="root")


def test_nothing_is_printed(ledger, capsys, caplog):
    session = PMW(table_of(), ledger=ledger, epsilon=5, updates=3)
    session.ask("age >= 1")
    assert capsys.readouterr() == ("", "")
    assert caplog.records == []

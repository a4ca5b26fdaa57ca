"""What was learnt of one version of a table is never told of another, by whoever asks; what was spent stays."""

from fractions import Fraction

import numpy as np
import pytest

import discreet as dp
from discreet.accounting.event import Gaussian, Nothing
from discreet.curator import Curator
from discreet.curator.question import read_question, single
from discreet.curator.records import Session
from discreet.errors import BadSchema, KeyReused, TableChanged
from discreet.ledger import Budget, Ledger
from discreet.plan.build_model import Built
from discreet.plan.plan import plan_steps
from discreet.plan.steps import Target
from discreet.schema.schema import Schema
from discreet.schema.unit import Unit
from discreet.source.frame import Frame
from discreet.source.table import Table

DOMAIN = dp.Domain({"age": dp.Integers(0, 99), "sex": dp.Categories(["F", "M"], outside="drop")})
BUDGET = Budget(epsilon=4, delta=1e-9)
ROW, PERSON = Unit(), Unit("who", 5)


def table(rows=10_000, version="1", unit=ROW):
    """So many rows, half of them 50 or older; each person has five."""
    ages = np.arange(rows) % 100
    data = {"age": ages, "sex": np.array(["F", "M"])[ages % 2], "who": np.arange(rows) // 5}
    return Table(Schema("people", DOMAIN, unit, version=version), Frame(data, domain=DOMAIN, unit=unit))


@pytest.fixture
def ledger(tmp_path):
    with Ledger(tmp_path / "ledger.sqlite") as opened:
        yield opened


# Every way in which a table is asked on a ledger.


def by_curator(table, ledger, **named):
    with Curator(table, ledger=ledger) as desk:
        return desk.ask("age >= 50", epsilon=0.2, **named).value


def by_curator_many(table, ledger, **named):
    with Curator(table, ledger=ledger) as desk:
        return desk.ask_many(["age >= 50", "sex = 'F'"], error=300, **named)[0].value


def by_release(table, ledger, **named):
    with Curator(table, ledger=ledger) as desk:
        made = desk.release([["age"]], Budget(epsilon=0.5, delta=1e-9), method="direct", **named)
        return made.marginal(("age",))[50:].sum()


def by_kmeans(table, ledger, **named):
    model = dp.KMeans(2, epsilon=0.2, columns=["age"], ledger=ledger, **named).fit(table)
    return model.cluster_centers_.ravel().tolist()


def by_pmw(table, ledger):
    with dp.PMW(table, ledger=ledger, epsilon=0.5, updates=5) as session:
        return session.ask("age >= 50").value


def by_curator_seen(table, ledger):
    with Curator(table, ledger=ledger) as desk:
        return desk.seen_by("ana").ask("age >= 50", epsilon=0.2).value


WITH_KEY = [by_curator, by_curator_many, by_release, by_kmeans]
WAYS = [*WITH_KEY, by_pmw, by_curator_seen]


@pytest.mark.parametrize("again", WAYS)
def test_another_unit_is_refused_whoever_asks_before_anything_is_paid(ledger, again):
    ledger.cap(BUDGET, table="people")
    by_curator(table(), ledger)
    head = ledger.head
    for unit in (PERSON, Unit("who", 5, "replace_one"), Unit(neighbors="replace_one"), Unit("who")):
        with pytest.raises(BadSchema, match="one row is added or removed") as refused:
            again(table(unit=unit), ledger)
        assert unit.describe in str(refused.value)
    assert ledger.head == head


@pytest.mark.parametrize("first", WAYS)
def test_whoever_is_first_binds_the_unit(ledger, first):
    ledger.cap(BUDGET, table="people")
    first(table(unit=PERSON), ledger)
    with pytest.raises(BadSchema):
        by_curator(table(), ledger)


@pytest.mark.parametrize("way", WAYS)
def test_an_older_version_is_refused_and_a_newer_one_is_answered_anew(ledger, way):
    ledger.cap(BUDGET, table="people")
    old = way(table(), ledger)
    spent = ledger.remaining(table="people").epsilon
    new = way(table(30_000, "2"), ledger)
    assert ledger.remaining(table="people").epsilon < spent, "a newer version is paid for"
    if way is not by_kmeans:
        assert abs(old - 5_000) < 1_500
        assert abs(new - 15_000) < 1_500
    head = ledger.head
    with pytest.raises(TableChanged, match="versions never come back"):
        way(table(), ledger)
    assert ledger.head == head


@pytest.mark.parametrize("way", WITH_KEY)
def test_a_key_of_an_older_version_does_not_answer_for_a_newer_one(ledger, way):
    ledger.cap(BUDGET, table="people")
    way(table(), ledger, key="k")
    way(table(), ledger, key="k")
    with pytest.raises(KeyReused, match="another version of the table"):
        way(table(30_000, "2"), ledger, key="k")


def test_the_case_of_the_issue_a_table_that_grew(tmp_path):
    with Curator(table(), budget=BUDGET, ledger=tmp_path / "l.sqlite") as desk:
        desk.ask("age >= 50", error=50)
        assert desk.ask("age >= 50", error=50).origin == "known"
        before = desk.spent
    with Curator(table(30_000, "2"), ledger=tmp_path / "l.sqlite") as desk:
        assert desk.spent == before
        assert desk.known() == []
        assert not desk.plan("age >= 50", error=50).free
        first = desk.ask("age >= 50", error=50)
        second = desk.ask("age >= 50", error=30)
    for answer in (first, second):
        assert answer.origin != "known"
        assert abs(answer.value - 15_000) < 4 * answer.error


def test_a_desk_that_is_still_open_on_an_older_version_says_nothing_as_if_it_were_current(ledger):
    ledger.cap(BUDGET, table="people")
    with Curator(table(), ledger=ledger) as old:
        old.ask("age >= 50", epsilon=0.2)
        with Curator(table(30_000, "2"), ledger=ledger):
            head = ledger.head
            for ask in (
                lambda: old.ask("age >= 50"),
                lambda: old.ask("age >= 50", error=10_000),
                lambda: old.ask("sex = 'F'", error=200),
                lambda: old.look(old.prepare("age >= 50", error=10_000), wait=False),
                lambda: old.look(old.prepare("age >= 50", error=10_000)),
                lambda: old.plan("age >= 50", error=100),
                lambda: old.ask_many(["age >= 50", "sex = 'F'"], error=10_000),
                lambda: old.known(),
                lambda: old.release([["age"]], Budget(epsilon=0.5, delta=1e-9)),
            ):
                with pytest.raises(TableChanged, match='version "2"'):
                    ask()
            assert ledger.head == head


def test_an_open_session_of_an_older_version_answers_no_more_not_even_what_it_said(ledger):
    ledger.cap(BUDGET, table="people")
    with dp.PMW(table(), ledger=ledger, epsilon=0.5, updates=5) as session:
        session.ask("age >= 50")
        ledger.bind(table(version="2").identity)
        for question in ("age >= 50", "sex = 'F'"):
            with pytest.raises(TableChanged):
                session.ask(question)


def test_an_answer_that_was_under_way_when_a_version_was_declared_is_not_of_that_version(ledger):
    ledger.cap(BUDGET, table="people")
    with Curator(table(), ledger=ledger) as old:
        event = Gaussian(Fraction(10), Fraction(1))
        taken = ledger.spend(event, "under way", table=old.table.identity, analyst="ana")
        recorded = old._executor.record_of(old._executor._take_steps(*_steps(old))).to_bytes()
        with Curator(table(30_000, "2"), ledger=ledger) as new:
            ledger.record(taken, recorded)
            assert new.known() == []
            with pytest.raises(dp.BadParameter, match="nothing is known about this yet"):
                new.ask("age >= 50")
            assert new._executor.known_at(ledger.head.sequence).lattice.block(("age",)).version == 0


def _steps(desk):
    """What would be measured for a count, and how."""
    question = single(read_question("age >= 50", DOMAIN, "people"))
    steps = plan_steps([(question, Target(50.0, 0.95))], desk._executor.known)
    return steps, desk._executor._mechanisms(steps)


def test_a_model_of_an_older_version_is_gone(ledger):
    ledger.cap(Budget(epsilon=4, delta=1e-9, gate="renyi"), table="people")
    model = Session(Fraction(100), Fraction(95, 100), 1, 3, Built("tree", ("age", "sex"), (("age", "sex"),)))
    with Curator(table(), ledger=ledger) as old:
        old._executor.note(model, Nothing(), "a model", analyst="ana")
        assert old._executor.session == model
    with Curator(table(version="2"), ledger=ledger) as new:
        assert new._executor.session is None


def test_a_release_of_a_newer_version_is_made_of_nothing_older(ledger, tmp_path):
    ledger.cap(BUDGET, table="people")
    with Curator(table(), ledger=ledger) as old:
        old.ask("SELECT age, COUNT(*) FROM people GROUP BY age", error=30)
    with Curator(table(30_000, "2"), ledger=ledger) as new:
        made = new.release([["sex"]], Budget(epsilon=0.5, delta=1e-9), method="direct")
    assert made.schema.version == "2"
    assert made.known.lattice.block(("age",)).version == 0
    made.save(tmp_path / "release")
    assert dp.Release.load(tmp_path / "release").schema.version == "2"


class Before(Ledger):
    """A ledger as it was before tables were bound."""

    def bind(self, identity, **named):
        pass

    def look(self, identity):
        return self.head

    def spend(self, event, why, *, table, **named):
        return super().spend(event, why, table=table.table, **named)


def test_a_ledger_from_before_is_not_bound_to_a_unit_for_which_its_answers_cost_more(tmp_path):
    with Before(tmp_path / "l.sqlite") as ledger, Curator(table(), budget=BUDGET, ledger=ledger) as desk:
        desk.ask("age >= 50", error=50)
        assert not ledger.tables
    for unit in (PERSON, Unit("who", 2), Unit("who", 5, "replace_one")):
        with pytest.raises(BadSchema, match="paid for another unit"):
            Curator(table(unit=unit), ledger=tmp_path / "l.sqlite")
    with Curator(table(), ledger=tmp_path / "l.sqlite") as desk:
        assert desk.ask("age >= 50", error=50).origin == "known"
        assert set(desk.ledger.tables) == {"people"}


def test_a_ledger_from_before_is_bound_by_the_first_schema_that_opens_it(ledger):
    ledger.cap(BUDGET, table="people")
    ledger.spend(Gaussian(Fraction(100), Fraction(1)), "before tables were bound", table="people")
    by_curator(table(unit=PERSON), ledger)
    with pytest.raises(BadSchema):
        by_curator(table(), ledger)


def test_a_used_key_is_not_answered_to_a_desk_whose_version_is_gone(ledger):
    """An open desk sees that its table was replaced before it repeats an answer."""
    with Curator(table(), budget=BUDGET, ledger=ledger) as desk:
        said = desk.ask("age >= 50", error=300, key="monday").value
        assert desk.ask("age >= 50", error=300, key="monday").value == said
        with Curator(table(version="2"), ledger=ledger), pytest.raises(TableChanged):
            desk.ask("age >= 50", error=300, key="monday")

"""How a model is built: what is measured, chosen and probed, what comes of it, and that no row is read but so."""

import numpy as np
import pytest

import discreet.plan.build_model
from discreet.curator.executor import mechanism_of
from discreet.curator.records import Released, learn
from discreet.estimate.gaussian_estimator import GaussianLattice
from discreet.model.mixture.mixture_model import Mixture
from discreet.plan.build_model import Built, build, model_of
from discreet.plan.model_forecast import Stream, model_units, probes
from discreet.plan.plan import Choose, Measure, Quantile, query_of, run
from discreet.plan.steps import Target
from discreet.query.linear import Linear, counts_rows
from discreet.query.product import Product
from discreet.schema import Unit
from support.model_sessions import DOMAIN, ERROR, NAMES, SURE, conjunctions, eager, paired_rows, table_of, truth_of

TARGET = Target(ERROR, SURE)
PAIRS = {(NAMES[place], NAMES[place + 1]) for place in range(0, len(NAMES), 2)}


@pytest.fixture(scope="module")
def table():
    return table_of(paired_rows())


@pytest.fixture(autouse=True)
def cheap():
    with eager():
        yield


def stream_of(questions):
    stream = Stream()
    for question in questions:
        stream.see(question)
    return stream


STREAM = stream_of(conjunctions(30))


class Oracle:
    """Answers requests from a table, with noise; or repeats what another one said, and what it heard of a probe."""

    def __init__(self, table, *, heard=(), first=None):
        self.table, self.known = table, GaussianLattice.nothing(DOMAIN, Unit())
        self.heard, self.first = list(heard), first
        self.requests, self.said = [], []

    def __call__(self, request):
        place = len(self.requests)
        self.requests.append(request)
        told = [] if self.first is None else self.first.said[place : place + 1]
        said = told[0] if told else self._say(request)
        self.said.append(said)
        if isinstance(request, Measure):
            learn(Released(request.steps.steps, said), self.known)
            return 0
        return said

    def _say(self, request):
        if isinstance(request, Measure):
            pairs = [(mechanism_of(step, self.table), query_of(step)) for step in request.steps.steps]
            return np.concatenate([mechanism.release(self.table.evaluate(what)) for mechanism, what in pairs])
        distances = np.abs(truth_of(self.table, request.questions) - np.array(request.expected))
        if isinstance(request, Choose):
            return int(np.argmax(distances))
        return self.heard.pop(0) if self.heard else int(np.sort(distances)[request.rank - 1])

    def build(self):
        return run(build(self.known, TARGET, STREAM), self)

    def whys(self, kind=Measure):
        return [request.why for request in self.requests if isinstance(request, kind)]


def same(one, other):
    """Whether two requests ask the same."""
    if type(one) is not type(other) or one.why != other.why:
        return False
    if isinstance(one, Measure):
        return one.steps == other.steps
    return one.event(DOMAIN, Unit()) == other.event(DOMAIN, Unit()) and (one.questions, one.expected) == (
        other.questions,
        other.expected,
    )


# --- What is built ---------------------------------------------------------------------------------------------------


def test_a_tree_joins_the_columns_that_go_together_and_answers_well(table):
    oracle = Oracle(table)
    built = oracle.build()
    assert built.kind == "tree"
    assert built.columns == NAMES
    assert set(built.scopes) >= PAIRS
    questions = conjunctions(200, seed=1)
    off = np.abs(model_of(built, oracle.known).answers(questions) - truth_of(table, questions))
    assert off.max() < ERROR
    # A model that joins nothing is far off.
    alone = model_of(Built("tree", NAMES, ()), oracle.known)
    assert np.abs(alone.answers(questions) - truth_of(table, questions)).max() > 3 * ERROR


def test_it_looks_at_the_rows_at_singles_and_at_pairs_and_ends_with_a_probe(table):
    oracle = Oracle(table)
    oracle.build()
    first = ["the number of rows, for a model", "single columns, for a model", "pairs of columns, for a model"]
    assert oracle.whys()[:3] == first
    singles, pairs = (request.steps.steps for request in oracle.requests[1:3])
    assert [step.measurement.columns for step in singles] == [(name,) for name in NAMES]
    assert len(pairs) == len(NAMES) * (len(NAMES) - 1) / 2
    assert isinstance(oracle.requests[-1], Quantile)
    assert len(oracle.requests[-1].questions) == discreet.plan.build_model.PROBES
    assert oracle.whys(Choose)


def test_it_costs_no_more_than_was_forecast(table):
    oracle = Oracle(table)
    oracle.build()
    unit, units = 1 / TARGET.variance, 0.0
    for request in oracle.requests:
        match request:
            case Measure(steps, _):
                units += steps.price / unit
            case Choose(_, _, epsilon, _):
                units += float(epsilon) ** 2 / 4 / unit
            case Quantile(_, _, sigma, _, _):
                units += 1 / float(sigma) ** 2 / unit
    assert model_units(NAMES, DOMAIN) / 4 < units <= model_units(NAMES, DOMAIN)


def test_what_is_asked_depends_only_on_what_was_said(table):
    """A table of nobody, told what the first released, is asked the same and gives the same model."""
    first = Oracle(table)
    built = first.build()
    nobody = table_of({name: np.zeros(3, dtype=bool) for name in NAMES})
    second = Oracle(nobody, first=first)
    assert second.build() == built
    assert len(second.requests) == len(first.requests)
    assert all(map(same, first.requests, second.requests))
    questions = conjunctions(50, seed=2)
    one, other = (model_of(built, oracle.known).answers(questions) for oracle in (first, second))
    assert one.tobytes() == other.tobytes()


def test_another_table_is_asked_otherwise(table):
    """Power: the comparison above tells procedures apart."""
    first = Oracle(table)
    first.build()
    nobody = Oracle(table_of({name: np.zeros(3, dtype=bool) for name in NAMES}))
    nobody.build()
    pairs = zip(first.requests, nobody.requests, strict=False)
    assert len(first.requests) != len(nobody.requests) or not all(same(one, other) for one, other in pairs)


# --- What a probe decides --------------------------------------------------------------------------------------------


def test_a_probe_that_is_hopeless_ends_the_tree_and_then_the_mixture(table):
    oracle = Oracle(table, heard=[10 * int(ERROR)] * 2)
    assert oracle.build() is None
    assert len(oracle.whys(Quantile)) == 2
    assert "triples of columns, for a mixture" not in oracle.whys()


def test_a_model_that_is_not_good_enough_is_measured_better(table):
    oracle = Oracle(table, heard=[int(ERROR), 0])
    assert oracle.build().kind == "tree"
    probe = [isinstance(request, Quantile) for request in oracle.requests].index(True)
    again = [request for request in oracle.requests[probe + 1 :] if isinstance(request, Measure)]
    assert again[0].why == "single columns, for a model"
    assert len(oracle.whys(Quantile)) == 2


def test_one_that_does_not_get_good_enough_is_given_up(table, monkeypatch):
    monkeypatch.setattr(discreet.plan.build_model, "MIXED", (1 / 24,))
    oracle = Oracle(table, heard=[int(ERROR)] * 100)
    assert oracle.build() is None
    assert oracle.whys(Quantile)[:2] == ["how wrong a model is"] * 2
    assert "triples of columns, for a mixture" in oracle.whys()


def test_where_pairs_are_not_explained_a_mixture_is_tried(monkeypatch):
    """Two kinds of rows, which no column shows."""
    # Looked at so well that the outcome does not hang on the noise.
    for name, value in {"UNEXPLAINED": -1.0, "MIXED": (4.0,), "MIXABLE": 100.0, "PAIR_UNITS": 4.0}.items():
        monkeypatch.setattr(discreet.plan.build_model, name, value)
    rng = np.random.default_rng(4)
    kind = rng.random(200_000) < 0.4
    table = table_of({name: rng.random(200_000) < np.where(kind, 0.8, 0.3) for name in NAMES})
    oracle = Oracle(table)
    built = oracle.build()
    assert built == Built("mixture", NAMES, ())
    assert not oracle.whys(Choose)
    model = model_of(built, oracle.known)
    assert isinstance(model, Mixture)
    questions = conjunctions(200, seed=3)
    assert np.abs(model.answers(questions) - truth_of(table, questions)).max() < ERROR


# --- Probes ----------------------------------------------------------------------------------------------------------


def test_probes_are_like_the_questions_that_were_asked(table):
    oracle = Oracle(table)
    model = model_of(oracle.build(), oracle.known)
    found = probes(STREAM, NAMES, model, 400)
    assert len(found) == 400
    assert len({question.scope for question in found}) > 60
    assert {len(question.scope) for question in found} == {4}
    assert {name for question in found for name in question.scope} == set(NAMES)
    assert all(counts_rows(DOMAIN, question) for question in found)
    for question in found:
        for factor in question.products[0].factors:
            assert factor in STREAM.factors[factor.columns[0]]
    assert probes(STREAM, NAMES, model, 400) == found


def test_probes_have_many_patterns_of_values(table):
    oracle = Oracle(table)
    model = model_of(oracle.build(), oracle.known)
    patterns = {}
    for question in probes(STREAM, NAMES, model, 2000):
        chosen = tuple(int(factor.weights[1]) for factor in question.products[0].factors)
        patterns.setdefault(question.scope, set()).add(chosen)
    # Some thirty probes fall on each of the seventy scopes.
    assert min(map(len, patterns.values())) > 4


def test_of_a_column_that_nobody_asked_for_probes_ask_its_common_value(table):
    oracle = Oracle(table)
    model = model_of(oracle.build(), oracle.known)
    stream = stream_of(conjunctions(30, columns=5))
    for question in probes(stream, NAMES, model, 100):
        for factor in question.products[0].factors:
            if factor.columns[0] not in stream.factors:
                assert truth_of(table, [Linear([Product((factor,))])])[0] > 100_000


@pytest.mark.parametrize(("weight", "is_count"), [(1, True), (2, False), (-1, False)])
def test_only_questions_that_count_rows_are_for_a_model(weight, is_count):
    assert counts_rows(DOMAIN, weight * conjunctions(1)[0]) == is_count

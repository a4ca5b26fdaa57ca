"""A desk for the demonstration's parts: one Gaussian answer for each new question, and an exact cache."""

from dataclasses import dataclass, fields

import numpy as np
import pytest

from discreet.answer import Answer
from discreet.data import load_adult
from discreet.lab.demo.demo_outcome import ask_all
from discreet.lab.demo.questions import questions
from discreet.lab.demo.truth import Truth
from discreet.ledger import Budget, Ledger
from discreet.ledger.accounts import count_event
from discreet.mechanism.gaussian import gaussian
from discreet.query.sql import parse
from discreet.source.query_sensitivity import sensitivity_of

BUDGET, CONFIDENCE = Budget(epsilon=1, delta=1e-9), 0.95


@dataclass(frozen=True)
class Told(Answer):
    origin: str = "measured"


class Plain:
    def __init__(self, path):
        self.table, self.ledger, self.told = load_adult(), Ledger(path), {}
        self.ledger.cap(BUDGET, table="adult")

    def ask(self, sql, *, error, confidence):
        if sql in self.told:
            return Told(**{**self.told[sql], "origin": "known"})
        select = parse(sql, self.table.domain, table="adult")
        (question,) = select.questions(self.table.domain)
        gate = self.ledger.balances()[0].gate
        sigma = count_event(gate, error=error, confidence=confidence, contributions=1).sigma
        mechanism = gaussian(sigma=sigma, sensitivity=sensitivity_of(question, self.table.domain, self.table.unit))
        self.ledger.spend(mechanism.event, sql, table="adult", error=error)
        released = mechanism.release(self.table.evaluate(question))
        errors = np.full(released.size, mechanism.error(confidence))
        columns = select.tabulate(self.table.domain, [released], [errors])
        shape = (lambda each: each) if select.group else (lambda each: each[0])
        told = Told(shape(released), shape(errors), confidence, mechanism.event, "", columns)
        self.told[sql] = {field.name: getattr(told, field.name) for field in fields(told)}
        return told


@pytest.fixture(scope="session")
def truth():
    return Truth(load_adult().domain)


@pytest.fixture(scope="session")
def desk(tmp_path_factory):
    desk = Plain(tmp_path_factory.mktemp("demo") / "budget.sqlite")
    yield desk
    desk.ledger.close()


@pytest.fixture(scope="session")
def outcome(desk, truth):
    return ask_all(desk, questions(60), truth, budget=BUDGET, confidence=CONFIDENCE)

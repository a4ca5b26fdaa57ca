"""What the tests of all mechanisms share."""

from fractions import Fraction

import numpy as np

from discreet.accounting.sensitivity import Sensitivity
from discreet.mechanism.protocol import LAW_BITS
from discreet.numeric import precision
from discreet.schema.unit import Unit
from discreet.source.source import Exact

ADD = Unit()
REPLACE = Unit(neighbors="replace_one")
ADD_PERSON = Unit(key="person", contributions=2)
REPLACE_PERSON = Unit(key="person", contributions=2, neighbors="replace_one")
UNITS = [ADD, REPLACE, ADD_PERSON, REPLACE_PERSON]

ONE = Sensitivity(l1=Fraction(1), l2_squared=Fraction(1), linf=Fraction(1))
ONE_WAY = Sensitivity(l1=Fraction(1), l2_squared=Fraction(1), linf=Fraction(1), direction=1)


def sealed(values, sensitivity=ONE):
    return Exact(np.array(values), sensitivity)


def floats(law):
    """A law as doubles, for statistical tests."""
    return {outcome: float(mass.mid()) for outcome, mass in law.probabilities.items()}


def first_coordinate(law):
    """The same for laws of vectors with one value."""
    return {outcome[0]: mass for outcome, mass in floats(law).items()}


def total(law):
    with precision(LAW_BITS):
        return sum(law.probabilities.values()) + law.rest

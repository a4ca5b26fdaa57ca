"""The people who are attacked: of the bundled table, which is read once."""

import pytest

import discreet as dp
from discreet.lab.attack import choose_people

PUBLIC = ("age", "education", "sex")


@pytest.fixture(scope="session")
def adult():
    return dp.load_adult()


@pytest.fixture(scope="session")
def earners(adult):
    """Half of them earn more than 50K."""
    return choose_people(adult, 80, public=PUBLIC, secret="income", value=">50K")


@pytest.fixture(scope="session")
def coins(adult):
    """Their secret is a coin, which nothing tells: of it the bounds are theorems."""
    return choose_people(adult, 80, public=PUBLIC, secret="coin")

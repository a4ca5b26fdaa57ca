"""Whatever an analyst sends takes a bounded part of a processor and of memory, before and after it is paid for."""

import random
import sys
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from curator.hostile import MEGABYTES, SECONDS, THREES, Ask, conjunction, corpus, cost_of, desk_of, warm_up

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads how large a process was from /proc")

# Other processes share the machine, and caches with us; ten times as long is not their doing.
NOISE = 10.0
GATES = {
    "gaussian": {},
    "exchange": {"neighbors": "replace_one"},
    "pure": {"delta": 0.0},
    "pure exchange": {"delta": 0.0, "neighbors": "replace_one"},
}


@pytest.fixture(scope="module")
def desks(tmp_path_factory):
    warm_up()
    found = {
        name: desk_of(tmp_path_factory.mktemp("hostile"), 2000, **facts)
        for name, facts in GATES.items()
        if name in ("gaussian", "pure")
    }
    yield found
    for desk in found.values():
        desk.close()


def require_bounded(desk, ask, noise):
    for what in (ask.plan, ask.ask, ask.ask):
        cost = cost_of(lambda what=what: what(desk))
        assert cost.seconds <= SECONDS * noise, (ask.name, cost)
        assert cost.megabytes <= MEGABYTES, (ask.name, cost)


@pytest.mark.parametrize("gate", ["gaussian", "pure"])
def test_no_request_of_the_corpus_takes_long_or_much(desks, gate):
    for ask in islice(corpus(2000), 0, None, 2 if gate == "gaussian" else 6):
        require_bounded(desks[gate], ask, NOISE)


@pytest.mark.long
@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("many", [10_000, 100_000])
def test_no_request_of_the_whole_corpus_takes_a_second_or_200_megabytes(tmp_path, gate, many):
    warm_up()
    with desk_of(tmp_path, many, **GATES[gate]) as desk:
        for ask in corpus(many):
            # Of a hundred thousand cells the answer itself takes longer than the planning.
            require_bounded(desk, ask, 2.0 if many == 10_000 else 10.0)


names = st.lists(
    st.sampled_from([f"f{i:02d}" for i in range(60)] + [f"t{i:02d}" for i in range(THREES)]),
    min_size=1,
    max_size=60,
    unique=True,
)


@st.composite
def requests(draw):
    """Conditions joined and negated, on any columns, counted, added up or averaged, in groups or not."""
    parts = draw(st.lists(names.map(conjunction), min_size=1, max_size=12))
    where = draw(st.sampled_from([" OR ", " AND NOT "])).join(f"({part})" for part in parts)
    what = draw(st.sampled_from(["COUNT(*)", "SUM(income)", "AVG(age)", "COUNT(income)"]))
    group = ", ".join(draw(st.lists(st.sampled_from(["zip", "f00", "t00", "age"]), max_size=2, unique=True)))
    shown = f"{group}, " if group else ""
    by = f" GROUP BY {group}" if group else ""
    wish = draw(st.sampled_from([{"error": 100}, {"epsilon": 0.05}, {"error": 1e4, "joint": True}]))
    return Ask("random", f"SELECT {shown}{what} AS n FROM data WHERE {where}{by}", wish)


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(requests(), st.sampled_from(["gaussian", "pure"]))
def test_no_request_that_can_be_written_takes_long_or_much(desks, ask, gate):
    require_bounded(desks[gate], ask, NOISE)


def test_plans_that_are_repeated_keep_nothing_for_good(tmp_path):
    """New columns in each of many free plans: the process grows no more than its caches may."""
    draw = random.Random(1)
    with desk_of(tmp_path, 100) as desk:
        desk.plan("f00 = true", error=50)

        def many():
            for _ in range(150):
                desk.plan(conjunction(draw.sample([f"f{i:02d}" for i in range(60)], 10)), error=50)

        cost = cost_of(many)
        assert not desk._known.lattice.blocks
        assert cost.megabytes <= MEGABYTES, cost


def test_what_is_known_is_listed_in_a_moment(tmp_path):
    """`known()` holds the lock under which everybody is served."""
    warm_up()
    with desk_of(tmp_path, 10_000) as desk:
        desk.ask("SELECT AVG(income) AS a FROM data", error=3000)
        desk.ask("SELECT income, COUNT(*) AS n FROM data GROUP BY income", error=50)
        desk.ask("SELECT zip, COUNT(*) AS n FROM data GROUP BY zip", error=50)
        cost = cost_of(desk.known)
        assert cost.seconds <= 0.1 * NOISE, cost
        assert cost.megabytes <= MEGABYTES / 2, cost


def test_a_cost_is_seen():
    """The power of the tests above: what takes long or much is not let through."""
    assert cost_of(lambda: bytearray(300_000_000)).megabytes > MEGABYTES
    assert cost_of(lambda: sum(range(3_000_000))).seconds > 0
    assert Path("/proc/self/clear_refs").exists()

"""kill -9 at any moment: what was revealed is paid, the service starts by itself, only what was in flight is lost."""

import pytest

from ledger.service import (
    Diary,
    broken_promises,
    killed_while_it_opens,
    killed_while_it_serves,
    pay_ahead,
    pay_behind,
    pay_reveal_record,
    reveal_then_pay,
)
from support.ledger_places import new_file

pytestmark = pytest.mark.process

# Kills of one ledger, which is checked as a whole after each of them.
KILLS = 25


def first_broken_promises(address, diary, answer=pay_reveal_record, *, recorded=0):
    """What is wrong after the first kill after which something is; nothing, if all is well after every one.

    A busy machine dies young: it is killed up to four times as often until so many answers were `recorded`.
    """
    for kill in range(1, 4 * KILLS + 1):
        if kill > KILLS and len(diary.read()["recorded"]) >= recorded:
            break
        # The first one dies while it makes the ledger, and later every fifth while it opens it.
        kills_it = killed_while_it_opens if kill % 5 == 1 else killed_while_it_serves
        kills_it(address, diary, kill, answer)
        if broken := broken_promises(address, diary, kill):
            return broken
    return []


def test_after_every_kill_what_was_revealed_is_paid_and_little_is_lost(address, diary):
    enough = KILLS // 5 + 1
    assert first_broken_promises(address, diary, recorded=enough) == []
    assert len(diary.read()["recorded"]) >= enough


@pytest.mark.long
@pytest.mark.parametrize("repetition", range(20))
def test_after_each_of_500_kills_what_was_revealed_is_paid_and_little_is_lost(address, diary, repetition):
    assert first_broken_promises(address, diary) == []


@pytest.mark.parametrize(
    ("answer", "broken"),
    [
        (reveal_then_pay, "revealed and not paid"),
        (pay_behind, "revealed and not paid"),
        (pay_ahead, "more lost than in flight"),
    ],
)
def test_kills_show_what_is_wrong_with_a_wrong_service(tmp_path, diary, answer, broken):
    assert first_broken_promises(new_file(tmp_path), diary, answer) == [broken]


def test_a_ledger_whose_making_was_killed_opens_by_itself(new_address, tmp_path):
    for life in range(5):
        address, diary = new_address(), Diary(tmp_path / f"diary of {life}")
        killed_while_it_opens(address, diary, life)
        assert broken_promises(address, diary, kills=1) == []

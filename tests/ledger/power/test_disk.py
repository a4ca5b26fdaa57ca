"""The model of the disk, on histories written by hand."""

from random import Random

import pytest

from ledger.power.journal import (
    Created,
    Found,
    Linked,
    Removed,
    Renamed,
    Resized,
    SyncBegun,
    SyncDone,
    SyncFailed,
    Written,
    read_journal,
)
from ledger.power.replay import disk_after, read_disk, revealed_before, write_disk

OLD, NEW, NEWER = b"o" * 1024, b"n" * 1024, b"N" * 1024
DIRECTORY_SYNCED = [SyncBegun("", 1, 7), SyncDone("", 1, 7)]
SYNCED = [SyncBegun("x", 2, 7), SyncDone("x", 2, 7)]
SYNC_FAILED = [SyncBegun("x", 2, 7), SyncFailed("x", 2, 7)]
WITH_OLD = [Found("x", 2, OLD)]


def disks(operations, keep, draws=300):
    """All that the disk may hold after these operations, as far as so many draws show it."""
    return [disk_after(operations, len(operations), Random(seed), keep) for seed in range(draws)]


def contents(operations, keep="some"):
    return {disk.get("x") for disk in disks(operations, keep, 1 if keep != "some" else 300)}


def test_what_was_not_synced_is_lost_or_kept():
    operations = [*WITH_OLD, Written("x", 2, 0, NEW)]
    assert contents(operations, "nothing") == {OLD}
    assert contents(operations, "all") == {NEW}


def test_a_write_is_torn_at_sectors_and_nowhere_else():
    halves = [OLD[:512], NEW[:512]]
    assert contents([*WITH_OLD, Written("x", 2, 0, NEW)]) == {first + second for first in halves for second in halves}


def test_a_later_write_may_survive_an_earlier_one():
    operations = [*WITH_OLD, Written("x", 2, 0, NEW[:512]), Written("x", 2, 512, NEW[:512])]
    assert OLD[:512] + NEW[:512] in contents(operations)


def test_a_sector_has_all_that_was_written_to_it_before():
    operations = [*WITH_OLD, Written("x", 2, 0, b"12"), Written("x", 2, 2, b"34")]
    assert {content[:4] for content in contents(operations)} == {b"oooo", b"12oo", b"1234"}


def test_what_was_synced_stays():
    operations = [*WITH_OLD, Written("x", 2, 0, NEW), *SYNCED]
    assert contents(operations) == contents(operations, "nothing") == {NEW}


@pytest.mark.parametrize("ending", [[], [SyncFailed("x", 2, 7)]], ids=["unfinished", "failed"])
def test_a_sync_counts_only_when_it_has_ended_well(ending):
    operations = [*WITH_OLD, Written("x", 2, 0, NEW), SyncBegun("x", 2, 7), *ending]
    assert contents(operations, "nothing") == {OLD}


def test_a_sync_does_not_cover_what_was_written_while_it_ran():
    operations = [
        *WITH_OLD,
        SyncBegun("x", 2, 7),
        Written("x", 2, 0, NEW),
        SyncBegun("x", 2, 8),
        SyncDone("x", 2, 7),
    ]
    assert contents(operations, "nothing") == {OLD}
    assert contents([*operations, SyncDone("x", 2, 8)], "nothing") == {NEW}


def test_a_sync_covers_its_own_file_only():
    operations = [*WITH_OLD, Found("y", 3, OLD), Written("x", 2, 0, NEW), Written("y", 3, 0, NEW), *SYNCED]
    assert disks(operations, "nothing", 1) == [{"x": NEW, "y": OLD}]


def test_a_sync_after_a_failed_one_does_not_save_what_was_forgotten():
    operations = [*WITH_OLD, Written("x", 2, 0, NEW), *SYNC_FAILED, Written("x", 2, 512, NEWER[:512]), *SYNCED]
    assert contents(operations, "nothing") == {OLD[:512] + NEWER[:512]}
    assert contents(operations) == {OLD[:512] + NEWER[:512], NEW[:512] + NEWER[:512]}
    assert contents([*operations, Written("x", 2, 0, NEW[:512]), *SYNCED], "nothing") == {NEW[:512] + NEWER[:512]}


def test_a_size_is_lost_or_kept_and_synced_with_the_contents():
    grown = [*WITH_OLD, Written("x", 2, 1024, NEW)]
    assert contents(grown, "nothing") == {OLD}
    assert {len(content) for content in contents(grown)} == {1024, 2048}
    assert OLD + bytes(1024) in contents(grown)
    assert contents([*grown, *SYNCED]) == {OLD + NEW}


def test_a_shortened_file_is_short_or_as_it_was_and_grows_again_with_zeros():
    short = [*WITH_OLD, Resized("x", 2, 100)]
    assert contents(short) == {OLD, OLD[:100]}
    assert contents([*short, Resized("x", 2, 300)]) == {OLD, OLD[:100], OLD[:100] + bytes(200)}
    assert contents([*short, Resized("x", 2, 300), *SYNCED]) == {OLD[:100] + bytes(200)}


def test_a_write_behind_the_end_leaves_zeros_between():
    assert contents([*WITH_OLD, Written("x", 2, 2000, b"end"), *SYNCED]) == {OLD + bytes(976) + b"end"}


def test_a_new_name_is_safe_when_its_directory_was_synced():
    created = [Created("x", 2), Written("x", 2, 0, NEW), *SYNCED]
    assert contents(created, "nothing") == {None}
    assert contents(created) == {None, NEW}
    assert contents([*created, *DIRECTORY_SYNCED]) == {NEW}


def test_a_name_is_safe_without_the_contents():
    operations = [Created("x", 2), Written("x", 2, 0, NEW), *DIRECTORY_SYNCED]
    assert contents(operations, "nothing") == {b""}


def test_a_removed_file_comes_back_until_its_directory_was_synced():
    removed = [*WITH_OLD, Removed("x")]
    assert contents(removed, "nothing") == {OLD}
    assert contents(removed) == {OLD, None}
    assert contents([*removed, *DIRECTORY_SYNCED]) == {None}


def test_a_renamed_file_has_one_of_its_names():
    operations = [*WITH_OLD, Found("y", 3, NEW), Renamed("y", "x")]
    possible = [{"x": OLD, "y": NEW}, {"x": NEW}]
    assert all(disk in possible for disk in disks(operations, "some"))
    assert disks(operations, "nothing", 1) == [possible[0]]
    assert disks([*operations, *DIRECTORY_SYNCED], "nothing", 1) == [possible[1]]


def test_a_file_that_was_given_another_name_has_one_or_both_and_one_content():
    operations = [*WITH_OLD, Written("x", 2, 0, NEW), Linked("x", "y"), Removed("x")]
    found = disks(operations, "some")
    assert {tuple(sorted(disk)) for disk in found} == {("x",), ("y",), ("x", "y"), ()}
    assert all(len(set(disk.values())) <= 1 for disk in found)
    assert len({content for disk in found for content in disk.values()}) == 4


def test_a_directory_sync_covers_its_own_names_only():
    operations = [Created("x", 2), Created("below/x", 3), SyncBegun("below", 4, 7), SyncDone("below", 4, 7)]
    assert disks(operations, "nothing", 1) == [{"below/x": b""}]


def test_a_number_used_again_is_another_file():
    operations = [*WITH_OLD, Removed("x"), Created("y", 2), Written("y", 2, 0, NEW), *DIRECTORY_SYNCED]
    assert disks(operations, "nothing", 1) == [{"y": b""}]
    assert disks(operations, "all", 1) == [{"y": NEW}]


def test_a_file_that_came_from_nowhere_is_an_error():
    with pytest.raises(ValueError, match="came from nowhere"):
        disk_after([Written("x", 2, 0, NEW)], 1, Random(0), "all")


def test_what_was_revealed_is_seen_at_once_and_not_on_the_disk():
    operations = [
        Created("x.revealed", 2),
        Written("x.revealed", 2, 0, b"1\n"),
        Written("x", 3, 0, NEW),
        Written("x.revealed", 2, 2, b"2\n"),
    ]
    assert [revealed_before(operations, cut) for cut in range(5)] == [b"", b"", b"1\n", b"1\n", b"1\n2\n"]
    assert disk_after(operations, 2, Random(0), "all") == {}


def test_a_disk_is_read_as_it_was_written(tmp_path):
    disk = {"x": OLD, "below/y": NEW}
    assert read_disk(write_disk(disk, tmp_path / "folder")) == disk
    with pytest.raises(FileExistsError):
        write_disk(disk, tmp_path / "folder")


def test_the_end_of_a_journal_may_be_missing(tmp_path):
    journal = tmp_path / "journal"
    journal.write_bytes(bytes([4]) + bytes(20))
    assert read_journal(journal) == []

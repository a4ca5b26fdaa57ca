"""Whoever edits, deletes, swaps, truncates or restores is found, and a ledger that was tampered with does not serve."""

import json
import os
import random
import shutil
import sqlite3
from contextlib import ExitStack, closing, contextmanager, suppress
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import pytest
import sqlalchemy as sa

from discreet.accounting import Laplace, Pure
from discreet.errors import BadParameter, LedgerDamaged, LedgerFailed
from discreet.ledger import Budget, Head, Ledger, store, verify
from discreet.ledger import state as state_module
from discreet.ledger.export import dp_event_lines
from discreet.ledger.state import State, replayed
from discreet.ledger.store import GENESIS, Entry, seal
from support.ledger_places import PLACES, new_database, new_file

COLUMNS = ("sequence", "body", "released", "key", "records", "hash")


class Row(NamedTuple):
    """An entry as the database keeps it."""

    sequence: int
    body: str
    released: bytes | None
    key: str | None
    records: int | None
    hash: bytes


def write_a_little_of_everything(ledger):
    """An entry of each kind: open, cap, cap, spend, record, hold, spend from it, close, raise, spend."""
    ledger.cap(Budget(4), table="people")
    ledger.cap(Budget(3), table="people", analyst="*")
    paid = ledger.spend(Laplace(4, 1), "how many smoke?", table="people", analyst="ana", key="first")
    ledger.record(paid, b"1207")
    hold = ledger.reserve(Laplace(2, 1), "a session", table="people", analyst="bob")
    ledger.spend(Laplace(8, 1), "how many of them drink?", table="people", analyst="bob", hold=hold)
    ledger.close_hold(hold)
    ledger.raise_cap(Budget(5), table="people", by="the owner")
    ledger.spend(Pure(1), "the last one", table="people", analyst="ana")


@pytest.fixture(scope="module", params=PLACES)
def original(request, tmp_path_factory):
    """The address of a ledger with an entry of each kind, its head and its rows. A new database takes a while."""
    with ExitStack() as stack:
        if request.param == "postgres":
            address = stack.enter_context(new_database())
        else:
            address = new_file(tmp_path_factory.mktemp("tampering"))
        with Ledger(address) as ledger:
            write_a_little_of_everything(ledger)
            head = ledger.head
        yield address, head, stored(address)


@pytest.fixture
def written(original):
    """The address of that ledger as it was written, and its head, which no file remembers."""
    address, head, rows = original
    tamper(address, lambda _: rows)
    forget_the_head(address)
    return address, head


def forget_the_head(address):
    if "://" not in address:
        Path(f"{address}.head").unlink(missing_ok=True)


@contextmanager
def connected(address):
    """A connection of somebody who may do anything with the database."""
    if "://" in address:
        engine = sa.create_engine(sa.make_url(address).set(drivername="postgresql+psycopg"))
    else:
        engine = sa.create_engine(sa.URL.create("sqlite", database=address))
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


@contextmanager
def unguarded(connection):
    """Without the triggers; they are put back in the end, so that nothing is to be seen."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.text("ALTER TABLE discreet_ledger DISABLE TRIGGER ALL"))
        yield
        connection.execute(sa.text("ALTER TABLE discreet_ledger ENABLE TRIGGER ALL"))
    else:
        triggers = connection.execute(sa.text("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")).fetchall()
        for name, _ in triggers:
            connection.execute(sa.text(f"DROP TRIGGER {name}"))
        yield
        for _, statement in triggers:
            connection.exec_driver_sql(statement)


def rows_in(connection):
    rows = connection.execute(sa.text(f"SELECT {', '.join(COLUMNS)} FROM discreet_ledger ORDER BY sequence"))
    return [Row(*row) for row in rows]


def stored(address):
    with connected(address) as connection:
        return rows_in(connection)


def tamper(address, change):
    """Write other rows in the place of those that are there."""
    names = ", ".join(f":{name}" for name in COLUMNS)
    insert = sa.text(f"INSERT INTO discreet_ledger ({', '.join(COLUMNS)}) VALUES ({names})")
    with connected(address) as connection, unguarded(connection):
        before = rows_in(connection)
        connection.execute(sa.text("DELETE FROM discreet_ledger"))
        if after := [row._asdict() for row in change(before)]:
            connection.execute(insert, after)


def require_refusal(address, *, entry=None):
    """It is not opened, and the entry is named, if there is one to name."""
    with pytest.raises(LedgerDamaged, match=None if entry is None else f"entry {entry} "):
        Ledger(address).close()


# Editing.


def other(value):
    """Something of the same type and another value."""
    match value:
        case None:
            return "x"
        case str():
            return value + "1"
        case int():
            return value + 1
        case [first, *rest]:
            return [other(first), *rest]
        case []:
            return [1]
        case dict():
            name = next(iter(value))
            return {**value, name: other(value[name])}


def edits_of(row):
    """The ways to change one member of what an entry says, or one column."""
    fields = json.loads(row.body)
    others = {f"another {name}": {**fields, name: other(fields[name])} for name in fields}
    bodies = {name: written_as(new) for name, new in others.items()} | {
        "one more member": written_as({**fields, "more": 1}),
        "the same in other letters": json.dumps(fields),
        "no body": "",
    }
    return {name: row._replace(body=body) for name, body in bodies.items()} | {
        "another answer": row._replace(released=b"1208"),
        "an empty answer": row._replace(released=b""),
        "another hash": row._replace(hash=bytes(32)),
    }


def written_as(fields):
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False)


def replaced(rows, row):
    return [row if row.sequence == one.sequence else one for one in rows]


def test_every_edit_of_every_entry_is_found_and_the_entry_is_named(written):
    address, _ = written
    rows = stored(address)
    assert {json.loads(row.body)["is"] for row in rows} == {"open", "cap", "spend", "record", "hold", "close", "raise"}
    # A server takes its time to be connected to; there, a spend and its answer must do.
    for row in rows if "://" not in address else rows[3:5]:
        for what, edited in edits_of(row).items():
            tamper(address, lambda _, edited=edited: replaced(rows, edited))
            try:
                require_refusal(address, entry=row.sequence)
            except pytest.fail.Exception:
                pytest.fail(f"{what} in entry {row.sequence} was not found")
        with pytest.raises(LedgerDamaged, match=f"entry {row.sequence} "):
            verify(address)


# Flipping. A small ledger, every byte of it.


def entries_of(address):
    return [Entry(row.sequence, row.body, row.released, row.hash) for row in stored(address)]


def flipped(entries):
    """The entries with one byte changed, for every byte of every body, answer and hash."""
    for place, entry in enumerate(entries):
        for name in ("body", "released", "hash"):
            value = getattr(entry, name) or b""
            raw = bytearray(value.encode() if name == "body" else value)
            for position in range(len(raw)):
                changed = raw[:]
                changed[position] ^= 1
                new = changed.decode() if name == "body" else bytes(changed)
                yield entry.sequence, [*entries[:place], entry._replace(**{name: new}), *entries[place + 1 :]]


def test_every_single_byte_counts(written):
    address, _ = written
    entries = entries_of(address)
    assert replayed(State(), entries).sequence == len(entries)
    tries = 0
    for sequence, changed in flipped(entries):
        tries += 1
        with pytest.raises(LedgerDamaged, match=rf"entry {sequence} "):
            replayed(State(), changed)
    assert tries > 2000


def write_bytes(file, sequence, name, raw):
    """Bytes in the place of a value, whether or not they are a text."""
    with connected(file) as connection, unguarded(connection):
        new = "CAST(? AS TEXT)" if name == "body" else "?"
        connection.exec_driver_sql(f"UPDATE discreet_ledger SET {name} = {new} WHERE sequence = ?", (raw, sequence))


def flip_in_file(file, step, bits):
    """Flip a bit of every byte that is stored, or of one in so many, and try to open."""
    Path(f"{file}.head").unlink()
    position = 0
    for entry in entries_of(file):
        for name in ("body", "released", "hash"):
            value = getattr(entry, name) or b""
            whole = value.encode() if name == "body" else value
            for place in range(len(whole)):
                position += 1
                if position % step == 0:
                    raw = bytearray(whole)
                    raw[place] ^= bits
                    write_bytes(file, entry.sequence, name, bytes(raw))
                    yield entry.sequence
            if whole:
                write_bytes(file, entry.sequence, name, whole)


@pytest.fixture
def file(tmp_path):
    """The path of a closed ledger in SQLite with an entry of each kind."""
    path = str(tmp_path / "ledger.sqlite")
    with Ledger(path) as ledger:
        write_a_little_of_everything(ledger)
        copy_back(path)
    return path


def copy_back(file):
    """Bring everything from SQLite's log into the database, so that it is the one file that matters."""
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0


@pytest.mark.parametrize("step", [101, pytest.param(1, marks=pytest.mark.long)])
def test_a_flipped_bit_in_the_file_is_found(file, step):
    for sequence in flip_in_file(file, step, 0x01):
        require_refusal(file, entry=sequence)


@pytest.mark.parametrize("step", [101, pytest.param(1, marks=pytest.mark.long)])
def test_a_byte_in_the_file_that_is_no_letter_is_found(file, step):
    for _ in flip_in_file(file, step, 0x80):
        require_refusal(file)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("body", b"{}"),
        ("released", "1207"),
        ("released", 4),
        ("hash", "a" * 32),
        ("hash", 5),
    ],
)
def test_a_value_of_another_type_is_found(file, name, value):
    Path(f"{file}.head").unlink()
    with connected(file) as connection, unguarded(connection):
        connection.exec_driver_sql("PRAGMA ignore_check_constraints = ON")
        connection.exec_driver_sql(f"UPDATE discreet_ledger SET {name} = ? WHERE sequence = 5", (value,))
    require_refusal(file)


# Deleting, swapping, moving, forging.


def without(*sequences):
    return lambda rows: [row for row in rows if row.sequence not in sequences]


def swapped(one, other):
    numbers = {one: other, other: one}
    return lambda rows: [row._replace(sequence=numbers.get(row.sequence, row.sequence)) for row in rows]


def moved_up(rows):
    """The fifth is gone, and the others have moved up into its place."""
    return [row if row.sequence < 5 else row._replace(sequence=row.sequence - 1) for row in rows if row.sequence != 5]


def forged(rows):
    """One more spend at the end, of somebody who does not know how it is chained."""
    last = rows[-1]
    return [*rows, last._replace(sequence=last.sequence + 1, hash=bytes(32))]


def forged_between(rows):
    shifted = [row if row.sequence < 5 else row._replace(sequence=row.sequence + 1) for row in rows]
    return sorted([*shifted, rows[3]._replace(sequence=5, key=None)])


def repeated(rows):
    """The last spend twice: the whole row, its hash included."""
    return [*rows, rows[-1]._replace(sequence=rows[-1].sequence + 1)]


REORDERED = {
    "the first is deleted": (without(1), 1),
    "one in the middle is deleted": (without(5), 5),
    "many are deleted": (without(3, 4, 5, 6, 7), 3),
    "one in the middle is deleted and the others have moved up": (moved_up, 5),
    "two neighbours are swapped": (swapped(4, 5), 4),
    "two far from each other are swapped": (swapped(2, 9), 2),
    "the first and the last are swapped": (swapped(1, 10), 1),
    "all have other numbers": (lambda rows: [row._replace(sequence=row.sequence + 1) for row in rows], 1),
    "the last one has moved away": (
        lambda rows: [*rows[:-1], rows[-1]._replace(sequence=rows[-1].sequence + 1)],
        10,
    ),
    "one was forged at the end": (forged, 11),
    "one was forged in the middle": (forged_between, 5),
    "the last one is there twice": (repeated, 11),
}


@pytest.mark.parametrize("what", REORDERED)
def test_a_ledger_does_not_serve_if(written, what):
    address, _ = written
    change, entry = REORDERED[what]
    tamper(address, change)
    require_refusal(address, entry=entry)
    with pytest.raises(LedgerDamaged, match=rf"entry {entry} "):
        verify(address)


# Power: with a chain that covers less, what is found above would be served.


def seal_without_answers(previous, body, released):
    return sha256(previous + body.encode()).digest()


def seal_without_the_entry_before(previous, body, released):
    return sha256(body.encode() + (released or b"")).digest()


UNSEALED = {
    "another answer": (seal_without_answers, lambda rows: replaced(rows, rows[4]._replace(released=b"1208"))),
    "two neighbours swapped": (seal_without_the_entry_before, swapped(4, 5)),
    "the last but one deleted": (
        seal_without_the_entry_before,
        lambda rows: [*rows[:8], rows[9]._replace(sequence=9)],
    ),
}


@pytest.mark.parametrize("what", UNSEALED)
def test_a_chain_that_covers_less_would_let_it_pass(monkeypatch, tmp_path, what):
    wrong, change = UNSEALED[what]
    for rule, served in ((seal, False), (wrong, True)):
        for module in (store, state_module):
            monkeypatch.setattr(module, "seal", rule)
        file = new_file(tmp_path)
        with Ledger(file) as ledger:
            write_a_little_of_everything(ledger)
        forget_the_head(file)
        tamper(file, change)
        if served:
            Ledger(file).close()
        else:
            require_refusal(file)


# What no ledger can find alone, and a head that is kept elsewhere does.


def chained_anew(rows):
    """The rows with hashes that follow, as somebody would compute them who knows how."""
    previous, right = GENESIS, []
    for row in rows:
        previous = seal(previous, row.body, row.released)
        right.append(row._replace(hash=previous))
    return right


def cheaper(rows):
    """The last spend cost nearly nothing, says the entry."""
    fields = json.loads(rows[-1].body)
    return chained_anew([*rows[:-1], rows[-1]._replace(body=written_as({**fields, "charge": {"pure": [1]}}))])


def of_somebody_else(rows):
    fields = json.loads(rows[3].body)
    return chained_anew([*rows[:3], rows[3]._replace(body=written_as({**fields, "why": "nothing"})), *rows[4:]])


REWRITTEN = {
    "the last entry is gone": without(10),
    "the last three entries are gone": without(8, 9, 10),
    "all entries are gone": lambda _: [],
    "a charge is another one and all hashes follow": cheaper,
    "a reason is another one and all hashes follow": of_somebody_else,
}


@pytest.mark.parametrize("what", REWRITTEN)
def test_with_a_head_that_was_kept_it_is_found_and_without_one_it_cannot_be_that(written, tmp_path, what):
    address, head = written
    tamper(address, REWRITTEN[what])
    with pytest.raises(LedgerDamaged, match="the head that you kept"):
        verify(address, head=head)
    kept = tmp_path / "kept.head"
    kept.write_text(f"{head}\n")
    with pytest.raises(LedgerDamaged, match=f"remembers entry {head.sequence}"):
        Ledger(address, head=kept)
    # Nothing in the database tells this from a ledger that was always so.
    verify(address)
    Ledger(address).close()


def test_a_charge_below_the_price_of_its_event_is_found_even_if_all_hashes_follow(written):
    address, _ = written
    tamper(address, cheaper)
    verify(address)
    with pytest.raises(LedgerDamaged, match=r"entry 10 .* charged less"):
        verify(address, prices=True)


def saying(entry, **said):
    """One entry says something else, and all hashes follow; what is looked up is what it says, as far as it can be."""

    def change(rows):
        fields = {**json.loads(rows[entry - 1].body), **said}
        fields = {name: value for name, value in fields.items() if value is not Ellipsis}
        return chained_anew(replaced(rows, rows[entry - 1]._replace(body=written_as(fields))))

    return change


GAUSSIAN = {"Gaussian": {"sigma": "10", "squared_sensitivity": "1"}}
FORGED_EVENTS = {
    "an event without a price in its currency": GAUSSIAN,
    "an event without a price in any": {"Approximate": {"epsilon": "1", "delta": "1/2"}},
    "an event of a kind that is not known": {"Magic": {"epsilon": "1"}},
    "an event with a negative loss": {"Pure": {"epsilon": "-1"}},
    "an event that is divided by nothing": {"Pure": {"epsilon": "1/0"}},
    "an event with words for numbers": {"Pure": {"epsilon": "much"}},
    "an event that lacks a parameter": {"Laplace": {"scale": "1"}},
    "an event less than no times": {"Repeat": {"event": {"Pure": {"epsilon": "1"}}, "times": -1}},
    "an event half a time": {"Repeat": {"event": {"Pure": {"epsilon": "1"}}, "times": 0.5}},
    "a list": [],
    "null": None,
    "nothing": ...,
}


@pytest.mark.parametrize("what", FORGED_EVENTS)
def test_an_event_that_cannot_be_is_found_when_prices_are_checked(written, what):
    address, _ = written
    tamper(address, saying(10, event=FORGED_EVENTS[what]))
    verify(address)
    with pytest.raises(
        LedgerDamaged, match=r"entry 10 of the ledger (has impossible content|has an event that cannot be)"
    ):
        verify(address, prices=True)


def test_a_charge_in_a_currency_that_has_no_price_for_the_event_is_found(written):
    address, _ = written
    tamper(address, saying(10, event={"DiscreteGaussian": GAUSSIAN["Gaussian"]}, charge={"pure": [1], "gaussian": [1]}))
    with pytest.raises(LedgerDamaged, match=r"entry 10 .* no price for DiscreteGaussian"):
        verify(address, prices=True)


@pytest.mark.parametrize("what", FORGED_EVENTS)
def test_no_report_on_a_forged_event_fails_otherwise_than_by_saying_so(written, what):
    address, _ = written
    tamper(address, saying(10, event=FORGED_EVENTS[what]))
    with Ledger(address) as ledger:
        late = lambda: ledger.cap(Budget(9, 1e-6), table="people", analyst="ana")
        for report in (ledger.history, lambda: list(dp_event_lines(ledger.entries)), late):
            # An event that can be read may be history; a late cap that cannot price it is a mistake.
            with suppress(LedgerDamaged, BadParameter):
                report()


IMPOSSIBLE_CAPS = {
    "a negative epsilon": {"epsilon": "-1"},
    "no epsilon at all": {"epsilon": "0"},
    "an epsilon that is divided by nothing": {"epsilon": "1/0"},
    "an epsilon above all": {"epsilon": "1000000"},
    "a delta above 1": {"delta": "2"},
    "a delta in a pure gate": {"delta": "1/2"},
    "another gate with the same limit": {"gate": "gaussian"},
    "a gate that is not known": {"gate": "magic"},
    "no sum to begin with": {"spent": ...},
    "a sum of something else": {"spent": [[None, ["x"]]]},
}


@pytest.mark.parametrize("what", IMPOSSIBLE_CAPS)
def test_a_cap_that_cannot_be_is_found(written, what):
    address, _ = written
    tamper(address, saying(2, **IMPOSSIBLE_CAPS[what]))
    with pytest.raises(LedgerDamaged, match=r"entry [24] "):
        verify(address)


@pytest.mark.parametrize("said", [{"records": ...}, {"records": [4]}, {"records": {}}, {"key": "x"}], ids=str)
def test_a_record_that_cannot_be_is_found(written, said):
    address, _ = written
    tamper(address, saying(5, **said))
    with pytest.raises(LedgerDamaged, match="entry 5 "):
        verify(address)


def test_an_entry_that_is_nested_without_an_end_is_found(written):
    address, _ = written
    deep = "[" * 100_000 + "]" * 100_000
    tamper(address, lambda rows: chained_anew(replaced(rows, rows[9]._replace(body=deep))))
    require_refusal(address, entry=10)


def test_a_limit_above_its_budget_is_found_even_if_all_hashes_follow(written):
    def raised(rows):
        fields = json.loads(rows[1].body)
        limit = [ticks + 1 for ticks in fields["limit"]]
        return chained_anew(replaced(rows, rows[1]._replace(body=written_as({**fields, "limit": limit}))))

    address, _ = written
    tamper(address, raised)
    with pytest.raises(LedgerDamaged, match=r"entry 2 .* limit that does not follow"):
        verify(address)


def test_a_spend_past_its_cap_is_found_even_if_all_hashes_follow(written):
    def dearer(rows):
        fields = json.loads(rows[-1].body)
        charge = {"pure": [10 * 10**15]}
        return chained_anew([*rows[:-1], rows[-1]._replace(body=written_as({**fields, "charge": charge}))])

    address, _ = written
    tamper(address, dearer)
    require_refusal(address, entry=10)


@pytest.mark.parametrize("label", ["key", "records"])
@pytest.mark.parametrize("new", ["gone", "another"])
def test_verification_finds_an_entry_that_is_looked_up_by_another_label_than_it_says(written, label, new):
    address, _ = written
    sequence, value = (4, "ab" * 32) if label == "key" else (5, 7)
    changed = {label: None if new == "gone" else value}
    tamper(address, lambda rows: replaced(rows, rows[sequence - 1]._replace(**changed)))
    with pytest.raises(LedgerDamaged, match=f"entry {sequence} "):
        verify(address)


def test_an_answer_that_was_moved_to_another_spend_is_not_given(written):
    address, _ = written
    with Ledger(address) as ledger:
        asked = {"table": "people", "analyst": "ana", "key": "second"}
        spend = lambda: ledger.spend(Laplace(4, 1), "how many drink?", **asked)
        second = spend()
        tamper(address, lambda rows: replaced(rows, rows[4]._replace(records=second.sequence)))
        with pytest.raises(LedgerDamaged):
            spend()


def test_verification_finds_a_second_answer_to_one_spend(written):
    def twice(rows):
        fields = json.loads(rows[4].body)
        return chained_anew([*rows, Row(11, written_as({**fields, "by": "x"}), b"1208", None, None, bytes(32))])

    address, _ = written
    tamper(address, twice)
    with pytest.raises(LedgerDamaged, match="entry 11 "):
        verify(address)


# Tables.

DROPPED = {
    "the table of entries is dropped": ("DROP TABLE discreet_ledger", "the table of entries is gone from"),
    "a column is renamed": (
        "ALTER TABLE discreet_ledger RENAME COLUMN hash TO seal",
        "the table of entries is gone from",
    ),
    "the table of the version is dropped": (
        "DROP TABLE discreet_ledger_version",
        "the version of the ledger is gone from",
    ),
    "the version is deleted": ("DELETE FROM discreet_ledger_version", "the version of the ledger is gone from"),
}


@pytest.mark.parametrize("what", DROPPED)
def test_a_ledger_that_has_lost_a_table_is_damaged_however_it_is_opened(address, what):
    statement, said = DROPPED[what]
    with Ledger(address) as ledger:
        write_a_little_of_everything(ledger)
    with connected(address) as connection:
        connection.execute(sa.text(statement))
    forget_the_head(address)
    for read in (Ledger, lambda place: Ledger(place, create=False), verify):
        with pytest.raises(LedgerDamaged, match=said):
            read(address)


@pytest.mark.parametrize("what", list(DROPPED)[:2])
def test_a_ledger_that_loses_its_entries_while_it_is_open_is_damaged_and_grants_nothing(address, what):
    statement, said = DROPPED[what]
    with Ledger(address) as ledger:
        write_a_little_of_everything(ledger)
        with connected(address) as connection:
            connection.execute(sa.text(statement))
        for use in (
            lambda: ledger.spend(Pure(Fraction(1, 100)), "how many?", table="people"),
            lambda: ledger.head,
            lambda: list(ledger.entries()),
        ):
            with pytest.raises(LedgerDamaged, match=said):
                use()


def test_a_database_of_somebody_else_is_no_damaged_ledger(address):
    with connected(address) as connection:
        connection.execute(sa.text("CREATE TABLE visits (person INTEGER)"))
    for read in (lambda: Ledger(address, create=False), lambda: verify(address)):
        with pytest.raises(BadParameter, match="there is no ledger in"):
            read()
    Ledger(address).close()


# While it is open.

ON_TOP = {
    "the last entry is gone": without(10),
    "the last three entries are gone": without(8, 9, 10),
    "all entries are gone": lambda _: [],
    "the last entry has another hash": lambda rows: [*rows[:-1], rows[-1]._replace(hash=bytes(32))],
    "the last entry is another one and its hash follows": cheaper,
    "an earlier entry is another one and all hashes follow": of_somebody_else,
    "the last entry has moved up": moved_up,
    "one was forged at the end": forged,
}


@pytest.mark.parametrize("what", ON_TOP)
def test_a_ledger_that_is_open_grants_nothing_any_more_if(written, what):
    address, _ = written
    with Ledger(address) as ledger:
        tamper(address, ON_TOP[what])
        left = stored(address)
        for attempt in range(3):
            with pytest.raises(LedgerDamaged):
                ledger.spend(Pure(0.01), f"attempt {attempt}", table="people", analyst="ana")
        with pytest.raises(LedgerDamaged):
            ledger.reserve(Pure(0.01), "a session", table="people", analyst="ana")
        with pytest.raises(LedgerDamaged):
            ledger.cap(Budget(1), table="visits")
        assert stored(address) == left


def test_a_ledger_that_grew_again_after_entries_were_taken_away_is_not_served_by_one_that_saw_them(written):
    address, _ = written
    with Ledger(address) as ledger:
        tamper(address, without(9, 10))
        forget_the_head(address)
        with Ledger(address) as younger:
            for _ in range(4):
                younger.spend(Pure(0.01), "since then", table="people", analyst="ana")
        for ask in (lambda: ledger.spend(Pure(0.01), "why", table="people"), lambda: ledger.balances()):
            with pytest.raises(LedgerDamaged):
                ask()


def test_an_edit_in_the_middle_of_a_ledger_that_is_open_is_found_when_it_is_opened_next(written):
    address, _ = written
    with Ledger(address) as ledger:
        tamper(address, lambda rows: replaced(rows, rows[3]._replace(body=rows[3].body.replace("smoke", "drink"))))
        ledger.spend(Pure(0.01), "it knows what was there", table="people", analyst="ana")
    require_refusal(address, entry=4)


# The database itself refuses.


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE discreet_ledger SET body = '{}' WHERE sequence = 4",
        "UPDATE discreet_ledger SET released = NULL",
        "DELETE FROM discreet_ledger WHERE sequence = 10",
        "DELETE FROM discreet_ledger",
        "TRUNCATE discreet_ledger",
    ],
)
def test_the_database_refuses_to_change_an_entry(written, statement):
    address, head = written
    before = stored(address)
    with pytest.raises(sa.exc.SQLAlchemyError), connected(address) as connection:
        connection.execute(sa.text(statement))
    assert stored(address) == before
    assert verify(address, head=head).head == head


REPLACE = "REPLACE INTO discreet_ledger (sequence, body, hash) VALUES (4, '{}', zeroblob(32))"


def test_sqlite_refuses_to_replace_an_entry(file):
    with closing(sqlite3.connect(file)) as connection, connection, pytest.raises(sqlite3.DatabaseError):
        connection.execute(REPLACE)


def test_an_entry_that_sqlite_has_replaced_is_found(file):
    with closing(sqlite3.connect(file)) as connection, connection:
        for name in ("update", "delete", "insert"):
            connection.execute(f"DROP TRIGGER IF EXISTS discreet_ledger_{name}")
        connection.execute(REPLACE)
    Path(f"{file}.head").unlink()
    require_refusal(file, entry=4)


# Files. The head lies beside the ledger, or somewhere else.


def files_of(file):
    return {name: Path(file + name).read_bytes() for name in ("", "-wal", "-shm") if Path(file + name).exists()}


def put(file, files):
    for name in ("", "-wal", "-shm"):
        Path(file + name).unlink(missing_ok=True)
    for name, content in files.items():
        Path(file + name).write_bytes(content)


def head_of(file):
    return Head.parse(Path(f"{file}.head").read_text())


def is_whole(file, head):
    """Whether a ledger opens and has every entry; a ledger that is opened and has not all of them is a failure."""
    try:
        with Ledger(file) as ledger:
            assert ledger.head == head, "a ledger was served that is not the newest"
            verify(file, head=head)
    except (LedgerDamaged, LedgerFailed):
        return False
    return True


def test_an_older_copy_is_refused(file):
    old = files_of(file)
    with Ledger(file) as ledger:
        ledger.spend(Pure(0.5), "since then", table="people", analyst="ana")
        head = ledger.head
    put(file, old)
    require_refusal(file)
    with pytest.raises(LedgerDamaged, match="the head that you kept"):
        verify(file, head=head)


def test_an_older_copy_with_an_older_head_cannot_be_told_from_the_newest_but_by_a_head_kept_elsewhere(file, tmp_path):
    old, old_head = files_of(file), Path(f"{file}.head").read_bytes()
    kept = tmp_path / "kept.head"
    with Ledger(file, head=kept) as ledger:
        ledger.spend(Pure(0.5), "since then", table="people", analyst="ana")
    put(file, old)
    Path(f"{file}.head").write_bytes(old_head)
    Ledger(file).close()
    with pytest.raises(LedgerDamaged, match="an older copy"):
        Ledger(file, head=kept)


@pytest.mark.parametrize("database", ["old", "new"])
@pytest.mark.parametrize("log", ["old", "new", "none"])
@pytest.mark.parametrize("index", ["new", "none"])
def test_whichever_files_of_a_running_ledger_are_restored_it_is_whole_or_refused(tmp_path, database, log, index):
    file = str(tmp_path / "ledger.sqlite")
    with Ledger(file) as ledger:
        write_a_little_of_everything(ledger)
        copy_back(file)
        spend = lambda: ledger.spend(Pure(0.01), "since then", table="people", analyst="ana")
        spend()
        old = files_of(file)
        for _ in range(20):
            spend()
        copy_back(file)
        for _ in range(20):
            spend()
        head, new = ledger.head, files_of(file)
    choice = {"": database, "-wal": log, "-shm": index}
    put(file, {name: {"old": old, "new": new}[age][name] for name, age in choice.items() if age != "none"})
    assert is_whole(file, head) == (database == log == "new")


@pytest.mark.parametrize("what", ["older", "another", "gone"])
def test_a_ledger_whose_file_is_replaced_while_it_is_open_grants_nothing_any_more(file, tmp_path, what):
    other = str(tmp_path / "other.sqlite")
    if what == "older":
        shutil.copy(file, other)
    else:
        Ledger(other).close()
    with Ledger(file) as ledger:
        ledger.spend(Pure(0.01), "since then", table="people", analyst="ana")
        if what == "gone":
            Path(file).unlink()
        else:
            os.replace(other, file)
        for _ in range(3):
            with pytest.raises((LedgerDamaged, LedgerFailed)):
                ledger.spend(Pure(0.01), "why", table="people", analyst="ana")
    # Together with SQLite's log an older file may be whole.
    is_whole(file, head_of(file))


def test_what_is_granted_after_a_file_was_overwritten_in_its_place_is_in_the_ledger_or_that_is_refused(file):
    older = Path(file).read_bytes()
    with Ledger(file) as ledger:
        spend = lambda: ledger.spend(Pure(0.01), "why", table="people", analyst="ana")
        spend()
        copy_back(file)
        spend()
        Path(file).write_bytes(older)
        with suppress(LedgerDamaged, LedgerFailed):
            for _ in range(5):
                spend()
    is_whole(file, head_of(file))


def test_another_ledger_in_its_place_is_refused(file, tmp_path):
    other = str(tmp_path / "other.sqlite")
    with Ledger(other) as ledger:
        write_a_little_of_everything(ledger)
    put(file, files_of(other))
    require_refusal(file)


def test_a_ledger_is_not_begun_anew_while_its_head_is_there(file):
    put(file, {})
    require_refusal(file)
    put(file, {"": b""})
    require_refusal(file)


@pytest.mark.parametrize("part", [0.01, 0.25, 0.5, 0.75, 0.99])
def test_a_file_that_was_cut_is_whole_or_refused(file, part):
    head, whole = head_of(file), Path(file).read_bytes()
    put(file, {"": whole[: int(len(whole) * part)]})
    # The last page may be one of an index, and then all entries are there.
    assert not is_whole(file, head) or part > 0.5


MORE = [pytest.param(seed, marks=pytest.mark.long) for seed in range(30, 1000)]


@pytest.mark.parametrize("seed", [*range(30), *MORE])
def test_a_file_with_an_overwritten_stretch_is_whole_or_refused(file, seed):
    chance, head = random.Random(seed), head_of(file)
    content = bytearray(Path(file).read_bytes())
    length = chance.choice([1, 16, 512, 4096])
    start = chance.randrange(len(content) - length) // length * length
    content[start : start + length] = chance.randbytes(length) if chance.random() < 0.7 else bytes(length)
    put(file, {"": bytes(content)})
    is_whole(file, head)


def test_a_file_whose_tables_have_unreadable_names_is_refused(file):
    content = Path(file).read_bytes().replace(b"discreet_ledger_key", b"\xffiscreet_ledger_key")
    put(file, {"": content.replace(b"CREATE UNIQUE INDEX", b"CREATE UNUSUAL NAME")})
    require_refusal(file)


def test_verification_finds_a_broken_index(file):
    with closing(sqlite3.connect(file)) as connection:
        query = "SELECT rootpage FROM sqlite_master WHERE name = 'discreet_ledger_key'"
        (page,) = connection.execute(query).fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    content = bytearray(Path(file).read_bytes())
    # The page of an index without entries begins so.
    content[(page - 1) * size : page * size] = b"\x0a" + bytes(4) + size.to_bytes(2, "big") + bytes(size - 7)
    put(file, {"": bytes(content)})
    with pytest.raises(LedgerDamaged):
        verify(file)


def test_no_database_at_all_is_refused(tmp_path):
    file = tmp_path / "ledger.sqlite"
    file.write_text("dear diary " * 1000)
    with pytest.raises(LedgerDamaged, match="not a whole SQLite database"):
        Ledger(file)


@pytest.mark.parametrize("text", ["nonsense", "discreet-head x y z", "discreet-head x 3 abcd", "ÿþ"])
def test_a_head_that_cannot_be_read_is_said(file, text):
    Path(f"{file}.head").write_bytes(text.encode("latin-1"))
    with pytest.raises(BadParameter, match="head"):
        Ledger(file)


def test_a_head_of_another_ledger_is_refused(file):
    Path(f"{file}.head").write_text(f"{Head('0' * 32, 3, bytes(32))}\n")
    require_refusal(file)

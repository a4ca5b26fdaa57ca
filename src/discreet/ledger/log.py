"""The log of a ledger, shared by threads and processes, and its head.

Threads hand in what they want to append, and one of them writes for all that wait, so that one synchronisation of the
disk serves many. Before it writes, it reads what other processes have appended: every decision is made on the whole
log, and the store appends only after the entry on which the decision was made.

The head is one line with the number and hash of the last entry. Kept elsewhere, it proves that no entry before it was
lost. Proof: ledger.md
"""

import os
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple
from uuid import uuid4
from weakref import WeakSet

from discreet.errors import BadParameter, DiscreetError, LedgerDamaged, LedgerFailed, Refusal
from discreet.ledger.connection import translated
from discreet.ledger.state import State, folded, replayed
from discreet.ledger.store import FORMAT, Appended, Draft, Entry, Store, chained, index_columns, stamp

# So long that every head fits, and so short that it lies in one sector of a disk: it is written whole or not at all.
_WIDTH = 160


class Head(NamedTuple):
    """The last entry of a ledger at some moment: its number and its hash.

    >>> head = Head("3f2a", 17, bytes(32))
    >>> Head.parse(str(head)) == head
    True
    """

    ledger: str
    sequence: int
    hash: bytes

    def __str__(self) -> str:
        return f"discreet-head {self.ledger} {self.sequence} {self.hash.hex()}"

    @classmethod
    def parse(cls, text: str) -> "Head":
        """The head that this line says."""
        try:
            word, ledger, sequence, digest = text.split()
            head = cls(ledger, int(sequence), bytes.fromhex(digest))
        except ValueError:
            head, word = cls("", 0, b""), ""
        if word != "discreet-head" or len(head.hash) != 32:
            raise BadParameter(
                f'"{text.strip()[:80]}" is not the head of a ledger; it must be a line "discreet-head …". '
                "`discreet ledger verify` prints it."
            )
        return head


class Witness:
    """A small file that remembers the head. It may lag behind, and it never runs ahead of the ledger.

    It is written after an entry is durable, and not forced to the disk: an older head is still a true one.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._descriptor: int | None = None

    def read(self) -> Head | None:
        """The head that it remembers, or None if it remembers nothing yet."""
        try:
            text = self.path.read_text()
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise BadParameter(f'the head in "{self.path}" cannot be read ({type(error).__name__}).') from None
        # A power cut can leave a file that has its size and not yet its content.
        return Head.parse(text) if text.strip("\0 \n") else None

    def write(self, head: Head) -> None:
        """Remember this head."""
        line = f"{head}\n".ljust(_WIDTH).encode()
        try:
            if self._descriptor is None:
                self._descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o600)
            os.pwrite(self._descriptor, line, 0)
        except OSError as error:
            raise translated(error, str(self.path)) from None

    def close(self) -> None:
        """Close the file."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            with suppress(OSError):
                os.close(descriptor)


# How many waiting proposals one synchronisation serves at most.
LARGEST_BATCH = 256

# A request to the log, given the state: something to append, or an outcome that needs no entry. A refusal is raised.
Propose = Callable[[State], Any]


class Log:
    """The entries of one store, verified, with the state that follows from them."""

    def __init__(self, address: str | os.PathLike[str], *, head: str | os.PathLike[str] | None, create: bool) -> None:
        self._turn = Lock()
        self._waiting: deque[_Proposal] = deque()
        self._state = State()
        with FORK_LOCK:
            self._connect(address, head, create)

    def _connect(self, address: str | os.PathLike[str], head: str | os.PathLike[str] | None, create: bool) -> None:
        self.store = Store(address, create=create)
        beside = None if self.store.file is None else f"{self.store.file}.head"
        place = beside if head is None else head
        # A reader leaves nothing behind.
        kept = place is not None and (create or head is not None or os.path.exists(place))
        self._witness = Witness(place) if place is not None and kept else None
        _LOGS.add(self)
        try:
            with self._turn:
                self._open()
        except BaseException:
            self.close()
            raise

    @property
    def name(self) -> str:
        """The ledger's own name, given when it was begun."""
        return self._state.ledger

    @property
    def seen(self) -> State:
        """The state that was last read, without reading the store again: others may have appended since."""
        return self._state

    def now(self) -> State:
        """The state after all that anybody has appended."""
        with self._turn:
            self._refresh_or_reconnect()
            return self._state

    def find(self, key: str) -> Entry | None:
        """The entry with this key, found while no other thread uses the connection."""
        with self._turn:
            return self.store.find(key=key)

    def submit(self, propose: Propose, *, durable: bool = False) -> Any:
        """Append what is proposed, durably. A proposal is made again if another process was faster.

        With `durable` it is asked only in a state that is in the store, and not on top of what waits to be written.
        """
        proposal = _Proposal(propose, durable)
        self._waiting.append(proposal)
        try:
            with self._turn:
                while not proposal.done:
                    self._serve()
        finally:
            # An interrupted thread does not want it any more; another thread would write it later.
            proposal.done = True
        return proposal.result()

    def close(self) -> None:
        """Give back the connections and the files."""
        with self._turn:
            self.store.close()
            if self._witness:
                self._witness.close()

    def rest(self) -> None:
        """Wait for the thread that writes, take the turn and hold no connection, until `wake`."""
        self._turn.acquire()
        self.store.rest()

    def wake(self, *, child: bool) -> None:
        """Go on after `rest`. The threads that wait are not in a child, and their proposals are not its own."""
        if child:
            self._waiting.clear()
        self.store.wake()
        self._turn.release()

    # What follows happens with the turn taken.

    def _open(self) -> None:
        self._state = replayed(self._state, self.store.entries())
        # Our own connection makes sure that what was read is on the disk; only then may the head remember it.
        self._refresh()
        if self._witness and (remembered := self._witness.read()):
            self._compare(remembered, self._witness)
        if not self._state.sequence:
            draft = Draft({**stamp(self._state.at, "open"), "ledger": uuid4().hex, "format": FORMAT})
            # If another process was faster, its first entry is as good as ours.
            self.store.append(self._state.hash, [Appended(chained(self._state.hash, 1, draft), draft.fields)])
            self._refresh()
        if self._witness:
            self._witness.write(head_of(self._state))

    def _compare(self, remembered: Head, witness: Witness) -> None:
        found = self.store.find(sequence=remembered.sequence)
        if found is None or found.hash != remembered.hash:
            raise LedgerDamaged(
                f'"{witness.path}" remembers entry {remembered.sequence} of ledger {remembered.ledger[:8]}, and '
                f'"{self.store.name}" does not have it: an older copy was put in its place, or it is another ledger. '
                "Nothing is served from it. Bring back the newest file; to begin anew, remove both files."
            )

    def _refresh(self) -> None:
        self._state = replayed(self._state, self.store.tail(self._state.sequence))

    def _refresh_or_reconnect(self) -> None:
        try:
            self._refresh()
        except LedgerFailed:
            # The connection may have died since the last call. Nothing was written on it, so a second one is safe.
            self._refresh()

    def _serve(self) -> None:
        batch: list[_Proposal] = []
        try:
            batch = self._next()
            decided = self._try(batch)
            if decided is None:
                self._refresh_or_reconnect()
                decided = self._decide(batch)
                if decided.entries:
                    with self.store.alone():
                        self._refresh()
                        decided = self._decide(batch)
                        self._append_alone(decided)
            self._accept(batch, decided)
        except BaseException as error:
            # An error is never a success: what was on its way to the disk may be charged, and is not granted.
            for proposal in batch:
                proposal.fail(error)
            if not isinstance(error, DiscreetError):
                # An interrupt can come at any moment, also within a transaction.
                self.store.drop()
                raise

    def _next(self) -> "list[_Proposal]":
        """Those who wait, as many as are served at once. They stay in the queue until they are done."""
        while self._waiting and self._waiting[0].done:
            self._waiting.popleft()
        waiting = [self._waiting[place] for place in range(min(LARGEST_BATCH, len(self._waiting)))]
        return [proposal for proposal in waiting if not proposal.done]

    def _try(self, batch: "list[_Proposal]") -> "_Decided | None":
        """Append at once, on the last state; None if that is out of date, or if there are several to write.

        The last state is nearly always current, and the store notices when it is not. A connection over a network may
        have died, though, and an append that fails is not repeated: there the log is read first.
        """
        if len(batch) > 1:
            return None
        if self.store.file is None:
            self._refresh_or_reconnect()
        known, decided = self._state, self._decide(batch)
        if decided.entries:
            return decided if self.store.append(known.hash, decided.entries) else None
        # A refusal, say. It is right if no process has appended anything since.
        self._refresh_or_reconnect()
        return decided if self._state is known else None

    def _append_alone(self, decided: "_Decided") -> None:
        if not self.store.append(self._state.hash, decided.entries):
            # No other process writes now, so none was faster.
            raise LedgerDamaged(
                f"entry {self._state.sequence}, which was the last one, is gone from the ledger or was changed. "
                "Nothing is served from it. Bring back the newest file."
            )

    def _decide(self, batch: "list[_Proposal]") -> "_Decided":
        decided, state = _Decided([], [], self._state), self._state
        taken: set[str | int] = set()
        for proposal in batch:
            outcome = _LATER if proposal.durable and decided.entries else proposal.ask(state)
            if isinstance(outcome, Refusal) and decided.entries:
                # It would be refused for something that is not durable yet, perhaps for an earlier try of its own.
                outcome = _LATER
            if isinstance(outcome, _Next):
                labels = {label for label in index_columns(outcome.appended.fields) if label is not None}
                if labels & taken:
                    outcome = _LATER
                else:
                    taken |= labels
                    state, outcome = outcome
                    decided.entries.append(outcome)
            decided.outcomes.append(outcome)
        return decided._replace(state=state)

    def _accept(self, batch: "list[_Proposal]", decided: "_Decided") -> None:
        self._state = decided.state
        if self._witness and decided.entries:
            # It may lag behind; a spend that is durable must not fail for it.
            with suppress(LedgerFailed):
                self._witness.write(head_of(self._state))
        for proposal, outcome in zip(batch, decided.outcomes, strict=True):
            if outcome is not _LATER:
                proposal.settle(outcome)
        if decided.entries:
            # What is granted stays granted, whether or not there is room to tidy up.
            with suppress(LedgerFailed):
                self.store.tidy()


# Neither a connection nor a turn may be taken into a forked process: SQLite would believe that it holds locks which
# only its parent has, and a thread that has the turn is not there to give it back.
_LOGS: "WeakSet[Log]" = WeakSet()
_RESTING: "list[Log]" = []
# Held while the process is forked, and while a ledger is opened.
FORK_LOCK = Lock()


def _before_fork() -> None:
    FORK_LOCK.acquire()
    _RESTING.extend(_LOGS)
    for log in _RESTING:
        log.rest()


def _after_fork(*, child: bool) -> None:
    while _RESTING:
        _RESTING.pop().wake(child=child)
    FORK_LOCK.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=partial(_after_fork, child=False),
        after_in_child=partial(_after_fork, child=True),
    )


def head_of(state: State) -> Head:
    """The last entry of a state."""
    return Head(state.ledger, state.sequence, state.hash)


# The outcome of a proposal that has to wait for one in the same batch.
_LATER = object()


class _Next(NamedTuple):
    state: State
    appended: Appended


class _Decided(NamedTuple):
    entries: list[Appended]
    outcomes: list[Any]
    state: State


class _Proposal:
    """What one thread waits for."""

    def __init__(self, propose: Propose, durable: bool) -> None:
        self._propose = propose
        self.durable = durable
        self._outcome: Any = None
        self.done = False

    def ask(self, state: State) -> Any:
        """What is proposed in this state. A refusal is an outcome too, and so is a mistake of one among many."""
        try:
            outcome = self._propose(state)
            if isinstance(outcome, Draft):
                entry = chained(state.hash, state.sequence + 1, outcome)
                return _Next(folded(state, entry, outcome.fields, fits=True), Appended(entry, outcome.fields))
        except (LedgerFailed, LedgerDamaged):
            raise
        except Exception as mistake:
            return mistake
        return outcome

    def settle(self, outcome: Any) -> None:
        self._outcome, self.done = outcome, True

    def fail(self, error: BaseException) -> None:
        if not self.done:
            known = isinstance(error, DiscreetError)
            self.settle(
                type(error)(*error.args) if known else LedgerFailed(f"the ledger stopped ({type(error).__name__}).")
            )

    def result(self) -> Any:
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome

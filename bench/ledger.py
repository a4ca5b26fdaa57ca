"""The ledger's figures: spends beside the bare disk, whether they stay flat, peers, threads, Postgres, verification.

python bench/ledger.py            prints the tables and writes bench/results/ledger.md and ledger.png

The peers keep their accounts in memory only; ours is on the disk before it answers. Blocks of each kind take turns, so
that a busy moment of the machine hits all of them.
"""

import argparse
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

from discreet.accounting import Gaussian, Laplace
from discreet.ledger import Budget, Ledger, verify
from machine import describe

EVENT, WHY = Gaussian(20_000, 1), "SELECT COUNT(*) FROM people WHERE age >= 65 AND sex = 'Female'"
BUDGET = Budget(epsilon=1, delta=1e-9)
BLOCK, BLOCKS = 200, 25
PEER_SPENDS, PEER_BLOCK = 4_000, 250


def table(title, head, rows):
    lines = [f"## {title}", "", "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    return "\n".join([*lines, ""])


def opened(address):
    ledger = Ledger(address)
    ledger.cap(BUDGET, table="people")
    ledger.cap(BUDGET, table="people", analyst="*")
    return ledger


def spender(ledger):
    return lambda: ledger.spend(EVENT, WHY, table="people", analyst="ana")


def appender(folder):
    """What any log must do for an entry: write behind the end, and wait for the disk."""
    file, page = os.open(folder / "append", os.O_WRONLY | os.O_CREAT), os.urandom(4096)
    return lambda: (os.write(file, page), os.fsync(file))


def overwriter(folder):
    """The least that a disk can be asked for: a page of a file that has its size already."""
    file, page, pages = os.open(folder / "overwrite", os.O_WRONLY | os.O_CREAT), os.urandom(4096), 1000
    os.write(file, page * pages)
    os.fsync(file)
    place = iter(range(10**9))
    return lambda: (os.pwrite(file, page, next(place) % pages * 4096), os.fdatasync(file))


def bare_inserter(folder):
    """SQLite itself, as durable: one row of the same size, from Python."""
    import sqlite3

    connection = sqlite3.connect(folder / "bare.sqlite", isolation_level=None)
    for pragma in ("journal_mode = WAL", "synchronous = FULL"):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute("CREATE TABLE entry (sequence INTEGER PRIMARY KEY, body TEXT)")
    body = "x" * 420
    return lambda: connection.execute("INSERT INTO entry (body) VALUES (?)", (body,))


def timed(call, times):
    wall, cpu = perf_counter(), process_time()
    for _ in range(times):
        call()
    return (perf_counter() - wall) / times, (process_time() - cpu) / times


def taking_turns(calls, block=BLOCK, blocks=BLOCKS):
    """The median seconds of one call of each kind, and its processor seconds, from blocks that take turns."""
    for call in calls.values():
        timed(call, block)
    seen = {name: [] for name in calls}
    for _ in range(blocks):
        for name, call in calls.items():
            seen[name].append(timed(call, block))
    return {name: tuple(median(column) for column in zip(*found, strict=True)) for name, found in seen.items()}


def beside_the_disk(folder):
    calls = {
        "write a page in place, fdatasync": overwriter(folder),
        "append a page, fsync": appender(folder),
        "SQLite, one bare INSERT": bare_inserter(folder),
        "a spend": spender(opened(folder / "spends.sqlite")),
    }
    found = taking_turns(calls)
    ours = found["a spend"][0]
    rows = [
        (name, f"{1 / wall:,.0f}", f"{wall * 1e6:.0f}", f"{cpu * 1e6:.0f}", f"{wall / ours:.2f}")
        for name, (wall, cpu) in found.items()
    ]
    head = ("what", "per second", "µs", "CPU µs", "the spend's rate as a part of it")
    return table(f"One thread, SQLite: medians of {BLOCKS} blocks of {BLOCK}, taking turns", head, rows), found


def flat(folder, spends):
    """Seconds of a spend as the ledger grows, beside a young ledger in the same minute."""
    old, young, rows, done = opened(folder / "old.sqlite"), spender(opened(folder / "young.sqlite")), [], 0
    grow = spender(old)
    for milestone in (10, 100, 1_000, 10_000, 30_000, spends):
        fill(old, milestone - done)
        done = milestone + BLOCK * 7
        found = taking_turns({"old": grow, "young": young}, BLOCK // 2, 13)
        rows.append((milestone, found["old"][0], found["young"][0]))
    old.close()
    shown = [(f"{n:,}", f"{a * 1e6:.0f}", f"{b * 1e6:.0f}", f"{a / b:.2f}") for n, a, b in rows]
    head = ("spends before", "µs of a spend", "µs in a young ledger, same minute", "ratio")
    return table("Flat: what a spend costs as the ledger grows", head, shown)


def fill(ledger, spends):
    with ThreadPoolExecutor(32) as threads:
        list(threads.map(lambda _: spender(ledger)(), range(max(0, spends))))


def threads(folder):
    rows = []
    for count in (1, 4, 16, 64):
        ledger = opened(folder / f"threads{count}.sqlite")
        spends = 200 * count if count < 16 else 6_400
        with ThreadPoolExecutor(count) as pool:
            list(pool.map(lambda _, ledger=ledger: spender(ledger)(), range(count * 10)))
            wall, cpu = perf_counter(), process_time()
            list(pool.map(lambda _, ledger=ledger: spender(ledger)(), range(spends)))
            wall, cpu = perf_counter() - wall, process_time() - cpu
        rows.append((count, f"{spends / wall:,.0f}", f"{cpu / spends * 1e6:.0f}"))
        ledger.close()
    return table("Many threads: one synchronisation serves all that wait", ("threads", "per second", "CPU µs"), rows)


def in_postgres():
    """Spends in the real server of the tests, beside one bare INSERT of the same size in it."""
    import sys

    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
    import psycopg

    from support.engines import postgres_address

    address = postgres_address()
    connection = psycopg.connect(address, autocommit=True)
    connection.execute("CREATE TABLE bare (sequence BIGSERIAL PRIMARY KEY, body TEXT)")
    bare = lambda: connection.execute("INSERT INTO bare (body) VALUES (%s)", ("x" * 420,))  # noqa: E731
    found = taking_turns({"one bare INSERT": bare, "a spend": spender(opened(address))}, 100, 15)
    rows = [(name, f"{1 / wall:,.0f}", f"{wall * 1e6:.0f}", f"{cpu * 1e6:.0f}") for name, (wall, cpu) in found.items()]
    return table("One thread, Postgres on this machine", ("what", "per second", "µs", "CPU µs of ours"), rows)


def opendp_spend():
    """OpenDP's filter: a Laplace count under a cap, chosen adaptively. The release itself is part of it there."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    odometer = dp.c.make_fully_adaptive_composition(*space, dp.max_divergence())
    filtered = dp.c.make_privacy_filter(odometer, d_in=1, d_out=1.0)([1] * 10)
    count = dp.t.make_count(*space) >> dp.m.then_laplace(scale=1e6)
    return lambda: filtered(count)


def diffprivlib_spend():
    from diffprivlib import BudgetAccountant

    accountant = BudgetAccountant(epsilon=1, delta=1e-9)
    return lambda: accountant.spend(1e-6, 0)


def peers(folder):
    """Seconds of one spend after n of them, in blocks that take turns."""
    pure = Ledger(folder / "pure.sqlite")
    pure.cap(Budget(epsilon=1), table="people")
    event = Laplace(10**6, 1)
    calls = {
        "Discreet, on the disk": lambda: pure.spend(event, WHY, table="people", analyst="ana"),
        "OpenDP 0.16 filter, in memory": opendp_spend(),
        "diffprivlib 0.6 accountant, in memory": diffprivlib_spend(),
    }
    curves = {name: [] for name in calls}
    for _ in range(PEER_SPENDS // PEER_BLOCK):
        for name, call in calls.items():
            curves[name].append(timed(call, PEER_BLOCK)[0])
    rows = [
        (name, *(f"{curve[k] * 1e6:,.0f}" for k in (0, 3, 7, -1)), f"{sum(curve) * PEER_BLOCK:.1f}")
        for name, curve in curves.items()
    ]
    head = ("µs of a spend", "first 250", "to 1,000", "to 2,000", "to 4,000", "4,000 together, s")
    return table("Beside the peers: 4,000 spends", head, rows), curves


def verification(folder):
    path = folder / "large.sqlite"
    ledger = opened(path)
    fill(ledger, 100_000)
    ledger.close()
    rows = []
    for name, call in (
        ("`verify`", lambda: verify(str(path))),
        ("`verify` with prices", lambda: verify(str(path), prices=True)),
        ("opening, which verifies the chain and the caps", lambda: Ledger(path).close()),
    ):
        wall, cpu = timed(call, 1)
        rows.append((name, f"{wall:.2f}", f"{cpu:.2f}"))
    return table("100,003 entries", ("what", "seconds", "CPU s"), rows)


def figure(curves, disk, path):
    from matplotlib import pyplot

    shown, axes = pyplot.subplots(figsize=(7, 3.6))
    for name, curve in curves.items():
        axes.plot([PEER_BLOCK * (k + 1) for k in range(len(curve))], [1e6 * wall for wall in curve], label=name)
    axes.axhline(1e6 * disk["append a page, fsync"][0], color="grey", linestyle=":", label="one append + fsync")
    axes.set_yscale("log")
    axes.set_xlabel("spends so far")
    axes.set_ylabel("µs of the next spend")
    axes.legend(frameon=False, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    shown.tight_layout()
    shown.savefig(path, dpi=150)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spends", type=int, default=100_000)
    parser.add_argument("--folder", help="Where the ledgers lie while they are measured; a real disk.")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as held:
        folder = Path(held)
        disk, found = beside_the_disk(folder)
        print(disk, flush=True)
        parts = [disk]
        for part in (lambda: flat(folder, arguments.spends), lambda: threads(folder), in_postgres):
            parts.append(part())
            print(parts[-1], flush=True)
        compared, curves = peers(folder)
        parts += [compared, "![the next spend](ledger.png)\n", verification(folder)]
        print(compared, parts[-1])
    results = Path(__file__).parent / "results"
    figure(curves, found, results / "ledger.png")
    said = describe("sqlalchemy", "opendp", "diffprivlib", "psycopg")
    (results / "ledger.md").write_text("\n".join(["# The ledger", "", said, "", *parts]))


if __name__ == "__main__":
    main()

"""A program to be recorded: threads and child processes change files in every way that the recorder knows.

busy.py FOLDER SEED
"""

import os
import sys
from pathlib import Path
from random import Random
from threading import Thread

STEPS = 150
NAMES = "abcdef"


def write(path: Path, rng: Random) -> None:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | rng.choice((0, 0, os.O_APPEND, os.O_TRUNC)))
    twin = os.dup(fd)
    os.lseek(fd, rng.randrange(2000), os.SEEK_SET)
    os.write(twin, rng.randbytes(rng.randrange(1, 1500)))
    os.pwrite(fd, rng.randbytes(rng.randrange(1, 1500)), rng.randrange(4000))
    rng.choice((os.fsync, os.fdatasync))(twin)
    os.close(twin)
    os.close(fd)


def resize(path: Path, rng: Random) -> None:
    with path.open("ab") as file:
        os.ftruncate(file.fileno(), rng.randrange(5000))
        os.posix_fallocate(file.fileno(), rng.randrange(3000), rng.randrange(1, 3000))
    os.truncate(path, rng.randrange(5000))


def write_after_removal(path: Path, rng: Random) -> None:
    with path.open("ab") as file:
        path.unlink()
        file.write(rng.randbytes(100))


def rename(path: Path, rng: Random) -> None:
    path.touch()
    path.rename(path.with_name(path.name[:-1] + rng.choice(NAMES)))


def rename_within(path: Path, rng: Random) -> None:
    folder = os.open(path.parent, os.O_RDONLY)
    path.touch()
    os.rename(path.name, path.name[:-1] + rng.choice(NAMES), src_dir_fd=folder, dst_dir_fd=folder)
    os.fsync(folder)
    os.close(folder)


def make_under_another_name(path: Path, rng: Random) -> None:
    path.unlink(missing_ok=True)
    draft = path.with_name(f"{path.name}-draft")
    draft.write_bytes(rng.randbytes(100))
    os.link(draft, path)
    draft.unlink()


WAYS = (write, write, resize, write_after_removal, rename, rename_within, make_under_another_name)


def work(folder: Path, worker: str) -> None:
    # Everybody has files of their own, that the steps may count on them; one file is of all.
    rng = Random(worker)
    for _ in range(STEPS):
        rng.choice(WAYS)(folder / (worker + rng.choice(NAMES)), rng)
        with (folder / "shared").open("ab", buffering=0) as shared:
            shared.write(worker.encode() + b"\n")


def work_in_threads(folder: Path, worker: str) -> None:
    threads = [Thread(target=work, args=(folder, f"{worker}-thread-{number}-")) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main(folder: str, seed: str) -> None:
    child = os.fork()
    work_in_threads(Path(folder), f"{seed}-{'parent' if child else 'child'}")
    if child == 0:
        os._exit(0)
    _, status = os.waitpid(child, 0)
    os._exit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main(*sys.argv[1:])

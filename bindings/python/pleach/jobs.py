"""What half of all jobs are: a list of items, and a state that is kept in a file."""

from __future__ import annotations

import os
import pickle
import tempfile
from typing import Any, Callable, List, Tuple

import numpy as np

from .comm import Comm, World


def _pack(value: Any) -> np.ndarray:
    return np.frombuffer(pickle.dumps(value), np.uint8)


def _unpack(a: np.ndarray) -> Any:
    return pickle.loads(a.data)


def share(world: World, root: int, value: Any, joined: List[int]) -> Any:
    """Return the root's value to all, after an :meth:`World.admit` that has taken in the ranks joined.

    Any value that can be pickled will do. Processes that were there before have the same value."""
    new = world.rank in joined

    def restore(task: int) -> np.ndarray:
        if new:
            raise RuntimeError("this process has no state yet")
        return packed

    packed = _pack(value)
    got = world.broadcast(packed if world.rank == root else np.uint8, root, restore=restore)
    return _unpack(got) if new else value


def queue(world: World, n: int, work: Callable[[int], Any], batch: int = 1) -> List[Any]:
    """Call work(item) for each of n items, on any process, and return all results to all, by item.

    When a process dies, others do its items; one that replaces it (pleach run --respawn) calls queue first of all, and
    gets new ones. work may run more than once for an item, and returns the same each time: something that can be pickled.
    All processes meet after batch items of each, which takes some 100 µs on one host: choose it so that a round takes
    some milliseconds.
    """
    results: List[Any] = []
    while len(results) < n:
        joined, root = world.admit()
        if joined:
            results = share(world, root, results, joined)
        first = len(results)

        def of(task: int, first: int = first) -> np.ndarray:
            begin = first + task * batch
            return _pack([work(item) for item in range(begin, min(n, begin + batch))])

        for part in world.allgather(of(world.rank), restore=of):
            results = results + _unpack(part)
    return results


def save(comm: Comm, name: str, state: Any) -> None:
    """Write the state, which all processes have alike, to a file. One process writes, and another one if that dies. The
    file has the old state or the new one at all times. The state can be pickled."""

    def write() -> None:
        folder = os.path.dirname(os.path.abspath(name))
        fd, temporary = tempfile.mkstemp(prefix=os.path.basename(name) + ".", dir=folder)
        try:
            with open(fd, "wb") as f:
                pickle.dump(state, f)
                f.flush()
                os.fsync(f.fileno())
            os.replace(temporary, name)
        except BaseException:
            os.unlink(temporary)
            raise
        directory = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    comm.once(write)


def load(comm: Comm, name: str, default: Any = None) -> Any:
    """Return the state that save has written, as the process of task 0 has read it, or default if there is none. It is
    called before the first save. Load only files that this job has written: the state is pickled."""
    try:
        with open(name, "rb") as f:
            content = np.frombuffer(f.read(), np.uint8)  # once, as a later save changes it
    except FileNotFoundError:
        content = np.empty(0, np.uint8)
    got = comm.broadcast(content if comm.rank == 0 else np.uint8, 0, restore=lambda task: content)
    return _unpack(got) if got.size else default

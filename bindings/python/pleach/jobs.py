"""What half of all jobs are: a list of items, and a state that is kept in a file."""

from __future__ import annotations

import os
import pickle as pickles
import tempfile
from typing import Any, Callable, List

import numpy as np

from . import _codec, errors
from .comm import Comm, World

_SECRET = bool(os.environ.get("PLEACH_SECRET"))  # as the library has read it when it was loaded


def _pack(value: Any, pickle: bool) -> np.ndarray:
    return np.frombuffer(_dump(value, pickle), np.uint8)


def _dump(value: Any, pickle: bool) -> bytes:
    return pickles.dumps(value) if pickle else _codec.encode(value)


def may_pickle(comm: Comm, pickle: bool) -> None:
    """Refuse pickles where any process that reaches this one's port could send one: unpickling runs what it says."""
    if pickle and not _SECRET and comm.size > 1:
        raise errors.ArgumentError(
            "pickle=True needs a job with a secret: start it by pleach run, or set PLEACH_SECRET to 16 random bytes or more, "
            "the same in all processes"
        )


def share(world: World, root: int, value: Any, joined: List[int], *, pickle: bool = False) -> Any:
    """Return the root's value to all, after an :meth:`World.admit` that has taken in the ranks joined.

    The value consists of None, bool, int, float, complex, str, bytes, list, tuple, dict, set and numpy arrays. With pickle,
    any value that can be pickled will do; the job needs a secret then, as pleach run makes one. Processes that were there
    before have the same value."""
    may_pickle(world, pickle)
    new = world.rank in joined

    def restore(task: int) -> np.ndarray:
        if new:
            raise RuntimeError("this process has no state yet")
        return packed

    packed = _pack(value, pickle)
    got = world.broadcast(packed if world.rank == root else np.uint8, root, restore=restore)
    return _codec.decode(got.data, pickle) if new else value


def queue(world: World, n: int, work: Callable[[int], Any], batch: int = 1, *, pickle: bool = False) -> List[Any]:
    """Call work(item) for each of n items, on any process, and return all results to all, by item.

    When a process dies, others do its items; one that replaces it (pleach run --respawn) calls queue first of all, and
    gets new ones. work may run more than once for an item, and returns the same each time: a value as for :func:`share`.
    All processes meet after batch items of each, which takes some 100 µs on one host: choose it so that a round takes
    some milliseconds.
    """
    may_pickle(world, pickle)
    results: List[Any] = []
    while len(results) < n:
        joined, root = world.admit()
        if joined:
            results = share(world, root, results, joined, pickle=pickle)
        first = len(results)

        def of(task: int, first: int = first) -> np.ndarray:
            begin = first + task * batch
            return _pack([work(item) for item in range(begin, min(n, begin + batch))], pickle)

        for part in world.allgather(of(world.rank), restore=of):
            results = results + _codec.decode(part.data, pickle)
    return results


def save(comm: Comm, name: str, state: Any, *, pickle: bool = False) -> None:
    """Write the state, which all processes have alike, to a file. One process writes, and another one if that dies. The
    file has the old state or the new one at all times. The state is a value as for :func:`share`."""

    def write() -> None:
        folder = os.path.dirname(os.path.abspath(name))
        fd, temporary = tempfile.mkstemp(prefix=os.path.basename(name) + ".", dir=folder)
        try:
            with open(fd, "wb") as f:
                f.write(_dump(state, pickle))
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


def load(comm: Comm, name: str, default: Any = None, *, pickle: bool = False) -> Any:
    """Return the state that save has written, as the process of task 0 has read it, or default if there is none. It is
    called before the first save. With pickle, the file may hold a pickle, which can run any code: load only files that this
    job has written."""
    may_pickle(comm, pickle)
    try:
        with open(name, "rb") as f:
            content = np.frombuffer(f.read(), np.uint8)  # once, as a later save changes it
    except FileNotFoundError:
        content = np.empty(0, np.uint8)
    got = comm.broadcast(content if comm.rank == 0 else np.uint8, 0, restore=lambda task: content)
    return _codec.decode(got.data, pickle) if got.size else default

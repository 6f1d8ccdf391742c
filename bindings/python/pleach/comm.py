"""Communicators and their calls."""

from __future__ import annotations

import ctypes
import inspect
import itertools
import threading
from contextlib import contextmanager
from ctypes import byref, c_int32, c_uint64, c_void_p, cast
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, TypeVar, Union

import numpy as np

from . import _interrupt, errors
from . import _library as c
from ._library import lib
from ._memory import Memory, address, contiguous, type_of, view, with_type, without_type

OPERATORS = {"sum": c.SUM, "prod": c.PROD, "min": c.MIN, "max": c.MAX, "and": c.AND, "or": c.OR}
Operator = Union[str, Callable[[np.ndarray, np.ndarray], Any]]
F = TypeVar("F", bound=Callable[..., Any])


class Pending:
    """A call: the structure for the library, the program's callbacks, and what keeps their memory."""

    # A call sets only what it has: short calls take as long as the statements here.
    dtype: Any = None
    input: Any = None  # kept until the call has returned
    out: Any = None
    finish: Optional[Callable[[Pending], Any]] = None  # makes the result
    parted = False  # the input has a part for each task, or for some
    restore: Any = None
    takeover: Any = None
    once: Any = None
    combine: Any = None
    error: Optional[BaseException] = None  # raised by a callback
    key = 0  # of a call that has callbacks
    encode: Any = None  # makes an array of bytes of a part, and decode the reverse
    decode: Any = None

    def __init__(self, kind: int, dtype: Optional[np.dtype] = None, options: Optional[Dict[str, Any]] = None) -> None:
        self.c = call = c.Call()
        call.kind = kind
        if dtype is not None:
            self.dtype, call.type = dtype, type_of(dtype)
        if options:
            self._set(**options)

    def _set(
        self,
        restore: Optional[Callable[[int], Any]] = None,
        takeover: Optional[Callable[[int, Any], None]] = None,
        report: bool = False,
        corrected: Optional[int] = None,
        timeout: Optional[float] = None,
    ) -> None:
        if restore is not None:
            self.restore, self.c.restore = restore, RESTORE
        if takeover is not None:
            self.takeover, self.c.takeover = takeover, TAKEOVER
        if report:
            self.c.mode = c.REPORT
        if corrected is not None:
            self.c.mode, self.c.dead = c.CORRECTED, corrected
        if timeout is not None:
            self.c.timeout_ms = max(1, int(timeout * 1000))

    def operator(self, op: Operator) -> None:
        if callable(op):
            self.combine, self.c.combine, self.c.op = op, COMBINE, c.USER
        elif op in OPERATORS:
            self.c.op = OPERATORS[op]
        else:
            raise ValueError(f"operator {op!r}: choose one of {', '.join(OPERATORS)}, or a function of two arrays")

    def elements(self, a: np.ndarray) -> None:
        self.input, call = a, self.c
        call.in_, call.count = address(a), a.size

    def parts(self, parts: Sequence[Tuple[int, np.ndarray]]) -> None:
        array = (c.Part * len(parts))(*[c.Part(task, address(a), a.size) for task, a in parts])
        self.input, self.parted = (parts, array), True
        self.c.parts, self.c.parts_count = ctypes.addressof(array), len(parts)

    def into(self, out: np.ndarray) -> None:
        if out.dtype != self.dtype or not out.flags.carray or isinstance(out, np.ma.MaskedArray):
            raise ValueError(f"out has to be a contiguous array of {self.dtype} that can be written, without a mask")
        self.out, call = out, self.c
        call.out, call.out_count = address(out), out.size

    def register(self) -> None:
        """Let callbacks find this call."""
        if self.restore or self.takeover or self.once or self.combine:
            self.key = self.c.user = next(_keys)
            _calls[self.key] = self

    def result(self) -> Any:
        """Return what the call returns, or raise its error."""
        if self.c.error.code != c.OK:
            e = self.c.error
            ranks = list(e.ranks[: min(e.ranks_count, c.RANKS)])
            raise errors.of(e.code, e.text.decode(errors="replace"), ranks) from self.error
        if self.error is not None:
            raise self.error
        self.input = None
        return self.finish(self) if self.finish is not None else None

    def result_parts(self) -> List[Tuple[int, np.ndarray]]:
        """Return the result, which lies in memory of the library, by task."""
        memory = Memory(self.c)
        parts = self.c.result[: self.c.result_parts]
        return [(part.task, memory.array(part, self.dtype)) for part in parts]


_keys = itertools.count(1)
_calls: Dict[int, Pending] = {}  # those whose callbacks may be called


def _guarded(call: Pending, f: Callable[[], None]) -> int:
    """Run a callback of the program. What it raises is kept for the thread that made the call, and its text goes to all
    processes."""
    try:
        f()
        return 0
    except BaseException as e:  # noqa: B036: ctypes would print and forget it
        call.error = e
        lib.pleach_reason(f"{type(e).__name__}: {e}".encode())
        return 1


def _restore(user: int, task: int, into: int) -> int:
    call = _calls[user]

    def put() -> None:
        given = call.restore(task)
        if not call.parted:
            parts: Any = [(0, given)]
        else:
            parts = given.items() if isinstance(given, dict) else enumerate(given)
        for to, part in parts:
            a = call.encode(contiguous(part)) if call.encode else contiguous(part, call.dtype)
            lib.pleach_put(into, to, address(a), a.size)

    return _guarded(call, put)


def _takeover(user: int, task: int, parts: Any, count: int) -> None:
    call = _calls[user]
    arrays = {p.task: view(p.data, p.count, call.dtype).copy() if p.count else np.empty(0, call.dtype) for p in parts[:count]}
    if call.c.kind == c.EXCHANGE:
        result: Any = arrays
    elif call.c.kind in (c.GATHER, c.ALLGATHER, c.ALLTOALL):
        result = list(arrays.values())
    else:
        result = call.decode(arrays[0]) if call.decode else arrays.get(0)
    _guarded(call, lambda: call.takeover(task, result))


def _once(user: int) -> int:
    call = _calls[user]
    return _guarded(call, call.once)


def _combine(user: int, into: int, left: int, right: int, count: int) -> int:
    call = _calls[user]

    def combine() -> None:
        combined = call.combine(view(left, count, call.dtype), view(right, count, call.dtype))
        np.copyto(view(into, count, call.dtype), combined, casting="same_kind")

    return _guarded(call, combine)


# One function for each callback: to make one for each call would take longer than the call.
_FUNCTIONS = [c.Restore(_restore), c.Takeover(_takeover), c.Once(_once), c.Combine(_combine)]
RESTORE, TAKEOVER, ONCE, COMBINE = [cast(f, c_void_p).value for f in _FUNCTIONS]


def _like(call: Pending, shape: Tuple[int, ...]) -> Callable[[np.ndarray], Any]:
    """Return a function that gives a result of one dimension the shape of the input: all but the first extent."""
    if shape == ():
        return lambda a: a[0]
    return lambda a: a if len(shape) == 1 else a.reshape((-1, *shape[1:]))


class Admission(NamedTuple):
    """What :meth:`World.admit` has done."""

    joined: List[int]
    """Ranks of the processes that were taken in. If empty, everything is as before."""
    root: int
    """The lowest rank that was in the job before: it has the state that the new ones need."""


class Request:
    """A call that is under way, see :meth:`Comm.start`."""

    def __init__(self, comm: Comm, call: Pending) -> None:
        self._comm, self._call = comm, call
        self._handle: Optional[c_void_p] = c_void_p()
        call.register()
        if lib.pleach_start(comm._handle, byref(call.c), byref(self._handle)) != c.OK:
            self._handle = None
            comm._returned(call)

    def wait(self, timeout: Optional[float] = None) -> Any:
        """Return the result. Raise a :class:`pleach.TimeoutError` if the call is not complete after timeout seconds;
        it goes on then. Ctrl-C interrupts the wait, not the call."""
        left = None if timeout is None else max(0.0, timeout)
        while self._handle is not None:
            slice_ms = 50 if left is None else min(50, int(left * 1000))
            if lib.pleach_wait(self._handle, slice_ms) != c.PENDING:
                self._handle = None
                self._comm._returned(self._call)
            elif left is not None:
                left -= slice_ms / 1000
                if left <= 0.0005:
                    raise errors.TimeoutError(f"the call is not complete after {timeout} s")
        return self._call.result()

    def done(self) -> bool:
        """Tell whether the call is complete."""
        try:
            self.wait(0)
        except errors.TimeoutError:
            return self._handle is None
        except errors.Error:
            pass
        return True

    def cancel(self) -> None:
        """End the call with a :class:`pleach.CanceledError`, which wait raises. The other processes get an error, too."""
        if self._handle is not None:
            lib.pleach_cancel(self._handle)

    def __del__(self) -> None:
        # The library writes to the call's memory until it is complete.
        if self._handle is not None:
            lib.pleach_cancel(self._handle)
            lib.pleach_wait(self._handle, -1)


def _has(*names: str) -> Callable[[F], F]:
    """Return a decorator that names a call's options in its signature, which help shows. They are those of Comm."""

    def name(f: F) -> F:
        signature = inspect.signature(f)
        own = [p for p in signature.parameters.values() if p.kind != inspect.Parameter.VAR_KEYWORD]
        options = [p for p in inspect.signature(Pending._set).parameters.values() if p.name in names]
        options = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in options]
        f.__signature__ = signature.replace(parameters=own + options)  # type: ignore[attr-defined]
        return f

    return name


_INPUT = ("restore", "takeover", "report", "timeout")


class _Starting(threading.local):
    on = False


class Comm:
    """A communicator: tasks and processes that make calls together, each the same calls in the same order.

    Arrays are of numpy, of any shape; what is no array is made one. They are not copied, unless their elements do not
    lie one after another. Most calls have these options:

    Args:
        restore: a function that returns the input of a task whose process has died: exactly what that process has
            passed, or would have passed, to this very call. It is called by another thread, possibly after the call
            has returned, so it must not read what the program changes between calls. Without it, a call that needs
            such an input raises a :class:`pleach.RestoreError`.
        takeover: a function that gets (task, result) of a task whose process has died before it completed the call.
        report: raise a :class:`pleach.FailedError` when a process has failed, instead of taking its task over.
        corrected: for reduce and allreduce: go on without the inputs of up to so many dead processes.
        timeout: seconds until the call raises a :class:`pleach.TimeoutError` that names the ranks that have not come.
    """

    def __init__(self, handle: c_void_p, world: Optional[World]) -> None:
        self._handle = handle
        self._world: World = world if world is not None else self  # type: ignore[assignment]
        self._live: List[Tuple[int, int]] = []  # number and key of calls whose callbacks may be called
        self._lock = threading.Lock()
        self._starting = _Starting()  # this thread is in start
        self.rank: int = lib.pleach_rank(handle)
        """This process's rank, from 0."""
        self.size: int = lib.pleach_size(handle)
        """The number of tasks. It does not change when processes die."""

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            lib.pleach_free(self._handle)

    def __repr__(self) -> str:
        return f"<pleach.{type(self).__name__}: rank {self.rank} of {self.size}>"

    # How calls are made.

    def _make(self, call: Pending) -> Any:
        if self._starting.on:
            return call
        call.register()
        token = _interrupt.enter(self._world)
        try:
            lib.pleach_do(self._handle, byref(call.c))
        finally:
            _interrupt.leave(token)
        if call.key or self._live:
            self._returned(call)
        return call.result()

    def _returned(self, call: Pending) -> None:
        """Forget the callbacks that are not called any more."""
        with self._lock:
            if call.key:
                self._live.append((call.c.number, call.key))
            for number, key in self._live:
                if number <= call.c.retired:
                    _calls.pop(key, None)
            self._live = [(number, key) for number, key in self._live if number > call.c.retired]

    def start(self, name: str, *args: Any, **kwargs: Any) -> Request:
        """Begin a call and return at once: ``request = world.start("allreduce", x); …; total = request.wait()``.

        All processes start their calls in the same order; they then run beside each other.
        """
        self._starting.on = True
        try:
            call = getattr(self, name)(*args, **kwargs)
        finally:
            self._starting.on = False
        return Request(self, call)

    def _combined(self, kind: int, x: Any, op: Operator, out: Optional[np.ndarray], options: Any, root: int = 0) -> Any:
        a = contiguous(x)
        call = Pending(kind, a.dtype, options)
        call.operator(op)
        call.elements(a)
        call.c.root = root
        call.into(np.empty_like(a) if out is None else out)
        call.finish = _combined_result
        return self._make(call)

    def _collected(self, kind: int, x: Any, options: Any, root: int = 0) -> Any:
        a = contiguous(x)
        call = Pending(kind, a.dtype, options)
        call.elements(a)
        call.c.root = root
        shaped = _like(call, a.shape)
        call.finish = lambda call: [shaped(part) for _, part in call.result_parts()] if call.c.present else None
        return self._make(call)

    def _parted(self, kind: int, parts: Dict[int, Any], dtype: Any, options: Any) -> Pending:
        arrays = {task: contiguous(part, dtype) for task, part in parts.items()}
        if dtype is None:
            types = {a.dtype for a in arrays.values() if a.size}
            if len(types) > 1:
                raise TypeError(f"parts of different types, {sorted(map(str, types))}: give all parts one type")
            dtype = types.pop() if types else next((a.dtype for a in arrays.values()), np.dtype(float))
        call = Pending(kind, np.dtype(dtype), options)
        call.parts([(task, a if a.size else np.empty(0, dtype)) for task, a in arrays.items()])
        call.parted = True
        return call

    # Calls.

    @_has("report", "timeout")
    def barrier(self, **options: Any) -> None:
        """Return when all processes have called it."""
        return self._make(Pending(c.BARRIER, None, options))

    @_has(*_INPUT)
    def broadcast(self, x: Any, root: int = 0, **options: Any) -> np.ndarray:
        """Return the root's array to all. The others pass an array of the same type and size, which is not changed,
        or the type alone, such as ``np.float64`` or ``"f4"``: then the result has one dimension."""
        if isinstance(x, (type, str, np.dtype)):
            call = Pending(c.BROADCAST, np.dtype(x), options)
            call.finish = lambda call: call.result_parts()[0][1]
        else:
            a = contiguous(x)
            call = Pending(c.BROADCAST, a.dtype, options)
            call.elements(a)
            if self.rank == root:
                call.finish = lambda call: (call.result_parts(), a)[1]
            else:
                call.into(np.empty_like(a))
                call.finish = _combined_result
        call.c.root = root
        return self._make(call)

    @_has(*_INPUT, "corrected")
    def reduce(self, x: Any, root: int = 0, op: Operator = "sum", *, out: Optional[np.ndarray] = None, **options: Any) -> Any:
        """Combine all tasks' arrays, in the order of tasks. The owner of the root's task gets the result, others None.

        op is "sum", "prod", "min", "max", "and", "or", or a function of two arrays that is associative."""
        return self._combined(c.REDUCE, x, op, out, options, root)

    @_has(*_INPUT, "corrected")
    def allreduce(self, x: Any, op: Operator = "sum", *, out: Optional[np.ndarray] = None, **options: Any) -> Any:
        """Combine all tasks' arrays, in the order of tasks, and return the result to all."""
        return self._combined(c.ALLREDUCE, x, op, out, options)

    @_has(*_INPUT)
    def scan(self, x: Any, op: Operator = "sum", *, out: Optional[np.ndarray] = None, **options: Any) -> Any:
        """Return the combination of this task's array with those of all lower tasks."""
        return self._combined(c.SCAN, x, op, out, options)

    @_has(*_INPUT)
    def exscan(self, x: Any, op: Operator = "sum", *, out: Optional[np.ndarray] = None, **options: Any) -> Any:
        """Return the combination of the arrays of all lower tasks, and None to task 0."""
        return self._combined(c.EXSCAN, x, op, out, options)

    @_has(*_INPUT)
    def gather(self, x: Any, root: int = 0, **options: Any) -> Optional[List[np.ndarray]]:
        """Return all tasks' arrays to the owner of the root's task, and None to others. Their lengths may differ."""
        return self._collected(c.GATHER, x, options, root)

    @_has(*_INPUT)
    def allgather(self, x: Any, **options: Any) -> List[np.ndarray]:
        """Return all tasks' arrays to all. Their lengths may differ."""
        return self._collected(c.ALLGATHER, x, options)

    @_has(*_INPUT)
    def scatter(self, parts: Optional[Sequence[Any]], root: int = 0, dtype: Any = None, **options: Any) -> np.ndarray:
        """Return part i of the root's to task i, as an array of one dimension of the same type. A dtype that all processes
        give saves a copy."""
        if dtype is not None:
            call = self._parted(c.SCATTER, dict(enumerate(parts or [])), np.dtype(dtype), options)
            call.decode = lambda a: a
        else:
            encoded = {task: with_type(contiguous(part)) for task, part in enumerate(parts or [])}
            call = self._parted(c.SCATTER, encoded, np.dtype("u1"), options)
            call.encode, call.decode = with_type, without_type
        call.c.root = root
        call.finish = lambda call: call.decode(call.result_parts()[0][1])
        return self._make(call)

    @_has(*_INPUT)
    def reduce_scatter(self, parts: Sequence[Any], op: Operator = "sum", **options: Any) -> np.ndarray:
        """Combine part i of all tasks, and return it to task i."""
        call = self._parted(c.REDUCE_SCATTER, dict(enumerate(parts)), None, options)
        call.operator(op)
        call.finish = lambda call: call.result_parts()[0][1]
        return self._make(call)

    @_has(*_INPUT)
    def alltoall(self, parts: Sequence[Any], **options: Any) -> List[np.ndarray]:
        """Send part i to task i, and return those that all tasks have sent here."""
        call = self._parted(c.ALLTOALL, dict(enumerate(parts)), None, options)
        call.finish = lambda call: [part for _, part in call.result_parts()]
        return self._make(call)

    @_has(*_INPUT)
    def exchange(self, parts: Dict[int, Any], *, mutual: bool = False, dtype: Any = None, **options: Any) -> Dict[int, np.ndarray]:
        """Send arrays to some tasks, and return those that others have sent here, by task: the exchange of halos.

        With mutual, each task is sent something by exactly those that it sends something; that saves messages.
        dtype is that of the elements; if None, that of the parts, or float64 if there is none."""
        call = self._parted(c.EXCHANGE, parts, dtype, options)
        call.c.mutual = mutual
        call.finish = lambda call: dict(call.result_parts())
        return self._make(call)

    @_has("report", "timeout")
    def once(self, f: Callable[[], Any], **options: Any) -> None:
        """Run f on one process, and again on another one if that dies before all others know. f uses what every process
        has, and may run twice: it writes files under another name and renames them."""
        call = Pending(c.ONCE, None, options)
        call.once, call.c.once = f, ONCE
        return self._make(call)

    @_has("report", "timeout")
    def agree(self, value: int, **options: Any) -> int:
        """Return the bits that are set in every process's value: the same to all survivors."""
        call = Pending(c.AGREE, None, options)
        call.c.value = value
        call.finish = lambda call: call.c.value
        return self._make(call)

    def split(self, color: Union[Callable[[int], int], Sequence[int]]) -> Comm:
        """Return a communicator of the tasks that have this one's color. color is a function of the task, or a list
        with that of each task; all processes give the same."""
        colors = [color(task) for task in range(self.size)] if callable(color) else color
        call = Pending(c.SPLIT)
        call.elements(np.ascontiguousarray(colors, "i4"))
        call.finish = self._derived
        return self._make(call)

    def shrink(self) -> Comm:
        """Return a communicator of the survivors, agreed on by all of them."""
        call = Pending(c.SHRINK)
        call.finish = self._derived
        return self._make(call)

    def _derived(self, call: Pending) -> Comm:
        return Comm(c_void_p(call.c.comm), self._world)

    def revoke(self) -> None:
        """End all calls of this communicator on all processes with a :class:`pleach.RevokedError`, but agree and shrink."""
        lib.pleach_revoke(self._handle)

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Keep what this process receives in the calls within: ``with world.hold(): …``. If it dies, takeover gets it
        elsewhere. All processes hold and release at the same places."""
        lib.pleach_hold(self._handle)
        try:
            yield
        finally:
            lib.pleach_release(self._handle)

    # Questions.

    def owner(self, task: int) -> int:
        """Return the rank of the process that runs a task now."""
        return lib.pleach_owner(self._handle, task)

    def world_rank(self, rank: int) -> int:
        """Return the rank in the world of a rank in this communicator."""
        return lib.pleach_world_rank(self._handle, rank)

    def tasks(self) -> List[int]:
        """Return the tasks that this process owns now."""
        return self._list(lib.pleach_tasks)

    def failed(self) -> List[int]:
        """Return the ranks that have failed."""
        return self._list(lib.pleach_failed)

    def ack_failed(self) -> List[int]:
        """Acknowledge failures, for agree with report, and return their ranks."""
        return self._list(lib.pleach_ack_failed)

    def _list(self, f: Any) -> List[int]:
        numbers = (c_int32 * self.size)()
        return list(numbers[: f(self._handle, numbers, self.size)])

    def fencing_token(self, task: int) -> Tuple[int, bool]:
        """Return a number that guards what a task writes outside of the job, and whether this process owns the task."""
        token = c_uint64()
        owned = lib.pleach_fencing_token(self._handle, task, byref(token))
        return token.value, owned == 1


def _combined_result(call: Pending) -> Any:
    out = call.out
    if not call.c.present:
        return None
    if call.c.result_count != out.size:
        raise errors.ArgumentError(f"the result has {call.c.result_count} elements, and there is memory for {out.size}")
    return out if out.shape else out[()]


class World(Comm):
    """All processes of a job. Rank, size and addresses come from the launcher: pleach run, Slurm, Open MPI, PMI, torchrun
    or Kubernetes.

    As a context manager it ends the job: by finalize, or by abort after an exception::

        with pleach.World() as world:
            total = world.allreduce(mine, restore=input_of)

    Args:
        addresses: host:port of each process, by rank. If None, the launcher's.
        rank: that of this process in addresses.
        replacement: it takes the place of a process that has died.
        start_timeout: seconds until a process that has not started counts as dead. If None, 30.
        progress_timeout: seconds until a process that is stuck is removed. If None, the launcher's word, or never.
        poll_time: seconds that a call looks for messages before it sleeps. If None, up to 1 ms; if negative, none.
    """

    def __init__(
        self,
        *,
        addresses: Optional[Sequence[str]] = None,
        rank: int = 0,
        replacement: bool = False,
        start_timeout: Optional[float] = None,
        progress_timeout: Optional[float] = None,
        poll_time: Optional[float] = None,
    ) -> None:
        config = c.Config(
            addresses=",".join(addresses).encode() if addresses else None,
            rank=rank,
            replacement=replacement,
            start_timeout_ms=int((start_timeout or 0) * 1000),
            progress_timeout_ms=int((progress_timeout or 0) * 1000),
            poll_us=int((poll_time or 0) * 1e6),
        )
        handle, error = c_void_p(), c.Error()
        if lib.pleach_world(byref(config), byref(handle), byref(error)) != c.OK:
            raise errors.of(error.code, error.text.decode(errors="replace"), [])
        super().__init__(handle, None)
        self.replacement: bool = lib.pleach_replacement(handle) != 0
        """This process has taken the place of one that has died: it makes no call before admit."""
        _interrupt.watch(self)

    def __enter__(self) -> World:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is None:
            self.finalize()
        else:
            self.abort()

    def admit(self) -> Admission:
        """Take in processes that replace dead ones (pleach run --respawn). It is called where the state can be handed
        on, such as at the top of a loop; a replacement calls it first of all, and waits there. Raises a
        :class:`pleach.JobEnded` in a replacement whose job has ended."""
        call = Pending(c.ADMIT, np.dtype("i4"))
        call.finish = lambda call: Admission([int(rank) for _, a in call.result_parts() for rank in a], call.c.value)
        return self._make(call)

    def evict(self, rank: int) -> None:
        """Remove a process that is stuck. Its tasks are taken over."""
        call = Pending(c.EVICT)
        call.c.root = rank
        return self._make(call)

    def finalize(self) -> None:
        """End the job: wait until all processes have called it, and take over the tasks of those that die meanwhile."""
        return self._make(Pending(c.FINALIZE))

    def close(self) -> None:
        """Leave the job: the others take over this process's tasks."""
        lib.pleach_close(self._handle)

    def abort(self) -> None:
        """Stop at once, as a crash does."""
        lib.pleach_abort(self._handle)

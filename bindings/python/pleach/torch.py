"""torch.distributed over Pleach: DistributedDataParallel continues when processes die::

    group = pleach.torch.init()
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    step, model = 0, None
    while step < STEPS:
        if group.admit() or model is None:             # processes that replace dead ones come in here
            step = group.share(net, optimizer, step)
            model = group.wrap(net)                    # a DistributedDataParallel
        loss = criterion(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
    group.finalize()

When a process dies, the survivors complete the call together: each of them returns the same result, or raises the same
exception. The part of a dead rank is absent, for tensors of all types: reductions combine the tensors of the survivors,
AVG divides by their number, all_gather leaves zeros in the dead rank's place, and broadcast from a dead rank raises a
:class:`pleach.FailedError`. Sums are never scaled. With ``init(raises=True)``, the first call that a rank is missing from
raises a FailedError with its rank on all survivors; later calls do without it. See ADR 83.

Tensors are those of the CPU; others are staged by the caller. Calls are made when they are asked for, and not beside the
computation. Tested with PyTorch 1.13 and 2.14.
"""

from __future__ import annotations

import inspect
import io
import os
from collections import deque
from contextlib import contextmanager
from typing import Any, Callable, Deque, Dict, Iterator, List, Optional, Set, TypeVar

import numpy as np
import torch
import torch.distributed as dist
from torch._C._distributed_c10d import ProcessGroup, Work
from torch.futures import Future
from torch.nn.parallel import DistributedDataParallel

from . import _codec, errors
from . import _library as c
from .comm import Comm, Pending, World
from .jobs import may_pickle

TYPES = {
    torch.uint8: c.U8, torch.bool: c.BOOL, torch.int8: c.I8, torch.int16: c.I16, torch.int32: c.I32, torch.int64: c.I64,
    torch.float16: c.F16, torch.bfloat16: c.BF16, torch.float32: c.F32, torch.float64: c.F64,
}  # fmt: skip

OPERATORS = {
    hash(op): code  # the number of the operator: to compare two ReduceOps takes microseconds
    for op, code in [
        (dist.ReduceOp.SUM, c.SUM), (dist.ReduceOp.PRODUCT, c.PROD), (dist.ReduceOp.MIN, c.MIN), (dist.ReduceOp.MAX, c.MAX),
        (dist.ReduceOp.BAND, c.AND), (dist.ReduceOp.BOR, c.OR),
    ]
}  # fmt: skip
AVERAGE = hash(dist.ReduceOp.AVG)  # type: ignore[attr-defined]  # stubs of 1.13 lack it

FAILED, MISMATCH = 6, 8  # the codes of a FailedError and a MismatchError
ENDED = (errors.FailedError, errors.RevokedError, errors.AbortError)  # a call that another process has ended

T = TypeVar("T")


class _Done(Work):
    """The work of a call that is complete."""

    def __init__(self, tensors: Any) -> None:
        super().__init__()
        self._tensors = tensors

    def wait(self, timeout: Any = None) -> bool:
        return True

    def is_completed(self) -> bool:
        return True

    def is_success(self) -> bool:
        return True

    def get_future(self) -> Any:
        return _done_future(self._tensors)


def _done_future(value: Any) -> Any:
    """Return a future that has a value."""
    future: Any = Future()
    future.set_result(value)
    return future


class _Store(dist.Store):
    """What torch wants to meet at. Processes meet in their calls instead, so that a replacement need not meet anybody."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = size
        # Called when a process comes to the barrier of new_group, with whether only the members of the group do.
        self.meet: Callable[[bool], None] = lambda local: None

    def add(self, key: str, n: int) -> int:
        if n > 0:
            prefix, _, name = key.rpartition("store_based_barrier_key:")
            self.meet(f"{name}//" in prefix)  # with use_local_synchronization, torch uses the store of the group
        return self._size  # all are there

    def set(self, key: str, value: Any) -> None:
        pass

    def wait(self, keys: Any, timeout: Any = None) -> None:
        pass


class Group(ProcessGroup):
    """A process group: that of a job, or one of dist.new_group. Ranks and the size are those of the start, whichever
    processes have died.

    Calls are committed in one of two ways. As long as there is one group, a call returns when this process has its
    result, and processes keep the result of their last call: when a process dies, those that lack a result get it from
    one that has it, and if none has, all make the call again. With several groups, a process may wait in a call of one
    for a process that recovers in another, so each call is committed by an agreement.
    """

    def __init__(self, world: World, comm: Optional[Comm], rank: int, places: Dict[int, int], size: int, raises: bool) -> None:
        super().__init__(rank, size)  # type: ignore[call-arg]
        self.world = world
        self._places = places  # by rank in the world: that in this group
        self._size, self._raises = size, raises
        self._joined: List[int] = []
        self._kept: Deque[Any] = deque(maxlen=64)  # torch keeps no reference to the latest works
        self._unreported: Set[int] = set()  # ranks that have died, of which the program is to learn by an exception
        self._eager = False  # calls are committed by agreements
        self._lenient = False  # the lowest survivor's tensor takes the place of a dead rank's: all have the same
        self._admitted = not world.replacement
        self._store: Any = None
        if comm is not None:  # a group of dist.new_group gets one when all processes have come
            self._use(comm)

    def _use(self, comm: Comm) -> None:
        """Make calls on a communicator from now on."""
        self.comm: Comm = comm
        """The survivors."""
        self._there = {self._places[comm.world_rank(i)]: i for i in range(comm.size)}
        self._done, self._took = 0, self._there
        self._last: Optional[torch.Tensor] = None  # the result of the latest call

    # What programs call.

    def alive(self) -> List[int]:
        """Return the ranks that have taken part in the last call, the same on all of them."""
        return sorted(self._took)

    def wrap(self, net: torch.nn.Module, **options: Any) -> DistributedDataParallel:
        """Return the network as a DistributedDataParallel that averages gradients over the survivors, and takes buffers
        from the lowest rank of them."""
        return _Replicas(self, net, options)

    def admit(self) -> List[int]:
        """Take in processes that replace dead ones (pleach run --respawn), and return their ranks. If there are any, all
        processes call share, wrap their networks anew and make new groups. A replacement waits here."""
        if self._admitted:
            self.settle()
        self._joined, _ = self.world.admit()
        self._admitted = True
        if self._joined:
            self._eager, self._unreported = False, set()
            self._use(self.world.shrink() if self.world.failed() else self.world)
        return self._joined

    def share(self, net: torch.nn.Module, optimizer: Optional[torch.optim.Optimizer], step: T, *, pickle: bool = False) -> T:
        """Give all processes the weights, the state of the optimizer and the step of one that has them. These consist of
        tensors and of what :func:`pleach.share` takes, unless pickle is set; the job needs a secret then."""
        may_pickle(self.world, pickle or not _WEIGHTS_ONLY)

        def root(comm: Comm) -> int:
            for rank in range(comm.size):
                if comm.world_rank(rank) not in self._joined:
                    return rank
            raise errors.Error("all processes that had the state have died")

        def send(comm: Comm) -> np.ndarray:
            if comm.rank != root(comm):
                return comm.broadcast(np.uint8, root(comm), report=True)
            state = (net.state_dict(), optimizer and optimizer.state_dict(), step)
            return comm.broadcast(np.frombuffer(_encode(state, pickle), np.uint8), root(comm), report=True)

        self.settle()
        weights, state, step = _decode(self._agreed(send).data, pickle)
        net.load_state_dict(weights)
        if optimizer is not None:
            optimizer.load_state_dict(state)
        return step

    def settle(self) -> None:
        """Return when all processes that are left have completed the same calls. Call it before calls of the world
        (group.world), which know nothing of those of this group."""
        while not self._eager and not self.comm.agree(1) & 1:
            self._recover(agreed=True)

    def finalize(self) -> None:
        """End the job."""
        self.settle()
        self.world.finalize()

    # How a call is committed.

    def _agreed(self, operate: Callable[[Comm], T]) -> T:
        """Make a call until all processes that are left have completed it, and return its result."""
        while True:
            complete = 1
            try:
                result = operate(self.comm)
            except ENDED:
                complete = 0
                self.comm.revoke()  # the others may wait in the call
            if self.comm.agree(complete) & 1:
                return result
            self._shrink()
            self._report()

    def _shrink(self) -> None:
        """Leave out the dead."""
        before, done, last, took = set(self._there), self._done, self._last, self._took
        self._use(self.comm.shrink())
        self._done, self._last, self._took = done, last, took
        self._unreported |= before - set(self._there)

    def _report(self) -> None:
        """Raise an exception if the program wants one for each death, and has not had one."""
        if not self._unreported:
            return
        dead, self._unreported = sorted(self._unreported), set()
        if self._raises:
            raise errors.of(FAILED, f"ranks {dead} have died: this call has no result; later calls do without them", dead)

    def _commit(self, operate: Callable[[Comm], None], out: Optional[torch.Tensor]) -> Dict[int, int]:
        """Make a call that writes the same to out on all processes, so that all that are left return it, or raise the
        same exception. Return the ranks that have taken part, and their places in the result."""
        if not hasattr(self, "comm"):
            raise errors.ArgumentError("this group has no communicator: all processes call dist.new_group, with TORCH_DIST_INIT_BARRIER=1")
        if self._eager:
            self._report()
            self._agreed(operate)
            self._took = self._there
            return self._took
        while True:
            self._report()
            there = self._there
            try:
                operate(self.comm)
            except ENDED:
                got = self._recover()
                if got is None:
                    continue
                if out is not None:
                    _bytes(out)[:] = got
            self._done, self._last, self._took = self._done + 1, out, there
            return there

    def _recover(self, agreed: bool = False) -> Optional[np.ndarray]:
        """Leave out the dead, and have all survivors complete the same calls. Return the bytes of the result that this
        process lacks, or None if it lacks none. All processes are in it, or in settle, until it succeeds."""
        while True:
            if not agreed:
                self.comm.revoke()  # the others may wait in a call
                self.comm.agree(0)  # with those in settle
            agreed = False
            self._shrink()
            try:
                done = [int(part[0]) for part in self.comm.allgather(np.array([self._done]), report=True)]
                if min(done) == max(done):
                    return None
                root = done.index(max(done))
                last: Any = np.uint8
                if self.comm.rank == root:
                    last = np.empty(0, "u1") if self._last is None else _bytes(self._last)
                got = self.comm.broadcast(last, root, report=True)
            except ENDED:
                continue
            if max(done) - self._done > 1:
                raise errors.Error(f"this process has made {self._done} calls, and another one {max(done)}")
            return got if max(done) > self._done else None

    def _call(
        self, kind: int, source: torch.Tensor, out: torch.Tensor, root: Optional[int] = None, op: int = 0, divide: bool = False
    ) -> Dict[int, int]:
        """Make a call over the memory of tensors, and return what _commit does. With divide, the input is divided by the
        number of survivors."""

        def operate(comm: Comm) -> None:
            tensor = source / comm.size if divide else source
            call = Pending(kind)
            call.input = (tensor, out)
            call.c.mode, call.c.type, call.c.op = c.REPORT, TYPES[tensor.dtype], op
            call.c.in_, call.c.count = tensor.data_ptr(), tensor.numel()
            call.c.out, call.c.out_count = out.data_ptr(), out.numel()
            if root is not None:
                if root not in self._there and not self._lenient:
                    raise _Missing(root)
                call.c.root = self._there.get(root, 0)
            if kind != c.ALLREDUCE:
                _meet(comm, tensor)
            comm._make(call)

        try:
            return self._commit(operate, out)
        except _Missing as e:
            raise errors.of(FAILED, f"broadcast from rank {e.rank}, which has died", [e.rank]) from None

    def _done_with(self, tensors: Any) -> Work:
        work = _Done(tensors)
        self._kept.append(work)
        return work

    def _reduce(self, t: torch.Tensor, op: int, average: bool = False) -> None:
        """Combine the survivors' tensors, in place."""
        _check(t)
        source, half = t.contiguous(), t.dtype in (torch.float16, torch.bfloat16)
        out = torch.empty_like(source)
        # The sum of halves may be too large for them.
        there = self._call(c.ALLREDUCE, source, out, op=op, divide=average and half)
        t.copy_(out / len(there) if average and not half else out)

    def _new_group(self, group: List[Group], rank: int) -> None:
        """All processes have come to dist.new_group. Those that are members have a group, which gets its communicator."""
        self.settle()

        def split(comm: Comm) -> Any:
            ranks = [int(part[0]) for part in comm.allgather(np.array([rank]), report=True)]
            return ranks, comm, comm.split([int(r >= 0) for r in ranks])

        ranks, comm, sub = self._agreed(split)
        self._eager = True
        if group:
            places = {comm.world_rank(i): r for i, r in enumerate(ranks) if r >= 0}
            group[0]._places, group[0]._eager = places, True
            group[0]._use(sub)

    # What torch calls.

    def getBackendName(self) -> str:
        return "pleach"

    def _set_group_name(self, name: str) -> None:
        self._name = name

    @property
    def group_name(self) -> str:
        return self._name  # torch gives a name to its own backends only

    def allreduce(self, tensors: Any, opts: Any = None) -> Work:
        op = opts.reduceOp if opts is not None else dist.ReduceOp.SUM
        code, average = OPERATORS.get(hash(op)), hash(op) == AVERAGE
        for t in _list(tensors):
            if average and t.is_floating_point():
                self._reduce(t, c.SUM, average)
            elif code is not None:
                self._reduce(t, code)
            else:
                raise TypeError(f"{op} of {t.dtype}: use SUM, PRODUCT, MIN, MAX, BAND or BOR, or AVG of floating-point numbers")
        return self._done_with(tensors)

    def broadcast(self, tensors: Any, opts: Any = None) -> Work:
        for t in _list(tensors):
            _check(t)
            source = t.contiguous()
            out = torch.empty_like(source)
            self._call(c.BROADCAST, source, out, opts.rootRank if opts is not None else 0)
            t.copy_(out)
        return self._done_with(tensors)

    def allgather(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        for parts, t in zip(outputs, inputs):
            _check(t)
            if len(parts) != self._size or any(part.shape != t.shape or part.dtype != t.dtype for part in parts):
                raise ValueError(f"all_gather of {t.dtype} {list(t.shape)} needs a list of {self._size} tensors of this type and shape")
            source = t.contiguous()
            out = torch.zeros((self._size, *t.shape), dtype=t.dtype)
            there = self._call(c.ALLGATHER, source, out)
            for rank, part in enumerate(parts):
                if rank in there or self._lenient:
                    part.copy_(out[there.get(rank, 0)])
                else:
                    part.zero_()
        return self._done_with(outputs)

    def barrier(self, opts: Any = None) -> Work:
        self._commit(lambda comm: comm.barrier(report=True), None)
        return self._done_with([])


class _Missing(Exception):
    """A call needs a rank that has died."""

    def __init__(self, rank: int) -> None:
        super().__init__()
        self.rank = rank


class _Replicas(DistributedDataParallel):
    """DistributedDataParallel divides by the size of the start, and takes buffers from rank 0, which may be dead."""

    def __init__(self, group: Group, net: torch.nn.Module, options: Dict[str, Any]) -> None:
        with _leniently(group):
            super().__init__(net, process_group=group, **options)
        self._of = group
        self.register_comm_hook(group, _average)  # type: ignore[operator]  # its stubs lack the method

    def forward(self, *inputs: Any, **options: Any) -> Any:
        with _leniently(self._of):
            return super().forward(*inputs, **options)


@contextmanager
def _leniently(group: Group) -> Iterator[None]:
    """Have the tensors of the lowest survivor take the place of a dead rank's, with which DistributedDataParallel
    compares the network."""
    before, group._lenient = group._lenient, True
    try:
        yield
    finally:
        group._lenient = before


def _average(group: Group, bucket: dist.GradBucket) -> Any:
    """Average gradients over the survivors."""
    gradients = bucket.buffer()
    group._reduce(gradients, c.SUM, average=True)
    return _done_future(gradients)


_average.__annotations__ = {"bucket": dist.GradBucket}  # torch looks at it, and knows no strings


def _check(t: torch.Tensor) -> None:
    if t.device.type != "cpu" or t.dtype not in TYPES:
        raise TypeError(f"a tensor of {t.dtype} on {t.device}: copy it to the CPU, as one of {list(TYPES)}")


def _meet(comm: Comm, t: torch.Tensor) -> None:
    """Wait until all processes have begun the call, so that none runs ahead, and check that their tensors are alike."""
    mine = np.array([t.numel(), TYPES[t.dtype]])
    both = comm.allreduce(np.concatenate([mine, -mine]), "max", report=True)
    most, least = both[:2], -both[2:]
    if (most != least).any():
        names = " and ".join(str(dtype) for dtype, code in TYPES.items() if code in (most[1], least[1]))
        text = f"tensors of {least[0]} to {most[0]} elements of {names}: all ranks give tensors of the same size and type"
        raise errors.of(MISMATCH, text, [])


def _bytes(t: torch.Tensor) -> np.ndarray:
    """Return the memory of a contiguous tensor."""
    return t.reshape(-1).view(torch.uint8).numpy()


def _list(tensors: Any) -> Any:
    return tensors if isinstance(tensors, (list, tuple)) else [tensors]


def _encode(value: Any, pickle: bool) -> bytes:
    """Return the encoding of a value that has tensors: without pickle they follow the rest, since torch reads nothing but
    tensors safely in all versions."""
    b = io.BytesIO()
    if pickle:
        torch.save(value, b)
        return b.getvalue()
    tensors: List[torch.Tensor] = []

    def plain(v: Any) -> Any:
        if isinstance(v, torch.Tensor):
            tensors.append(v.detach())
            return {_TENSOR: len(tensors) - 1}
        if isinstance(v, dict):
            return {k: plain(e) for k, e in v.items()}
        return type(v)(plain(e) for e in v) if type(v) in (list, tuple) else v

    rest = plain(value)
    torch.save(tensors, b)
    return _codec.encode((rest, b.getvalue()))


def _decode(data: Any, pickle: bool) -> Any:
    """Return the value of _encode."""
    if pickle:
        return _load(data, False)
    rest, saved = _codec.decode(data)
    tensors = _load(saved, True)

    def whole(v: Any) -> Any:
        if isinstance(v, dict):
            return tensors[v[_TENSOR]] if _TENSOR in v else {k: whole(e) for k, e in v.items()}
        return type(v)(whole(e) for e in v) if type(v) in (list, tuple) else v

    return whole(rest)


def _load(data: Any, weights_only: bool) -> Any:
    options: Any = {"weights_only": weights_only} if _WEIGHTS_ONLY else {}
    return torch.load(io.BytesIO(data), **options)


_TENSOR = ("pleach.torch", "tensor")  # the key of what stands for a tensor

# Arguments that earlier versions do not have.
_WEIGHTS_ONLY = "weights_only" in inspect.signature(torch.load).parameters
_CPU: Dict[str, Any] = {"devices": ["cpu"]} if int(torch.__version__.split(".")[0]) >= 2 else {}


def init(*, raises: bool = False, **config: Any) -> Group:
    """Make this process part of a job, as torch.distributed's default process group.

    Args:
        raises: the first call that a rank is missing from raises a :class:`pleach.FailedError` on all survivors.
        config: see :class:`pleach.World`; progress_timeout removes processes that are stuck.
    """
    world = World(**config)
    store = _Store(world.size)
    default: List[Group] = []
    created: List[Group] = []  # by the call of dist.new_group that is under way

    def create(store: Any, rank: int, size: int, timeout: Any) -> Group:
        if default:
            created.append(Group(world, None, rank, {}, size, raises))
            return created[0]
        default.append(Group(world, world, rank, {r: r for r in range(size)}, size, raises))
        return default[0]

    def meet(local: bool) -> None:
        if local:
            created.clear()
            raise errors.ArgumentError("use_local_synchronization is not supported: all processes call dist.new_group without it")
        rank = created[0].rank() if created else -1
        default[0]._new_group(created, rank)
        created.clear()

    if not hasattr(dist.Backend, "PLEACH"):
        dist.Backend.register_backend("pleach", create, **_CPU)
    os.environ["TORCH_DIST_INIT_BARRIER"] = "1"  # the barrier at the end of dist.new_group, where all processes meet
    dist.init_process_group("pleach", store=store, rank=world.rank, world_size=world.size)
    store.meet, default[0]._store = meet, store  # torch does not keep the object of Python
    return default[0]

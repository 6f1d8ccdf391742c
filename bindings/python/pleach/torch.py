"""torch.distributed over Pleach: unmodified DistributedDataParallel goes on when processes die::

    group = pleach.torch.init()
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    step, model = 0, None
    while step < STEPS:
        if group.admit() or model is None:             # processes that replace dead ones come in here
            step = group.share(net, optimizer, step)
            model = DistributedDataParallel(net)
        loss = criterion(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
    group.finalize()

Each collective is committed by all processes or by none, by an agreement: when a process dies, the others make the call
again without it. So all have the same gradients, and the same weights. Tensors are those of the CPU; others are staged by
the caller. Calls are made when they are asked for, and not beside the computation.

Works with PyTorch 1.13. Later versions accept a ProcessGroup of Python, too; this one was not tried with them.
"""

from __future__ import annotations

import io
from typing import Any, Callable, List, Optional, TypeVar

import numpy as np
import torch
import torch.distributed as dist
from torch._C._distributed_c10d import ProcessGroup, Work
from torch.futures import Future

from . import _library as c
from . import errors
from .comm import Comm, Pending, World

TYPES = {
    torch.uint8: c.U8, torch.bool: c.U8, torch.int8: c.I8, torch.int16: c.I16, torch.int32: c.I32, torch.int64: c.I64,
    torch.float16: c.F16, torch.bfloat16: c.BF16, torch.float32: c.F32, torch.float64: c.F64,
}  # fmt: skip

OPERATORS = {
    dist.ReduceOp.SUM: c.SUM, dist.ReduceOp.PRODUCT: c.PROD, dist.ReduceOp.MIN: c.MIN, dist.ReduceOp.MAX: c.MAX,
    dist.ReduceOp.BAND: c.AND, dist.ReduceOp.BOR: c.OR,
}  # fmt: skip

T = TypeVar("T")


class _Done(Work):
    """The work of a call that is complete."""

    def __init__(self, tensors: Any) -> None:
        super().__init__()
        self._future: Any = Future()
        self._future.set_result(tensors)

    def wait(self, timeout: Any = None) -> bool:
        return True

    def get_future(self) -> Any:
        return self._future


class _Store(dist.Store):
    """What torch wants to meet at. Processes meet in their calls instead, so that a replacement need not meet anybody."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = size

    def add(self, key: str, n: int) -> int:
        return self._size  # all are there

    def set(self, key: str, value: Any) -> None:
        pass


class Group(ProcessGroup):
    """The process group of a job. Ranks and the size are those of the start, whichever processes have died."""

    def __init__(self, world: World, scale: bool) -> None:
        super().__init__(world.rank, world.size)  # type: ignore[call-arg]
        self.world = world
        self.comm: Comm = world
        """The survivors."""
        self._scale = scale
        self._joined: List[int] = []
        self._kept: List[Any] = []  # torch keeps no reference to the latest works

    # What programs call.

    def admit(self) -> List[int]:
        """Take in processes that replace dead ones (pleach run --respawn), and return their ranks. If there are any, all
        processes call share and wrap their networks anew. A replacement waits here. It takes two round trips."""
        self._joined, _ = self.world.admit()
        if self._joined:
            self.comm = self.world.shrink() if self.world.failed() else self.world
        return self._joined

    def share(self, net: torch.nn.Module, optimizer: Optional[torch.optim.Optimizer], step: T) -> T:
        """Give all processes the weights, the state of the optimizer and the step of one that has them."""

        def root(comm: Comm) -> int:
            for rank in range(comm.size):
                if comm.world_rank(rank) not in self._joined:
                    return rank
            raise errors.Error("all processes that had the state have died")

        def send(comm: Comm) -> np.ndarray:
            if comm.rank != root(comm):
                return comm.broadcast(np.uint8, root(comm), report=True)
            b = io.BytesIO()
            torch.save((net.state_dict(), optimizer and optimizer.state_dict(), step), b)
            return comm.broadcast(np.frombuffer(b.getbuffer(), np.uint8), root(comm), report=True)

        weights, state, step = torch.load(io.BytesIO(self._commit(send).data))
        net.load_state_dict(weights)
        if optimizer is not None:
            optimizer.load_state_dict(state)
        return step

    def finalize(self) -> None:
        """End the job."""
        self.world.finalize()

    # How a call is committed.

    def _commit(self, operate: Callable[[Comm], T]) -> T:
        """Make a call until all processes that are left have completed it, and return its result."""
        while True:
            complete = 1
            try:
                result = operate(self.comm)
            except (errors.FailedError, errors.RevokedError, errors.AbortError):
                complete = 0
                self.comm.revoke()  # the others may wait in the call
            if self.comm.agree(complete) & 1:
                return result
            self.comm = self.comm.shrink()

    def _call(self, kind: int, tensor: torch.Tensor, out: torch.Tensor, root: Optional[int] = None, op: int = 0) -> Any:
        """Make a call over the memory of tensors."""
        if tensor.device.type != "cpu" or tensor.dtype not in TYPES:
            raise TypeError(f"a tensor of {tensor.dtype} on {tensor.device}: copy it to the CPU, as one of {list(TYPES)}")

        def operate(comm: Comm) -> None:
            call = Pending(kind, None, {"report": True})
            call.input = (tensor, out)
            call.c.type, call.c.op = TYPES[tensor.dtype], op
            call.c.in_, call.c.count = tensor.data_ptr(), tensor.numel()
            call.c.out, call.c.out_count = out.data_ptr(), out.numel()
            if root is not None:
                ranks = [comm.world_rank(rank) for rank in range(comm.size)]
                call.c.root = ranks.index(root) if root in ranks else 0  # a survivor has the same
            comm._make(call)

        return self._commit(operate)

    def _done(self, tensors: Any) -> Work:
        work = _Done(tensors)
        self._kept = self._kept[-64:] + [work]
        return work

    # What torch calls.

    def getBackendName(self) -> str:
        return "pleach"

    def allreduce(self, tensors: Any, options: Any = None) -> Work:
        op = options.reduceOp if options is not None else dist.ReduceOp.SUM
        for t in tensors if isinstance(tensors, list) else [tensors]:
            source, out = t.contiguous(), torch.empty_like(t, memory_format=torch.contiguous_format)
            self._call(c.ALLREDUCE, source, out, op=OPERATORS[op])
            # Programs divide sums by the size of the start, as DistributedDataParallel does.
            if self._scale and op == dist.ReduceOp.SUM and t.is_floating_point() and self.comm.size != self.world.size:
                out.mul_(self.world.size / self.comm.size)
            t.copy_(out)
        return self._done(tensors)

    def broadcast(self, tensors: Any, options: Any = None) -> Work:
        for t in tensors if isinstance(tensors, list) else [tensors]:
            source, out = t.contiguous(), torch.empty_like(t, memory_format=torch.contiguous_format)
            self._call(c.BROADCAST, source, out, options.rootRank if options is not None else 0)
            t.copy_(out)
        return self._done(tensors)

    def allgather(self, outputs: Any, inputs: Any, options: Any = None) -> Work:
        for parts, t in zip(outputs, inputs):
            source = t.contiguous()
            out = torch.empty((self.world.size, *t.shape), dtype=t.dtype)
            self._call(c.ALLGATHER, source, out)
            there = {self.comm.world_rank(i): i for i in range(self.comm.size)}
            for rank, part in enumerate(parts):
                part.copy_(out[there[rank]] if rank in there else t)  # a dead process has none
        return self._done(outputs)

    def barrier(self, options: Any = None) -> Work:
        self._commit(lambda comm: comm.barrier(report=True))
        return self._done([])


def init(*, scale: bool = True, **config: Any) -> Group:
    """Make this process part of a job, as torch.distributed's default process group.

    Args:
        scale: multiply sums of floating-point numbers by the size at the start over the number of processes that are left,
            so that averages of programs that divide by the former are right.
        config: see :class:`pleach.World`; progress_timeout removes processes that are stuck.
    """
    world = World(**config)
    group: List[Group] = []

    def create(store: Any, rank: int, size: int, timeout: Any) -> Group:
        group.append(Group(world, scale))
        return group[0]

    if not hasattr(dist.Backend, "PLEACH"):
        dist.Backend.register_backend("pleach", create)
    dist.init_process_group("pleach", store=_Store(world.size), rank=world.rank, world_size=world.size)
    return group[0]

"""Training with PyTorch that continues when workers die, hang, join or leave. Each host runs a Pleach agent.

::

    with elastic.Trainer("job-17", min_nodes=2) as trainer:
        for step in trainer.steps(500, [model, optimizer]):
            optimizer.zero_grad()
            loss(model, batch(step.number, step.world.rank, step.world.size)).backward()
            step.all_reduce(p.grad for p in model.parameters())
            if step.commit():
                optimizer.step()

A step is committed by all workers, or repeated by all. So change the state only after a commit, and only by what all
workers have: the step's number and the result of :meth:`Step.all_reduce`.
"""

from __future__ import annotations

import contextlib
import io
import socket
import sys
import threading
import time
import uuid
from dataclasses import dataclass
from datetime import timedelta
from types import TracebackType
from typing import Any, Callable, Iterable, Iterator, List, Optional, Protocol, Sequence, Set, Tuple, Type

import torch
import torch.distributed

from ..agent import AgentError, Client, ConflictError, errors
from ..agent.torch import WatchfulStore
from ._record import NO_STATE, Record

__all__ = ["EndedError", "LostError", "Step", "Trainer", "World"]

dist: Any = torch.distributed  # which has no types in all versions

PREFIX = "elastic/"
SAFE = int(torch.__version__.split(".")[0]) > 1  # earlier versions read only tensors in the safe way
POLL = 0.05  # seconds between looks at the record while workers enter
PROBE = 1.0  # seconds until a host that does not answer counts as unreachable


class LostError(AgentError):
    """All workers that had the state are gone. Start another job, from a checkpoint."""


class EndedError(AgentError):
    """The job has ended without this worker, which does not have the state after the last step."""


class Stateful(Protocol):
    """A model or optimizer, or whatever else is part of the state."""

    def state_dict(self) -> Any: ...

    def load_state_dict(self, state_dict: Any) -> Any: ...


@dataclass(frozen=True)
class World:
    """The workers that make steps together.

    Attributes:
        number: rises from world to world.
        members: the names of the workers, by rank.
    """

    number: int
    rank: int
    members: Tuple[str, ...]

    @property
    def size(self) -> int:
        return len(self.members)


class Step:
    """A step of a world.

    Attributes:
        number: counts committed steps from 0. If the step was not committed, the next one has the same number.
    """

    def __init__(self, trainer: Trainer, number: int, world: World) -> None:
        self._trainer, self.number, self.world = trainer, number, world

    def all_reduce(self, tensors: Iterable[torch.Tensor]) -> None:
        """Replace tensors by their mean over the workers. If a worker has failed, the tensors have no meaning after the
        call, and :meth:`commit` returns False."""
        each = [t.detach() for t in tensors]
        flat = torch.cat([t.reshape(-1) for t in each])
        if self._trainer._collective(self.world, lambda: dist.all_reduce(flat)):
            at = 0
            for t in each:
                t.copy_(flat[at : at + t.numel()].view_as(t) / self.world.size)
                at += t.numel()

    def commit(self) -> bool:
        """Commit the step, and report whether it was. All workers of the world get the same result.

        Change the state if it was committed, before the loop continues.
        """
        return self._trainer._commit(self)


class Trainer:
    """A worker of a job. It makes the default process group of torch.distributed (Gloo), a new one for each world.

    Args:
        name: the name of the job, without a slash. Choose another name for each start.
        client: that of the agent; by default as the commands of Pleach find it.
        min_nodes: the least size of a world. With fewer workers, all wait.
        timeout: how many seconds a collective takes at most, and how long a worker is waited for whose process exists.
    """

    def __init__(
        self, name: str, client: Optional[Client] = None, *, min_nodes: int = 1, timeout: float = 60.0
    ) -> None:
        self._client, self._min, self._timeout = client or Client(), min_nodes, timeout
        self._key = f"{PREFIX}{name}"
        self._store = _Store(f"elastic {name}", self._client, timeout, self._hopeless)
        view = self._client.members()
        own = view.members[view.rank]
        # Nothing is sent here. The kernel of this host refuses connections once this process has ended.
        host = _host(own.address)
        self._presence = socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
        threading.Thread(target=_accept, args=(self._presence,), name="pleach elastic", daemon=True).start()
        self._id = f"{host}:{self._presence.getsockname()[1]}/{own.id}@{own.incarnation}/{uuid.uuid4().hex[:8]}"
        self._world: Optional[World] = None
        self._step = NO_STATE  # of the state of this worker
        self._last = 0
        self._late: Tuple[int, float] = (-1, 0.0)  # the next world, and when its missing workers count as gone
        self._leaving = False

    def __enter__(self) -> Trainer:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], exception: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the worker. Others see it as one that has died, unless it has left or the job has ended."""
        self._drop()
        with contextlib.suppress(OSError):
            self._presence.shutdown(socket.SHUT_RDWR)  # ends the thread, without which the port would stay open
        self._presence.close()

    def leave(self) -> None:
        """Leave after the step that is under way: then :meth:`steps` ends. A signal handler may call it."""
        self._leaving = True

    def steps(self, count: int, state: Sequence[Stateful]) -> Iterator[Step]:
        """Iterate over the steps up to a number, until this worker leaves.

        The state is replaced by that of the other workers when this one joins, and before the first step by that of
        rank 0.
        Raises a :class:`LostError` or :class:`EndedError` if this worker cannot get it.
        """
        self._last = count
        while self._step < count:
            if self._leaving:
                self._update(lambda r: r.leave(self._id))
            if self._world is None:
                if self._leaving:
                    return
                self._meet(state)
            assert self._world is not None
            yield Step(self, self._step, self._world)

    # A step

    def _commit(self, step: Step) -> bool:
        number, outcome = step.world.number, torch.zeros(1, dtype=torch.int64)

        def decide() -> None:
            dist.all_reduce(torch.zeros(1))  # all have come to this point: all have what the step has reduced
            if step.world.rank == 0:
                record = self._update(lambda r: r.commit(number, step.number, self._last))
                if record.number != number and not record.outcome(number, step.number):
                    raise RuntimeError("the world was closed before")
                outcome[0] = record.number
            dist.broadcast(outcome, 0)

        if self._collective(step.world, decide):
            if outcome[0] != number:
                self._drop()
            self._step += 1
            return True
        # This world commits nothing after it is closed: so what the record says is the same for all.
        committed = self._update(lambda r: r.close(number)).outcome(number, step.number)
        self._step += committed
        return committed

    def _collective(self, world: World, calls: Callable[[], object]) -> bool:
        """Make collectives of a world, and report whether they succeeded. An error ends the process group, and so the
        calls of all other members."""
        if self._world is not world:
            return False
        try:
            calls()
            return True
        except RuntimeError:
            self._drop()
            return False

    def _drop(self) -> None:
        """End the process group."""
        if self._world is not None and not dist.is_initialized():  # it could not be made
            dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)  # names of groups begin again
        self._world = None
        if dist.is_initialized():
            dist.destroy_process_group()

    # Worlds

    def _meet(self, state: Sequence[Stateful]) -> None:
        """Enter, wait until a world is formed that has this worker, and get the state."""
        while True:
            record = self._update(lambda r: r.enter(self._id, self._step))
            if record.ended:
                raise EndedError(f"{self._key} has ended at step {record.step}, and this worker is at {self._step}")
            if not record.formed:
                gone = self._gone(record)
                if record.lost(gone):
                    raise LostError(f"{self._key}: no worker is left that has the state of step {record.step}")
                record = self._update(lambda r: r.form(self._min, gone) if r.number == record.number else r)
            if self._id in record.members:
                world = World(record.number, record.members.index(self._id), record.members)
                if self._start(world, record, state):
                    return
                self._update(lambda r: r.close(world.number))
                continue
            if record.formed and all(self._dead(w) for w in record.members):
                self._update(lambda r: r.close(record.number))
            time.sleep(POLL)

    def _start(self, world: World, record: Record, state: Sequence[Stateful]) -> bool:
        """Make the process group, and give the state of rank 0 to the members that do not have it."""
        self._world = world
        received: List[torch.Tensor] = []

        def begin() -> None:
            hook, store = sys.excepthook, dist.PrefixStore(str(world.number), self._store)
            limit = timedelta(seconds=self._timeout)
            dist.init_process_group("gloo", store=store, rank=world.rank, world_size=world.size, timeout=limit)
            sys.excepthook = hook  # torch would add one with each world
            if record.holders < world.size:
                received.append(_broadcast(_packed(state) if world.rank == 0 else None))

        if not self._collective(world, begin):
            return False
        if world.rank >= max(record.holders, 1):
            values = torch.load(io.BytesIO(received[0].numpy().tobytes()), weights_only=SAFE)
            for s, value in zip(state, values):
                s.load_state_dict(value)
        self._step = record.step
        if world.rank == 0:
            self._store.forget(world.number)
        return True

    def _gone(self, record: Record) -> Set[str]:
        """Return the workers that the next world does not wait for: they are dead, or have not come in time."""
        if self._late[0] != record.number:
            self._late = record.number, time.monotonic() + self._timeout
        missing = {w for w in record.expected if w not in record.present}
        if time.monotonic() > self._late[1]:
            return missing
        return {w for w in (*missing, *record.present) if self._dead(w)}

    def _dead(self, worker: str) -> bool:
        """Report whether a worker's process has ended, or its host has failed."""
        if worker == self._id:
            return False
        address, _, rest = worker.partition("/")
        agent = rest.rpartition("/")[0]  # whose ID may have a slash
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host, int(port)), PROBE).close()
            return False
        except ConnectionRefusedError:
            return True
        except OSError:
            pass  # the host does not answer: the agents say whether it has failed
        with contextlib.suppress(*errors.TEMPORARY):
            return agent not in {f"{m.id}@{m.incarnation}" for m in self._client.members().members}
        return False

    def _hopeless(self) -> str:
        """Return why the world that is starting cannot start."""
        world = self._world
        return "a worker of the world has died" if world and any(map(self._dead, world.members)) else ""

    def _update(self, change: Callable[[Record], Record]) -> Record:
        """Change the record, and return the new one. A change that was made already changes nothing: so it is repeated
        when the agent does not say whether it was made."""
        while True:
            try:
                entry = self._client.get(self._key)
                record = Record() if entry is None else Record.decode(entry.value)
                new = change(record)
                if new != record:
                    self._client.put(self._key, new.encode(), version=entry.version if entry else 0)
                return new
            except ConflictError:
                pass
            except errors.TEMPORARY:
                time.sleep(POLL)


class _Store(WatchfulStore):
    """The store of process groups."""

    def __init__(self, job: str, client: Client, timeout: float, hopeless: Callable[[], str]) -> None:
        self._hopeless = hopeless
        super().__init__(job, client, timeout=timedelta(seconds=timeout))

    def hopeless(self, keys: Sequence[str]) -> str:
        return self._hopeless()

    def forget(self, number: int) -> None:
        """Remove the keys of the worlds before."""
        names: List[str] = self.list_keys()
        for key in names:
            if int(key.partition("/")[0]) < number:
                self.delete_key(key)


def _packed(state: Sequence[Stateful]) -> torch.Tensor:
    data = io.BytesIO()
    torch.save([s.state_dict() for s in state], data)
    return torch.frombuffer(bytearray(data.getvalue()), dtype=torch.uint8)


def _broadcast(data: Optional[torch.Tensor]) -> torch.Tensor:
    """Broadcast the bytes of rank 0."""
    length = torch.tensor([0 if data is None else len(data)])
    dist.broadcast(length, 0)
    content = torch.zeros(int(length), dtype=torch.uint8) if data is None else data
    dist.broadcast(content, 0)
    return content


def _accept(presence: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            presence.accept()[0].close()


def _host(address: str) -> str:
    return address.rpartition(":")[0].strip("[]")

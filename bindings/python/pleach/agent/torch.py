"""A store for torch.distributed that outlives any node: the keys of the agents.

::

    store = pleach.agent.torch.Store("training-17")
    torch.distributed.init_process_group("gloo", store=store, rank=rank, world_size=size)

Every process uses the agent of its own host. While that one restarts, calls wait for it, up to the store's timeout.
"""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any, List, Optional, Sequence

import torch.distributed as dist
from torch._C import _distributed_c10d as c10d

from . import _store
from ._store import Text
from .client import Client

LOOK = 1.0  # seconds between looks of a WatchfulStore

_stores: List[Store] = []  # a process group keeps a store's half in C++ alive, and not the one in Python
StoreError: Any = getattr(dist, "DistStoreError", RuntimeError)


class Store(c10d.Store):
    """A torch.distributed.Store on the keys of the agents.

    All calls are linearizable. A change is made exactly once, although an agent dies in the middle of the call and the call
    is repeated. Values have at most about 60 KiB, and those of all jobs together 16 MiB.

    Args:
        job: the name of the job, without a slash. Stores of the same name are the same.
        client: that of the agent; by default as the commands of pleach find it.
        timeout: of calls that wait.
        ttl: the keys of a job are removed when no process has had a store of it for so many seconds, at the next start of
            another job. :meth:`clear` removes them at once.
    """

    def __init__(
        self,
        job: str,
        client: Optional[Client] = None,
        *,
        timeout: timedelta = timedelta(seconds=300),
        ttl: float = _store.DAY,
    ) -> None:
        super().__init__()
        self.set_timeout(timeout)
        self._values = _store.Values(job, client or Client(), lambda: _limit(self), ttl, StoreError)
        _stores.append(self)

    def set(self, key: str, value: Text) -> None:
        self._values.set(key, value)

    def get(self, key: str) -> bytes:
        return self._values.get(key)

    def compare_set(self, key: str, expected_value: Text, desired_value: Text) -> bytes:
        return self._values.compare_set(key, expected_value, desired_value)

    def add(self, key: str, value: int) -> int:
        return self._values.add(key, value)

    def append(self, key: str, value: Text) -> None:
        self._values.append(key, value)

    def wait(self, keys: Sequence[str], timeout: Optional[timedelta] = None) -> None:
        self._values.wait(keys, timeout)

    def check(self, keys: Sequence[str]) -> bool:
        return self._values.check(keys)

    def multi_get(self, keys: Sequence[str]) -> List[bytes]:
        return [self._values.get(key) for key in keys]

    def multi_set(self, keys: Sequence[str], values: Sequence[Text]) -> None:
        for key, value in zip(keys, values):
            self._values.set(key, value)

    def delete_key(self, key: str) -> bool:
        return self._values.delete(key)

    def num_keys(self) -> int:
        return len(self._values.keys())

    def list_keys(self) -> List[str]:
        return self._values.keys()

    def has_extended_api(self) -> bool:
        return True

    def clone(self) -> Store:
        v = self._values
        return Store(v.job, v.client, timeout=_limit(self), ttl=v.ttl)

    getNumKeys, deleteKey = num_keys, delete_key  # the names that calls from C++ use
    multiGet, multiSet = multi_get, multi_set

    def clear(self) -> None:
        """Remove the keys of the job. Call it in one process when all are done."""
        self._values.clear()


class WatchfulStore(Store):
    """A store whose waiting calls look every second whether what they wait for can still come."""

    def hopeless(self, keys: Sequence[str]) -> str:
        """Return why the keys will never be there, or an empty text."""
        raise NotImplementedError

    def get(self, key: str) -> bytes:
        self.wait([key])
        return super().get(key)

    def wait(self, keys: Sequence[str], timeout: Optional[timedelta] = None) -> None:
        until = time.monotonic() + (timeout or _limit(self)).total_seconds()
        why = ""
        while True:
            left = until - time.monotonic()
            try:
                return super().wait(keys, timedelta(seconds=max(0.001, min(left, LOOK))))
            except StoreError:
                if why:
                    raise StoreError(f"{', '.join(keys)}: {why}") from None
                if left < LOOK:
                    raise
                why = self.hopeless(keys)  # if so, the keys are looked for once more: they may have come just before


def _limit(store: Store) -> timedelta:
    limit: timedelta = getattr(store, "timeout")  # C++ sets it, too
    return limit


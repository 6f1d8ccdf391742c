"""The rendezvous of torchrun on the keys of the agents: ``torchrun --rdzv-backend=pleach --rdzv-id=JOB …``.

No node keeps the state of the rendezvous, so any may fail. The endpoint is the socket of the agent; without one it is
found as the commands of pleach do.
"""

from __future__ import annotations

import os
import pickle
from datetime import timedelta
from typing import Any, Callable, Dict, Optional, Sequence, Tuple

from torch.distributed.elastic.rendezvous import RendezvousParameters
from torch.distributed.elastic.rendezvous.c10d_rendezvous_backend import C10dRendezvousBackend
from torch.distributed.elastic.rendezvous.dynamic_rendezvous import create_handler

from ._http import in_path
from .client import Client
from .torch import WatchfulStore

EXIT = "/torchelastic/agent/terminal_state"  # what keys of torchrun's barrier at the end have


class Backend(C10dRendezvousBackend):
    """The state of a rendezvous in a store."""

    def __init__(self, store: Any, run_id: str) -> None:
        super().__init__(store, run_id)
        self._sizes: Dict[int, int] = {}  # of the rounds that this node has seen, when they were complete

    @property
    def name(self) -> str:
        return "pleach"

    def get_state(self) -> Any:
        return self._seen(super().get_state())

    def set_state(self, state: bytes, token: Any = None) -> Any:
        return self._seen(super().set_state(state, token))

    def _seen(self, result: Optional[Tuple[Any, ...]]) -> Optional[Tuple[Any, ...]]:
        if result is not None:
            state = pickle.loads(result[0])
            if state.complete:
                self._sizes[state.round] = max(self._sizes.get(state.round, 0), len(state.participants))
        return result

    def incomplete(self, round: int) -> str:
        """Return why nodes of a round are missing, or an empty text. Nodes that hang or have died leave it after 15 s."""
        result = self.get_state()
        state = pickle.loads(result[0]) if result else None
        if state is None or state.closed:
            return "the rendezvous is closed"
        if state.round != round or len(state.participants) < self._sizes.get(round, 0):
            return "a node has left the round"
        return ""


class Store(WatchfulStore):
    """The store of nodes. A node whose workers have finished waits for the others for five minutes; this store ends that
    wait when one of them has failed or died, because it never comes then."""

    backend: Optional[Backend] = None

    def hopeless(self, keys: Sequence[str]) -> str:
        for key in keys:
            base, exit, _ = key.partition(EXIT)
            if exit and self.backend is not None:
                return self.backend.incomplete(int(base.rpartition(".")[2]))
        return ""


def create(params: RendezvousParameters) -> Any:
    """Create the handler of a rendezvous. It is torch's dynamic one, and the store is that of the agents."""
    # The workers' own store is then made anew in each round. A shared one stays where its first node was.
    os.environ.setdefault("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1")
    timeout = timedelta(seconds=params.get_as_int("read_timeout", 60) or 60)
    store = Store("torchrun " + in_path(params.run_id), Client(params.endpoint or None), timeout=timeout)
    store.backend = Backend(store, params.run_id)
    return create_handler(store, store.backend, params)


def handler() -> Callable[[RendezvousParameters], Any]:
    """The entry point of torchrun."""
    return create

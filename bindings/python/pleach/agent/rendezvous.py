"""The rendezvous of torchrun on the keys of the agents: ``torchrun --rdzv-backend=pleach --rdzv-id=JOB …``.

No node keeps the state of the rendezvous, so any may fail. The endpoint is the socket of the agent; without one it is
found as the commands of pleach do.
"""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any, Callable

from torch.distributed.elastic.rendezvous import RendezvousParameters
from torch.distributed.elastic.rendezvous.c10d_rendezvous_backend import C10dRendezvousBackend
from torch.distributed.elastic.rendezvous.dynamic_rendezvous import create_handler

from ._http import in_path
from .client import Client
from .torch import Store


class Backend(C10dRendezvousBackend):
    """The state of a rendezvous in a store."""

    @property
    def name(self) -> str:
        return "pleach"


def create(params: RendezvousParameters) -> Any:
    """Create the handler of a rendezvous. It is torch's dynamic one, and the store is that of the agents."""
    # The workers' own store is then made anew in each round. A shared one stays where its first node was.
    os.environ.setdefault("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1")
    timeout = timedelta(seconds=params.get_as_int("read_timeout", 60) or 60)
    store = Store("torchrun " + in_path(params.run_id), Client(params.endpoint or None), timeout=timeout)
    return create_handler(store, Backend(store, params.run_id), params)


def handler() -> Callable[[RendezvousParameters], Any]:
    """The entry point of torchrun."""
    return create

"""Jobs of cooperating processes that finish although some of them die.

A job's processes make the same calls in the same order, as with MPI. When one dies, a survivor takes over its task, and
the others get the result that a run without failures gives::

    import numpy as np, pleach

    with pleach.World() as world:
        total = world.allreduce(input_of(world.rank), restore=input_of)
        world.once(lambda: print(total))

Run it by ``pleach run -n 4 python3 program.py``, or under Slurm, Open MPI, torchrun or Kubernetes.
"""

import importlib
import pkgutil
from typing import TYPE_CHECKING, Any

# pleach.agent is a distribution of its own, maybe in another place.
__path__ = pkgutil.extend_path(__path__, __name__)

if TYPE_CHECKING:
    from .comm import Admission, Comm, Request, World
    from .errors import (
        AbortError,
        ArgumentError,
        CanceledError,
        ClosedError,
        DivergedError,
        Error,
        EvictedError,
        FailedError,
        ForkError,
        HoldError,
        JobEnded,
        MismatchError,
        NotAdmittedError,
        OperatorError,
        QuorumError,
        RestoreError,
        RevokedError,
        TimeoutError,
        TooManyDeadError,
    )
    from .jobs import load, queue, save, share

    __version__: str

__all__ = [
    "AbortError", "Admission", "ArgumentError", "CanceledError", "ClosedError", "Comm", "DivergedError", "Error",
    "EvictedError", "FailedError", "ForkError", "HoldError", "JobEnded", "MismatchError", "NotAdmittedError",
    "OperatorError", "QuorumError", "Request", "RestoreError", "RevokedError", "TimeoutError", "TooManyDeadError",
    "World", "load", "queue", "save", "share",
]  # fmt: skip

_MODULES = {name: "comm" for name in ("Admission", "Comm", "Request", "World")}
_MODULES.update({name: "jobs" for name in ("load", "queue", "save", "share")})


def __getattr__(name: str) -> Any:
    """Load the library when it is used: a program that imports pleach.agent alone needs none."""
    if name == "__version__":
        value: Any = importlib.import_module("._library", __name__).lib.pleach_version().decode()
    elif name in __all__:
        value = getattr(importlib.import_module("." + _MODULES.get(name, "errors"), __name__), name)
    elif name in ("comm", "errors", "jobs"):
        value = importlib.import_module("." + name, __name__)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value

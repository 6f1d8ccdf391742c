"""Jobs of cooperating processes that finish although some of them die.

A job's processes make the same calls in the same order, as with MPI. When one dies, a survivor takes over its task, and
the others get the result that a run without failures gives::

    import numpy as np, pleach

    with pleach.World() as world:
        total = world.allreduce(input_of(world.rank), restore=input_of)
        world.once(lambda: print(total))

Run it by ``pleach run -n 4 python3 program.py``, or under Slurm, Open MPI, torchrun or Kubernetes.
"""

from ._library import lib as _lib
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

__version__: str = _lib.pleach_version().decode()

__all__ = [
    "AbortError", "Admission", "ArgumentError", "CanceledError", "ClosedError", "Comm", "DivergedError", "Error",
    "EvictedError", "FailedError", "ForkError", "HoldError", "JobEnded", "MismatchError", "NotAdmittedError",
    "OperatorError", "QuorumError", "Request", "RestoreError", "RevokedError", "TimeoutError", "TooManyDeadError",
    "World", "load", "queue", "save", "share",
]  # fmt: skip

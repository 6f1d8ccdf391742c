"""Exceptions, one for each code of pleach.h. They name ranks."""

from __future__ import annotations

import builtins


class Error(RuntimeError):
    """Error is the base of all errors of calls.

    Attributes:
        ranks: those that the error is about; each class says which.
    """

    ranks: list[int] = []


class ArgumentError(Error, ValueError):
    """An argument is wrong."""


class ForkError(Error):
    """This process is a fork of the one that imported pleach, which it cannot use."""


class CanceledError(Error):
    """The call was canceled by this process."""


class TimeoutError(Error, builtins.TimeoutError):
    """The call's timeout is over. ranks have not arrived."""


class FailedError(Error):
    """ranks have failed, in a call with report=True."""


class RevokedError(Error):
    """The communicator was revoked, by ranks."""


class MismatchError(Error):
    """Two processes, ranks, have called different things."""


class DivergedError(Error):
    """A restore did not return what the task had passed. ranks has the task's new owner."""


class HoldError(Error):
    """The log is full of calls that are held, by ranks."""


class AbortError(Error):
    """The call has ended with an error on another process, ranks."""


class OperatorError(Error):
    """A function that combines arrays has raised on this process, ranks. __cause__ has what it has raised. The other
    processes raise an :class:`AbortError` with the same text."""


class RestoreError(Error):
    """The input of a task, ranks, cannot be restored. __cause__ has what restore has raised."""


class TooManyDeadError(Error):
    """More processes have died than a call with corrected=f tolerates, or the root has."""


class EvictedError(Error):
    """The other processes have removed this one, because it was silent or stuck."""


class QuorumError(Error):
    """This process is cut off from ranks, too many to go on."""


class NotAdmittedError(Error):
    """A replacement has made a call before admit."""


class JobEnded(Error):
    """The job of a replacement has ended without it: exit with 0."""


class ClosedError(Error):
    """The world was finalized, closed or aborted."""


# By pleach_code.
CLASSES = [
    Error, Error, ArgumentError, ForkError, CanceledError, TimeoutError, FailedError, RevokedError, MismatchError,
    DivergedError, HoldError, AbortError, RestoreError, TooManyDeadError, EvictedError, QuorumError,
    NotAdmittedError, JobEnded, ClosedError, Error, OperatorError,
]  # fmt: skip


def of(code: int, text: str, ranks: list[int]) -> Error:
    """Return the exception of a code."""
    e = (CLASSES[code] if code < len(CLASSES) else Error)(text)
    e.ranks = ranks
    return e

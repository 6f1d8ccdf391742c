"""Exceptions of calls to an agent."""

from __future__ import annotations

import builtins
from typing import Any, Mapping, Optional


class AgentError(Exception):
    """AgentError is the base of all errors of calls to an agent."""


class NoAgentError(AgentError, ConnectionError):
    """No agent answers at the socket or address. Nothing was sent."""


class DisconnectedError(AgentError, ConnectionError):
    """The connection ended before the reply. A change was made or not."""


class RefusedError(AgentError):
    """The agent answered with an error.

    Attributes:
        status: the HTTP status.
    """

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status

    def __reduce__(self) -> Any:
        return type(self), (self.status, *self.args)


class ForbiddenError(RefusedError):
    """The token is missing, or the client does not have the right (401, 403)."""


class NotFoundError(RefusedError):
    """There is no such member or key (404)."""


class ConflictError(RefusedError):
    """The key has another version, or another client holds the lock (409).

    Attributes:
        version: that of the key; 0: the key is absent.
    """

    version: int = 0


class LimitError(RefusedError):
    """The value or the body is too long, or the agents have no room for more keys (413)."""


class BusyError(RefusedError):
    """Too many requests are made at a time (429). The request was not served."""


class UnavailableError(RefusedError):
    """The agent is not a member, or its group has no quorum (503). A change was made or not.

    Attributes:
        unanswered: the ranks that may not have a message sent with ``stable=True``.
    """

    unanswered: "tuple[int, ...]" = ()


class TimeoutError(RefusedError, builtins.TimeoutError):
    """The time of the call is over (504). A change was made or not.

    Attributes:
        unanswered: the ranks that may not have a message sent with ``stable=True``.
    """

    unanswered: "tuple[int, ...]" = ()


class MissedError(AgentError):
    """Messages or events are missing at this place. The next one is that after the missing ones.

    Attributes:
        count: how many are missing; None if that is not known.
        reason: why.
    """

    def __init__(self, count: Optional[int], reason: str) -> None:
        super().__init__(f"{'some' if count is None else count} messages are missing: {reason}")
        self.count, self.reason = count, reason

    def __reduce__(self) -> Any:
        return type(self), (self.count, self.reason)


class LockLostError(AgentError):
    """The lock could not be renewed in time: another client may hold it."""


# IN_DOUBT are the errors after which a change was made or not.
IN_DOUBT = (DisconnectedError, UnavailableError, TimeoutError)

# TEMPORARY are the errors of an agent that restarts, or is not a member for now.
TEMPORARY = (NoAgentError, BusyError, *IN_DOUBT)

_CLASSES = {
    401: ForbiddenError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    413: LimitError,
    429: BusyError,
    503: UnavailableError,
    504: TimeoutError,
}


def refused(status: int, reply: Mapping[str, Any]) -> RefusedError:
    """Return the exception of a reply."""
    e = _CLASSES.get(status, RefusedError)(status, str(reply.get("error") or f"the agent answers with status {status}"))
    if isinstance(e, ConflictError):
        e.version = int(reply.get("version") or 0)
    if isinstance(e, (UnavailableError, TimeoutError)):
        e.unanswered = tuple(reply.get("unanswered") or ())
    return e

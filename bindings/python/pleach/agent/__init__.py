"""A client of the local Pleach agent, in pure Python.

::

    from pleach import agent

    with agent.Client() as client:
        client.broadcast("products", topic="cache", stable=True)
        for message in client.subscribe("cache"):
            print(message.sender.id, message.data)

:class:`AsyncClient` is the same for asyncio.
"""

from .aio import AsyncClient, AsyncLock, AsyncSubscription
from .client import Client, Lock, Subscription
from .errors import (
    AgentError,
    BusyError,
    ConflictError,
    DisconnectedError,
    ForbiddenError,
    LimitError,
    LockLostError,
    MissedError,
    NoAgentError,
    NotFoundError,
    RefusedError,
    TimeoutError,
    UnavailableError,
)
from .types import (
    Answer,
    Answers,
    Change,
    Entry,
    Event,
    EventMember,
    HeldLock,
    Member,
    MemberRef,
    Message,
    Receipt,
    Unanswered,
    View,
)

__all__ = [
    "AgentError", "Answer", "Answers", "AsyncClient", "AsyncLock", "AsyncSubscription", "BusyError", "Change", "Client",
    "ConflictError", "DisconnectedError", "Entry", "Event", "EventMember", "ForbiddenError", "HeldLock", "LimitError",
    "Lock", "LockLostError", "Member", "MemberRef", "Message", "MissedError", "NoAgentError", "NotFoundError", "Receipt",
    "RefusedError", "Subscription", "TimeoutError", "UnavailableError", "Unanswered", "View",
]  # fmt: skip

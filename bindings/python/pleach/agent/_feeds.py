"""Streams of an agent without I/O. A feed knows where it is, so that its driver can connect again at any time.

After the stream has opened, and after each event, the driver makes the call that the feed asks for, and hands its result
back. Then it yields what is ready.
"""

from __future__ import annotations

import json
from collections import deque
from typing import Any, Deque, Dict, Generic, Optional, Tuple, TypeVar, Union

from . import _calls
from ._calls import Call
from ._http import Event as ServerSent
from ._http import Request
from .errors import AgentError, MissedError
from .types import Change, Entry, Event, Member, Message, View, data_of

T = TypeVar("T")


class Feed(Generic[T]):
    """What a stream yields."""

    def __init__(self) -> None:
        self.ready: Deque[Union[T, AgentError]] = deque()

    def request(self) -> Request:
        """Return the request of the stream, from where the feed is."""
        raise NotImplementedError

    def opened(self) -> Optional[Call[Any]]:
        """Note that the stream has opened."""
        return None

    def receive(self, e: ServerSent) -> Optional[Call[Any]]:
        """Take an event."""
        raise NotImplementedError

    def replied(self, result: Any) -> None:
        """Take the result of the call."""


class _Positions(Feed[T]):
    """A stream whose events have positions."""

    def __init__(self, path: str, query: Dict[str, str], after: str) -> None:
        super().__init__()
        self.path, self.query, self.after = path, query, after

    def request(self) -> Request:
        return Request("GET", self.path, self.query, {"Last-Event-ID": self.after} if self.after else {})

    def receive(self, e: ServerSent) -> Optional[Call[Any]]:
        self.after = e.id or self.after
        if e.name:
            reply = json.loads(e.data)
            if e.name == "missed":
                known = not reply.get("at_most") and not reply.get("restarted")
                reason = "the agent was started again" if reply.get("restarted") else "the agent does not keep them any more"
                self.ready.append(MissedError(reply["count"] if known else None, reason))
            elif e.name == "gap":
                self.ready.append(MissedError(reply.get("count"), reply["reason"]))
            else:
                self.ready.append(self.parse(e, reply))
        return None

    def parse(self, e: ServerSent, reply: Any) -> T:
        raise NotImplementedError


class Messages(_Positions[Message]):
    def __init__(self, topic: Optional[str], after: str, last: bool, direct: bool, fleet: bool) -> None:
        query = {name: "true" for name, on in (("last", last), ("direct", direct), ("fleet", fleet)) if on}
        super().__init__("/v1/messages", query if topic is None else {**query, "topic": topic}, after)

    def parse(self, e: ServerSent, reply: Any) -> Message:
        return Message.of(e.id, reply)


class Events(_Positions[Event]):
    def __init__(self, after: str) -> None:
        super().__init__("/v1/events", {}, after)

    def parse(self, e: ServerSent, reply: Any) -> Event:
        return Event.of(e.id, reply)


class Views(Feed[View]):
    """The views: an event says that there is another one, and a call what it is."""

    def __init__(self) -> None:
        super().__init__()
        self._number = -1
        self._members: Tuple[Member, ...] = ()

    def request(self) -> Request:
        return Request("GET", "/v1/events", {})

    def opened(self) -> Optional[Call[Any]]:
        return _calls.members(self._members)

    def receive(self, e: ServerSent) -> Optional[Call[Any]]:
        return _calls.members(self._members) if e.name else None

    def replied(self, result: View) -> None:
        if result.number != self._number or result.joined or result.left:
            self._number, self._members = result.number, result.members
            self.ready.append(result)


class Keys(Feed[Change]):
    """Keys that change. When the stream has opened again, lists tell which were deleted meanwhile: one at once, and one
    when the stream is known to have begun."""

    def __init__(self, prefix: str, key: Optional[str]) -> None:
        super().__init__()
        self._prefix, self._key = prefix, key
        self._seen: Dict[str, int] = {}  # versions
        self._gone: Dict[str, int] = {}  # of keys that a list did not have
        self._beginning = False

    def request(self) -> Request:
        return Request("GET", "/v1/watch", {"prefix": self._prefix} if self._key is None else {"key": self._key})

    def opened(self) -> Optional[Call[Any]]:
        self._beginning = bool(self._seen)
        return self._list() if self._beginning else None

    def _list(self) -> Call[Any]:
        return _calls.entries(self._prefix if self._key is None else self._key, None)

    def replied(self, result: Tuple[Entry, ...]) -> None:
        there = {e.key for e in result}
        for key in [key for key in self._seen if key not in there]:
            self._gone[key] = self._seen.pop(key)
            self.ready.append(Change(key, None, self._gone[key]))

    def receive(self, e: ServerSent) -> Optional[Call[Any]]:
        if e.name in ("put", "delete"):
            reply = json.loads(e.data)
            key, version = str(reply["key"]), int(reply["version"])
            if reply.get("deleted"):
                if self._seen.pop(key, None) is not None:
                    self.ready.append(Change(key, None, version))
            elif version > max(self._seen.get(key, 0), self._gone.get(key, 0)):
                self._seen[key] = version
                self._gone.pop(key, None)
                self.ready.append(Change(key, data_of(reply), version))
        beginning, self._beginning = self._beginning, False
        return self._list() if beginning else None

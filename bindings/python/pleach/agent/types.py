"""What an agent replies."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Mapping, Optional, Tuple

JSON = Mapping[str, Any]


def data_of(reply: JSON) -> bytes:
    """Return the bytes of a message or value: JSON has no bytes."""
    text = str(reply["data"])
    return base64.b64decode(text) if reply.get("encoding") == "base64" else text.encode()


def time_of(text: str) -> datetime:
    """Parse a time of the agent, which has nanoseconds."""
    text = text.replace("Z", "+00:00")
    seconds, dot, rest = text.partition(".")
    if dot:
        digits = len(rest) - len(rest.lstrip("0123456789"))
        text = f"{seconds}.{rest[:digits][:6]:0<6}{rest[digits:]}"
    return datetime.fromisoformat(text)


@dataclass(frozen=True)
class MemberRef:
    """The name of a member."""

    rank: int
    id: str

    @classmethod
    def of(cls, reply: JSON) -> MemberRef:
        return cls(reply["rank"], reply["id"])


@dataclass(frozen=True)
class Member:
    """A member of a view. A process that starts again is another member: it has another incarnation."""

    rank: int
    id: str
    incarnation: int
    address: str = field(compare=False)
    state: str = field(compare=False)  # "alive" or "suspected"
    observer: bool = field(default=False, compare=False)
    failure_domain: str = field(default="", compare=False)
    tags: Mapping[str, str] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, reply: JSON) -> Member:
        tags = dict(tag.partition("=")[::2] for tag in str(reply.get("meta", "")).split())
        return cls(
            reply["rank"], reply["id"], reply["incarnation"], reply["address"], reply["state"],
            reply.get("observer", False), reply.get("failure_domain", ""), tags,
        )  # fmt: skip


@dataclass(frozen=True)
class View:
    """The agreed members of the group.

    Attributes:
        number: rises from view to view.
        rank: that of this agent.
        leader: the rank of the member that coordinates changes.
        members: in order of their ranks.
        joined: members that the view before did not have. In the first one, all.
        left: members that this view does not have any more.
    """

    number: int
    rank: int
    leader: int
    members: Tuple[Member, ...]
    joined: Tuple[Member, ...] = ()
    left: Tuple[Member, ...] = ()

    @classmethod
    def of(cls, reply: JSON, before: Tuple[Member, ...] = ()) -> View:
        members = tuple(Member.of(m) for m in reply["members"])
        joined = tuple(m for m in members if m not in before)
        left = tuple(m for m in before if m not in members)
        return cls(reply["view"], reply["self"], reply["leader"], members, joined, left)


@dataclass(frozen=True)
class Message:
    """A message.

    Attributes:
        id: its position: a subscription with ``after=id`` goes on behind it.
        zone: the sender's, of a message to all zones.
        direct: it was sent to this member alone.
    """

    topic: str
    data: bytes
    sender: MemberRef
    view: int
    time: datetime
    id: str
    direct: bool = False
    zone: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, id: str, reply: JSON) -> Message:
        return cls(
            reply["topic"], data_of(reply), MemberRef.of(reply["from"]), reply["view"], time_of(reply["time"]), id,
            reply.get("direct", False), reply.get("zone", ""), reply.get("headers", {}),
        )  # fmt: skip


@dataclass(frozen=True)
class EventMember:
    """A member in an event, and why it is there."""

    rank: int
    id: str
    address: str
    cause: str

    @classmethod
    def of(cls, reply: JSON) -> EventMember:
        return cls(reply["rank"], reply["id"], reply["address"], reply["cause"])


@dataclass(frozen=True)
class Event:
    """What has happened to the group.

    Attributes:
        name: member-join, member-leave, member-failed, member-update, quorum-lost, quorum-regained or keys-empty.
        id: its position, as that of a message.
    """

    name: str
    time: datetime
    view: int
    members: Tuple[EventMember, ...]
    reason: str
    id: str

    @classmethod
    def of(cls, id: str, reply: JSON) -> Event:
        members = tuple(EventMember.of(m) for m in reply.get("members") or ())
        return cls(reply["event"], time_of(reply["time"]), reply["view"], members, reply.get("reason", ""), id)


@dataclass(frozen=True)
class Receipt:
    """The reply to a broadcast.

    Attributes:
        stable: every member of the view has the message, and members are those.
        joined: members that have joined since.
        zones: how many zones are known, of a message to all of them.
    """

    view: int
    stable: bool
    members: Tuple[MemberRef, ...]
    joined: Tuple[MemberRef, ...]
    zones: int

    @classmethod
    def of(cls, reply: JSON) -> Receipt:
        members, joined = (tuple(map(MemberRef.of, reply.get(name) or ())) for name in ("members", "joined"))
        return cls(reply["view"], reply["stable"], members, joined, reply.get("zones", 0))


@dataclass(frozen=True)
class Answer:
    """The answer of a member. If it has none, error says why."""

    rank: int
    id: str
    data: bytes
    seconds: float
    error: str
    zone: str


@dataclass(frozen=True)
class Unanswered:
    """A member that has not answered, or a zone of which nothing is known (its rank is -1)."""

    rank: int
    id: str
    reason: str
    zone: str


@dataclass(frozen=True)
class Answers:
    """The reply to a query."""

    view: int
    answers: Tuple[Answer, ...]
    unanswered: Tuple[Unanswered, ...]

    @classmethod
    def of(cls, reply: JSON) -> Answers:
        answers = tuple(
            Answer(a["rank"], a["id"], data_of(a), a["seconds"], a.get("error", ""), a.get("zone", ""))
            for a in reply["answers"]
        )
        silent = [Unanswered(u["rank"], u["id"], u["reason"], u.get("zone", "")) for u in reply["unanswered"]]
        zones = [Unanswered(-1, "", u["reason"], u["zone"]) for u in reply.get("unanswered_zones") or ()]
        return cls(reply["view"], answers, (*silent, *zones))


@dataclass(frozen=True)
class Entry:
    """A key with its value. The version is the number of the change that made the value."""

    key: str
    value: bytes
    version: int

    @classmethod
    def of(cls, reply: JSON) -> Entry:
        return cls(reply["key"], data_of(reply), reply["version"])


@dataclass(frozen=True)
class Change:
    """A key that has another value, or none. Then the version is that of its last value, which is not there."""

    key: str
    value: Optional[bytes]
    version: int

    @property
    def deleted(self) -> bool:
        return self.value is None


@dataclass(frozen=True)
class HeldLock:
    """A lock that a client holds. If it has expired, another client may take it."""

    name: str
    holder: str
    ttl: float
    expired: bool

    @classmethod
    def of(cls, reply: JSON) -> HeldLock:
        return cls(reply["name"], reply["holder"], reply["ttl"], reply.get("expired", False))

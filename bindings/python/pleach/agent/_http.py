"""HTTP/1.1 without I/O: requests as bytes, and replies as generators that ask for what they want to read.

A generator yields how many bytes it wants, or LINE for a line, and is sent them.
"""

from __future__ import annotations

from typing import Dict, Generator, List, Mapping, NamedTuple, Optional, TypeVar
from urllib.parse import quote, urlencode

T = TypeVar("T")
Steps = Generator[int, bytes, T]

LINE = 0
MAX_LINE = 64 << 10


class Request(NamedTuple):
    """A request of the API."""

    method: str
    path: str
    query: Mapping[str, str]
    header: Mapping[str, str] = {}
    body: bytes = b""

    def encode(self, host: str, token: str) -> bytes:
        target = self.path + ("?" + urlencode(self.query, quote_via=quote) if self.query else "")
        fields = {"Host": host, **self.header}
        if token:
            fields["Authorization"] = "Bearer " + token
        if self.method != "GET":
            fields["Content-Length"] = str(len(self.body))
        for name, value in fields.items():
            if any(c in name + value for c in "\r\n\0"):
                raise ValueError(f"the header {name!r} has a line break")
        head = f"{self.method} {target} HTTP/1.1\r\n" + "".join(f"{n}: {v}\r\n" for n, v in fields.items()) + "\r\n"
        return head.encode() + self.body


def in_path(name: str) -> str:
    """Quote a name as one part of a path. The server would resolve dots and repeated slashes."""
    return quote(name, safe="").replace(".", "%2E")


class Head(NamedTuple):
    """The first lines of a reply."""

    status: int
    fields: Dict[str, str]  # names are in lower case

    @property
    def chunked(self) -> bool:
        return self.fields.get("transfer-encoding", "").lower() == "chunked"

    @property
    def reusable(self) -> bool:
        """Whether the connection is of use after the body."""
        return self.fields.get("connection", "").lower() != "close" and (self.chunked or "content-length" in self.fields)


def read_head() -> Steps[Head]:
    version, _, rest = (yield LINE).decode("latin-1").partition(" ")
    status = rest[:3]
    if not version.startswith("HTTP/1.") or not status.isdigit():
        raise ValueError("the reply is not that of an agent")
    fields: Dict[str, str] = {}
    while True:
        line = (yield LINE).decode("latin-1").rstrip("\r\n")
        if not line:
            return Head(int(status), fields)
        name, _, value = line.partition(":")
        fields[name.lower()] = value.strip()


def read_chunk() -> Steps[bytes]:
    """Read a chunk of a chunked body; it is empty at the end."""
    size = int((yield LINE).split(b";")[0], 16)
    data = (yield size) if size else b""
    yield LINE  # no trailers are sent
    return data


def read_body(head: Head) -> Steps[bytes]:
    if not head.chunked:
        size = int(head.fields.get("content-length", "0"))
        return (yield size) if size else b""
    parts: List[bytes] = []
    while True:
        part = yield from read_chunk()
        if not part:
            return b"".join(parts)
        parts.append(part)


class Event(NamedTuple):
    """A server-sent event. Without a name it is a position alone, or a comment that says that the stream is alive."""

    name: str
    id: str
    data: str


class Events:
    """Parses server-sent events."""

    def __init__(self) -> None:
        self._rest: List[bytes] = []  # parts of a line, which may be long
        self._fields: Dict[str, str] = {}

    def feed(self, data: bytes) -> List[Event]:
        """Return the events that are complete with these bytes."""
        if b"\n" not in data:
            self._rest.append(data)
            return []
        *lines, rest = b"".join([*self._rest, data]).split(b"\n")
        self._rest = [rest]
        return [e for e in map(self._line, lines) if e]

    def _line(self, line: bytes) -> Optional[Event]:
        if line:
            name, _, value = line.decode().partition(": ")
            self._fields[name] = value
            return None
        fields, self._fields = self._fields, {}
        return Event(fields.get("event", ""), fields.get("id", ""), fields.get("data", "")) if fields else None

"""The API of an agent without I/O: each call is a request, and a function of its reply."""

from __future__ import annotations

import json
import os
import socket
from dataclasses import dataclass
from typing import Any, Callable, Dict, Generic, Mapping, Optional, Tuple, TypeVar, Union

from . import errors
from ._http import Head, Request, in_path
from .types import JSON, Answers, Entry, HeldLock, MemberRef, Receipt, View

T = TypeVar("T")
Data = Union[bytes, bytearray, memoryview, str]

DEFAULT_TIMEOUT = 30.0  # of a request, which the agent has, too
MAX_TIMEOUT = 600.0
GRACE = 5.0  # how much longer than its timeout a request may take until the agent counts as hung
SILENCE = 45.0  # of a stream, which has a comment every 15 s
PAUSES = (0.05, 1.0)  # between attempts to open a stream again, from and to
POLL = 0.05  # of an agent that is starting


@dataclass(frozen=True)
class Address:
    """Where the agent is."""

    socket: Optional[str]  # or else host and port
    host: str = ""
    port: int = 0
    token: str = ""

    @property
    def where(self) -> str:
        return self.socket if self.socket is not None else f"{self.host}:{self.port}"

    @property
    def name(self) -> str:
        """The header Host."""
        return "agent" if self.socket is not None else self.where


def address(path: Optional[str], api: Optional[str], token_file: Optional[str]) -> Address:
    """Find the agent as the commands of pleach do."""
    if path and api:
        raise ValueError("name the socket or the api of the agent, and not both")
    if not path:
        api = api or os.environ.get("PLEACH_API")
    if not api:
        path = path or os.environ.get("PLEACH_SOCKET") or default_socket()
        _check_socket(path)
        return Address(path)
    token_file = token_file or os.environ.get("PLEACH_TOKEN_FILE")
    if not token_file:
        raise ValueError("api needs token_file, the one of the agent")
    with open(token_file, encoding="utf-8") as f:
        token = f.read().strip()
    host, _, port = api.rpartition(":")
    return Address(None, host.strip("[]"), int(port), token)


def default_socket() -> str:
    """Return where an agent of this user listens."""
    if os.geteuid() == 0:
        return "/run/pleach/agent.sock"
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return os.path.join(runtime, "pleach", "agent.sock") if runtime else os.path.join(_shared(), "agent.sock")


def _shared() -> str:
    """The directory of this user's socket among the temporary files of all users."""
    return os.path.join(os.environ.get("TMPDIR") or "/tmp", f"pleach-{os.geteuid()}")


def _check_socket(path: str) -> None:
    """Refuse a socket whose directory another user may have made first."""
    folder = os.path.dirname(path)
    if folder != _shared():
        return
    try:
        info = os.lstat(folder)
    except FileNotFoundError:
        return
    if not (info.st_mode & 0o170000 == 0o040000 and info.st_uid == os.geteuid() and not info.st_mode & 0o022):
        raise PermissionError(f"the directory {folder} is not this user's alone: remove it, or set PLEACH_SOCKET")


@dataclass(frozen=True)
class Call(Generic[T]):
    """A request, and what its reply means."""

    request: Request
    result: Callable[[JSON], T]
    patience: float = DEFAULT_TIMEOUT + GRACE  # until the agent counts as hung


def reply_of(head: Head, body: bytes) -> Any:
    """Decode a reply, or raise it if it is an error."""
    if head.status == 200 and "json" not in head.fields.get("content-type", ""):
        return {}
    try:
        reply = json.loads(body)
    except ValueError:
        reply = {}
    if head.status != 200:
        raise errors.refused(head.status, reply)
    return reply


def _call(
    result: Callable[[JSON], T], method: str, path: str, timeout: Optional[float] = None, body: Data = b"",
    header: Optional[Mapping[str, str]] = None, **query: Union[str, int, bool, None],
) -> Call[T]:  # fmt: skip
    """Make a call. A part of the query that is None or False is left out."""
    words: Dict[str, str] = {}
    for name, value in query.items():
        if value is not None and value is not False:
            words[name] = "true" if value is True else str(value)
    if timeout is not None:
        words["timeout"] = f"{timeout:.3f}s"
    data = body.encode() if isinstance(body, str) else bytes(body)
    request = Request(method, path, words, header or {}, data)
    return Call(request, result, (DEFAULT_TIMEOUT if timeout is None else timeout) + GRACE)


def _headers(headers: Optional[Mapping[str, str]]) -> Dict[str, str]:
    return {"Pleach-Header-" + key: value for key, value in (headers or {}).items()}


def broadcast(
    data: Data, topic: str, stable: bool, fleet: bool, headers: Optional[Mapping[str, str]], timeout: Optional[float]
) -> Call[Receipt]:
    return _call(
        Receipt.of, "POST", "/v1/broadcast", timeout, data, _headers(headers), topic=topic or None,
        wait="stable" if stable else None, fleet=fleet,
    )  # fmt: skip


def send(
    to: Union[str, int], data: Data, headers: Optional[Mapping[str, str]], timeout: Optional[float]
) -> Call[MemberRef]:
    return _call(lambda r: MemberRef.of(r["to"]), "POST", "/v1/send", timeout, data, _headers(headers), to=to)


def query(name: str, data: Data, fleet: bool, timeout: Optional[float]) -> Call[Answers]:
    return _call(Answers.of, "POST", "/v1/query", timeout, data, name=name, fleet=fleet)


def members(before: Tuple[Any, ...] = ()) -> Call[View]:
    return _call(lambda r: View.of(r, before), "GET", "/v1/members")


def status() -> Call[JSON]:
    return _call(lambda r: r, "GET", "/v1/status")


def ready() -> Call[None]:
    return _call(lambda r: None, "GET", "/readyz")


def _key(key: str) -> str:
    return "/v1/kv/" + in_path(key)


def get(key: str, timeout: Optional[float]) -> Call[Entry]:
    return _call(Entry.of, "GET", _key(key), timeout)


def entries(prefix: str, timeout: Optional[float]) -> Call[Tuple[Entry, ...]]:
    return _call(lambda r: tuple(map(Entry.of, r["entries"])), "GET", "/v1/kv", timeout, prefix=prefix)


def _version(reply: JSON) -> int:
    return int(reply["version"])


def put(key: str, value: Data, version: Optional[int], timeout: Optional[float]) -> Call[int]:
    return _call(_version, "PUT", _key(key), timeout, value, version=version)


def delete(key: str, version: Optional[int], timeout: Optional[float]) -> Call[int]:
    return _call(_version, "DELETE", _key(key), timeout, version=version)


@dataclass(frozen=True)
class Grant:
    """A lock that was taken."""

    name: str
    holder: str
    token: int
    ttl: float
    handle: str


def lock(name: str, holder: str, ttl: float, wait: Optional[float]) -> Call[Grant]:
    """Take a lock. It waits for so long; 0: not at all."""
    return _call(
        lambda r: Grant(r["name"], r["holder"], r["token"], r["ttl"], r["handle"]), "POST", _lock(name), wait or None,
        holder=holder or f"{socket.gethostname()}:{os.getpid()}", ttl=f"{ttl:.3f}s", wait=wait != 0,
    )  # fmt: skip


def renew(grant: Grant, timeout: float) -> Call[None]:
    return _call(lambda r: None, "PUT", _lock(grant.name), timeout, handle=grant.handle)


def unlock(grant: Grant, timeout: Optional[float] = None) -> Call[None]:
    return _call(lambda r: None, "DELETE", _lock(grant.name), timeout, handle=grant.handle)


def locks() -> Call[Tuple[HeldLock, ...]]:
    return _call(lambda r: tuple(map(HeldLock.of, r["locks"])), "GET", "/v1/locks")


def _lock(name: str) -> str:
    return "/v1/locks/" + in_path(name)

"""The client of an agent for programs with threads."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import threading
import time
from types import TracebackType
from typing import Any, BinaryIO, Generic, Iterator, List, Mapping, Optional, Tuple, Type, TypeVar, Union

from . import _calls, _feeds, _http, _terms, errors
from ._calls import Address, Call, Data
from .types import JSON, Answers, Change, Entry, Event, HeldLock, MemberRef, Message, Receipt, View

T = TypeVar("T")

MAX_IDLE = 8  # connections


class Connection:
    """A connection to the agent."""

    def __init__(self, address: Address, timeout: float) -> None:
        self._address = address
        try:
            if address.socket is not None:
                self._socket = socket.socket(socket.AF_UNIX)
                self._socket.settimeout(timeout)
                self._socket.connect(address.socket)
            else:
                self._socket = socket.create_connection((address.host, address.port), timeout)
        except OSError as e:
            if address.socket is not None:
                self._socket.close()
            raise errors.NoAgentError(f"no agent answers on {address.where}: start one with pleach agent ({e})") from e
        self._file: BinaryIO = self._socket.makefile("rb")

    def request(self, r: _http.Request, timeout: float) -> _http.Head:
        """Send a request, and read the beginning of its reply."""
        with self._failing():
            self._socket.settimeout(timeout)
            self._socket.sendall(r.encode(self._address.name, self._address.token))
            return self._drive(_http.read_head())

    def body(self, head: _http.Head) -> bytes:
        with self._failing():
            return self._drive(_http.read_body(head))

    def chunk(self) -> bytes:
        with self._failing():
            return self._drive(_http.read_chunk())

    def usable(self) -> bool:
        """Report whether an idle connection is still open: one that can be read has ended."""
        return not select.select([self._socket], [], [], 0)[0]

    def shut(self) -> None:
        """End the connection under a reader in another thread."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._file.close()
        self._socket.close()

    def _drive(self, steps: _http.Steps[T]) -> T:
        try:
            want = next(steps)
            while True:
                data = self._file.readline(_http.MAX_LINE) if want == _http.LINE else self._file.read(want)
                if len(data) < want or not data:
                    raise ConnectionError("the agent has ended the connection")
                want = steps.send(data)
        except StopIteration as e:
            result: T = e.value
            return result

    @contextlib.contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError) as e:
            raise errors.DisconnectedError(f"the agent on {self._address.where} did not reply: {e}") from e


class Client:
    """A client of the agent of this host. Threads may share it.

    Without arguments it finds the agent as the command pleach does: by PLEACH_API and PLEACH_TOKEN_FILE, by PLEACH_SOCKET,
    or at the default socket. It connects when it is used.

    A timeout in seconds bounds a call (30 s by default), at the agent, too. After a :class:`DisconnectedError`,
    :class:`UnavailableError` or :class:`TimeoutError`, a change was made or not.
    """

    def __init__(
        self, socket: Optional[str] = None, *, api: Optional[str] = None, token_file: Optional[str] = None
    ) -> None:
        self._address = _calls.address(socket, api, token_file)
        self._lock = threading.Lock()
        self._idle: List[Connection] = []
        self._pid = os.getpid()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_pid"):
            self.close()

    def close(self) -> None:
        """Close idle connections. The client can still be used."""
        with self._lock:
            idle, self._idle = self._idle, []
        for c in idle:
            c.close()

    # Members

    def ready(self) -> bool:
        """Report whether the agent is a member of a group with a quorum, and has its keys and messages."""
        try:
            self._do(_calls.ready())
        except errors.TEMPORARY:
            return False
        return True

    def wait_ready(self, timeout: float = 10.0) -> None:
        """Wait until the agent is ready, and raise the error that says why it is not."""
        until = time.monotonic() + timeout
        while True:
            try:
                return self._do(_calls.ready())
            except errors.TEMPORARY:
                if time.monotonic() > until:
                    raise
            time.sleep(_calls.POLL)

    def members(self) -> View:
        """Return the current view."""
        return self._do(_calls.members())

    def views(self) -> Subscription[View]:
        """Iterate over views: the current one, and each that this agent sees from now on. If several follow each other
        faster than they are read, there may be one for all of them: ``joined`` and ``left`` are the difference."""
        return Subscription(self, _feeds.Views())

    def events(self, after: str = "") -> Subscription[Event]:
        """Iterate over what happens to the group, from now on or behind a position."""
        return Subscription(self, _feeds.Events(after))

    def status(self) -> JSON:
        """Return what the agent knows of its group, as pleach status --json prints it."""
        return self._do(_calls.status())

    # Messages

    def broadcast(
        self, data: Data, topic: str = "", *, stable: bool = False, fleet: bool = False,
        headers: Optional[Mapping[str, str]] = None, timeout: Optional[float] = None,
    ) -> Receipt:  # fmt: skip
        """Send to all members, or with fleet to all members of all zones. With stable, return when every member has the
        message."""
        return self._do(_calls.broadcast(data, topic, stable, fleet, headers, timeout))

    def send(
        self, to: Union[str, int], data: Data, *, headers: Optional[Mapping[str, str]] = None,
        timeout: Optional[float] = None,
    ) -> MemberRef:  # fmt: skip
        """Send to one member, by its ID or rank."""
        return self._do(_calls.send(to, data, headers, timeout))

    def subscribe(
        self, topic: Optional[str] = None, *, after: str = "", last: bool = False, direct: bool = False,
        fleet: bool = False,
    ) -> Subscription[Message]:  # fmt: skip
        """Iterate over messages of a topic, or all: from now on, behind the message with the id ``after`` ("0": all that
        the agent keeps), or with ``last`` from the last message of the topic on.

        The iterator connects again while the agent restarts, and gets what was sent meanwhile. Where messages are missing
        it raises a :class:`MissedError`; iterate again for those behind them.
        """
        return Subscription(self, _feeds.Messages(topic, after, last, direct, fleet))

    def query(self, name: str, data: Data = b"", *, fleet: bool = False, timeout: Optional[float] = None) -> Answers:
        """Ask all members. Every agent answers ping; others are answered by commands in the agents' own files."""
        return self._do(_calls.query(name, data, fleet, timeout))

    # Keys

    def get(self, key: str, *, timeout: Optional[float] = None) -> Optional[Entry]:
        """Return a key with its value and version; None if it is absent."""
        try:
            return self._do(_calls.get(key, timeout))
        except errors.NotFoundError:
            return None

    def entries(self, prefix: str = "", *, timeout: Optional[float] = None) -> Tuple[Entry, ...]:
        """Return the keys that begin with a prefix, in order."""
        return self._do(_calls.entries(prefix, timeout))

    def put(self, key: str, value: Data, *, version: Optional[int] = None, timeout: Optional[float] = None) -> int:
        """Give a key a value, and return its new version. If a version is named and the key has another one, raise a
        :class:`ConflictError` that has it; 0 is the version of a key that is absent."""
        return self._do(_calls.put(key, value, version, timeout))

    def delete(self, key: str, *, version: Optional[int] = None, timeout: Optional[float] = None) -> bool:
        """Remove a key, if it has the version, and report whether it was there."""
        try:
            self._do(_calls.delete(key, version, timeout))
        except errors.NotFoundError:
            return False
        return True

    def watch(self, prefix: str = "", *, key: Optional[str] = None) -> Subscription[Change]:
        """Iterate over the keys that begin with a prefix, or one key: those that are there, and then each that changes.
        A slow reader gets only the last value of a key."""
        return Subscription(self, _feeds.Keys(prefix, key))

    # Locks

    def lock(
        self, name: str, *, ttl: float = _terms.DEFAULT_TTL, wait: Optional[float] = None, holder: str = ""
    ) -> Lock:
        """Take a lock, and renew it until it is released::

            with agent.lock("report") as lock:
                write(report, token=lock.token)

        It waits until the lock is free, or for up to 600 seconds (then it raises a :class:`TimeoutError`; with 0, a
        :class:`ConflictError`). If this process dies, the lock is free after ttl seconds.
        """
        while wait is None:
            with contextlib.suppress(errors.TimeoutError):
                return Lock(self, self._do(_calls.lock(name, holder, ttl, _calls.MAX_TIMEOUT)))
        return Lock(self, self._do(_calls.lock(name, holder, ttl, wait)))

    def locks(self) -> Tuple[HeldLock, ...]:
        """Return the locks that are held, in order of their names."""
        return self._do(_calls.locks())

    # Connections

    def _take(self) -> Optional[Connection]:
        with self._lock:
            if self._pid != os.getpid():  # the connections are those of the process that has forked this one
                self._idle, self._pid = [], os.getpid()
            while self._idle:
                c = self._idle.pop()
                if c.usable():
                    return c
                c.close()
        return None

    def _give(self, c: Connection) -> None:
        with self._lock:
            if self._pid == os.getpid() and len(self._idle) < MAX_IDLE:
                self._idle.append(c)
                return
        c.close()

    def _open(self, r: _http.Request, timeout: float) -> Tuple[Connection, _http.Head]:
        c = self._take() or Connection(self._address, timeout)
        try:
            return c, c.request(r, timeout)
        except BaseException:
            c.close()
            raise

    def _do(self, call: Call[T]) -> T:
        c, head = self._open(call.request, call.patience)
        return call.result(self._read(c, head))

    def _read(self, c: Connection, head: _http.Head) -> Any:
        """Read a reply, and raise it if it is an error."""
        try:
            body = c.body(head)
        except BaseException:
            c.close()
            raise
        if head.reusable:
            self._give(c)
        else:
            c.close()
        return _calls.reply_of(head, body)


class Subscription(Generic[T]):
    """What an agent tells, as an iterator. It is subscribed when it is made, and connects again when the agent restarts.

    Another thread may close it, which ends the iteration.
    """

    def __init__(self, client: Client, feed: _feeds.Feed[T]) -> None:
        self._client, self._feed = client, feed
        self._closed = threading.Event()
        self._lock = threading.Lock()  # guards _connection
        self._connection: Optional[Connection] = None
        self._events = _http.Events()
        self._received: List[_http.Event] = []
        self._connect()

    def __enter__(self) -> Subscription[T]:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        pause = _calls.PAUSES[0]
        while not self._feed.ready:
            if self._closed.is_set():
                raise StopIteration
            try:
                if self._connection is None:
                    self._connect()
                self._advance()
                pause = _calls.PAUSES[0]
            except errors.TEMPORARY:
                self._drop()
                self._closed.wait(pause)
                pause = min(2 * pause, _calls.PAUSES[1])
        item = self._feed.ready.popleft()
        if isinstance(item, errors.AgentError):
            raise item
        return item

    def close(self) -> None:
        """End the iteration."""
        self._closed.set()
        with self._lock:
            if self._connection is not None:
                self._connection.shut()

    def _connect(self) -> None:
        c, head = self._client._open(self._feed.request(), _calls.SILENCE)
        if head.status != 200:
            self._client._read(c, head)
        self._events, self._received = _http.Events(), []
        with self._lock:
            self._connection = c
        if self._closed.is_set():
            c.shut()
        self._ask(self._feed.opened())

    def _advance(self) -> None:
        """Read until there is an event, and take it."""
        assert self._connection is not None
        while not self._received:
            data = self._connection.chunk()
            if not data:
                raise errors.DisconnectedError("the agent has ended the stream")
            self._received = self._events.feed(data)
        self._ask(self._feed.receive(self._received.pop(0)))

    def _ask(self, call: Optional[Call[Any]]) -> None:
        if call is not None:
            self._feed.replied(self._client._do(call))

    def _drop(self) -> None:
        with self._lock:
            c, self._connection = self._connection, None
        if c is not None:
            c.close()

    def __del__(self) -> None:
        if getattr(self, "_connection", None) is not None:
            self._drop()


class Lock:
    """A lock that this process holds.

    Attributes:
        token: the fencing token: higher than that of every earlier holder. Send it with what is written under the lock.
        lost: is set when the lock is lost.
    """

    def __init__(self, client: Client, grant: _calls.Grant) -> None:
        self.name, self.holder, self.token = grant.name, grant.holder, grant.token
        self.lost = threading.Event()
        self._client, self._grant = client, grant
        self._term = _terms.Term(grant.ttl)
        self._released = threading.Event()
        error = self._renew(grant.ttl)[1]  # whoever waits counts its time from when it sees this
        if error is not None:
            self._unlock()
            raise error
        self._thread = threading.Thread(target=self._hold, name=f"pleach lock {self.name}", daemon=True)
        self._thread.start()

    def __enter__(self) -> Lock:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], exception: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        held = self.held()
        self.release()
        if not held and kind is None:
            raise self._lost()

    def held(self) -> bool:
        """Report whether no other client can hold the lock at this moment."""
        return not self._released.is_set() and self._term.left() > 0

    def check(self) -> None:
        """Raise a :class:`LockLostError` unless the lock is held."""
        if not self.held():
            raise self._lost()

    def release(self) -> None:
        """Release the lock. If no agent can be reached, it is free at the end of its TTL."""
        if not self._released.is_set():
            self._released.set()
            self._thread.join()
            self._unlock()

    def _lost(self) -> errors.LockLostError:
        return errors.LockLostError(f"the lock {self.name!r} could not be renewed in time: another client may hold it")

    def _unlock(self) -> None:
        with contextlib.suppress(errors.AgentError):
            self._client._do(_calls.unlock(self._grant, _calls.GRACE))

    def _renew(self, timeout: float) -> Tuple[float, Optional[errors.AgentError]]:
        began, error = _terms.now(), None
        call = _calls.renew(self._grant, timeout)
        try:
            self._client._do(Call(call.request, call.result, timeout))
        except errors.AgentError as e:
            error = e
        return self._term.renewed(began, error), error

    def _hold(self) -> None:
        pause = self._term.interval
        while not self._released.wait(min(pause, self._term.left())):
            left = self._term.left()
            if left > 0:
                pause = self._renew(min(self._term.interval, left))[0]
            if self._term.left() <= 0:
                self.lost.set()
                return

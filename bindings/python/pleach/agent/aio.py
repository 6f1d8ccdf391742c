"""The client of an agent for asyncio."""

from __future__ import annotations

import asyncio
import contextlib
import time
from types import TracebackType
from typing import Any, AsyncIterator, Awaitable, Generator, Generic, List, Mapping, Optional, Tuple, Type, TypeVar, Union

from . import _calls, _feeds, _http, _terms, errors
from ._calls import Address, Call, Data
from .client import MAX_IDLE
from .types import JSON, Answers, Change, Entry, Event, HeldLock, MemberRef, Message, Receipt, View

T = TypeVar("T")


class Connection:
    """A connection to the agent."""

    def __init__(self, address: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._address, self._reader, self._writer = address, reader, writer

    @classmethod
    async def open(cls, address: Address, timeout: float) -> Connection:
        try:
            if address.socket is not None:
                opening: Awaitable[Any] = asyncio.open_unix_connection(address.socket)
            else:
                opening = asyncio.open_connection(address.host, address.port)
            return cls(address, *await asyncio.wait_for(opening, timeout))
        except (OSError, asyncio.TimeoutError) as e:
            raise errors.NoAgentError(f"no agent answers on {address.where}: start one with pleach agent ({e})") from e

    async def request(self, r: _http.Request, timeout: float) -> _http.Head:
        """Send a request, and read the beginning of its reply."""
        self._writer.write(r.encode(self._address.name, self._address.token))
        return await self._bounded(self._drive(_http.read_head(), True), timeout)

    async def body(self, head: _http.Head, timeout: float) -> bytes:
        return await self._bounded(self._drive(_http.read_body(head)), timeout)

    async def chunk(self) -> bytes:
        return await self._bounded(self._drive(_http.read_chunk()), _calls.SILENCE)

    def usable(self) -> bool:
        return not self._reader.at_eof() and not self._writer.is_closing()

    def close(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._writer.close()

    async def _drive(self, steps: _http.Steps[T], drain: bool = False) -> T:
        if drain:
            await self._writer.drain()
        try:
            want = next(steps)
            while True:
                data = await (self._reader.readline() if want == _http.LINE else self._reader.readexactly(want))
                if not data:
                    raise ConnectionError("the agent has ended the connection")
                want = steps.send(data)
        except StopIteration as e:
            result: T = e.value
            return result

    async def _bounded(self, work: Awaitable[T], timeout: float) -> T:
        try:
            return await asyncio.wait_for(work, timeout)
        except (OSError, EOFError, ValueError, asyncio.TimeoutError) as e:
            raise errors.DisconnectedError(f"the agent on {self._address.where} did not reply: {e}") from e


class AsyncClient:
    """A client of the agent of this host, for tasks of one event loop. Its methods are those of :class:`Client`."""

    def __init__(
        self, socket: Optional[str] = None, *, api: Optional[str] = None, token_file: Optional[str] = None
    ) -> None:
        self._address = _calls.address(socket, api, token_file)
        self._idle: List[Connection] = []

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close idle connections. The client can still be used."""
        while self._idle:
            self._idle.pop().close()

    # Members

    async def ready(self) -> bool:
        """Report whether the agent is a member of a group with a quorum, and has its keys and messages."""
        try:
            await self._do(_calls.ready())
        except errors.TEMPORARY:
            return False
        return True

    async def wait_ready(self, timeout: float = 10.0) -> None:
        """Wait until the agent is ready, and raise the error that says why it is not."""
        until = time.monotonic() + timeout
        while True:
            try:
                return await self._do(_calls.ready())
            except errors.TEMPORARY:
                if time.monotonic() > until:
                    raise
            await asyncio.sleep(_calls.POLL)

    async def members(self) -> View:
        """Return the current view."""
        return await self._do(_calls.members())

    def views(self) -> AsyncSubscription[View]:
        """Iterate over views, as :meth:`Client.views`."""
        return AsyncSubscription(self, _feeds.Views())

    def events(self, after: str = "") -> AsyncSubscription[Event]:
        """Iterate over what happens to the group, from now on or behind a position."""
        return AsyncSubscription(self, _feeds.Events(after))

    async def status(self) -> JSON:
        """Return what the agent knows of its group, as pleach status --json prints it."""
        return await self._do(_calls.status())

    # Messages

    async def broadcast(
        self, data: Data, topic: str = "", *, stable: bool = False, fleet: bool = False,
        headers: Optional[Mapping[str, str]] = None, timeout: Optional[float] = None,
    ) -> Receipt:  # fmt: skip
        """Send to all members, as :meth:`Client.broadcast`."""
        return await self._do(_calls.broadcast(data, topic, stable, fleet, headers, timeout))

    async def send(
        self, to: Union[str, int], data: Data, *, headers: Optional[Mapping[str, str]] = None,
        timeout: Optional[float] = None,
    ) -> MemberRef:  # fmt: skip
        """Send to one member, by its ID or rank."""
        return await self._do(_calls.send(to, data, headers, timeout))

    def subscribe(
        self, topic: Optional[str] = None, *, after: str = "", last: bool = False, direct: bool = False,
        fleet: bool = False,
    ) -> AsyncSubscription[Message]:  # fmt: skip
        """Iterate over messages, as :meth:`Client.subscribe`. It is subscribed when ``async with`` begins, or at the
        first iteration."""
        return AsyncSubscription(self, _feeds.Messages(topic, after, last, direct, fleet))

    async def query(
        self, name: str, data: Data = b"", *, fleet: bool = False, timeout: Optional[float] = None
    ) -> Answers:
        """Ask all members, as :meth:`Client.query`."""
        return await self._do(_calls.query(name, data, fleet, timeout))

    # Keys

    async def get(self, key: str, *, timeout: Optional[float] = None) -> Optional[Entry]:
        """Return a key with its value and version; None if it is absent."""
        try:
            entry = await self._do(_calls.get(key, timeout))
        except errors.NotFoundError:
            return None
        return entry

    async def entries(self, prefix: str = "", *, timeout: Optional[float] = None) -> Tuple[Entry, ...]:
        """Return the keys that begin with a prefix, in order."""
        return await self._do(_calls.entries(prefix, timeout))

    async def put(self, key: str, value: Data, *, version: Optional[int] = None, timeout: Optional[float] = None) -> int:
        """Give a key a value, if it has the version, as :meth:`Client.put`."""
        return await self._do(_calls.put(key, value, version, timeout))

    async def delete(self, key: str, *, version: Optional[int] = None, timeout: Optional[float] = None) -> bool:
        """Remove a key, if it has the version, and report whether it was there."""
        try:
            await self._do(_calls.delete(key, version, timeout))
        except errors.NotFoundError:
            return False
        return True

    def watch(self, prefix: str = "", *, key: Optional[str] = None) -> AsyncSubscription[Change]:
        """Iterate over keys that are there, and then each that changes, as :meth:`Client.watch`."""
        return AsyncSubscription(self, _feeds.Keys(prefix, key))

    # Locks

    def lock(
        self, name: str, *, ttl: float = _terms.DEFAULT_TTL, wait: Optional[float] = None, holder: str = ""
    ) -> AsyncLock:
        """Take a lock, and renew it until it is released: ``async with client.lock("report") as lock``. See
        :meth:`Client.lock`."""
        return AsyncLock(self, _calls.lock(name, holder, ttl, _calls.MAX_TIMEOUT if wait is None else wait), wait is None)

    async def locks(self) -> Tuple[HeldLock, ...]:
        """Return the locks that are held, in order of their names."""
        return await self._do(_calls.locks())

    # Connections

    async def _open(self, r: _http.Request, timeout: float) -> Tuple[Connection, _http.Head]:
        while True:
            c = self._idle.pop() if self._idle else await Connection.open(self._address, timeout)
            if c.usable():
                break
            c.close()
        try:
            return c, await c.request(r, timeout)
        except BaseException:
            c.close()
            raise

    async def _do(self, call: Call[T]) -> T:
        c, head = await self._open(call.request, call.patience)
        return call.result(await self._read(c, head, call.patience))

    async def _read(self, c: Connection, head: _http.Head, timeout: float) -> Any:
        """Read a reply, and raise it if it is an error."""
        try:
            body = await c.body(head, timeout)
        except BaseException:
            c.close()
            raise
        if head.reusable and len(self._idle) < MAX_IDLE:
            self._idle.append(c)
        else:
            c.close()
        return _calls.reply_of(head, body)


class AsyncSubscription(Generic[T]):
    """What an agent tells, as an asynchronous iterator. It connects again when the agent restarts."""

    def __init__(self, client: AsyncClient, feed: _feeds.Feed[T]) -> None:
        self._client, self._feed = client, feed
        self._connection: Optional[Connection] = None
        self._opened = False
        self._events = _http.Events()
        self._received: List[_http.Event] = []

    async def __aenter__(self) -> AsyncSubscription[T]:
        await self._connect()
        return self

    async def __aexit__(self, *exception: object) -> None:
        self.close()

    def __aiter__(self) -> AsyncIterator[T]:
        return self

    async def __anext__(self) -> T:
        pause = _calls.PAUSES[0]
        while not self._feed.ready:
            try:
                if self._connection is None:
                    await self._connect()
                else:
                    await self._advance()
                pause = _calls.PAUSES[0]
            except errors.TEMPORARY:
                self.close()
                if not self._opened:
                    raise
                await asyncio.sleep(pause)
                pause = min(2 * pause, _calls.PAUSES[1])
        item = self._feed.ready.popleft()
        if isinstance(item, errors.AgentError):
            raise item
        return item

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    async def _connect(self) -> None:
        c, head = await self._client._open(self._feed.request(), _calls.SILENCE)
        if head.status != 200:
            await self._client._read(c, head, _calls.SILENCE)
        self._events, self._received = _http.Events(), []
        self._connection, self._opened = c, True
        await self._ask(self._feed.opened())

    async def _advance(self) -> None:
        """Read until there is an event, and take it."""
        assert self._connection is not None
        while not self._received:
            data = await self._connection.chunk()
            if not data:
                raise errors.DisconnectedError("the agent has ended the stream")
            self._received = self._events.feed(data)
        await self._ask(self._feed.receive(self._received.pop(0)))

    async def _ask(self, call: Optional[Call[Any]]) -> None:
        if call is not None:
            self._feed.replied(await self._client._do(call))


class AsyncLock:
    """A lock that this process holds while ``async with`` lasts, or from ``await`` to :meth:`release`.

    Attributes:
        token: the fencing token: higher than that of every earlier holder. Send it with what is written under the lock.
        lost: is set when the lock is lost.
    """

    def __init__(self, client: AsyncClient, call: Call[_calls.Grant], again: bool) -> None:
        self._client, self._call, self._again = client, call, again
        self._grant: Optional[_calls.Grant] = None
        self._term = _terms.Term(_terms.DEFAULT_TTL)
        self._task: Optional[asyncio.Task[None]] = None
        self.lost = asyncio.Event()

    async def __aenter__(self) -> AsyncLock:
        return await self._take()

    def __await__(self) -> Generator[Any, None, AsyncLock]:
        return self._take().__await__()

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], exception: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        held = self.held()
        await self.release()
        if not held and kind is None:
            raise self._lost()

    @property
    def name(self) -> str:
        return self._held().name

    @property
    def token(self) -> int:
        return self._held().token

    def held(self) -> bool:
        """Report whether no other client can hold the lock at this moment."""
        return self._task is not None and self._term.left() > 0

    def check(self) -> None:
        """Raise a :class:`LockLostError` unless the lock is held."""
        if not self.held():
            raise self._lost()

    async def release(self) -> None:
        """Release the lock. If no agent can be reached, it is free at the end of its TTL."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
            await self._unlock()

    def _held(self) -> _calls.Grant:
        if self._grant is None:
            raise RuntimeError("the lock was not taken: write async with client.lock(name) as lock")
        return self._grant

    def _lost(self) -> errors.LockLostError:
        return errors.LockLostError(f"the lock {self.name!r} could not be renewed in time: another client may hold it")

    async def _take(self) -> AsyncLock:
        while self._grant is None:
            try:
                grant = await self._client._do(self._call)
                self._grant = grant
            except errors.TimeoutError:
                if not self._again:
                    raise
        self._term = _terms.Term(self._grant.ttl)
        error = (await self._renew(self._grant.ttl))[1]  # whoever waits counts its time from when it sees this
        if error is not None:
            await self._unlock()
            raise error
        self._task = asyncio.ensure_future(self._hold())
        return self

    async def _unlock(self) -> None:
        with contextlib.suppress(errors.AgentError):
            await self._client._do(_calls.unlock(self._held(), _calls.GRACE))

    async def _renew(self, timeout: float) -> Tuple[float, Optional[errors.AgentError]]:
        began, error = _terms.now(), None
        call = _calls.renew(self._held(), timeout)
        try:
            await self._client._do(Call(call.request, call.result, timeout))
        except errors.AgentError as e:
            error = e
        return self._term.renewed(began, error), error

    async def _hold(self) -> None:
        pause = self._term.interval
        while self._term.left() > 0:
            await asyncio.sleep(min(pause, self._term.left()))
            left = self._term.left()
            if left > 0:
                pause = (await self._renew(min(self._term.interval, left)))[0]
        self.lost.set()

"""Values of a job on the keys of the agents, which are changed exactly once. pleach.agent.torch makes a store of them."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import random
import threading
import time
import uuid
import weakref
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Callable, Dict, List, Optional, Sequence, Tuple, Type, TypeVar, Union

from . import errors
from .client import Client
from .types import Entry

T = TypeVar("T")
Text = Union[str, bytes]

PREFIX = "torch/"
ALIVE = "alive"  # the key of a job that says for how long its keys are kept
DAY = 86400.0
MAX_KEY = 255  # of the agents, in bytes
MAX_VALUE = 64 << 10
MAX_WRITERS = 1024  # of a key that are remembered
ATTEMPT = 30.0  # seconds that a request of a call may take; calls make several
PAUSES = (0.005, 0.5)


class WaitError(errors.AgentError):
    """The time of a call is over, or it cannot be told whether a change was made."""


@dataclass
class _Value:
    """A value in the store. It names the last change of each writer by the version that the change has replaced: so a
    writer that lost the reply to a change finds out whether it was made, also when others have changed the key since."""

    data: bytes
    writers: Dict[str, int] = field(default_factory=dict)
    since: int = 0  # changes of earlier versions may be forgotten
    key: str = ""  # if its name has the hash of the key

    @classmethod
    def decode(cls, b: bytes) -> _Value:
        head, _, data = b.partition(b"\n")
        fields = json.loads(head)
        return cls(data, fields["writers"], fields.get("since", 0), fields.get("key", ""))

    def changed(self, data: bytes, writer: str, version: int, key: str) -> _Value:
        """Return the value after a change by a writer that replaces a version."""
        return _Value(data, {**self.writers, writer: version}, self.since, key)

    def encode(self) -> bytes:
        """Encode the value, and forget the oldest writers if they are too many."""
        while True:
            fields = {"writers": self.writers, "since": self.since, "key": self.key}
            b = json.dumps({k: v for k, v in fields.items() if v or k == "writers"}, separators=(",", ":")).encode()
            over = len(b) + 1 + len(self.data) - MAX_VALUE
            if len(self.writers) <= MAX_WRITERS and (over <= 0 or len(self.writers) <= 1):
                return b + b"\n" + self.data
            drop = max(len(self.writers) - MAX_WRITERS, min(over // 20 + 1, len(self.writers) - 1))
            for writer, version in sorted(self.writers.items(), key=lambda w: w[1])[:drop]:
                self.since = max(self.since, version + 1)
                del self.writers[writer]


class Values:
    """The values of a job. All calls are linearizable and may be made by several threads.

    Limit is for how long a call without a timeout waits. Error is raised when that is over: a change was made or not.
    """

    def __init__(
        self, job: str, client: Client, limit: Callable[[], timedelta], ttl: float = DAY, error: Type[Exception] = WaitError
    ) -> None:
        if not job or "/" in job:
            raise ValueError(f"{job!r} is not the name of a job: it may not be empty or have a slash")
        self.job, self.client, self.ttl, self._limit, self._error = job, client, ttl, limit, error
        self._prefix = f"{PREFIX}{job}/"
        self._changing = threading.Lock()  # a writer has one change at a time
        self._writer, self._pid = "", 0
        self._stop = threading.Event()
        weakref.finalize(self, self._stop.set)
        self._retry(lambda left: _keep(client, self._prefix, ttl, left), self._until(None), "the agent")
        threading.Thread(
            target=_keep_on, args=(client, self._prefix, ttl, self._stop), name="pleach store", daemon=True
        ).start()

    def set(self, key: str, value: Text) -> None:
        self._change(key, lambda old: _bytes(value))

    def get(self, key: str) -> bytes:
        return self._wait(key, self._until(None))

    def compare_set(self, key: str, expected: Text, desired: Text) -> bytes:
        want, new = _bytes(expected), _bytes(desired)

        def change(old: Optional[bytes]) -> Optional[bytes]:
            return new if old == want or old is None and not want else None

        before, after = self._change(key, change)
        if after is not None:
            return after
        return want if before is None else before

    def add(self, key: str, value: int) -> int:
        after = self._change(key, lambda old: str(int(old or 0) + value).encode())[1]
        assert after is not None
        return int(after)

    def append(self, key: str, value: Text) -> None:
        self._change(key, lambda old: (old or b"") + _bytes(value))

    def wait(self, keys: Sequence[str], timeout: Optional[timedelta] = None) -> None:
        until = self._until(timeout)
        for key in keys:
            self._wait(key, until)

    def check(self, keys: Sequence[str]) -> bool:
        until = self._until(None)
        return all(self._read(key, until) is not None for key in keys)

    def delete(self, key: str) -> bool:
        until, doubt = self._until(None), False
        while True:
            entry = self._read(key, until)
            if entry is None:
                return doubt
            try:
                version = entry.version
                if self.client.delete(self._name(key), version=version, timeout=self._left(until, key)):
                    return True
            except errors.ConflictError:
                doubt = False  # another one has changed it
            except errors.TEMPORARY:
                doubt = True
                time.sleep(PAUSES[0])

    def keys(self) -> List[str]:
        """Return the keys, in no order."""
        until = self._until(None)
        entries = self._retry(lambda left: self.client.entries(self._prefix, timeout=left), until, "the keys")
        start = len(self._prefix)
        return [
            _Value.decode(e.value).key or e.key[start + 2 :] for e in entries if e.key[start : start + 2] in ("k/", "h/")
        ]

    def clear(self) -> None:
        """Remove all keys of the job."""
        self._stop.set()
        until = self._until(None)
        _remove(self._retry(lambda left: self.client.entries(self._prefix, timeout=left), until, "the keys"), self.client)

    # Calls of the agent

    def _name(self, key: str) -> str:
        name = self._prefix + "k/" + key
        if len(name.encode()) <= MAX_KEY:
            return name
        return self._prefix + "h/" + hashlib.sha256(key.encode()).hexdigest()

    def _until(self, timeout: Optional[timedelta]) -> float:
        return time.monotonic() + (self._limit() if timeout is None else timeout).total_seconds()

    def _left(self, until: float, what: str) -> float:
        """Return how long a request may take, or raise that the time is over."""
        left = until - time.monotonic()
        if left <= 0:
            raise self._over(what)
        return max(0.001, min(left, ATTEMPT))

    def _over(self, what: str) -> Exception:
        return self._error(f"wait timeout of the store of the agents: {what} of the job {self.job}")

    def _retry(self, request: Callable[[float], T], until: float, what: str) -> T:
        """Make a request that has no effect when it is repeated, until the agent replies."""
        pause = PAUSES[0]
        while True:
            try:
                return request(self._left(until, what))
            except errors.TEMPORARY:
                time.sleep(min(pause, max(0, until - time.monotonic())))
                pause = min(2 * pause, PAUSES[1])

    def _read(self, key: str, until: float) -> Optional[Entry]:
        name = self._name(key)
        return self._retry(lambda left: self.client.get(name, timeout=left), until, key)

    def _wait(self, key: str, until: float) -> bytes:
        """Wait until a key is there, and return its value."""
        entry = self._read(key, until)
        if entry is not None:
            return _Value.decode(entry.value).data
        name = self._name(key)
        changes = self._retry(lambda left: self.client.watch(key=name), until, key)
        timer = threading.Timer(max(0, until - time.monotonic()), changes.close)
        timer.daemon = True
        timer.start()
        try:
            for change in changes:
                if change.value is not None:
                    return _Value.decode(change.value).data
        finally:
            timer.cancel()
            changes.close()
        raise self._over(key)

    def _change(
        self, key: str, change: Callable[[Optional[bytes]], Optional[bytes]]
    ) -> Tuple[Optional[bytes], Optional[bytes]]:
        """Change a value exactly once, unless change returns None, and return the old one and the new one."""
        until, name = self._until(None), self._name(key)
        with self._changing:
            if self._pid != os.getpid():
                self._writer, self._pid = uuid.uuid4().hex[:12], os.getpid()
            entry = self._read(key, until)
            for attempt in itertools.count():
                old = _Value(b"") if entry is None else _Value.decode(entry.value)
                version = 0 if entry is None else entry.version
                before = None if entry is None else old.data
                after = change(before)
                if after is None:
                    return before, None
                new = old.changed(after, self._writer, version, key if "/h/" in name else "").encode()
                doubt = False
                while True:
                    try:
                        self.client.put(name, new, version=version, timeout=self._left(until, key))
                        return before, after
                    except errors.ConflictError:
                        pass
                    except errors.TEMPORARY as e:
                        doubt = doubt or isinstance(e, errors.IN_DOUBT)
                        time.sleep(PAUSES[0])
                    entry = self._read(key, until)
                    if (0 if entry is None else entry.version) != version:
                        break  # the request can have no effect any more
                if entry is not None and self._made(_Value.decode(entry.value), version, doubt, key):
                    return before, after
                time.sleep(random.random() * min(PAUSES[0] * attempt, 0.1))  # others change it, too
        raise AssertionError

    def _made(self, now: _Value, version: int, doubt: bool, key: str) -> bool:
        """Report whether this writer's change of a version was made."""
        if now.writers.get(self._writer) == version:
            return True
        if doubt and version < now.since:
            raise self._error(f"the agent was lost in a change of {key}, and too many others followed to tell if it was made")
        return False


def _bytes(value: Text) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


def _keep(client: Client, prefix: str, ttl: float, timeout: float) -> None:
    """Note that a job is alive. The first process of a job removes the keys of those that are not."""
    value = json.dumps({"ttl": ttl})
    try:
        now = client.put(prefix + ALIVE, value, version=0, timeout=timeout)
    except errors.ConflictError:
        client.put(prefix + ALIVE, value, timeout=timeout)
        return
    jobs: Dict[str, List[Entry]] = {}
    for e in client.entries(PREFIX, timeout=timeout):
        jobs.setdefault(e.key.split("/")[1], []).append(e)
    for job, entries in jobs.items():
        kept = [float(json.loads(e.value)["ttl"]) for e in entries if e.key == f"{PREFIX}{job}/{ALIVE}"] or [DAY]
        if max(e.version for e in entries) < now - 1000 * kept[0]:  # versions are times in milliseconds, or later
            _remove(entries, client)


def _keep_on(client: Client, prefix: str, ttl: float, stop: threading.Event) -> None:
    """Note four times within a TTL that a job is alive."""
    while not stop.wait(ttl / 4):
        try:
            _keep(client, prefix, ttl, ATTEMPT)
        except errors.AgentError:
            pass  # the agent is away; the next attempt is in time


def _remove(entries: Sequence[Entry], client: Client) -> None:
    """Remove the keys of a job unless it has changed them, the one that says it is alive first."""
    for e in sorted(entries, key=lambda e: e.key.count("/")):
        try:
            client.delete(e.key, version=e.version)
        except errors.ConflictError:
            if e.key.count("/") == 2:
                return

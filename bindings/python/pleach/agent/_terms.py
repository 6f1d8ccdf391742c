"""The time of a lock without I/O."""

from __future__ import annotations

import time
from typing import Optional

from .errors import AgentError, ConflictError, ForbiddenError, NotFoundError

DEFAULT_TTL = 10.0
RENEWALS = 3  # within a TTL


def now() -> float:
    """Return the time by a clock that goes on while the host is suspended, where there is one."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class Term:
    """For how long a lock is held. Its TTL counts from before each renewal was sent."""

    def __init__(self, ttl: float) -> None:
        self._ttl = ttl
        self._until = 0.0
        # Locks of a long TTL are renewed as often as those of the default one: so a holder notices early that the
        # agents have lost the lock.
        self.interval = min(ttl, DEFAULT_TTL) / RENEWALS

    def left(self) -> float:
        return max(0.0, self._until - now())

    def renewed(self, began: float, error: Optional[AgentError]) -> float:
        """Note how a renewal has ended that began then, and return when to make the next one: a time from now."""
        if error is None:
            self._until = began + self._ttl
            return self.interval
        if isinstance(error, (ConflictError, ForbiddenError, NotFoundError)):
            self.end()
        return min(self._ttl, DEFAULT_TTL) / 20

    def end(self) -> None:
        self._until = 0.0

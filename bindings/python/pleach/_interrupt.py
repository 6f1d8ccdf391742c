"""Ctrl-C during a call.

A call runs in the library, and Python would raise KeyboardInterrupt only when it returns. Python's own handler writes
the number of a signal to a file descriptor at once. A thread reads it, and ends the call of the main thread. Handlers
of the program run when the call returns, as in any function of C: only the default one of SIGINT is known to raise.
"""

from __future__ import annotations

import atexit
import os
import signal
import threading
import time
import weakref
from typing import Any, Optional, Tuple

from ._library import lib

_worlds: weakref.WeakSet[Any] = weakref.WeakSet()
_reader: Optional[threading.Thread] = None
_main = threading.main_thread().ident
_current: Optional[Tuple[Any]] = None  # the world in which the main thread makes a call; another tuple for each call


def enter(world: Any) -> bool:
    """Note that a thread makes a call."""
    global _current
    if threading.get_ident() != _main:
        return False
    _current = (world,)
    return True


def leave(is_main: bool) -> None:
    """Note that the call has returned."""
    global _current
    if is_main:
        _current = None


def watch(world: Any) -> None:
    """Begin to look for signals, if this is the main thread, which alone may ask for them."""
    global _reader
    _worlds.add(world)
    if _reader is not None or threading.get_ident() != _main:
        return
    read, write = os.pipe()
    os.set_blocking(write, False)
    before = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    _reader = threading.Thread(target=_read, args=(read, before), name="pleach-interrupt", daemon=True)
    _reader.start()


def _read(read: int, before: int) -> None:
    while numbers := os.read(read, 64):
        if before >= 0:
            os.write(before, numbers)  # for those that have asked before
        if signal.SIGINT in numbers and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            # Again and again: the main thread may be about to begin this call.
            call = _current
            while call is not None and call is _current:
                lib.pleach_interrupt(call[0]._handle)
                time.sleep(0.02)


def _in_child() -> None:
    """The pipe is the parent's."""
    if _reader is not None and threading.get_ident() == _main:
        signal.set_wakeup_fd(-1)


def _at_exit() -> None:
    """No callback may come when the interpreter is gone. A world that was finalized is not changed."""
    for world in list(_worlds):
        lib.pleach_abort(world._handle)


os.register_at_fork(after_in_child=_in_child)
atexit.register(_at_exit)

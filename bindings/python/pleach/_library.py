"""libpleach by ctypes: the constants and structures of pleach.h, which a test compares with it.

ctypes releases the interpreter's lock during calls, and takes it for callbacks, which come from threads of
the library. It needs no compiler; a call costs some microseconds more than from C.
"""

from __future__ import annotations

import ctypes
import os
import platform
from ctypes import CFUNCTYPE, POINTER, c_char, c_char_p, c_int, c_int32, c_size_t, c_uint64, c_void_p

# Kinds of calls, in the order of pleach_kind.
(
    BARRIER, ONCE, BROADCAST, REDUCE, ALLREDUCE, SCAN, EXSCAN, GATHER, ALLGATHER, SCATTER,
    REDUCE_SCATTER, ALLTOALL, EXCHANGE, AGREE, SPLIT, SHRINK, ADMIT, EVICT, FINALIZE,
) = range(19)  # fmt: skip

U8, I8, U16, I16, U32, I32, U64, I64, F16, BF16, F32, F64, C64, C128, BOOL = range(15)
SUM, PROD, MIN, MAX, AND, OR, USER = range(7)
RUN_THROUGH, REPORT, CORRECTED = range(3)
OK, PENDING, CANCELED = 0, 1, 4
TEXT, RANKS = 1024, 64


class Error(ctypes.Structure):
    """pleach_error"""

    _fields_ = [("code", c_int32), ("ranks_count", c_int32), ("ranks", c_int32 * RANKS), ("text", c_char * TEXT)]


class Part(ctypes.Structure):
    """pleach_part"""

    _fields_ = [("task", c_int32), ("data", c_void_p), ("count", c_size_t)]


Restore = CFUNCTYPE(c_int, c_void_p, c_int, c_void_p)
Takeover = CFUNCTYPE(None, c_void_p, c_int, POINTER(Part), c_size_t)
Once = CFUNCTYPE(c_int, c_void_p)
Combine = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_void_p, c_size_t)


class Call(ctypes.Structure):
    """pleach_call"""

    _fields_ = [
        ("kind", c_int32), ("type", c_int32), ("op", c_int32), ("mode", c_int32),
        ("root", c_int32), ("dead", c_int32), ("mutual", c_int32), ("timeout_ms", c_int32),
        ("in_", c_void_p), ("count", c_size_t), ("parts", c_void_p), ("parts_count", c_size_t),
        ("out", c_void_p), ("out_count", c_size_t),
        ("restore", c_void_p), ("takeover", c_void_p), ("once", c_void_p), ("combine", c_void_p), ("user", c_void_p),
        ("present", c_int32), ("result_count", c_size_t), ("result", POINTER(Part)), ("result_parts", c_size_t),
        ("comm", c_void_p), ("value", c_uint64), ("number", c_uint64), ("retired", c_uint64),
        ("error", Error), ("memory", c_void_p),
    ]  # fmt: skip


class Config(ctypes.Structure):
    """pleach_config"""

    _fields_ = [
        ("addresses", c_char_p), ("rank", c_int32), ("replacement", c_int32),
        ("start_timeout_ms", c_int32), ("progress_timeout_ms", c_int32), ("poll_us", c_int32),
    ]  # fmt: skip


FUNCTIONS = {
    "pleach_version": (c_char_p, []),
    "pleach_world": (c_int, [POINTER(Config), POINTER(c_void_p), POINTER(Error)]),
    "pleach_close": (c_int, [c_void_p]),
    "pleach_abort": (c_int, [c_void_p]),
    "pleach_free": (c_int, [c_void_p]),
    "pleach_do": (c_int, [c_void_p, c_void_p]),
    "pleach_start": (c_int, [c_void_p, c_void_p, POINTER(c_void_p)]),
    "pleach_wait": (c_int, [c_void_p, c_int]),
    "pleach_cancel": (c_int, [c_void_p]),
    "pleach_interrupt": (c_int, [c_void_p]),
    "pleach_result_free": (c_int, [c_void_p]),
    "pleach_put": (c_int, [c_void_p, c_int, c_void_p, c_size_t]),
    "pleach_reason": (c_int, [c_char_p]),
    "pleach_rank": (c_int, [c_void_p]),
    "pleach_size": (c_int, [c_void_p]),
    "pleach_owner": (c_int, [c_void_p, c_int]),
    "pleach_world_rank": (c_int, [c_void_p, c_int]),
    "pleach_replacement": (c_int, [c_void_p]),
    "pleach_tasks": (c_int, [c_void_p, POINTER(c_int32), c_int]),
    "pleach_failed": (c_int, [c_void_p, POINTER(c_int32), c_int]),
    "pleach_ack_failed": (c_int, [c_void_p, POINTER(c_int32), c_int]),
    "pleach_fencing_token": (c_int, [c_void_p, c_int, POINTER(c_uint64)]),
    "pleach_revoke": (c_int, [c_void_p]),
    "pleach_hold": (c_int, [c_void_p]),
    "pleach_release": (c_int, [c_void_p]),
}


def load() -> ctypes.CDLL:
    """Load the library: PLEACH_LIBRARY, the one in this package, or the system's, in this order."""
    if platform.libc_ver()[0] != "glibc":
        raise ImportError("libpleach needs the GNU C library: the runtime of Go cannot be loaded with musl")
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libpleach.so")
    name = os.environ.get("PLEACH_LIBRARY") or (here if os.path.exists(here) else "libpleach.so.0")
    try:
        library = ctypes.CDLL(name)
    except OSError as e:
        raise ImportError(f"{e}: build it with `make bindings`, or set PLEACH_LIBRARY to where it is") from e
    for function, (returns, arguments) in FUNCTIONS.items():
        f = getattr(library, function)
        f.restype, f.argtypes = returns, arguments
    return library


lib = load()

"""numpy arrays as memory of the library, and the other way round, without copies."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from . import _library as c

TYPES = {
    np.dtype(name): code
    for name, code in [
        ("u1", c.U8), ("i1", c.I8), ("u2", c.U16), ("i2", c.I16), ("u4", c.U32), ("i4", c.I32),
        ("u8", c.U64), ("i8", c.I64), ("f2", c.F16), ("f4", c.F32), ("f8", c.F64), ("?", c.BOOL),
        ("c8", c.C64), ("c16", c.C128),
    ]
}  # fmt: skip


def contiguous(x: Any, dtype: Any = None) -> np.ndarray:
    """Return x as an array whose elements lie one after another: x itself, if they do. Elements of another type than
    dtype are converted, unless that changes their kind, as from float to int."""
    if isinstance(x, np.ma.MaskedArray) or isinstance(x, (list, tuple)) and any(isinstance(part, np.ma.MaskedArray) for part in x):
        raise TypeError("masked arrays are sent without their masks: pass x.filled(value), or x.data and x.mask in two calls")
    a = np.asarray(x)
    if dtype is not None and a.dtype != dtype:
        a = a.astype(dtype, casting="same_kind")
    return a if a.flags.c_contiguous else a.copy()


TYPE_BYTES = 16  # of the type in front of elements


def with_type(a: np.ndarray) -> np.ndarray:
    """Return the bytes of an array behind its type, for processes that do not know it."""
    type_of(a.dtype)
    name = np.frombuffer(a.dtype.str.encode().ljust(TYPE_BYTES), "u1")
    return np.concatenate([name, a.reshape(-1).view("u1")])


def without_type(b: np.ndarray) -> np.ndarray:
    """Return the array of one dimension that with_type was given."""
    dtype = np.dtype(b[:TYPE_BYTES].tobytes().decode().strip())
    a = b[TYPE_BYTES:].view(dtype)
    return a if a.flags.aligned else a.copy()


def type_of(dtype: np.dtype) -> int:
    """Return the pleach_type of elements."""
    try:
        return TYPES[dtype]
    except KeyError:
        raise TypeError(f"elements of type {dtype}: use bool, integers, float16, float32, float64, complex64, complex128, or their bytes by .view('u1')") from None


def address(a: np.ndarray) -> int:
    """Return where the elements are."""
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(a))  # type: ignore[arg-type]
    except (TypeError, ValueError):  # empty, or only to be read: slower by a microsecond
        return a.__array_interface__["data"][0]


class Memory:
    """The result of a call, which lies in memory of the library until no array uses it."""

    def __init__(self, call: c.Call) -> None:
        self._call = c.Call(memory=call.memory)

    def __del__(self, free: Any = c.lib.pleach_result_free, byref: Any = ctypes.byref) -> None:
        free(byref(self._call))

    def array(self, part: c.Part, dtype: np.dtype) -> np.ndarray:
        """Return a part as an array of one dimension."""
        if part.count == 0:
            return np.empty(0, dtype)
        return np.asarray(_Elements(part.data, part.count, dtype, self))


class _Elements:
    """Memory as numpy's array interface. An array of it keeps it."""

    def __init__(self, data: int, count: int, dtype: np.dtype, owner: Any) -> None:
        self.owner = owner
        self.__array_interface__ = {"version": 3, "shape": (count,), "typestr": dtype.str, "data": (data, False)}


def view(data: int, count: int, dtype: np.dtype) -> np.ndarray:
    """Return memory that lasts as long as a callback as an array."""
    return np.asarray(_Elements(data, count, dtype, None))

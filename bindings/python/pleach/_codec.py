"""The encoding of values that processes of a job exchange, or keep in a file. Decoding runs no code, so that a process
that should not be in the job, or a file that somebody else has written, cannot run commands.

A value is JSON text behind a magic number and its length. Everything that JSON does not have is an object of one
key, which says the type. Bytes and arrays follow the text: arrays as in files of numpy (.npy), without pickle.
"""

from __future__ import annotations

import io
import json
import pickle
from typing import Any, Callable, Dict, List, Tuple

import numpy as np

from . import errors

MAGIC = b"pleach-1"


def encode(value: Any) -> bytes:
    """Return the encoding of a value. The same values have the same encoding in all processes."""
    blobs: List[bytes] = []
    text = json.dumps(_plain(value, blobs), separators=(",", ":")).encode()
    return b"".join([MAGIC, len(text).to_bytes(8, "little"), text, *blobs])


def decode(data: Any, pickled: bool = False) -> Any:
    """Return the value of an encoding. If pickled, it may also be a pickle, which can run code."""
    data = memoryview(data)
    begin = len(MAGIC) + 8
    if bytes(data[: len(MAGIC)]) != MAGIC:
        if pickled:
            return pickle.loads(data)
        raise errors.Error("the value is not in the safe encoding: if it was pickled, pass pickle=True to read it")
    try:
        end = begin + int.from_bytes(data[len(MAGIC) : begin], "little")
        blobs = _Blobs(data[end:])
        value = _value(json.loads(bytes(data[begin:end])), blobs)
        if blobs.left:
            raise ValueError(f"{len(blobs.left)} bytes follow the value")
        return value
    except Exception as e:  # numpy raises those of its parser, too
        raise errors.Error(f"the encoded value is damaged: {e}") from e


def _plain(v: Any, blobs: List[bytes]) -> Any:
    """Return what stands for a value in the JSON text."""
    kind = type(v)  # an instance of a subclass would come back as something else
    if v is None or kind in (bool, str, float):
        return v
    if kind is int:
        return v if -(1 << 63) <= v < 1 << 63 else {"int": hex(v)}
    if kind is list:
        return [_plain(e, blobs) for e in v]
    if kind is tuple:
        return {"tuple": [_plain(e, blobs) for e in v]}
    if kind is dict:
        return {"dict": [[_plain(k, blobs), _plain(e, blobs)] for k, e in v.items()]}
    if kind in (set, frozenset):
        return {kind.__name__: sorted((_plain(e, blobs) for e in v), key=json.dumps)}
    if kind is complex:
        return {"complex": [v.real, v.imag]}
    if kind in (bytes, bytearray):
        return {kind.__name__: _append(blobs, bytes(v))}
    if kind is np.ndarray and _plain_dtype(v.dtype):
        f = io.BytesIO()
        np.lib.format.write_array(f, v, allow_pickle=False)
        return {"array": _append(blobs, f.getvalue())}
    if isinstance(v, np.generic) and _plain_dtype(v.dtype):
        return {"scalar": _plain(np.asarray(v), blobs)}
    what = f"array of {v.dtype}" if isinstance(v, (np.ndarray, np.generic)) else f"{kind.__module__}.{kind.__qualname__}"
    raise errors.ArgumentError(
        f"a value of type {what} has no safe encoding: use None, bool, int, float, complex, str, bytes, list, tuple, dict, set "
        "and numpy arrays, or pass pickle=True"
    )


def _plain_dtype(dtype: np.dtype) -> bool:
    """Report whether numpy's format keeps the type."""
    if dtype.hasobject:
        return False
    return bool(np.lib.format.descr_to_dtype(np.lib.format.dtype_to_descr(dtype)) == dtype)


def _append(blobs: List[bytes], b: bytes) -> int:
    blobs.append(b)
    return len(b)


class _Blobs:
    """The bytes behind the text."""

    def __init__(self, left: memoryview) -> None:
        self.left = left

    def take(self, size: int) -> bytes:
        if not 0 <= size <= len(self.left):
            raise ValueError("its bytes are not complete")
        b, self.left = bytes(self.left[:size]), self.left[size:]
        return b


def _value(plain: Any, blobs: _Blobs) -> Any:
    """Return the value that stands in the JSON text."""
    if isinstance(plain, list):
        return [_value(e, blobs) for e in plain]
    if not isinstance(plain, dict):
        return plain
    ((name, content),) = plain.items()
    return _KINDS[name](content, blobs)


def _array(size: Any, blobs: _Blobs) -> np.ndarray:
    f = io.BytesIO(blobs.take(size))
    a: np.ndarray = np.lib.format.read_array(f, allow_pickle=False)
    if f.read(1):
        raise ValueError("bytes follow an array")
    return a


def _dict(pairs: Any, blobs: _Blobs) -> Dict[Any, Any]:
    result = {}
    for k, e in pairs:
        key = _value(k, blobs)
        result[key] = _value(e, blobs)
    return result


def _complex(parts: Tuple[float, float], _: _Blobs) -> complex:
    return complex(*parts)


_KINDS: Dict[str, Callable[[Any, _Blobs], Any]] = {
    "int": lambda text, _: int(text, 16),
    "tuple": lambda l, blobs: tuple(_value(l, blobs)),
    "dict": _dict,
    "set": lambda l, blobs: set(_value(l, blobs)),
    "frozenset": lambda l, blobs: frozenset(_value(l, blobs)),
    "complex": _complex,
    "bytes": lambda size, blobs: blobs.take(size),
    "bytearray": lambda size, blobs: bytearray(blobs.take(size)),
    "array": _array,
    "scalar": lambda plain, blobs: _value(plain, blobs)[()],
}

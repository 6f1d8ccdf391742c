"""Values that processes exchange come back as they were, and decoding runs no code."""

import io
import math
import os
import pickle
import socket
import subprocess
import sys

import numpy as np
import pytest

import pleach
from pleach import _codec

VALUES = [
    None, True, 0, -1, 1 << 63, -(1 << 200), 1.5, -0.0, math.inf, 1 + 2j, "", "a\ud800ü\0", b"", b"\x80\x04", bytearray(b"x"),
    [], [1, [2.0, None]], (), (1, (2,), [3]), {}, {"a": 1, 2: (3,), (4, 5): {"tuple": []}}, {1, 2}, frozenset("ab"),
    np.float64(0.1), np.int8(-3), np.str_("text"), np.datetime64("2026-11-18"), np.bool_(True),
]  # fmt: skip
ARRAYS = [
    np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(6).reshape(2, 3)), np.array(3), np.empty((0, 4), "f4"),
    np.array(["a", "bc"]), np.array([(1, 2.5)], [("n", "i4"), ("x", ">f8", (2,))]), np.arange(10)[::-2],
]  # fmt: skip


def same(a, b):
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and (a == b).all() and b.flags.writeable
    return type(a) is type(b) and a == b and repr(a) == repr(b)  # -0.0 is 0.0


@pytest.mark.parametrize("value", VALUES + ARRAYS, ids=repr)
def test_values_come_back(value):
    assert same(value, _codec.decode(_codec.encode(value)))
    got = _codec.decode(_codec.encode([{"k": (value, value)}]))[0]["k"]
    assert same(value, got[0]) and same(value, got[1])


def test_nan_and_order():
    assert math.isnan(_codec.decode(_codec.encode(math.nan)))
    assert list(_codec.decode(_codec.encode({"b": 1, "a": 2}))) == ["b", "a"]


def test_sets_have_one_encoding():
    program = "from pleach import _codec; import sys; sys.stdout.buffer.write(_codec.encode({'a', 'b', 'c', 'd', ('e', 1)}))"
    ran = [
        subprocess.run([sys.executable, "-c", program], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True)
        for seed in "123"
    ]
    assert ran[0].stdout == ran[1].stdout == ran[2].stdout != b""


class Other:
    pass


class Text(str):
    pass


@pytest.mark.parametrize("value", [Other(), Other, [Text("a")], {1: print}, np.array([None]), range(3), np.ma.array([1])], ids=repr)
def test_other_values_are_refused(value):
    with pytest.raises(pleach.ArgumentError, match="pickle=True"):
        _codec.encode(value)


def text(json, blobs=b""):
    return _codec.MAGIC + len(json).to_bytes(8, "little") + json + blobs


class Evil:
    def __reduce__(self):
        return (pytest.fail, ("code has run",))


def object_array():
    """An encoding that holds an array of objects, as np.save with pickle writes it."""
    f = io.BytesIO()
    np.save(f, np.array([Evil()]), allow_pickle=True)
    return text(b'{"array":%d}' % len(f.getvalue()), f.getvalue())


@pytest.mark.parametrize(
    "data",
    [
        b"", pickle.dumps(Evil()), object_array(), text(b"[1"), text(b"[1]", b"x"), text(b'{"bytes":5}', b"x"), text(b'{"bytes":-1}', b"x"),
        text(b'{"Evil":1}'), text(b"{}"), text(b'{"dict":[[[],1]]}'), text(b"[" * 100000), text(b'{"int":"x"}'),
        text(b'{"array":3}', b"abc"), _codec.MAGIC + b"\xff" * 8,
    ],
    ids=range(14),
)  # fmt: skip
def test_decoding_runs_no_code(data):
    with pytest.raises(pleach.Error):
        _codec.decode(data)


def test_damaged_bytes():
    whole = _codec.encode([VALUES[:18], ARRAYS[:4]])
    for i in range(0, len(whole), 3):
        for changed in (whole[:i], whole[:i] + bytes([whole[i] ^ 0x15]) + whole[i + 1 :]):
            try:
                _codec.decode(changed)
            except pleach.Error:
                pass


def test_jobs_share_plain_values(program):
    program("""
with pleach.World() as world:
    assert pleach.queue(world, 5, lambda i: {"i": i, "a": np.arange(i)}, 2)[4]["a"].tolist() == [0, 1, 2, 3]
    try:
        pleach.queue(world, 5, lambda i: object())
        sys.exit("an object was encoded")
    except pleach.ArgumentError:
        pass
""")
    program("""
from fractions import Fraction
with pleach.World() as world:  # pleach run makes a secret
    assert pleach.queue(world, 3, lambda i: Fraction(i, 7), pickle=True)[2] == Fraction(2, 7)
    assert pleach.share(world, 0, Fraction(1, 7), [1], pickle=True) == Fraction(1, 7)
""")


def test_saved_pickles(program, tmp_path):
    name = str(tmp_path / "state")
    with open(name, "wb") as f:
        pickle.dump({"step": 3}, f)
    program(f"""
with pleach.World() as world:
    try:
        pleach.load(world, {name!r})
        sys.exit("a pickle was loaded")
    except pleach.Error as e:
        assert "pickle=True" in str(e)
    assert pleach.load(world, {name!r}, pickle=True) == {{"step": 3}}
    pleach.save(world, {name!r}, {{"step": 4}})
    assert pleach.load(world, {name!r}) == {{"step": 4}} == pleach.load(world, {name!r}, pickle=True)
""")


PEER = """
import os, sys, numpy as np, pleach, pickle, pleach.jobs, pleach._codec
class Evil:
    def __reduce__(self):
        return (os.system, ("touch " + sys.argv[1],))
if os.environ["PLEACH_RANK"] == "1":
    pleach._codec.encode = lambda value: pickle.dumps([Evil()])
world = pleach.World()
for pickled in (True, False):
    try:
        pleach.queue(world, 4, lambda i: i, pickle=pickled)
    except pleach.Error as e:
        print(type(e).__name__, e, flush=True)
if world.rank == 1:
    sys.stdin.read()
world.abort()
"""


def test_peers_of_an_open_job_run_nothing(tmp_path):
    """A job without a secret, of which a stranger has taken a rank: case 93."""
    ports = []
    for _ in range(2):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            ports.append(s.getsockname()[1])
    (tmp_path / "peer.py").write_text(PEER)
    env = {k: v for k, v in os.environ.items() if not k.startswith("PLEACH_") or k == "PLEACH_LIBRARY"}
    env.update(PLEACH_GROUP="open", PLEACH_ADDRESSES=",".join(f"127.0.0.1:{p}" for p in ports))
    running = [
        subprocess.Popen(
            [sys.executable, tmp_path / "peer.py", tmp_path / "executed"], env={**env, "PLEACH_RANK": str(rank)},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for rank in range(2)
    ]  # fmt: skip
    out, stranger = [p.communicate(timeout=120)[0] for p in running]
    assert not (tmp_path / "executed").exists(), out
    assert "ArgumentError pickle=True needs a job with a secret" in out and "not in the safe encoding" in out, (out, stranger)

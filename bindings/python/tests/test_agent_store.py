"""The values that the store for torch.distributed is made of, with real agents that are killed. No PyTorch is needed."""

import json
import os
import subprocess
import sys
import threading
import time
from datetime import timedelta

import pytest
from agents import Agents, eventually
from conftest import FULL, ROOT

from pleach import agent
from pleach.agent import _store


def values(client, job, seconds=30.0, **kwargs):
    return _store.Values(job, client, lambda: timedelta(seconds=seconds), **kwargs)


def test_values(group):
    a, b = values(group.client(0), "values"), values(group.client(1), "values")
    a.set("k", b"\x00\xff\n")
    assert b.get("k") == b"\x00\xff\n" and a.check(["k"]) and not a.check(["k", "none"])
    b.set("k", "again")
    b.set("k", "and again")
    assert a.get("k") == b"and again"
    assert [a.add("n", 5), b.add("n", -2), a.add("n", 0)] == [5, 3, 3] and b.get("n") == b"3"
    a.append("n", "1")
    assert b.add("n", 1) == 32
    assert a.compare_set("c", "other", "new") == b"other" and not a.check(["c"])
    assert a.compare_set("c", "", "new") == b"new" and b.compare_set("c", "other", "newer") == b"new"
    assert b.compare_set("c", "new", "newer") == b"newer" == a.get("c")
    long = "long/" * 100
    a.set(long, "value")
    assert b.get(long) == b"value" and sorted(b.keys()) == sorted(["k", "n", "c", long])
    assert b.delete(long) and not a.delete(long) and not a.check([long])
    with pytest.raises(agent.LimitError):
        a.set("k", bytes(1 << 16))
    a.set("k", bytes(60 << 10))
    assert b.get("k") == bytes(60 << 10)
    other = values(group.client(0), "others")
    assert other.keys() == []
    a.clear()
    assert b.keys() == [] and not any("/values/" in e.key for e in group.client().entries("torch/"))


def test_wait(group):
    """A wait ends when the key is there, which it learns from a watch, or at its timeout."""
    a, b = values(group.client(0), "wait"), values(group.client(1), "wait", 0.3)
    with pytest.raises(_store.WaitError, match="timeout"):
        b.wait(["never"])
    with pytest.raises(_store.WaitError, match="never"):
        b.get("never")
    got = []
    t = threading.Thread(target=lambda: got.append(b.wait(["one", "two"], timedelta(seconds=30)) or b.get("two")))
    t.start()
    a.set("one", "1")
    a.set("two", "2")
    t.join(20)
    assert got == [b"2"]


class Lossy:
    """A client whose replies to changes are lost. Between, others may change the key."""

    def __init__(self, client, made, meanwhile):
        self.client, self.made, self.meanwhile, self.lost = client, made, meanwhile, 0

    def __getattr__(self, name):
        return getattr(self.client, name)

    def put(self, name, value, **kwargs):
        if self.lost or "/alive" in name:
            return self.client.put(name, value, **kwargs)
        self.lost += 1
        if self.made:
            self.client.put(name, value, **kwargs)
        self.meanwhile()
        raise agent.DisconnectedError("the reply is lost")


@pytest.mark.parametrize("others", [0, 1, 3])
@pytest.mark.parametrize("made", [False, True])
@pytest.mark.parametrize("first", [False, True])
def test_lost_reply(group, made, others, first):
    """A change whose reply was lost is made exactly once, although others have changed the value since."""
    job = f"lost-{made}-{others}-{first}"
    others_of = values(group.client(1), job)
    if not first:
        others_of.add("n", 100)
    lossy = Lossy(group.client(0), made, lambda: [others_of.add("n", 10) for _ in range(others)])
    mine = values(lossy, job)
    before = 0 if first else 100
    assert mine.add("n", 1) == (before + 1 if made else before + 10 * others + 1) and lossy.lost == 1
    assert int(others_of.get("n")) == before + 10 * others + 1


def test_forgotten_writers(group, monkeypatch):
    """Of a key that many have changed, some changes are forgotten. What cannot be told then is an error."""
    monkeypatch.setattr(_store, "MAX_WRITERS", 4)
    client = group.client(1)

    def many():
        for _ in range(5):
            values(client, "forgotten").add("n", 10)

    many()
    mine = values(Lossy(group.client(0), True, many), "forgotten")
    with pytest.raises(_store.WaitError, match="too many others"):
        mine.add("n", 1)
    value = _store._Value.decode(client.get("torch/forgotten/k/n").value)
    assert len(value.writers) == 4 and value.data == b"101"


def test_finished_jobs_are_removed(group):
    """The keys of a job that no process has open any more are removed when another job starts, and those of others not."""
    client = group.client()
    gone, alive = values(client, "gone", ttl=0.4), values(client, "living", ttl=0.4)
    gone.set("k", "1")
    alive.set("k", "1")
    del gone

    def removed():
        values(client, f"next-{time.monotonic()}", ttl=0.1)
        return not any(e.key.startswith("torch/gone/") for e in client.entries("torch/"))

    eventually("keys of the finished job are removed", removed)
    assert alive.get("k") == b"1"


ADDER = """
import json, sys
from datetime import timedelta
from pleach import agent
from pleach.agent import _store
values = _store.Values("adds", agent.Client(sys.argv[1]), lambda: timedelta(seconds=120))
print(json.dumps([values.add("n", 1) for _ in range(int(sys.argv[2]))]))
"""


def test_adds_are_exact_while_agents_are_killed():
    """1,000 adds of 8 processes return the numbers from 1 to 1,000, although their agents are killed all the time."""
    adders, adds = 8, 125
    agents = Agents(3)
    try:
        agents.wait_ready()
        env = {**os.environ, "PYTHONPATH": str(ROOT / "bindings" / "python")}
        running = [
            subprocess.Popen(
                [sys.executable, "-c", ADDER, agents.socket(i % 3), str(adds)], env=env, stdout=subprocess.PIPE, text=True
            )
            for i in range(adders)
        ]
        kills = 0
        while any(p.poll() is None for p in running):
            agents.restart(kills % 3)
            kills += 1
            agents.wait_ready()
        got = [n for p in running for n in json.loads(p.communicate()[0])]
        print(kills, "kills")
        assert sorted(got) == list(range(1, adders * adds + 1))
        assert kills >= 3
    finally:
        agents.stop()

"""The store for torch.distributed on real agents, called from Python and from C++."""

import os
import subprocess
import sys
from datetime import timedelta

import pytest
from agents import Agents
from conftest import ROOT

torch = pytest.importorskip("torch")
dist = pytest.importorskip("torch.distributed")

from pleach import agent  # noqa: E402
from pleach.agent.torch import Store, StoreError  # noqa: E402


def store_of(group, job, i=0, **kwargs):
    return Store(job, group.client(i), **kwargs)


@pytest.mark.parametrize("prefix", ["", "default_pg/0//x"])
def test_store(group, prefix):
    """The store is one of torch. Behind a PrefixStore, which is C++, it is called as from a process group."""
    job = "prefixed" if prefix else "plain"
    ours = store_of(group, job)
    other = store_of(group, job, 1)
    if prefix:
        store, other = dist.PrefixStore(prefix, ours), dist.PrefixStore(prefix, other)
    else:
        store = ours
    for key, value in (("key", 1), ("key", 2), ("key", 3), ("key3", 21)):
        sum_ = store.add(key, value)
    assert sum_ == 21 and other.get("key") == b"6"
    store.set("key0", "value0")
    store.set("key1", "value1")
    assert other.get("key0") == b"value0" and store.num_keys() == 4
    assert store.delete_key("key1") and not other.delete_key("key1") and store.num_keys() == 3
    assert store.compare_set("cs", "wrong", "new") == b"wrong"
    assert store.compare_set("cs", "", "new") == b"new" and other.compare_set("cs", "wrong", "newer") == b"new"
    assert store.compare_set("cs", "new", "newer") == b"newer" == other.get("cs")
    with pytest.raises(RuntimeError, match="(?i)timeout"):
        store.wait(["bad_key"], timedelta(seconds=0.25))
    ours.set_timeout(timedelta(seconds=0.25))
    with pytest.raises(RuntimeError, match="(?i)timeout"):
        store.get("bad_key")
    store.wait(["key", "key0"])
    if hasattr(dist.Store, "multi_get"):
        store.multi_set(["a", "b"], ["1", "2"])
        store.append("a", "3")
        assert other.multi_get(["a", "b"]) == [b"13", b"2"] and store.has_extended_api() and store.check(["a", "b"])
    if hasattr(dist.Store, "list_keys") and not prefix:
        assert "a" in store.list_keys()
    ours.clear()


def test_from_cpp(group):
    """The test of stores in Python that torch has in C++."""
    dist._test_python_store(store_of(group, "cpp"))


def test_errors(group):
    with pytest.raises(ValueError, match="slash"):
        store_of(group, "a/b")
    with pytest.raises(StoreError, match="timeout"):
        Store("job", agent.Client("/none.sock"), timeout=timedelta(seconds=0.1))


TRAIN = """
import os, sys, torch, torch.distributed as dist
from datetime import timedelta
from pleach import agent
from pleach import agent  # noqa: E402
from pleach.agent.torch import Store

rank, size = int(sys.argv[1]), int(sys.argv[2])
open_store = lambda: Store("train", agent.Client(sys.argv[3]), timeout=timedelta(seconds=60))
dist.init_process_group("gloo", store=open_store(), rank=rank, world_size=size)
x = torch.ones(4) * rank
dist.all_reduce(x)
assert x[0] == size * (size - 1) / 2
print("first", flush=True)
sys.stdin.readline()
pair = dist.new_group([0, size - 1])  # a group is made by the store
if rank in (0, size - 1):
    dist.all_reduce(x, group=pair)
    assert x[0] == size * (size - 1)
dist.barrier()
assert open_store().add("done", 1) <= size
dist.destroy_process_group()
"""


def test_process_group_while_agents_are_killed():
    """A process group starts by the store, and makes more groups while each agent is killed in turn, that of rank 0 first."""
    agents = Agents(3)
    try:
        agents.wait_ready()
        env = {**os.environ, "PYTHONPATH": str(ROOT / "bindings" / "python"), "GLOO_SOCKET_IFNAME": "lo"}
        running = [
            subprocess.Popen(
                [sys.executable, "-c", TRAIN, str(i), "3", agents.socket(i)], env=env, text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            )
            for i in range(3)
        ]  # fmt: skip
        for p in running:
            assert p.stdout.readline() == "first\n"
        agents.kill(0)
        for p in running:
            p.stdin.write("go on\n")
            p.stdin.flush()
        agents.start(0)
        agents.wait_ready()
        for i in (1, 2):
            agents.restart(i)
            agents.wait_ready()
        assert [p.wait(60) for p in running] == [0, 0, 0]
        assert store_of(agents, "train").get("done") == b"3"
    finally:
        agents.stop()

"""The store for torch.distributed on real agents, called from Python and from C++, and the rendezvous of torchrun."""

import concurrent.futures
import os
import re
import signal
import subprocess
import sys
from datetime import timedelta

import pytest
from agents import Agents, eventually
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


def handlers(group, run_id, n, nodes):
    """Return rendezvous handlers of n nodes of torchrun, each with its own agent."""
    from torch.distributed.elastic.rendezvous import RendezvousParameters

    from pleach.agent.rendezvous import handler

    conf = {"last_call_timeout": 1, "keep_alive_interval": 1, "keep_alive_max_attempt": 4}
    return [handler()(RendezvousParameters("pleach", group.socket(i % 3), run_id, *nodes, **conf)) for i in range(n)]


def join(*nodes):
    """Let nodes join the next round at a time, and return each one's store, rank and the size of the world."""
    with concurrent.futures.ThreadPoolExecutor(len(nodes)) as pool:
        infos = list(pool.map(lambda node: node.next_rendezvous(), nodes))
    return [info if isinstance(info, tuple) else (info.store, info.rank, info.world_size) for info in infos]


def test_rendezvous(group):
    """Nodes meet in rounds of between min and max, also when one of them is gone, until the job is shut down."""
    from torch.distributed.elastic.rendezvous import RendezvousClosedError

    a, b, c, d = handlers(group, "run/1", 4, (2, 3))
    first = join(a, b, c)  # max: there is no wait
    assert sorted(rank for _, rank, _ in first) == [0, 1, 2] and {size for _, _, size in first} == {3}
    first[0][0].set("k", "v")
    assert first[2][0].get("k") == b"v"
    c._stop_heartbeats()  # a node that has died
    eventually("the others notice that a node is gone", lambda: len(a._state_holder.state.participants) == 2)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(d.next_rendezvous)  # a newcomer waits for the next round
        eventually("a node waits", lambda: a.num_nodes_waiting() == 1)
        second = join(a, b)
        waiting.result(30)
    assert {size for _, _, size in second} == {3} and second[0][0].compare_set("k", "", "new") == b"new"
    assert a.shutdown() and a.is_closed()
    with pytest.raises(RendezvousClosedError):
        b.next_rendezvous()


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


TORCHRUN = """
from torch.distributed.elastic.rendezvous import rendezvous_handler_registry as registry
from torch.distributed.run import main
from pleach.agent.rendezvous import create

if "pleach" not in registry._registry:  # from an entry point of an installed wheel
    registry.register("pleach", create)
main()
"""

# Rank 0 finishes at once; rank 1 fails when it is told to.
WORKER = """
import os, sys, time

print("rank", os.environ["RANK"], os.getpid(), "starts", flush=True)
while os.environ["RANK"] == "1" and not os.path.exists(sys.argv[1]):
    time.sleep(0.05)
sys.exit(int(os.environ["RANK"]))
"""


@pytest.mark.parametrize("end", ["failed", "killed"])
def test_torchrun_does_not_wait_for_a_lost_node(group, tmp_path, end):
    """A node that has finished ends soon after the other one has failed or died. Torchrun would wait for it for 300 s."""
    (tmp_path / "worker.py").write_text(WORKER)
    env = {**os.environ, "PYTHONPATH": str(ROOT / "bindings" / "python"), "LOGLEVEL": "INFO"}
    nodes, logs = [], [tmp_path / "0.log", tmp_path / "1.log"]
    for i in range(2):
        flags = ["--nnodes=2", "--nproc_per_node=1", "--max_restarts=0", "--redirects=1", "--tee=1"]
        rdzv = ["--rdzv_backend=pleach", f"--rdzv_id=exit-{end}", f"--rdzv_endpoint={group.socket(i)}"]
        with open(logs[i], "w") as log:
            nodes.append(
                subprocess.Popen(
                    [sys.executable, "-c", TORCHRUN, *flags, *rdzv, tmp_path / "worker.py", tmp_path / "stop"],
                    env=env, stdout=log, stderr=log,
                )
            )  # fmt: skip

    def started(rank):
        """Return the node of a rank, and the process of its worker."""
        for i in range(2):
            found = re.search(rf"rank {rank} (\d+) starts", logs[i].read_text())
            if found:
                return i, int(found[1])
        return None

    try:
        first = eventually("rank 0 starts", lambda: started(0), 120)[0]
        second, worker = eventually("rank 1 starts", lambda: started(1), 120)
        eventually("rank 0 waits", lambda: "for other agents to finish" in logs[first].read_text(), 60)
        if end == "killed":
            nodes[second].kill()
            os.kill(worker, signal.SIGKILL)
        else:
            (tmp_path / "stop").write_text("")
        assert nodes[first].wait(60) == 0, logs[first].read_text()
    finally:
        for node in nodes:
            node.kill()
            node.wait()

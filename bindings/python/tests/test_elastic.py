"""Training with pleach.elastic: real workers on real agents, which are killed, stopped, join and leave."""

import os
import random
import re
import signal
import subprocess
import sys

import pytest
from agents import eventually
from conftest import FULL, ROOT

torch = pytest.importorskip("torch")
dist = pytest.importorskip("torch.distributed")

PROGRAM = ROOT / "bindings" / "python" / "tests" / "elastic_worker.py"


class Workers:
    """The workers of a job, in order of their start. They stop before the step that is closed to them."""

    def __init__(self, group, folder, job, count):
        self.group, self.folder, self.job, self.count = group, folder, job, count
        self.processes = []
        self.open(0)

    def open(self, number):
        """Let the workers make the steps before a number."""
        (self.folder / "new").write_text(str(number))
        (self.folder / "new").rename(self.folder / "gate")

    def start(self):
        i = len(self.processes)
        arguments = [self.group.socket(i % 3), self.job, str(self.count), str(i), str(self.folder / "gate")]
        with open(self.folder / f"{i}.log", "w") as log:
            self.processes.append(
                subprocess.Popen([sys.executable, "-u", PROGRAM, *arguments], env=environment(), stdout=log, stderr=log)
            )
        return i

    def join(self):
        """Start a worker, and wait until the next world has a place for it."""
        i = self.start()

        def waits():
            assert self.processes[i].poll() is None, self.log(i)
            entry = self.group.client().get(f"elastic/{self.job}")
            return entry and any(f":{port}/".encode() in entry.value for port in ports(self.processes[i].pid))

        eventually("a worker waits for the next world", waits, 120)
        return i

    def log(self, i):
        return (self.folder / f"{i}.log").read_text()

    def steps(self, i):
        """Return the steps that a worker has committed: number, world, rank, size and the digest of the model."""
        found = re.findall(r"^step (\d+) (\d+) (\d+) (\d+) (\w+)$", self.log(i), re.M)
        return [(*map(int, f[:4]), f[4]) for f in found]

    def reach(self, number):
        """Wait until all running workers have committed a step."""

        def reached():
            for i in range(len(self.processes)):
                assert self.processes[i].poll() in (None, 0, -signal.SIGKILL), self.log(i)
            return all((self.steps(i) or [(-1,)])[-1][0] >= number for i in self.running())

        eventually(f"step {number}", reached, 120)

    def running(self):
        return [i for i, p in enumerate(self.processes) if p.poll() is None]

    def end(self):
        for p in self.processes:
            p.kill()
            p.wait()

    def check(self):
        """The survivors end, and no step is applied twice or lost. Return the size of the world of each step."""
        for i in self.running():
            assert self.processes[i].wait(120) == 0, self.log(i)
        worlds, digests = {}, {}
        for i in range(len(self.processes)):
            numbers = []
            for number, world, _, size, digest in self.steps(i):
                assert worlds.setdefault(number, (world, size)) == (world, size), f"step {number} was applied twice"
                assert digests.setdefault(number, digest) == digest, f"different models after step {number}"
                numbers.append(number)
            assert numbers == sorted(set(numbers))  # with a gap, if the worker was left behind and has got the state
        assert sorted(worlds) == list(range(self.count))
        sizes = [worlds[number][1] for number in range(self.count)]
        first = next(i for i in range(len(self.processes)) if self.steps(i) and self.steps(i)[0][:3:2] == (0, 0))
        assert without_failures(first, sizes, self.folder) == digests[self.count - 1]
        return sizes


def environment():
    path = os.pathsep.join(str(ROOT / "bindings" / "python" / f) for f in (".", "tests"))
    return {**os.environ, "PYTHONPATH": path, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}


def ports(pid):
    """Return the ports on which a process listens."""
    sockets = set()
    for f in os.listdir(f"/proc/{pid}/fd"):
        try:
            sockets.add(os.readlink(f"/proc/{pid}/fd/{f}")[8:-1])
        except OSError:
            pass
    with open(f"/proc/{pid}/net/tcp") as f:
        lines = [line.split() for line in f.readlines()[1:]]
    return [int(line[1].partition(":")[2], 16) for line in lines if line[3] == "0A" and line[9] in sockets]


REFERENCE = """
import sys, torch, torch.distributed as dist
from elastic_worker import backward, digest, model_and_optimizer

file, seed, rank, sizes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), [int(c) for c in sys.argv[4].split(",")]
dist.init_process_group("gloo", init_method="file://" + file, rank=rank, world_size=max(sizes))
groups = {size: dist.new_group(list(range(size))) for size in sorted(set(sizes))}
model, optimizer = model_and_optimizer(seed)
for number, size in enumerate(sizes):
    if rank < size:
        optimizer.zero_grad()
        backward(model, number, rank, size)
        flat = torch.cat([p.grad.reshape(-1) for p in model.parameters()])
        dist.all_reduce(flat, group=groups[size])
        for p, mean in zip(model.parameters(), flat.split([p.numel() for p in model.parameters()])):
            p.grad.copy_(mean.view_as(p) / size)
        optimizer.step()
    if size < max(sizes):
        state = [model.state_dict(), optimizer.state_dict()]
        dist.broadcast_object_list(state, 0)
        model.load_state_dict(state[0])
        optimizer.load_state_dict(state[1])
print(digest(model))
"""


def without_failures(seed, sizes, folder):
    """Train without a failure in worlds of these sizes, and return the digest of the model at the end."""
    file, text = str(folder / "reference"), ",".join(map(str, sizes))
    running = [
        subprocess.Popen(
            [sys.executable, "-c", REFERENCE, file, str(seed), str(rank), text],
            env=environment(), stdout=subprocess.PIPE, text=True,
        )
        for rank in range(max(sizes))
    ]  # fmt: skip
    return {p.communicate(timeout=120)[0].strip() for p in running}.pop()


@pytest.fixture
def workers(group, tmp_path):
    """Return a function that starts the first workers of a job, in one world."""
    made = []

    def start(job, n, count):
        w = Workers(group, tmp_path, job, count)
        made.append(w)
        for _ in range(n):
            w.join()
        w.open(2)  # those that were not there at the beginning join after the first step
        w.reach(1)
        return w

    yield start
    for w in made:
        w.end()


def test_kills_joins_and_leaves(workers):
    """The parameters at the end are, bit for bit, those of a training without failures in worlds of the same sizes."""
    events = 50 if FULL else 6
    w = workers("churn", 3, 10 * events)
    random.seed(1)
    for event in range(events):
        before = w.running()
        if len(before) == 2 or len(before) == 3 and random.random() < 0.4:
            w.join()
            w.open(10 * event + 10)
        else:
            victim = random.choice(before)
            w.open(10 * event + 10)
            if event % 4 == 3:
                w.processes[victim].terminate()
            else:
                target = 10 * event + random.randrange(8)
                eventually("a step", lambda: (w.steps(victim) or [(0,)])[-1][0] >= target)
                w.processes[victim].kill()
            w.processes[victim].wait(60)
        w.reach(10 * event + 9 - (event + 1 == events))
    sizes = w.check()
    print(len(sizes), "steps in worlds of", sizes)
    assert len(set(sizes)) > 1


def test_hung_worker_is_left_behind_and_joins_again(workers):
    w = workers("hang", 2, 20)
    w.processes[1].send_signal(signal.SIGSTOP)
    w.open(10)
    eventually("the other one continues alone", lambda: w.steps(0)[-1][0] == 9, 120)
    w.processes[1].send_signal(signal.SIGCONT)
    client = w.group.client()
    eventually("it waits for the next world", lambda: b'"waiting":["' in client.get("elastic/hang").value, 120)
    w.open(20)
    sizes = w.check()
    assert 1 in sizes and sizes[-1] == 2

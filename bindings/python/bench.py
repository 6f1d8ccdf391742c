"""Bench measures other languages beside Go, and other systems where they are installed, in turns::

    make bindings-bench                         # builds, and runs both:
    python3 bindings/python/bench.py allreduce  # Allreduce from Go, C, Python, mpi4py and Gloo
    python3 bindings/python/bench.py training   # what a training notices of a death, beside Gloo: needs torch

The first prints the median over turns of the median of rank 0's calls, the second medians over turns of the worst process.
With --json it prints JSON.
"""

import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Each is measured with so many processes, bytes and rounds. One process waits for nobody: that is what a call costs itself.
CASES = {"8 B alone": (1, 8, 20000), "8 B": (4, 8, 8000), "4 MiB": (4, 4 << 20, 30)}
TURNS = int(os.environ.get("TURNS", 3))
STEPS, KILLED_AT = 300, 150
RUN = [str(ROOT / "bin" / "pleach"), "run", "-n"]
os.environ.setdefault("PLEACH_LIBRARY", str(ROOT / "bin" / "libpleach" / "libpleach.so"))
os.environ.setdefault("PYTHONPATH", str(ROOT / "bindings" / "python"))


def measure(size, rounds, allreduce, rank):
    import numpy as np

    x, y, took = np.zeros(size // 8), np.zeros(size // 8), []
    for i in range(rounds + rounds // 4):
        began = time.perf_counter()
        allreduce(x, y)
        took.append(time.perf_counter() - began)
    if rank == 0:
        print("p50", statistics.median(took[rounds // 4 :]) * 1e6, flush=True)


def pleach_process(size, rounds):
    import pleach

    with pleach.World() as world:
        measure(size, rounds, lambda x, y: world.allreduce(x, out=y), world.rank)


def mpi4py_process(size, rounds):
    from mpi4py import MPI

    measure(size, rounds, lambda x, y: MPI.COMM_WORLD.Allreduce(x, y), MPI.COMM_WORLD.Get_rank())


def gloo():
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    rank, size = int(os.environ["PLEACH_RANK"]), int(os.environ["PLEACH_SIZE"])
    dist.init_process_group("gloo", init_method="file://" + os.environ["GLOO"], rank=rank, world_size=size)
    return torch, dist, rank


def gloo_process(size, rounds):
    torch, dist, rank = gloo()
    t = torch.zeros(size // 8, dtype=torch.float64)
    measure(size, rounds, lambda x, y: dist.all_reduce(t), rank)
    os._exit(0)


def gloo_training_process(steps, _):
    """The training of examples/python/ddp.py, until a process dies."""
    sys.path.insert(0, str(ROOT / "examples" / "python"))
    import ddp

    torch, _, rank = gloo()
    net = ddp.network()
    model, optimizer = ddp.DistributedDataParallel(net), torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for step in range(steps):
        print(f"step {step}", flush=True)
        began = time.perf_counter()
        try:
            ddp.train(model, optimizer, rank, step)
        except RuntimeError:
            print(f"error after {1e3 * (time.perf_counter() - began)} ms", flush=True)
            break
    os._exit(0)


def run(command, **env):
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env={**os.environ, **env}).stdout


def numbers(pattern, text):
    found = [float(number) for number in re.findall(pattern, text)]
    assert found, f"{pattern} is not in\n{text}"
    return found


def has(module):
    return subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True).returncode == 0


def systems(folder):
    """The commands that measure Allreduce with N processes, by what they measure."""
    library = os.path.dirname(os.environ["PLEACH_LIBRARY"])
    source = ROOT / "bindings" / "c" / "bench" / "c" / "allreduce.c"
    subprocess.run(["go", "build", "-o", f"{folder}/go", "./bench"], cwd=ROOT / "bindings" / "c", check=True)
    subprocess.run(["gcc", "-O2", "-o", f"{folder}/c", source, f"-I{library}", f"-L{library}", "-lpleach", f"-Wl,-rpath,{library}"], check=True)
    job, self = [*RUN, "N", "--no-prefix", "--"], [sys.executable, __file__]
    commands = {
        "Go": [*job, f"{folder}/go"],
        "C": [*job, f"{folder}/c"],
        "Python": [*job, *self, "pleach"],
    }
    mpirun = "mpirun --allow-run-as-root --oversubscribe -n N --mca btl {} --mca mpi_yield_when_idle 1"
    if has("mpi4py"):
        for name, btl in [("TCP", "self,tcp"), ("shared memory", "self,vader")]:
            commands[f"mpi4py over {name}"] = [*mpirun.format(btl).split(), *self, "mpi4py"]
    if has("torch"):
        commands["Gloo"] = [*job, *self, "gloo"]
    return commands


def allreduce():
    """Return microseconds by system and case."""
    with tempfile.TemporaryDirectory() as folder:
        commands = systems(folder)
        results = {name: {case: [] for case in CASES} for name in commands}
        for turn in range(TURNS):
            for case, (n, size, rounds) in CASES.items():
                for name, command in commands.items():
                    job = [str(n) if word == "N" else word for word in command]
                    out = run([*job, str(size), str(rounds)], GLOO=f"{folder}/gloo-{turn}-{case}")
                    results[name][case] += numbers(r"p50 ([\d.]+)", out)
    return {name: {case: statistics.median(values) for case, values in of.items()} for name, of in results.items()}


def training():
    """Return milliseconds by what is measured."""
    kill = ["4", f"--kill=2@/step {KILLED_AT}$/", "--"]
    results = {name: [] for name in ["Pleach: the longest step", "Gloo: until the error", "Gloo: until the first step of a new job"]}
    longest, error, restart = results.values()
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(TURNS):
            pleach = run([*RUN, *kill, sys.executable, ROOT / "examples" / "python" / "ddp.py"], STEPS=str(STEPS))
            longest.append(max(numbers(r"worst step ([\d.]+) ms", pleach)))
            process = [sys.executable, __file__, "gloo_training"]
            out = run([*RUN, *kill, *process, str(STEPS), "0"], GLOO=f"{folder}/killed-{turn}")
            error.append(max(numbers(r"error after ([\d.]+) ms", out)))
            began = time.perf_counter()
            run([*RUN, "4", "--", *process, "1", "0"], GLOO=f"{folder}/new-{turn}")
            restart.append(1e3 * (time.perf_counter() - began))
    return {name: statistics.median(values) for name, values in results.items()}


def main(arguments):
    parts = {"allreduce": allreduce, "training": training}
    for name in [a for a in arguments if a in parts] or parts:
        if name == "training" and not has("torch"):
            continue
        results = parts[name]()
        if "--json" in arguments:
            print(json.dumps(results))
        elif name == "allreduce":
            print(f"{'':27}" + "".join(f"{case:>14}" for case in CASES))
            for system, of in results.items():
                print(f"{system:27}" + "".join(f"{value:>11.1f} µs" for value in of.values()))
        else:
            for what, value in results.items():
                print(f"{what:42}{value:>9.1f} ms")


if __name__ == "__main__":
    if len(sys.argv) == 4:  # one of the processes that are measured
        globals()[sys.argv[1] + "_process"](int(sys.argv[2]), int(sys.argv[3]))
    else:
        main(sys.argv[1:])

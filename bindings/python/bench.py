"""Bench measures Allreduce of 8 B and 4 MiB among 4 processes from Go, C and Python, and beside mpi4py and Gloo where they
are installed, in turns::

    make bindings-bench

It prints the median over turns of the median of rank 0's calls.
"""

import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SIZES = {8: 3000, 4 << 20: 30}  # bytes: rounds
TURNS = int(os.environ.get("TURNS", 5))


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


def gloo_process(size, rounds):
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    rank = int(os.environ["PLEACH_RANK"])
    dist.init_process_group("gloo", init_method="file://" + os.environ["GLOO"], rank=rank, world_size=4)
    t = torch.zeros(size // 8, dtype=torch.float64)
    measure(size, rounds, lambda x, y: dist.all_reduce(t), rank)
    os._exit(0)


def main():
    folder = tempfile.mkdtemp()
    subprocess.run(["go", "build", "-o", f"{folder}/go", "./bench"], cwd=ROOT / "bindings" / "c", check=True)
    library = os.path.dirname(os.environ["PLEACH_LIBRARY"])
    source = ROOT / "bindings" / "c" / "bench" / "c" / "allreduce.c"
    subprocess.run(["gcc", "-O2", "-o", f"{folder}/c", source, f"-I{library}", f"-L{library}", "-lpleach", f"-Wl,-rpath,{library}"], check=True)
    run, self = [str(ROOT / "bin" / "pleach"), "run", "-n", "4", "--no-prefix"], [sys.executable, __file__]
    mpirun = "mpirun --allow-run-as-root --oversubscribe -n 4 --mca btl {} --mca mpi_yield_when_idle 1"
    systems = {"Go": [*run, f"{folder}/go"], "C": [*run, f"{folder}/c"], "Python": [*run, *self, "pleach"]}
    for module, more in {
        "mpi4py": {f"mpi4py over {name}": [*mpirun.format(btl).split(), *self, "mpi4py"] for name, btl in [("TCP", "self,tcp"), ("shared memory", "self,vader")]},
        "torch": {"Gloo": [*run, *self, "gloo"]},
    }.items():
        if subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True).returncode == 0:
            systems.update(more)
    print(f"{'':24}" + "".join(f"{size:>12} B" for size in SIZES))
    results = {name: {size: [] for size in SIZES} for name in systems}
    for turn in range(TURNS):
        for size, rounds in SIZES.items():
            for name, command in systems.items():
                env = {**os.environ, "GLOO": f"{folder}/gloo-{turn}-{size}"}
                out = subprocess.run([*command, str(size), str(rounds)], capture_output=True, text=True, timeout=120, env=env)
                found = re.search(r"p50 ([\d.]+)", out.stdout)
                assert found, f"{name}: {out.stdout}{out.stderr}"
                results[name][size].append(float(found.group(1)))
    for name, by_size in results.items():
        print(f"{name:24}" + "".join(f"{statistics.median(values):>11.1f} µs" for values in by_size.values()))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        globals()[sys.argv[1] + "_process"](int(sys.argv[2]), int(sys.argv[3]))
    else:
        main()

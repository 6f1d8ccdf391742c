"""Ddp trains a small convolutional net by DistributedDataParallel, and goes on when processes die:

    pleach run -n 4 --kill '2@/step 50$/' python3 examples/python/ddp.py
    pleach run -n 4 --respawn --kill '2@/step 50$/' python3 examples/python/ddp.py
"""

import hashlib
import os
import sys
import time

import torch

import pleach
import pleach.torch

STEPS = int(os.environ.get("STEPS", 300))
# In tests: the step at which processes wait until so many others were replaced.
WAIT, REPLACED = map(int, os.environ.get("WAIT", "-1 0").split())


def batch(rank: int, step: int):
    """Images of one of four directions of stripes, with noise, and which it is."""
    g = torch.Generator().manual_seed(1000 * step + rank)
    kinds = torch.randint(4, (16,), generator=g)
    x = torch.arange(12.0)
    waves = torch.stack([x[:, None] + 0 * x, x + 0 * x[:, None], x[:, None] + x, x[:, None] - x]).sin()
    return (waves[kinds] + 0.5 * torch.randn(16, 12, 12, generator=g))[:, None], kinds


def network() -> torch.nn.Module:
    torch.set_num_threads(1)
    torch.manual_seed(7)
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 8, 3), torch.nn.ReLU(), torch.nn.Conv2d(8, 8, 3, stride=2), torch.nn.ReLU(),
        torch.nn.Flatten(), torch.nn.Linear(8 * 4 * 4, 4),
    )  # fmt: skip


def train(model: torch.nn.Module, optimizer: torch.optim.Optimizer, rank: int, step: int) -> torch.Tensor:
    images, kinds = batch(rank, step)
    loss = torch.nn.functional.cross_entropy(model(images), kinds)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def main() -> None:
    group = pleach.torch.init()
    rank, net = group.world.rank, network()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    step, model, worst, replaced = 0, None, 0.0, 0
    while step < STEPS:
        began = time.perf_counter()
        if (joined := group.admit()) or model is None:
            step, replaced = group.share(net, optimizer, (step, replaced + len(joined)))
            model = group.wrap(net)
            began = time.perf_counter()
        if step == WAIT and replaced < REPLACED:
            time.sleep(0.02)
            continue
        print(f"step {step}", flush=True)
        loss = train(model, optimizer, rank, step)
        step += 1
        worst = max(worst, time.perf_counter() - began)
    digest = hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in net.parameters())).hexdigest()[:16]
    print(f"after {step} steps: weights {digest}, {group.comm.size} processes, loss {loss:.4f}, worst step {1e3 * worst:.1f} ms", flush=True)
    group.finalize()


if __name__ == "__main__":
    try:
        main()
    except pleach.JobEnded:
        pass  # the job has ended without this replacement
    except pleach.Error as e:
        sys.exit(f"ddp: {e}")

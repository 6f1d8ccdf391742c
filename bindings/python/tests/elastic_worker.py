"""A worker of a job of pleach.elastic: a small model that trains on numbers which depend on the step and the rank.

Arguments: the socket of the agent, the job, the steps, a seed, and a file with the number of the step up to which
workers may go. Prints each step that is committed, and leaves at SIGTERM.
"""

import hashlib
import pathlib
import signal
import sys
import time

import torch

from pleach import agent, elastic

torch.set_num_threads(1)


def model_and_optimizer(seed):
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    return model, torch.optim.Adam(model.parameters(), lr=0.01)


def backward(model, step, rank, size):
    g = torch.Generator().manual_seed(1000 * step + 10 * size + rank)
    x = torch.rand(16, 8, generator=g)
    ((model(x) - x.sum(1, keepdim=True).sin()) ** 2).mean().backward()


def digest(model):
    return hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in model.parameters())).hexdigest()[:16]


def main():
    path, job, gate = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[5])
    count, seed = int(sys.argv[3]), int(sys.argv[4])
    model, optimizer = model_and_optimizer(seed)
    with elastic.Trainer(job, agent.Client(path), timeout=20) as trainer:
        signal.signal(signal.SIGTERM, lambda *_: trainer.leave())
        for step in trainer.steps(count, [model, optimizer]):
            while step.number >= int(gate.read_text() or 0):
                time.sleep(0.01)
            optimizer.zero_grad()
            backward(model, step.number, step.world.rank, step.world.size)
            step.all_reduce(p.grad for p in model.parameters())
            if step.commit():
                optimizer.step()
                world = step.world
                print("step", step.number, world.number, world.rank, world.size, digest(model), flush=True)
    print("end", flush=True)


if __name__ == "__main__":
    main()

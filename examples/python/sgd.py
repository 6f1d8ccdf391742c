"""Sgd trains a linear model by data-parallel stochastic gradient descent. A process that is killed is restarted and
taken in again, without a restart of the others, and the model is the same to the last bit as without:

    pleach run -n 4 --respawn --kill '2@/step 50/' python3 examples/python/sgd.py

Between a death and the next admit a survivor computes the dead process's share.
"""

import os
import sys
import time
import zlib

import numpy as np

import pleach

STEPS, WEIGHTS, SAMPLES, RATE = 100, 256, 128, 0.5
PAUSE = float(os.environ.get("SGD_PAUSE", 0))  # seconds, as if steps took longer
TRUTH = np.sin(np.arange(WEIGHTS))


def gradient(task: int, step: int, model: np.ndarray) -> np.ndarray:
    """The gradient of a task's samples in a step, which are drawn from a seed of their own."""
    inputs = np.random.default_rng([task, step]).standard_normal((SAMPLES, WEIGHTS))
    off = (inputs * (model - TRUTH)).sum(axis=1)
    return (inputs * off[:, None]).sum(axis=0) / SAMPLES


def main() -> None:
    with pleach.World() as world:
        step, model = 0, np.zeros(WEIGHTS)
        while step < STEPS:
            joined, root = world.admit()  # a replacement waits here
            if joined:
                step, model = pleach.share(world, root, (step, model), joined)
            if step % 10 == 0:
                print(f"step {step}", flush=True)
            time.sleep(PAUSE)
            # restore sees the model and the step of this very call: model is never changed in place.
            total = world.allreduce(
                gradient(world.rank, step, model),
                restore=lambda task, step=step, model=model: gradient(task, step, model),
            )
            model = model - RATE / WEIGHTS * total / world.size
            step += 1
        world.once(lambda: print(f"model {zlib.crc32(model.tobytes()):08x} after {step} steps", flush=True))


if __name__ == "__main__":
    try:
        main()
    except pleach.JobEnded:
        pass  # the job has ended without this replacement
    except pleach.Error as e:
        sys.exit(f"sgd: {e}")

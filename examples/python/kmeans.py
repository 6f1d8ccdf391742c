"""Kmeans finds clusters of points that are spread over the processes, and ends with the same centers although some die:

    pleach run -n 4 --kill '1@/step 20/' python3 examples/python/kmeans.py
"""

import zlib

import numpy as np

import pleach

STEPS, CLUSTERS, POINTS, DIMENSIONS = 60, 8, 2000, 3


def points(task: int) -> np.ndarray:
    rng = np.random.default_rng(task)
    return rng.integers(0, 4, (POINTS, 1)) * 10 + rng.standard_normal((POINTS, DIMENSIONS))


def sums(mine: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """The sum and the number of the points that are nearest to each center."""
    nearest = ((mine[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
    result = np.zeros((CLUSTERS, DIMENSIONS + 1))
    for k in range(CLUSTERS):
        result[k, :-1] = mine[nearest == k].sum(axis=0)
        result[k, -1] = (nearest == k).sum()
    return result


def main() -> None:
    with pleach.World() as world:
        mine = points(world.rank)
        centers = points(0)[:CLUSTERS]
        for step in range(STEPS):
            if step % 10 == 0:
                print(f"step {step}", flush=True)
            total = world.allreduce(
                sums(mine, centers), restore=lambda task, centers=centers: sums(points(task), centers)
            )
            centers = total[:, :-1] / np.maximum(total[:, -1:], 1)
        world.once(lambda: print(f"centers {zlib.crc32(centers.tobytes()):08x}", flush=True))


if __name__ == "__main__":
    main()

"""Halo spreads heat on a ring of cells, of which each process has a segment, and ends with the same temperatures although
processes die:

    pleach run -n 4 --kill '3@/step 40/' python3 examples/python/halo.py

The state of a task is lost with its process. So all have a copy of all segments, from every tenth step, and compute what a
dead task has sent since then: from its segment and as many cells beside it as there were steps.
"""

import zlib

import numpy as np

import pleach

STEPS, CELLS, COPY = 100, 64, 10


def advance(cells: np.ndarray) -> np.ndarray:
    """One step, which needs a cell more on either side."""
    return 0.5 * cells[1:-1] + 0.25 * (cells[:-2] + cells[2:])


def segment(task: int, steps: int, copy: np.ndarray) -> np.ndarray:
    """The segment of a task, so many steps after the copy."""
    cells = np.arange(task * CELLS - steps, (task + 1) * CELLS + steps) % copy.size
    result = copy[cells]
    for _ in range(steps):
        result = advance(result)
    return result


def main() -> None:
    with pleach.World() as world:
        n = world.size
        copy = np.random.default_rng(1).random(n * CELLS)
        mine = segment(world.rank, 0, copy)

        def ends(task: int, mine: np.ndarray) -> dict:
            return {(task - 1) % n: mine[:1], (task + 1) % n: mine[-1:]}

        for step in range(STEPS):
            since = step % COPY
            if since == 0:
                print(f"step {step}", flush=True)
                copy = np.concatenate(
                    world.allgather(mine, restore=lambda task, copy=copy, s=step and COPY: segment(task, s, copy))
                )
            halo = world.exchange(
                ends(world.rank, mine),
                mutual=True,
                restore=lambda task, copy=copy, s=since: ends(task, segment(task, s, copy)),
            )
            mine = advance(np.concatenate([halo[(world.rank - 1) % n], mine, halo[(world.rank + 1) % n]]))
        result = np.concatenate(world.allgather(mine, restore=lambda task, copy=copy: segment(task, COPY, copy)))
        world.once(lambda: print(f"cells {zlib.crc32(result.tobytes()):08x}, sum {result.sum():.9f}", flush=True))


if __name__ == "__main__":
    main()

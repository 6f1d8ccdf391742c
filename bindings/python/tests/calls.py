"""Make every call, and check every result, which is the same whichever process dies at whichever line."""

import numpy as np

import pleach


def phase(name):
    print("phase", name, flush=True)


def own(task):
    return np.full((2, 3), task + 1, np.float32)


def parts(task):
    return [np.array([100 * task + i], np.int32) for i in range(world.size)]


def neighbors(task):
    return {i % world.size: np.array([100 * task + i % world.size]) for i in (task - 1, task + 1)}


with pleach.World() as world:
    rank, n = world.rank, world.size
    mine, total = own(rank), n * (n + 1) / 2
    phase("barrier")
    world.barrier()
    phase("allreduce")
    result = world.allreduce(mine, restore=own)
    assert result.shape == (2, 3) and result.dtype == np.float32 and (result == total).all()
    phase("operator")
    assert (world.allreduce(mine, op=np.maximum, restore=own) == n).all()
    phase("scalar")
    assert world.allreduce(rank + 1, restore=lambda task: task + 1) == total
    phase("reduce")
    result = world.reduce(mine, 1, "max", restore=own)
    assert rank != 1 if result is None else (result == n).all()
    phase("broadcast")
    assert (world.broadcast(mine, 2, restore=own) == 3).all()
    phase("unknown")
    result = world.broadcast(mine if rank == 2 else "f4", 2, restore=own)
    assert result.size == 6 and (result == 3).all()
    phase("scan")
    assert (world.scan(mine, restore=own) == (rank + 1) * (rank + 2) / 2).all()
    phase("exscan")
    result = world.exscan(mine, restore=own)
    assert result is None if rank == 0 else (result == rank * (rank + 1) / 2).all()
    phase("gather")
    result = world.gather(mine, restore=own)
    assert rank != 0 if result is None else all((part == i + 1).all() for i, part in enumerate(result))
    phase("allgather")
    result = world.allgather(mine[: 1 + rank % 2], restore=lambda task: own(task)[: 1 + task % 2])
    assert [part.shape for part in result] == [(1 + i % 2, 3) for i in range(n)] and (result[3] == 4).all()
    phase("scatter")
    result = world.scatter(parts(3) if rank == 3 else None, 3, "i4", restore=parts)
    assert result.tolist() == [300 + rank]
    phase("scatter_untyped")
    result = world.scatter(parts(3) if rank == 3 else None, 3, restore=parts)
    assert result.tolist() == [300 + rank] and result.dtype == np.int32
    phase("reduce_scatter")
    assert world.reduce_scatter(parts(rank), "max", restore=parts).tolist() == [100 * (n - 1) + rank]
    phase("alltoall")
    result = world.alltoall(parts(rank), restore=parts)
    assert [part.tolist() for part in result] == [[100 * i + rank] for i in range(n)]
    phase("exchange")
    result = world.exchange(neighbors(rank), restore=neighbors)
    assert {i: part.tolist() for i, part in result.items()} == {i: [100 * i + rank] for i in neighbors(rank)}
    phase("requests")
    first = world.start("allreduce", mine, restore=own)
    second = world.start("allreduce", mine, "prod", restore=own)
    assert (second.wait() == np.prod(np.arange(1.0, n + 1))).all() and (first.wait() == total).all() and first.done()
    phase("agree")
    assert world.agree(6 | 1 << rank) & 6 == 6
    phase("queue")
    assert pleach.queue(world, 11, lambda item: item**2, 2) == [item**2 for item in range(11)]
    phase("shrink")
    survivors = world.shrink()
    assert survivors.world_rank(survivors.rank) == rank and survivors.size <= n
    assert rank in world.tasks() and world.owner(rank) == rank and world.fencing_token(rank)[1]
    phase("once")
    world.once(lambda: print("all results are right"))

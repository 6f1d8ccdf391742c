"""Make all calls of torch.distributed that the guide names, and print what this rank has got, for the others to compare.

Arguments: the number of steps; "raises" to get an exception for a death; "groups" for calls of dist.new_group; "stay" to
have rank 2 wait in step 1 until it is killed; "types" to check operators and types; "objects" to gather objects, too; "wrap" to wrap a
network in each step; "bare" to make a DistributedDataParallel without the group's wrap in each step; "replace" to admit a
replacement of rank 2 in step 2, and to make groups again.
"""

import inspect
import sys
import time

import torch
import torch.distributed as dist

import pleach
import pleach.torch

steps, raises, groups = int(sys.argv[1]), "raises" in sys.argv, "groups" in sys.argv
torch.set_num_threads(1)
group = pleach.torch.init(raises=raises, **({"progress_timeout": 60} if "types" in sys.argv else {}))
rank, n = dist.get_rank(), dist.get_world_size()
halves = [dist.new_group(list(range(first, n, 2))) for first in range(2)] if groups else [None]
mine = halves[rank % len(halves)]


def tell(step, name, f):
    """Print what a call gives: a result or an exception."""
    try:
        got = f()
    except pleach.FailedError as e:
        got = f"{type(e).__name__} {e.ranks}"
    except EOFError:
        got = "EOFError"
    print(f"{step} {name}: {got}", flush=True)


def reduced(x, op):
    dist.all_reduce(x, op, group=mine)
    return x.tolist()


def broadcast(source):
    source = rank % 2 if groups else source
    x = torch.full((2,), float(100 * step + rank))
    dist.broadcast(x, source, group=mine)
    return x.tolist()


def objects():
    got = [None] * n
    dist.all_gather_object(got, {"rank": rank})
    return [o["rank"] for o in got]


def gradient():
    model = group.wrap(torch.nn.Linear(1, 1, bias=False))
    model(torch.tensor([[float(rank)]])).sum().backward()
    return model.module.weight.grad.tolist()


def bare():
    try:
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1, bias=False))
    except (RuntimeError, pleach.FailedError):
        return "error"
    model(torch.tensor([[float(rank)]])).sum().backward()
    return model.module.weight.grad.tolist()


def replace():
    """Make groups, and make them again when a replacement has come."""
    step, joined, mine = 0, 0, None
    while step < steps:
        admitted = group.admit()
        if admitted or mine is None:
            step, joined = group.share(torch.nn.Linear(1, 1), None, (step, joined + len(admitted)))
            mine = [dist.new_group(list(range(first, n, 2))) for first in range(2)][rank % 2]
        if step == 2 and not joined:
            time.sleep(0.02)
            continue
        print("step", step, flush=True)
        while rank == 2 and step == 1:
            time.sleep(1)
        x = torch.tensor([rank, 1])
        dist.all_reduce(x, group=mine)
        print(f"{step}.{rank % 2} sum of integers: {x.tolist()}", flush=True)
        step += 1
    print("complete", flush=True)
    group.finalize()


def gathered():
    parts = [torch.full((2,), -1) for _ in range(dist.get_world_size(mine))]
    dist.all_gather(parts, torch.tensor([10 * step + rank, rank]), group=mine)
    return [part.tolist() for part in parts]


def elements(of, dtype):
    """What a rank gives: small numbers, whose sums and products are exact."""
    return torch.tensor([1 + of % 2, 0, 2]).to(dtype)


def check_types():
    """Combine tensors of each type by each operator, contiguous or not, and compare the results with torch's."""
    fold = {"SUM": torch.add, "PRODUCT": torch.mul, "MIN": torch.minimum, "MAX": torch.maximum}
    bits = {"BAND": torch.bitwise_and, "BOR": torch.bitwise_or}
    for dtype in pleach.torch.TYPES:
        for name, f in {**fold, **({} if dtype.is_floating_point else bits)}.items():
            want = elements(0, dtype)
            for of in range(1, n):
                want = f(want, elements(of, dtype)).to(dtype)
            x = torch.zeros(2, 3, dtype=dtype).t()
            x[:, 0] = elements(rank, dtype)
            work = dist.all_reduce(x, getattr(dist.ReduceOp, name), async_op=True)
            assert work.wait() and work.is_completed() and torch.equal(x[:, 0], want), (dtype, name, x, want)
        parts = [torch.zeros(3, dtype=dtype) for _ in range(n)]
        assert dist.all_gather(parts, elements(rank, dtype), async_op=True).wait()
        assert all(torch.equal(part, elements(of, dtype)) for of, part in enumerate(parts)), (dtype, parts)
        x = elements(rank, dtype)
        assert dist.broadcast(x, n - 1, async_op=True).wait()
        assert torch.equal(x, elements(n - 1, dtype)), (dtype, x)
        if dtype.is_floating_point:
            x = torch.full((2,), rank, dtype=dtype)
            dist.all_reduce(x, dist.ReduceOp.AVG)
            assert x.tolist() == [(n - 1) / 2] * 2, (dtype, x)


def check_unsupported():
    """Other calls raise exceptions: they do nothing silently."""
    assert dist.barrier(async_op=True).wait()
    if "use_local_synchronization" in inspect.signature(dist.new_group).parameters and rank < 2:
        try:
            dist.all_reduce(torch.ones(1), group=dist.new_group([0, 1], use_local_synchronization=True))
        except pleach.Error as e:
            assert "use_local_synchronization" in str(e), e
        else:
            raise SystemExit("no error")
    x, y = torch.ones(n), torch.ones(1)
    for wrong in [
        lambda: dist.reduce(y, 0), lambda: dist.gather(y, [y.clone() for _ in range(n)] if rank == 0 else None), lambda: dist.scatter(y, [y] * n if rank == 0 else None),
        lambda: dist.reduce_scatter(y, [y] * n), lambda: dist.all_to_all([y] * n, [y] * n), lambda: dist.all_to_all_single(x, x.clone()),
        lambda: dist.send(y, 0), lambda: dist.recv(y, 0),
    ]:  # fmt: skip
        try:
            wrong()
        except (RuntimeError, NotImplementedError, ValueError, TypeError) as e:
            print("unsupported", repr(e), flush=True)
        else:
            raise SystemExit("no error")


def check_different():
    """Ranks that give different types or sizes all get the same exception, and later calls work (case 83)."""
    for wrong in [
        lambda: reduced(torch.ones(1, dtype=torch.bool if rank else torch.uint8), dist.ReduceOp.BOR),
        lambda: dist.broadcast(torch.ones(1, dtype=torch.bool if rank else torch.uint8), 0),
        lambda: dist.all_gather([torch.ones(1, dtype=[torch.bool, torch.uint8][rank % 2])] * n, torch.ones(1, dtype=[torch.bool, torch.uint8][rank % 2])),
        lambda: reduced(torch.ones(1 + rank), dist.ReduceOp.SUM),
        lambda: dist.broadcast(torch.ones(1 + rank), 0),
        lambda: dist.broadcast(torch.ones(1 + rank), n - 1),
        lambda: dist.all_gather([torch.ones(1 + rank)] * n, torch.ones(1 + rank)),
    ]:
        try:
            wrong()
        except pleach.MismatchError:
            pass
        else:
            raise SystemExit("no error")
        assert reduced(torch.ones(1), dist.ReduceOp.SUM) == [n]
    for parts in [torch.ones(1)] * (n - 1), [torch.ones(2)] * n, [torch.ones(1, dtype=torch.int32)] * n:
        try:
            dist.all_gather(parts, torch.ones(1))
        except ValueError as e:
            assert any(text in str(e) for text in ["needs a list", "all_gather", "different dtypes"]), e  # the last one is torch's
        except (TypeError, RuntimeError) as e:  # by torch 2.14
            print("refused by torch", repr(e), flush=True)
        else:
            raise SystemExit("no error")


if "replace" in sys.argv:
    replace()
    sys.exit()
if "types" in sys.argv:
    check_types()
    check_unsupported()
    check_different()
    group.settle()
    assert group.world.allreduce(1) == n
for step in range(steps):
    print("step", step, flush=True)
    while "stay" in sys.argv and rank == 2 and step == 1:
        time.sleep(1)
    part = f"{step}.{rank % 2}" if groups else step
    tell(part, "sum of floats", lambda: reduced(torch.tensor([rank + 0.5]), dist.ReduceOp.SUM))
    tell(part, "sum of integers", lambda: reduced(torch.tensor([rank, 1]), dist.ReduceOp.SUM))
    tell(part, "average", lambda: reduced(torch.tensor([float(rank)]), dist.ReduceOp.AVG))
    tell(part, "largest", lambda: reduced(torch.tensor([rank], dtype=torch.int16), dist.ReduceOp.MAX))
    tell(part, "any", lambda: reduced(torch.tensor([rank == 1]), dist.ReduceOp.SUM))
    tell(part, "broadcast", lambda: broadcast(step % n))
    tell(part, "gathered", gathered)
    tell(part, "barrier", lambda: dist.barrier(group=mine))
    if not groups:
        tell(part, "alive", group.alive)
    if "wrap" in sys.argv:
        tell(part, "gradient", gradient)
    if "bare" in sys.argv:
        tell(part, "bare", bare)
    if "objects" in sys.argv:
        tell(part, "objects", objects)
for wrong in lambda: reduced(torch.tensor([1]), dist.ReduceOp.AVG), lambda: reduced(torch.tensor([1]), dist.ReduceOp.BXOR):
    try:
        wrong()
    except TypeError as e:
        assert "use SUM" in str(e)
    else:
        raise SystemExit("no error")
print("complete", flush=True)
group.finalize()

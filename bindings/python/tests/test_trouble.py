"""What programs do wrong, and what happens to them, raises an exception that says what to do."""

import re
import subprocess
import sys

from conftest import ROOT, kill, only


def test_exceptions_name_ranks(program):
    program("""
world = pleach.World()
if world.rank == 1:
    while not world.failed(): time.sleep(.001)
    world.abort(); sys.exit()
try: world.barrier(timeout=.1)
except TimeoutError as e: assert isinstance(e, pleach.TimeoutError) and e.ranks == [1], e
else: raise SystemExit("no timeout")
request = world.start("allreduce", np.ones(3))
try: request.wait(.05)
except pleach.TimeoutError: request.cancel()
try: request.wait()
except pleach.CanceledError as e: pass
""")


def test_mismatch(program):
    program("""
world = pleach.World()
try: world.barrier() if world.rank else world.allreduce(1.0)
except pleach.MismatchError as e: assert sorted(e.ranks) == [0, 1] and "Barrier" in str(e), e
else: raise SystemExit("no error")
world.abort()
""")


def test_mismatch_of_bool_and_uint8(program):
    """They are different types, though both are bytes."""
    program("""
world = pleach.World()
x = np.ones(1, bool if world.rank else "u1")
for call in lambda: world.allreduce(x, "or"), lambda: world.allgather(x):
    try: call()
    except pleach.MismatchError as e: assert "boolean" in str(e) and "of uint8" in str(e), e
    else: raise SystemExit("no error")
for op in "sum", "prod", "min", "max", "and", "or":
    got, both = world.allreduce(np.array([True, False, bool(world.rank)]), op), op in ("sum", "max", "or")
    assert got.dtype == bool and got.tolist() == [True, False, both], (op, got)
world.finalize()
""")


def test_report(program):
    program("""
world = pleach.World()
if world.rank == 1: os._exit(0)
try: world.allreduce(1.0, report=True)
except pleach.FailedError as e: assert e.ranks == [1]
except pleach.RevokedError as e: pass
world.revoke()
assert world.shrink().allreduce(1.0, report=True) == 2
world.finalize()
""", 3)


def test_restore_that_raises(program):
    out = program("""
def restore(task): raise OSError("the disk is full")
world = pleach.World()
if world.rank == 1: os._exit(0)
try: world.allreduce(1.0, restore=restore)
except pleach.RestoreError as e:
    assert e.ranks == [1] and isinstance(e.__cause__, OSError), e
    print("task 1 is not restored")
except pleach.AbortError as e: assert len(e.ranks) == 1
world.abort()
""", 3)
    assert "task 1 is not restored" in out  # twice, if the second survivor asks when the first has gone


def test_callbacks_that_raise(program):
    program("""
class Wrong(Exception): pass
def wrong(*arguments): raise Wrong("on purpose")
world = pleach.World()
try: world.allreduce(np.ones(2), wrong)
except pleach.OperatorError as e: assert e.ranks == [world.rank] and isinstance(e.__cause__, Wrong), repr(e)
except pleach.AbortError as e: assert e.ranks == [1 - world.rank] and "Wrong: on purpose" in str(e), repr(e)
else: raise SystemExit("no error")
try: world.once(wrong)
except pleach.Error as e: assert isinstance(e.__cause__, Wrong) or isinstance(e, pleach.AbortError), repr(e)
world.abort()
""")


def test_operator_that_raises_on_one_process(program):
    """All processes raise, and name the rank and the cause (case 86). The next call works."""
    out = program("""
with pleach.World() as world:
    for name in "allreduce scan exscan reduce reduce_scatter".split():
        for odd in range(world.size):
            raised = []
            def op(a, b):
                if world.rank == odd:
                    raised.append(1)
                    raise ZeroDivisionError("on purpose")
                return a + b
            given = [np.ones(4)] * world.size if name == "reduce_scatter" else np.ones(4)
            try: getattr(world, name)(given, op=op)
            except pleach.OperatorError as e: assert isinstance(e.__cause__, ZeroDivisionError) and e.ranks == [odd], repr(e)
            except pleach.AbortError as e: assert e.ranks == [odd] and "ZeroDivisionError: on purpose" in str(e), repr(e)
            else: assert world.allreduce(len(raised)) == 0, (name, odd); continue
            assert world.allreduce(len(raised)) == 1, (name, odd)
            print(name, "raised on", world.rank)
""", 3)
    assert [len(re.findall(rf"^\[\d\] {name} raised", out, re.M)) for name in ("allreduce", "reduce_scatter")] == [6, 9], out


def test_operator_of_another_type(program):
    """What an operator returns is not cut to the type of the arrays."""
    program("""
with pleach.World() as world:
    try: world.allreduce(np.array([1, 2]), op=lambda a, b: (a + b) / 2)
    except (pleach.OperatorError, pleach.AbortError) as e: assert "Cannot cast" in str(e), e
    else: raise SystemExit("no error")
""")


def test_scatter_keeps_types(program):
    """Parts arrive with the type and value that the root has given (case 87)."""
    program("""
with pleach.World() as world:
    n = world.size
    for x in [np.array([2**60 + 1]), np.array([2**63], "u8"), np.array([1.5, 2], "f4"), np.array([True, False]), np.array([1j, 2]), np.ones((2, 3), "i1")]:
        got = world.scatter([x * True] * n if world.rank == 1 else None, 1)
        assert got.dtype == x.dtype and got.tolist() == x.reshape(-1).tolist(), got
        assert world.allreduce(got, "or" if x.dtype == bool else "sum").dtype == x.dtype
    for wrong in [lambda: world.scatter([[1.5]] * n, dtype="i8"), lambda: world.alltoall([[1]] + [[1.5]] * (n - 1))]:
        try: wrong()
        except TypeError: pass
        else: raise SystemExit("no error")
""", 3)


def test_options_are_in_signatures():
    """help shows the options of calls (case 104)."""
    sys.path.insert(0, str(ROOT / "bindings" / "python"))
    import inspect

    import pleach

    assert {"restore", "takeover", "report", "corrected", "timeout"} <= set(inspect.signature(pleach.Comm.allreduce).parameters)
    assert list(inspect.signature(pleach.Comm.barrier).parameters) == ["self", "report", "timeout"]


def test_complex(program):
    program("""
with pleach.World() as world:
    for name in "c8", "c16":
        x = np.array([1 + 2j, 3j, -1], name)
        assert world.allreduce(x).tolist() == (2 * x).tolist() and world.allreduce(x, "prod").tolist() == (x * x).tolist()
        assert world.allreduce(x, np.add).dtype == x.dtype
        assert [part.tolist() for part in world.allgather(x)] == [x.tolist()] * 2
    assert world.allreduce(1j) == 2j
""")


def test_wrong_arguments(program):
    program("""
with pleach.World() as world:
    for root in -1, world.size: # case 104
        for f in world.broadcast, world.reduce, world.gather, lambda x, root: world.scatter([x], root):
            try: f(np.ones(1), root)
            except pleach.ArgumentError as e: assert "root" in str(e), e
            else: raise SystemExit("no error")
    masked = np.ma.array([1., 2.], mask=[0, 1])
    for given in masked, [masked]:
        try: world.allreduce(given)
        except TypeError as e: assert "filled" in str(e), e
        else: raise SystemExit("a mask was ignored")
    for f in [
        lambda: world.allreduce(np.ones(2, complex), 'max'), lambda: world.allreduce([1.5], "and"), lambda: world.allreduce([1], "avg"),
        lambda: world.allreduce(["a"]), lambda: world.split([1, 2, 3]), lambda: world.allreduce(np.ones(2), out=np.ones(2, int)), lambda: world.allreduce(np.ones(2), out=masked),
        lambda: world.allreduce(np.ones(2), corrected=-1), lambda: world.broadcast([1], 7), lambda: world.evict(0),
    ]:
        try: f()
        except (ValueError, TypeError, pleach.Error) as e: assert str(e)
        else: raise SystemExit("no error")
""", 1)


def test_memory(program):
    """Arrays may be slices, and of any type; results do not change when the call's memory is used again."""
    program("""
with pleach.World() as world:
    n, x = world.size, np.arange(24.).reshape(4, 6)
    assert (world.allreduce(x[:, ::2]) == n * x[:, ::2]).all() and (world.allreduce(x.T) == n * x.T).all()
    for name in "u1 i1 u2 i2 u4 i4 u8 i8 f2 f4 f8".split():
        assert world.allreduce(np.array([3], name)).tolist() == [3 * n], name
    assert world.allreduce(np.array([True, world.rank == 0]), "and").tolist() == [True, n == 1]
    assert world.allreduce(np.empty(0)).size == 0
    out = np.empty(2); assert world.allreduce(np.ones(2), out=out) is out and out[0] == n
    kept = [world.allgather(np.full(1000, i)) for i in range(50)]
    assert all((part == i).all() for i, parts in enumerate(kept) for part in parts)
    half = np.arange(65536, dtype="u2").view("f2")
    other = np.random.default_rng(1).permutation(half)
    for op, f in {"sum": np.add, "prod": np.multiply}.items():
        with np.errstate(all="ignore"): want = f(half, other)
        got = world.allreduce(half if world.rank == 0 else other, op)
        assert (np.isnan(want) == np.isnan(got)).all() and (want.view("u2") == got.view("u2"))[~np.isnan(want)].all(), op
""")


def test_callbacks_are_forgotten(program):
    program("""
from pleach.comm import _calls
with pleach.World() as world:
    for i in range(500):
        world.allreduce(i, restore=lambda task: i)
        assert len(_calls) < 8, len(_calls)
""")


def test_ctrl_c(program):
    """KeyboardInterrupt arrives in a call that waits; a handler of the program runs after it."""
    out = program("""
world = pleach.World()
if world.rank == 1:
    while not world.failed(): time.sleep(.001)
    world.abort(); sys.exit()
import threading
from pleach import _interrupt
def send(number):  # when the main thread waits in a call
    while _interrupt._current is None: time.sleep(.001)
    time.sleep(.05)
    os.kill(os.getpid(), number)
threading.Thread(target=send, args=[signal.SIGINT]).start()
try: world.barrier()
except KeyboardInterrupt: print("interrupted")
signal.signal(signal.SIGUSR1, lambda *_: print("handled"))
threading.Thread(target=send, args=[signal.SIGUSR1]).start()
try: world.barrier(timeout=1)
except pleach.TimeoutError: print("timed out")
world.abort()
""")
    assert re.findall("interrupted|handled|timed out", out) == ["interrupted", "handled", "timed out"]


def test_signals_that_end_a_process(program):
    out = program("""
world = pleach.World()
if world.rank == 1: os.kill(os.getpid(), signal.SIGTERM)
assert world.allreduce(1.0, restore=lambda task: 1.0) == 2
world.finalize()
""", 2)
    assert "terminated" in out and "success: 1 survivors" in out


def test_fork(program):
    """A child of fork gets an exception; one of fork and exec is fine; the parent goes on."""
    program("""
import subprocess
with pleach.World() as world:
    child = os.fork()
    if child == 0:
        try: world.barrier()
        except pleach.ForkError: os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert subprocess.run(["true"]).returncode == 0
    assert world.allreduce(1) == 2
""")


def test_exit_without_finalize(program):
    """A process that exits counts as dead, and so does one that raises."""
    out = program("""
world = pleach.World()
if world.rank == 1: sys.exit(0)
with world:
    if world.rank == 2: raise SystemExit(0)
    assert world.allreduce(1.0, restore=lambda task: 1.0) == 3
    print("done")
""", 3)
    only("done", out)


def test_threads(program):
    """Threads make calls in communicators of their own."""
    program("""
from concurrent.futures import ThreadPoolExecutor
with pleach.World() as world:
    comms = [world.split([0] * world.size) for _ in range(4)]
    def work(comm): return [float(comm.allreduce(i)) for i in range(200)]
    with ThreadPoolExecutor(4) as pool:
        assert all(r == [2.0 * i for i in range(200)] for r in pool.map(work, comms))
""")


def test_import_twice(program):
    program("""
import importlib
importlib.reload(pleach)
for name in [name for name in sys.modules if name.startswith("pleach")]: del sys.modules[name]
import pleach
with pleach.World() as world: assert world.allreduce(1) == 2
""")


def test_checkpoint(program, tmp_path):
    """A job of which all processes have died goes on where it was."""
    source = f"""
with pleach.World() as world:
    step, x = pleach.load(world, {str(tmp_path / "state")!r}, (0, np.zeros(3)))
    print("begins at", step, flush=True)
    while step < 20:
        step, x = step + 1, world.allreduce(x + step, restore=lambda task, x=x, step=step: x + step + 1)
        pleach.save(world, {str(tmp_path / "state")!r}, (step, x))
        print("step", step, flush=True)
        if step == 12 and "WAIT" in os.environ: time.sleep(60)  # to be killed
    world.once(lambda: print("x", x[0]))
"""
    program(source, 2, kill(0, "step 12$"), kill(1, "step 12$"), env={"WAIT": "1"})
    out = program(source)
    assert set(re.findall(r"begins at (\d+)", out)) == {"12"}
    (tmp_path / "state").unlink()
    assert only("x .*", program(source)) == only("x .*", out)


def test_header(tmp_path):
    """The structures and constants of the package are those of pleach.h."""
    sys.path.insert(0, str(ROOT / "bindings" / "python"))
    from pleach import _library as c

    lines = []
    for name, structure in {"pleach_call": c.Call, "pleach_error": c.Error, "pleach_part": c.Part, "pleach_config": c.Config}.items():
        lines.append(f"_Static_assert(sizeof({name}) == {__import__('ctypes').sizeof(structure)}, {name!r});".replace("'", '"'))
        for field, _ in structure._fields_:
            offset, field = getattr(structure, field).offset, field.rstrip("_")
            lines.append(f'_Static_assert(offsetof({name}, {field}) == {offset}, "{name}.{field}");')
    header = (ROOT / "bindings" / "c" / "pleach.h").read_text()
    for constant in re.findall(r"\tPLEACH_(\w+) = \d+", header):
        if hasattr(c, constant):
            lines.append(f'_Static_assert(PLEACH_{constant} == {getattr(c, constant)}, "{constant}");')
    assert len(lines) > 80 and set(re.findall(r"^\w.*?(pleach_\w+)\(", header, re.M)) == set(c.FUNCTIONS)
    (tmp_path / "a.c").write_text('#include "pleach.h"\n' + "\n".join(lines))
    subprocess.run(["gcc", "-std=c11", "-fsyntax-only", f"-I{ROOT}/bindings/c", tmp_path / "a.c"], check=True)

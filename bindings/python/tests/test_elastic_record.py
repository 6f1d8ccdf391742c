"""The protocol of pleach.elastic in all interleavings of a few workers, with deaths, wrong timeouts and newcomers.

The model makes the changes of the record that the trainer makes, in its order. Collectives are abstract: one may
complete when all members have come to it, and may fail at any member when another one has died or has ended its process group.
"""

import importlib.util
import sys
from collections import namedtuple
from dataclasses import dataclass, replace

import pytest
from conftest import FULL, ROOT

# The package itself needs torch.
_spec = importlib.util.spec_from_file_location("record", ROOT / "bindings/python/pleach/elastic/_record.py")
_module = importlib.util.module_from_spec(_spec)
sys.modules["record"] = _module
_spec.loader.exec_module(_module)
Record, NO_STATE = _module.Record, _module.NO_STATE

LARGE = pytest.mark.skipif(not FULL, reason="takes minutes: PLEACH_FULL=1")
World = namedtuple("World", "number members holders step")
LAST = 2  # steps of the job
# What a worker does next. Those from START to RECEIVE are collectives, in their order.
ENTER, MEET, START, REDUCE, BARRIER, DECIDE, SEND, RECEIVE, CLOSE, ABANDON, DONE, LOST, ENDED = range(13)


@dataclass(frozen=True)
class Worker:
    """A worker. Its state is where it began and the worlds of its steps."""

    at: int = ENTER
    alive: bool = True
    world: World = None  # as it was formed
    state: tuple = ()
    step: int = NO_STATE
    reached: tuple = ()  # (world, step, collective) to which it has come, the last one of each world
    dropped: tuple = ()  # worlds whose process group it has ended


@dataclass(frozen=True)
class System:
    workers: tuple
    record: bytes = Record().encode()
    history: tuple = ()  # the worlds in which steps were committed
    kills: int = 0
    timeouts: int = 0
    timed_out: bool = False


def explore(n, min_size, kills, timeouts, mistake=None):
    """Visit all states, and return how many there are."""
    first = System(tuple(Worker() for _ in range(n)), kills=kills, timeouts=timeouts)
    seen, todo = {first}, [first]
    while todo:
        system = todo.pop()
        check(system)
        following = list(steps(system, min_size, mistake))
        if not any(s != system for s in following):
            check_end(system, min_size)
        for s in following:
            if s not in seen:
                seen.add(s)
                todo.append(s)
    return len(seen)


def check(system):
    begun = {}
    for w in system.workers:
        steps_made = w.state[1:]
        assert steps_made == system.history[: len(steps_made)], "a step is applied that was not committed, or twice"
        if w.world is not None and w.at in range(REDUCE, RECEIVE + 1):
            same = begun.setdefault((w.world.number, w.step), w.state)
            assert same == w.state, "members of a world begin a step with different states"
        if w.at == LOST and not system.timed_out:
            assert not any(v.alive and v.state[1:] == system.history for v in system.workers), "the state is not lost"
    assert Record.decode(system.record).step == len(system.history)


def check_end(system, min_size):
    alive = [w for w in system.workers if w.alive]
    for w in alive:
        if w.at == DONE:
            assert len(w.state) == LAST + 1
        elif w.at not in (LOST, ENDED):
            assert len(alive) < min_size, f"workers wait for ever: {system}"


def steps(system, min_size, mistake):
    for i, w in enumerate(system.workers):
        if not w.alive or w.at in (DONE, LOST, ENDED):
            continue
        if system.kills:
            yield changed(replace(system, kills=system.kills - 1), i, alive=False)
        if w.at in (ENTER, MEET, DECIDE, CLOSE, ABANDON):
            yield from agreed(system, i, w, min_size, mistake)
        else:
            yield from collective(system, i, w, mistake)


def changed(system, i, **fields):
    workers = list(system.workers)
    workers[i] = replace(workers[i], **fields)
    return replace(system, workers=tuple(workers))


def stored(system, record):
    return replace(system, record=record.encode())


def agreed(system, i, w, min_size, mistake):
    """A change of the record."""
    record, me = Record.decode(system.record), str(i)
    dead = {str(j) for j, v in enumerate(system.workers) if not v.alive}
    if w.at == ENTER:
        new = record.enter(me, w.step)
        if new.ended:
            yield changed(system, i, at=ENDED)
        else:
            yield changed(stored(system, new), i, at=MEET)
    elif w.at == MEET:
        yield from meet(system, i, record, me, min_size, dead)
        missing = {v for v in record.expected if v not in record.present and v not in dead}
        if system.timeouts and missing:
            late = replace(system, timeouts=system.timeouts - 1, timed_out=True)
            yield from meet(late, i, record, me, min_size, dead | missing)
    elif w.at == DECIDE:
        new = record.commit(w.world.number, w.step, LAST)
        assert new.step - record.step in (0, 1)
        after = stored(system, new)
        if new.step > record.step:
            after = replace(after, history=(*system.history, w.world.number))
        if new.number == w.world.number or new.outcome(w.world.number, w.step):
            yield changed(after, i, at=SEND)
        else:
            yield failed(after, i)
    elif w.at == ABANDON:
        yield changed(stored(system, record.close(w.world.number)), i, at=ENTER, world=None)
    elif mistake == "no close" and (record.number, record.step) == (w.world.number, w.step):
        yield changed(system, i, at=ENTER, world=None)
    else:
        new = record.close(w.world.number)
        after = stored(system, new)
        done = new.step > w.step if mistake == "step only" else new.outcome(w.world.number, w.step)
        yield applied(after, i, w.world.number) if done else changed(after, i, at=ENTER, world=None)

def meet(system, i, record, me, min_size, gone):
    w = system.workers[i]
    if not record.formed:
        if record.lost(gone - {me}):
            yield changed(system, i, at=LOST)
            return
        record = record.form(min_size, gone - {me})
    after = stored(system, record)
    if me in record.members:
        world = World(record.number, record.members, record.holders, record.step)
        reached = {(n, s, c) for n, s, c in w.reached if n != record.number} | {(record.number, 0, START)}
        yield changed(after, i, at=START, world=world, reached=tuple(sorted(reached)))
    elif record.formed and all(v in gone for v in record.members):
        yield changed(stored(system, record.close(record.number)), i, at=ENTER)
    else:
        yield changed(after, i, at=ENTER)


def collective(system, i, w, mistake):
    number, members = w.world.number, [int(m) for m in w.world.members]
    others = [system.workers[m] for m in members if m != i]
    if any(not v.alive or number in v.dropped for v in others) or w.at == SEND:
        yield failed(system, i)
    elif system.timeouts:
        yield failed(replace(system, timeouts=system.timeouts - 1, timed_out=True), i)
    if mistake == "no barrier" and w.at == BARRIER:
        pass
    elif w.at in (START, REDUCE, BARRIER):
        here = (0 if w.at == START else w.step, w.at)
        if not all(any(n == number and (s, c) >= here for n, s, c in v.reached) for v in others):
            return
    first = system.workers[members[0]]
    if w.at == START:
        state = w.state
        if members.index(i) >= max(w.world.holders, 1):
            state = first.state or (str(members[0]),)
        elif not state:
            state = (str(i),)
        yield come(system, i, REDUCE, state=state, step=w.world.step)
    elif w.at == REDUCE:
        yield come(system, i, BARRIER)
    elif w.at == BARRIER:
        yield come(system, i, DECIDE if members[0] == i else RECEIVE)
    elif w.at == SEND:
        sent = changed(system, i, reached=reached_of(w, number, w.step, SEND))
        yield applied(sent, i, number)
    elif any(n == number and (s, c) >= (w.step, SEND) for n, s, c in first.reached):
        yield applied(system, i, number)


def reached_of(w, number, step, at):
    return tuple(sorted({r for r in w.reached if r[0] != number} | {(number, step, at)}))


def come(system, i, at, **fields):
    system = changed(system, i, at=at, **fields)
    w = system.workers[i]
    if at in (REDUCE, BARRIER):
        system = changed(system, i, reached=reached_of(w, w.world.number, w.step, at))
    return system


def failed(system, i):
    w = system.workers[i]
    at = ABANDON if w.at == START else CLOSE
    return changed(system, i, at=at, dropped=tuple(sorted({*w.dropped, w.world.number})))


def applied(system, i, number):
    """The worker takes the step, and continues in its world if that is still there."""
    w = system.workers[i]
    assert any((n, s) == (number, w.step) and c >= BARRIER for n, s, c in w.reached), "it does not have the gradients"
    system = changed(system, i, state=(*w.state, number), step=w.step + 1)
    if w.step + 1 == LAST:
        return changed(system, i, at=DONE, dropped=tuple(sorted({*w.dropped, number})), world=None)
    closed = Record.decode(system.record).number != number
    if w.at == CLOSE or closed:
        return changed(system, i, at=ENTER, world=None, dropped=tuple(sorted({*w.dropped, number})))
    return come(system, i, REDUCE)


@pytest.mark.parametrize(
    "n, min_size, kills, timeouts", [(2, 1, 1, 1), (2, 2, 1, 0), pytest.param(3, 2, 1, 0, marks=LARGE)]
)
def test_every_interleaving(n, min_size, kills, timeouts):
    """Each step is applied once, by all that have the state, whatever dies when."""
    assert explore(n, min_size, kills, timeouts) > 500


@pytest.mark.parametrize("mistake, timeouts", [("no barrier", 0), ("step only", 1), ("no close", 0)])
def test_planted_mistakes_are_found(mistake, timeouts):
    with pytest.raises(AssertionError):
        explore(3, 1, 1, timeouts, mistake)

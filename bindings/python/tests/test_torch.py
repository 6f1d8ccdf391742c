"""DistributedDataParallel goes on when processes die, are replaced, or are stuck. `make torch-test` runs this."""

import re

import pytest
from conftest import FULL, ROOT, job, kill

torch = pytest.importorskip("torch")

EXAMPLE = ROOT / "examples" / "python" / "ddp.py"
STEPS = 300 if FULL else 60
AT = [1, 2, 50, STEPS - 1]
CASES = [([rank], step) for step in AT for rank in range(4)] + [(pair, step) for step in AT for pair in ([0, 1], [2, 3])]
if not FULL:
    CASES = [([0], 1), ([3], 2), ([1], 50), ([2], STEPS - 1), ([0, 2], 50)]


def train(*flags, **env):
    """Train, and return the weights and the steps of each rank that has come to the end."""
    out = job(4, EXAMPLE, *flags, env={"STEPS": str(STEPS), **env})
    steps, weights = {}, {}
    for rank, step in re.findall(r"^\[(\d)\] step (\d+)$", out, re.M):
        steps.setdefault(int(rank), []).append(int(step))
    for rank, digest in re.findall(rf"^\[(\d)\] after {STEPS} steps: weights (\w+)", out, re.M):
        weights[int(rank)] = digest
    return weights, steps


def check(weights, steps, ranks):
    """All have the same weights, and the survivors have done each step once."""
    assert len(set(weights.values())) == 1 and set(weights) >= set(ranks), weights
    for rank in ranks:
        assert steps[rank] == list(range(STEPS)), rank


@pytest.mark.parametrize("ranks, step", CASES)
def test_killed(ranks, step):
    weights, steps = train(*[kill(rank, f"step {step}$") for rank in ranks])
    check(weights, steps, set(range(4)) - set(ranks))


@pytest.mark.parametrize("ranks, step", CASES)
def test_killed_and_replaced(ranks, step):
    wait = step + 5  # all wait there until the replacements have come; in the last step they come too late
    weights, steps = train("--respawn", *[kill(rank, f"step {step}$") for rank in ranks], WAIT=f"{wait} {len(ranks)}")
    check(weights, steps, set(range(4)) - set(ranks))
    if wait < STEPS:
        assert set(weights) == {0, 1, 2, 3}
        for rank in ranks:  # its own steps, and from where it was taken in
            assert steps[rank][-1] == STEPS - 1 and len(steps[rank]) == len(set(steps[rank])), steps[rank]


def test_stuck():
    weights, steps = train("--progress-timeout=3s", f"--stop=2@/step {STEPS // 2}$/")
    check(weights, steps, {0, 1, 3})

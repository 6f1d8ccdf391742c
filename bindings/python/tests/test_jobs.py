"""Jobs whose processes are killed end with the results of jobs whose processes are not."""

import re

import pytest
from conftest import FULL, ROOT, job, kill, only

HERE = ROOT / "bindings" / "python" / "tests"
EXAMPLES = {"sgd": "model [0-9a-f]{8} after 100 steps", "kmeans": "centers [0-9a-f]{8}", "halo": "cells .*"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_killed_at_every_tenth_step(name):
    program, result = ROOT / "examples" / "python" / f"{name}.py", EXAMPLES[name]
    want = only(result, out := job(4, program))
    steps = sorted({int(step) for step in re.findall(r"step (\d+)", out)})
    assert len(steps) >= 6
    if FULL:
        kills = [[kill(rank, f"step {step}$")] for step in steps for rank in range(4)]
    else:  # three processes each, one after the other: one survives
        kills = [[kill((i + j) % 4, f"step {step}$") for j, step in enumerate(steps[i : i + 3])] for i in range(0, len(steps), 3)]
    for flags in kills:
        assert only(result, job(4, program, *flags)) == want, flags


def test_killed_and_replaced_at_every_tenth_step():
    program, result = ROOT / "examples" / "python" / "sgd.py", EXAMPLES["sgd"]
    want = only(result, job(4, program))
    # Replacements come while the others train, and may be killed, too.
    last, pause = (9, "0.3") if FULL else (4, "0.03")
    flags = [kill(i % 3, f"step {10 * i}$") for i in range(last + 1)]
    out = job(4, program, "--respawn", *flags, env={"SGD_PAUSE": pause})
    assert only(result, out) == want and len(re.findall("and restarted", out)) >= 3


def test_every_call_is_killed():
    out = job(4, HERE / "calls.py")
    assert "all results are right" in out
    phases = list(dict.fromkeys(re.findall(r"phase (\w+)", out)))
    assert len(phases) >= 20
    # The tests of the library in C kill in all phases.
    kills = [(rank, phase) for phase in phases for rank in range(4)] if FULL else [(i % 4, phases[i]) for i in range(0, len(phases), 3)]
    for rank, phase in kills:
        job(4, HERE / "calls.py", kill(rank, f"phase {phase}$"))

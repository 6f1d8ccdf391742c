"""How tests run jobs: real processes under pleach run, of which some are killed."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
FULL = bool(os.environ.get("PLEACH_FULL"))


def job(n, program, *flags, args=(), env=None, code=0):
    """Run a program as a job of n processes, and return its output."""
    ran = subprocess.run(
        [ROOT / "bin" / "pleach", "run", "-n", str(n), *flags, "--", sys.executable, str(program), *args],
        capture_output=True,
        text=True,
        timeout=300,  # of a busy machine
        env={**os.environ, **(env or {})},
    )
    assert ran.returncode == code, f"{flags}: exit code {ran.returncode}\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout + ran.stderr


def kill(rank, line):
    """The flag that kills a rank when it prints a line."""
    return f"--kill={rank}@/{line}/"


@pytest.fixture
def program(tmp_path):
    """Write a program, and return a function that runs it as a job."""

    def write(source, n=2, *flags, **kwargs):
        path = tmp_path / "program.py"
        path.write_text("import numpy as np, pleach, os, sys, signal, time\n" + source)
        return job(n, path, *flags, **kwargs)

    return write


def only(pattern, text):
    """Return the one match of a pattern in a text."""
    found = re.findall(pattern, text)
    assert len(found) == 1, f"{pattern}: {found} in\n{text}"
    return found[0]


@pytest.fixture(scope="session")
def group():
    """Three agents. The first lock that they give takes 10 s, so they are there for all tests."""
    from agents import Agents

    agents = Agents(3, "retain-messages: 100\nhandlers:\n  - {query: hello, run: 'echo hello $(cat)'}\n")
    try:
        agents.wait_ready()
        yield agents
    finally:
        agents.stop()

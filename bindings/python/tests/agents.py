"""Groups of real agents for tests, on loopback."""

import os
import pathlib
import random
import shutil
import socket
import subprocess
import tempfile
import time

from conftest import ROOT

from pleach import agent


def free_port():
    """Return a port that no outgoing connection takes: agents come back to theirs."""
    while True:
        port = random.randrange(20000, 32000)
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


class Agents:
    """Agents of one group. Each has a socket and the settings of a file."""

    def __init__(self, n, settings=""):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="pa-"))  # a path of a socket is short
        self.addresses = [f"127.0.0.1:{free_port()}" for _ in range(n)]
        self.processes = [None] * n
        (self.folder / "agent.yaml").write_text(settings)
        for i in range(n):
            self.start(i)

    def socket(self, i):
        return str(self.folder / f"{i}.sock")

    def client(self, i=0):
        return agent.Client(self.socket(i))

    def start(self, i):
        with open(self.folder / f"{i}.log", "a") as log:
            self.processes[i] = subprocess.Popen(
                [
                    ROOT / "bin" / "pleach", "agent", "--config", self.folder / "agent.yaml", "--expect", str(len(self.addresses)),
                    "--listen", self.addresses[i], "--socket", self.socket(i), "--data-dir", self.folder / f"data{i}",
                    *self.addresses,
                ],
                stdout=log, stderr=log, env={k: v for k, v in os.environ.items() if not k.startswith("PLEACH_")},
            )  # fmt: skip

    def kill(self, i):
        self.processes[i].kill()
        self.processes[i].wait()

    def restart(self, i):
        self.kill(i)
        self.start(i)

    def wait_ready(self):
        for i in range(len(self.processes)):
            self.client(i).wait_ready(30)

    def stop(self):
        for p in self.processes:
            p.kill()
            p.wait()
        shutil.rmtree(self.folder)


def eventually(what, condition, seconds=20):
    """Return the first true result of a condition."""
    until = time.monotonic() + seconds
    while True:
        result = condition()
        if result:
            return result
        assert time.monotonic() < until, f"{what}: not in {seconds} s"
        time.sleep(0.02)

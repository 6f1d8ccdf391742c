"""The wheel and the sdist are complete, and programs in pages run as printed."""

import importlib.util
import os
import re
import subprocess
import sys
import tarfile
import zipfile

from conftest import ROOT, job, kill, only

PYTHON = ROOT / "bindings" / "python"


def backend(folder, out, **env):
    subprocess.run([sys.executable, "backend.py", str(out)], cwd=folder, check=True, env={**os.environ, **env})
    return next(out.glob("pleach-*.whl")), next(out.glob("*.tar.gz"))


def test_wheel_and_sdist(tmp_path):
    wheel, sdist = backend(PYTHON, tmp_path / "first")
    with tarfile.open(sdist) as tar:
        tar.extractall(tmp_path / "source")
    library = os.environ["PLEACH_LIBRARY"]
    (again, _) = backend(next((tmp_path / "source").iterdir()), tmp_path / "second", PLEACH_LIBRARY=library)
    assert wheel.name == again.name and wheel.read_bytes() == again.read_bytes()
    with zipfile.ZipFile(wheel) as z:
        z.extractall(tmp_path / "installed")
    env = {**os.environ, "PYTHONPATH": str(tmp_path / "installed")}
    del env["PLEACH_LIBRARY"]
    script = "import pleach; assert pleach.__file__.startswith(%r); print(pleach.__version__)" % str(tmp_path)
    out = subprocess.run([sys.executable, "-c", script], env=env, check=True, capture_output=True, text=True)
    assert out.stdout.strip() == wheel.name.split("-")[1]


def test_wheel_of_the_agent(tmp_path):
    """It is pure Python, needs no Go and no compiler, and works without the wheel of pleach and beside it, also in another
    place."""
    env = {"PATH": "/nowhere", "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([sys.executable, "backend.py", str(tmp_path), "agent"], cwd=PYTHON, check=True, env=env)
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.startswith("pleach_agent-") and wheel.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as z:
        assert all(name.startswith(("pleach/agent/", "pleach/elastic/", "pleach_agent-")) for name in z.namelist())
        z.extractall(tmp_path / "agent")
    pleach, _ = backend(PYTHON, tmp_path / "out")
    with zipfile.ZipFile(pleach) as z:
        assert not any(name.startswith(("pleach/agent", "pleach/elastic")) for name in z.namelist())
        z.extractall(tmp_path / "pleach")
    use = "import sys; from pleach import agent; agent.Client('/none'); print('numpy' in sys.modules, 'pleach.comm' in sys.modules)"
    both = use + "; import pleach; print(pleach.World.__name__)"
    for script, printed, path in (
        (use, "False False", [tmp_path / "agent"]),
        (both, "False False\nWorld", [tmp_path / "agent", tmp_path / "pleach"]),
        (both, "False False\nWorld", [tmp_path / "pleach", tmp_path / "agent"]),
    ):
        env["PYTHONPATH"] = ":".join(map(str, path))
        out = subprocess.run([sys.executable, "-c", script], env=env, check=True, capture_output=True, text=True)
        assert out.stdout.strip() == printed, path


def test_tutorial_runs_as_printed(tmp_path):
    """Each program of the guide is written as the line before it says, and run by the commands that follow."""
    text = (ROOT / "docs" / "guide" / "python.md").read_text()
    ran, errors = 0, set()
    for language, block in re.findall(r"```(python|console)\n(.*?)```", text, re.S):
        if language == "python":
            name = re.match(r"# (\w+\.py)\n", block)
            if name:
                (tmp_path / name.group(1)).write_text(block)
            continue
        for command, printed in re.findall(r"^\$ pleach run (.*)\n((?:(?!\$).*\n)*)", block, re.M):
            arguments = [a.strip("'") for a in re.findall(r"'[^']*'|\S+", command)]
            at = arguments.index("python3")
            out = job(arguments[1], tmp_path / arguments[at + 1], *arguments[2:at])
            for line in printed.splitlines():
                assert line.rstrip("…") in out, f"{line!r} is not in\n{out}"
            ran += 1
            errors.update(re.findall(r"error .*", out))
    assert ran >= 5 and len(errors) == 1, errors


def test_a_late_replacement_prints_one_line(tmp_path):
    """The guide's training prints no traceback in a replacement that starts when all others have finished."""
    text = (ROOT / "docs" / "guide" / "python.md").read_text()
    program = re.search(r"```python\n(# training\.py\n.*?)```", text, re.S).group(1)
    late = "import os, time\nif os.environ.get('PLEACH_REPLACEMENT'):\n    time.sleep(10)\n"
    (tmp_path / "training.py").write_text(late + program.replace("time.sleep(0.05)", "time.sleep(0)"))
    out = job(4, tmp_path / "training.py", "--respawn", kill(2, "step 20$"))
    assert "Traceback" not in out and only(r"training: .*", out), out
    assert "restarted too late" in out


def test_migration_from_mpi4py(tmp_path):
    """The programs of the page print the same, that of Pleach also when a process dies."""
    text = (ROOT / "docs" / "migrate" / "mpi4py.md").read_text()
    for name, block in re.findall(r"```python\n# (\w+\.py)\n(.*?)```", text, re.S):
        (tmp_path / name).write_text(block)
    result = r"eigenvalue [\d.]+"
    want = only(result, job(4, tmp_path / "power.py"))
    assert only(result, job(4, tmp_path / "power.py", kill(2, "step 20$"))) == want
    if importlib.util.find_spec("mpi4py"):
        mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "4"]
        ran = subprocess.run([*mpirun, sys.executable, tmp_path / "power_mpi.py"], capture_output=True, text=True, timeout=120, check=True)
        assert only(result, ran.stdout) == want

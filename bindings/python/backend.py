"""Build backend (PEP 517) without dependencies: a wheel is a zip file, and this package has nothing to compile.

The wheel of pleach has libpleach.so, from PLEACH_LIBRARY or bin/libpleach of the repository. The sdist has none. The wheel
of pleach-agent has pleach.agent and pleach.elastic alone, which need neither: `python3 backend.py FOLDER agent` builds it
without Go and a compiler.
"""

from __future__ import annotations

import base64
import hashlib
import io
import os
import pathlib
import platform
import re
import tarfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ENTRY_POINTS = b"[torchrun.handlers]\npleach = pleach.agent.rendezvous:handler\n"
TIME = (1980, 1, 1, 0, 0, 0)  # of all files, so that the same files make the same wheel


def _library() -> pathlib.Path:
    path = os.environ.get("PLEACH_LIBRARY") or HERE.parents[1] / "bin" / "libpleach" / "libpleach.so"
    if not os.path.exists(path):
        raise FileNotFoundError(f"{path}: build it with `make libpleach`, or set PLEACH_LIBRARY to where it is")
    return pathlib.Path(path)


def _version() -> str:
    """The version of the library, which an sdist records."""
    recorded, header = HERE / "VERSION", HERE.parent / "c" / "pleach.h"
    if recorded.exists():
        return recorded.read_text().strip()
    return re.search(r'#define PLEACH_VERSION "(.*)"', header.read_text()).group(1)  # type: ignore[union-attr]


def _metadata() -> bytes:
    return (
        f"Metadata-Version: 2.1\nName: pleach\nVersion: {_version()}\nRequires-Python: >=3.9\nRequires-Dist: numpy\n"
        "License: Apache-2.0\nSummary: Jobs of cooperating processes that finish although some of them die\n"
        "Description-Content-Type: text/markdown\n\n" + (HERE / "README.md").read_text()
    ).encode()


def _sources(package: str) -> "dict[str, bytes]":
    folder = HERE / package
    return {f"{package}/{p.name}": p.read_bytes() for p in sorted(folder.iterdir()) if p.suffix in (".py", ".typed")}


def build_wheel(folder: str, config_settings: object = None, metadata_directory: object = None) -> str:
    files = {**_sources("pleach"), "pleach/libpleach.so": _library().read_bytes()}
    return _wheel(folder, "pleach", f"py3-none-linux_{platform.machine()}", files, _metadata())


def build_agent_wheel(folder: str) -> str:
    """Build the wheel of pleach.agent and pleach.elastic. It has no pleach/__init__.py, so that both can be installed."""
    metadata = (
        f"Metadata-Version: 2.1\nName: pleach-agent\nVersion: {_version()}\nRequires-Python: >=3.9\nLicense: Apache-2.0\n"
        "Summary: Client of the local Pleach agent: views, messages, keys and locks\n"
        "Description-Content-Type: text/markdown\n\n" + (HERE / "pleach" / "agent" / "README.md").read_text()
    )
    sources = {**_sources("pleach/agent"), **_sources("pleach/elastic")}
    files = {**sources, f"pleach_agent-{_version()}.dist-info/entry_points.txt": ENTRY_POINTS}
    return _wheel(folder, "pleach_agent", "py3-none-any", files, metadata.encode())


def _wheel(folder: str, name: str, tag: str, files: "dict[str, bytes]", metadata: bytes) -> str:
    info = f"{name}-{_version()}.dist-info"
    files[f"{info}/METADATA"] = metadata
    pure = str(tag.endswith("-any")).lower()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: pleach\nRoot-Is-Purelib: {pure}\nTag: {tag}\n".encode()
    record = f"{info}/RECORD"
    lines = []
    for path, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{path},sha256={digest},{len(data)}\n")
    files[record] = ("".join(lines) + f"{record},,\n").encode()
    file = f"{name}-{_version()}-{tag}.whl"
    with zipfile.ZipFile(os.path.join(folder, file), "w", zipfile.ZIP_DEFLATED) as z:
        for path, data in files.items():
            entry = zipfile.ZipInfo(path, TIME)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            z.writestr(entry, data)
    return file


def build_sdist(folder: str, config_settings: object = None) -> str:
    base = f"pleach-{_version()}"
    contents = {name: (HERE / name).read_bytes() for name in ("pyproject.toml", "backend.py", "README.md")}
    contents.update(_sources("pleach"))
    contents["VERSION"], contents["PKG-INFO"] = _version().encode(), _metadata()
    with tarfile.open(os.path.join(folder, base + ".tar.gz"), "w:gz") as tar:
        for name, data in contents.items():
            entry = tarfile.TarInfo(f"{base}/{name}")
            entry.size, entry.mode = len(data), 0o644
            tar.addfile(entry, io.BytesIO(data))
    return base + ".tar.gz"


if __name__ == "__main__":  # python3 backend.py FOLDER [agent]
    import sys

    os.makedirs(sys.argv[1], exist_ok=True)
    if sys.argv[2:] == ["agent"]:
        print(build_agent_wheel(sys.argv[1]))
    else:
        print(build_wheel(sys.argv[1]), build_sdist(sys.argv[1]))

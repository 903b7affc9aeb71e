"""Where the program is that this package drives."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from functools import lru_cache
from importlib import metadata
from pathlib import Path

from ._result import SandboxError

#: Names the program for every :class:`Sandbox` that is not told otherwise.
VARIABLE = "MCP_SANDBOX_BINARY"


def find_binary(named: str | os.PathLike[str] | None = None) -> str:
    """The program: the one that is named, the one of ``MCP_SANDBOX_BINARY``, the one this wheel
    brought, or ``mcp-sandbox`` or ``mcp`` on PATH.

    A program called ``mcp`` is asked who it is, because the Python SDK of MCP has one of that name.
    """
    chosen = os.fspath(named) if named is not None else os.environ.get(VARIABLE)
    if chosen:
        found = shutil.which(chosen)
        if found is None:
            raise SandboxError(f"{chosen}: not found, or not executable")
        return os.path.abspath(found)
    return _search(os.environ.get("PATH", ""))


@lru_cache(maxsize=8)
def _search(path: str) -> str:
    brought = _brought()
    if brought is not None:
        return brought
    found = shutil.which("mcp-sandbox", path=path)
    if found is not None:
        return os.path.abspath(found)
    for directory in path.split(os.pathsep):
        candidate = shutil.which("mcp", path=directory) if directory else None
        if candidate is not None and is_ours(candidate):
            return os.path.abspath(candidate)
    raise SandboxError(
        "no mcp-sandbox here: install a wheel of mcp-sandbox for this platform, or set "
        f"{VARIABLE} to the program's path"
    )


def _brought() -> str | None:
    """The script that pip put in place with this package, wherever that was (a venv, --user, --prefix)."""
    names = {"mcp-sandbox", "mcp-sandbox.exe"}
    try:
        files = metadata.distribution("mcp-sandbox").files or []
    except metadata.PackageNotFoundError:
        files = []
    candidates = [Path(str(file.locate())) for file in files if file.name in names]
    candidates += [Path(sysconfig.get_path("scripts")) / name for name in sorted(names)]
    for candidate in candidates:
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return str(candidate.resolve())
    return None


def is_ours(program: str) -> bool:
    """Whether a program called ``mcp`` is this one."""
    try:
        said = subprocess.run(
            [program, "--version"], capture_output=True, stdin=subprocess.DEVNULL, timeout=20, text=True, check=False
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return False
    words = said.stdout.split()
    return said.returncode == 0 and len(words) == 2 and words[0] == "mcp" and words[1][:1].isdigit()

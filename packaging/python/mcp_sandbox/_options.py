"""What a program may have, and the command line that says so."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from ._binary import find_binary
from ._report import Report
from ._result import Result, SandboxError

PathLike = str | os.PathLike[str]


@dataclass(frozen=True, kw_only=True)
class Options:
    """Nothing is granted that is not said here. Paths may begin with ``~``."""

    #: Files and directories that can be read.
    read: Sequence[PathLike] = ()
    #: Files and directories that can be read and written.
    write: Sequence[PathLike] = ()
    #: Paths and globs that stay closed inside of those.
    deny: Sequence[str] = ()
    #: Protected paths that can be written all the same, such as ``.git/config``.
    unprotect: Sequence[PathLike] = ()
    #: Hosts that can be reached: ``api.github.com``, ``*.example.com:443``, ``10.1.0.0/16:5432``.
    allow_net: Sequence[str] = ()
    #: Unix sockets of the host that can be used.
    allow_unix: Sequence[PathLike] = ()
    #: Ports that the host may reach on its loopback.
    listen: Sequence[int] = ()
    #: Variables to set. Values do not appear on a command line.
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    #: Variables to pass on from this process.
    pass_env: Sequence[str] = ()
    #: Secrets by reference: ``{"TOKEN": "env:GITHUB_TOKEN"}``, ``file:PATH``, ``cmd:COMMAND``.
    secrets: Mapping[str, str] = field(default_factory=dict)
    #: Whether other processes and programs may be started.
    subprocess: bool = True
    #: Bytes, or a size such as ``"256M"``, of all processes together.
    memory: int | str | None = None
    #: Processes and threads.
    pids: int | None = None
    #: Temporary space: bytes, or a size such as ``"64M"``.
    tmp: int | str | None = None
    #: Millicores: 500 is half a processor.
    cpu: int | None = None
    #: Seconds, after which the whole tree is ended.
    timeout: float | None = None
    #: Keep HOME between runs, under this name.
    home: str | None = None
    #: Refuse to start when anything, limits included, is less than asked for.
    strict: bool = False
    #: ``strict``: the guard of ``exec`` also refuses programs given as text, such as ``python -c``.
    guard: Literal["usual", "strict"] = "usual"
    #: A policy file.
    policy: PathLike | None = None
    #: More flags of ``mcp run`` and ``mcp exec``, as they are.
    flags: Sequence[str] = ()
    #: The program (default: see :func:`find_binary`).
    binary: PathLike | None = None

    def _flags(self) -> list[str]:
        words: list[str] = []
        for flag, values in (
            ("--read", [_path(it) for it in self.read]),
            ("--write", [_path(it) for it in self.write]),
            ("--deny", list(self.deny)),
            ("--unprotect", [_path(it) for it in self.unprotect]),
            ("--allow-net", list(self.allow_net)),
            ("--allow-unix", [_path(it) for it in self.allow_unix]),
            ("--listen", [str(it) for it in self.listen]),
            ("--env", [_name(it) for it in self.pass_env]),
            ("--secret", [f"{_name(name)}={reference}" for name, reference in self.secrets.items()]),
        ):
            words += [f"{flag}={value}" for value in values]
        for flag, value in (
            ("--max-memory", self.memory),
            ("--max-pids", self.pids),
            ("--max-tmp", self.tmp),
            ("--max-cpu", self.cpu),
            ("--timeout", None if self.timeout is None else _milliseconds(self.timeout)),
            ("--home", self.home),
            ("--policy", None if self.policy is None else _path(self.policy)),
        ):
            if value is not None:
                words.append(f"{flag}={value}")
        words += ["--no-subprocess"] if not self.subprocess else []
        words += ["--strict"] if self.strict else []
        return words + list(self.flags)


class Invocation:
    """One command line, with a private directory for its report."""

    def __init__(self, options: Options, verb: Literal["run", "exec"], command: Sequence[str], cwd: PathLike | None):
        if isinstance(command, str):
            raise TypeError("run() takes a list of words; a text for a shell goes to exec()")
        if not command:
            raise ValueError("the command is empty")
        binary = find_binary(options.binary)
        self._directory = tempfile.TemporaryDirectory(prefix="mcp-sandbox-", ignore_cleanup_errors=True)
        self._report = Path(self._directory.name) / "report.json"
        self.environment = dict(os.environ)
        flags = options._flags()
        # By reference: a command line can be read by every user of the machine, and a variable such as PATH
        # or HOME would change what the launcher itself does.
        for number, (name, value) in enumerate(options.env.items()):
            carrier = f"MCP_SANDBOX_VALUE_{number}"
            self.environment[carrier] = value
            flags.append(f"--secret={_name(name)}=env:{carrier}")
        if verb == "exec" and options.guard != "usual":
            flags.append(f"--guard={options.guard}")
        self.cwd = None if cwd is None else _path(cwd)
        self.words = [binary, verb, *flags, f"--report={self._report}", "--", *command]

    def result(self, exit_code: int, stdout: bytes, stderr: bytes) -> Result:
        """With the report, which is complete when the launcher has ended."""
        try:
            text = self._report.read_text(encoding="utf-8") if self._report.exists() else ""
        finally:
            self.close()
        if not text.strip():
            raise SandboxError(_reason(stderr, exit_code), exit_code=exit_code)
        try:
            report = Report.from_json(json.loads(text))
        except ValueError as error:
            raise SandboxError(f"the report cannot be read: {error}", exit_code=exit_code) from error
        result = Result(exit_code, stdout, stderr, report)
        if report.ending.kind in ("not_started", "sandbox_failed") and not result.refused:
            raise SandboxError(_reason(stderr, exit_code, report.ending.why), exit_code=exit_code, report=report)
        return result

    def close(self) -> None:
        self._directory.cleanup()


def _reason(stderr: bytes, exit_code: int, why: str | None = None) -> str:
    """In the launcher's own words, all of its lines."""
    lines = stderr.decode(errors="replace").splitlines()
    said = [line.removeprefix("mcp: ") for line in lines if line.startswith("mcp: ")]
    return "\n".join(said) or why or "\n".join(lines[:20]) or f"mcp ended with {exit_code} and no report"


def _path(path: PathLike) -> str:
    text = os.path.expanduser(os.fspath(path))
    if not text:
        raise ValueError("a path is empty")
    return text


def _name(name: str) -> str:
    if not name or "=" in name or "\0" in name:
        raise ValueError(f"{name!r} cannot be the name of a variable")
    return name


def _milliseconds(seconds: float) -> str:
    if not 0 < seconds < 1e9:
        raise ValueError(f"timeout: {seconds} is not a number of seconds above 0")
    return f"{max(1, round(seconds * 1000))}ms"

"""Runs that the calling thread waits for."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import IO, Literal

from ._options import Invocation, Options, PathLike
from ._result import Result


class Process:
    """A command that runs. A context manager: leaving it ends the command and everything it started.

    Iterating gives the lines of stdout as they come.
    """

    def __init__(self, invocation: Invocation, *, stdin: int | IO[bytes] | None, stderr: int | IO[bytes] | None):
        self._invocation = invocation
        self._result: Result | None = None
        try:
            self._child = subprocess.Popen(
                invocation.words,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=stderr,
                cwd=invocation.cwd,
                env=invocation.environment,
            )
        except BaseException:
            invocation.close()
            raise

    @property
    def pid(self) -> int:
        """Of the launcher; ``mcp kill`` and signals to it end the whole tree."""
        return self._child.pid

    @property
    def stdin(self) -> IO[bytes]:
        return _pipe(self._child.stdin, "stdin")

    @property
    def stdout(self) -> IO[bytes]:
        return _pipe(self._child.stdout, "stdout")

    @property
    def stderr(self) -> IO[bytes]:
        return _pipe(self._child.stderr, "stderr")

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.stdout)

    def poll(self) -> int | None:
        """The exit code, where it has ended."""
        return self._child.poll()

    def terminate(self) -> None:
        """Asks the command to end; what is left after the grace is killed."""
        self._child.terminate()

    def kill(self) -> None:
        """Ends the launcher at once; the kernel ends the tree with it. There is no report then."""
        self._child.kill()

    def wait(self, input: bytes | None = None) -> Result:
        """Reads what is left of the streams, waits for the end, and returns it with the report."""
        if self._result is None:
            stdout, stderr = self._child.communicate(input)
            self._result = self._invocation.result(self._child.returncode, stdout or b"", stderr or b"")
        return self._result

    def __enter__(self) -> Process:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._child.poll() is None:
            self._child.terminate()
        for pipe in (self._child.stdin, self._child.stdout, self._child.stderr):
            if pipe is not None and not pipe.closed:
                try:
                    pipe.close()
                except BrokenPipeError:
                    # What was buffered for a command that is gone.
                    pass
        self._child.wait()
        self._invocation.close()


def _pipe(pipe: IO[bytes] | None, name: str) -> IO[bytes]:
    if pipe is None:
        raise ValueError(f"{name} of this process is not a pipe")
    return pipe


class Sandbox(Options):
    """What a program may have, and the ways to start one with that.

    >>> Sandbox(read=["~/notes"], timeout=30).run(["grep", "-r", "todo", "/home/me/notes"]).text
    """

    def run(self, command: Sequence[str], *, input: bytes | None = None, cwd: PathLike | None = None) -> Result:
        """Runs a program, a package (``["npm:NAME"]``) or the line of a package runner to its end."""
        return self._finish("run", command, input, cwd)

    def exec(self, command: str, *, input: bytes | None = None, cwd: PathLike | None = None) -> Result:
        """Runs the command of an agent in a shell. The directory (``cwd``, or the current one) can be written.

        A command that the guard refuses does not run, and gives a result whose ``refused`` is true.
        """
        return self._finish("exec", [command], input, cwd)

    def start_run(
        self,
        command: Sequence[str],
        *,
        cwd: PathLike | None = None,
        stdin: int | IO[bytes] | None = subprocess.PIPE,
        stderr: int | IO[bytes] | None = None,
    ) -> Process:
        """Starts what ``run`` runs, with streams. stderr is this process's own unless said otherwise."""
        return Process(Invocation(self, "run", command, cwd), stdin=stdin, stderr=stderr)

    def start_exec(
        self,
        command: str,
        *,
        cwd: PathLike | None = None,
        stdin: int | IO[bytes] | None = subprocess.DEVNULL,
        stderr: int | IO[bytes] | None = None,
    ) -> Process:
        """Starts what ``exec`` runs, with streams."""
        return Process(Invocation(self, "exec", [command], cwd), stdin=stdin, stderr=stderr)

    def _finish(
        self, verb: Literal["run", "exec"], command: Sequence[str], input: bytes | None, cwd: PathLike | None
    ) -> Result:
        stdin = subprocess.DEVNULL if input is None else subprocess.PIPE
        with Process(Invocation(self, verb, command, cwd), stdin=stdin, stderr=subprocess.PIPE) as process:
            return process.wait(input)

"""The same for asyncio."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator, Sequence
from types import TracebackType
from typing import Literal

from ._options import Invocation, Options, PathLike
from ._result import Result

#: The longest line that iterating gives; a longer one is an error of asyncio's (LimitOverrunError).
LINE_LIMIT = 1 << 20


class AsyncProcess:
    """A command that runs. An asynchronous context manager: leaving it ends the command and all it started."""

    def __init__(self, invocation: Invocation, child: asyncio.subprocess.Process) -> None:
        self._invocation = invocation
        self._child = child
        self._result: Result | None = None

    @classmethod
    async def _start(cls, invocation: Invocation, *, stdin: int | None, stderr: int | None) -> AsyncProcess:
        try:
            child = await asyncio.create_subprocess_exec(
                *invocation.words,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=stderr,
                cwd=invocation.cwd,
                env=invocation.environment,
                limit=LINE_LIMIT,
            )
        except BaseException:
            invocation.close()
            raise
        return cls(invocation, child)

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def stdin(self) -> asyncio.StreamWriter:
        if self._child.stdin is None:
            raise ValueError("stdin of this process is not a pipe")
        return self._child.stdin

    @property
    def stdout(self) -> asyncio.StreamReader:
        if self._child.stdout is None:
            raise ValueError("stdout of this process is not a pipe")
        return self._child.stdout

    @property
    def stderr(self) -> asyncio.StreamReader:
        if self._child.stderr is None:
            raise ValueError("stderr of this process is not a pipe")
        return self._child.stderr

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for line in self.stdout:
            yield line

    def terminate(self) -> None:
        """Asks the command to end; what is left after the grace is killed."""
        if self._child.returncode is None:
            self._child.terminate()

    async def wait(self, input: bytes | None = None) -> Result:
        """Reads what is left of the streams, waits for the end, and returns it with the report."""
        if self._result is None:
            stdout, stderr = await self._child.communicate(input)
            code = self._child.returncode
            assert code is not None, "communicate() returns after the end"
            self._result = self._invocation.result(code, stdout or b"", stderr or b"")
        return self._result

    async def __aenter__(self) -> AsyncProcess:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.terminate()
        try:
            # Reading on: a launcher that waits for a full pipe would not end.
            await self._child.communicate()
        finally:
            self._invocation.close()


class AsyncSandbox(Options):
    """:class:`Sandbox` for asyncio: every method is awaited. A cancelled wait ends the command."""

    async def run(self, command: Sequence[str], *, input: bytes | None = None, cwd: PathLike | None = None) -> Result:
        return await self._finish("run", command, input, cwd)

    async def exec(self, command: str, *, input: bytes | None = None, cwd: PathLike | None = None) -> Result:
        return await self._finish("exec", [command], input, cwd)

    async def start_run(
        self,
        command: Sequence[str],
        *,
        cwd: PathLike | None = None,
        stdin: int | None = subprocess.PIPE,
        stderr: int | None = None,
    ) -> AsyncProcess:
        return await AsyncProcess._start(Invocation(self, "run", command, cwd), stdin=stdin, stderr=stderr)

    async def start_exec(
        self,
        command: str,
        *,
        cwd: PathLike | None = None,
        stdin: int | None = subprocess.DEVNULL,
        stderr: int | None = None,
    ) -> AsyncProcess:
        return await AsyncProcess._start(Invocation(self, "exec", [command], cwd), stdin=stdin, stderr=stderr)

    async def _finish(
        self, verb: Literal["run", "exec"], command: Sequence[str], input: bytes | None, cwd: PathLike | None
    ) -> Result:
        invocation = Invocation(self, verb, command, cwd)
        stdin = subprocess.DEVNULL if input is None else subprocess.PIPE
        async with await AsyncProcess._start(invocation, stdin=stdin, stderr=subprocess.PIPE) as process:
            return await process.wait(input)

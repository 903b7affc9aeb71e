"""The asyncio variants, against the installed program."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mcp_sandbox import AsyncSandbox, SandboxError

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="these commands are those of a Unix")


def test_runs_go_on_at_the_same_time(tmp_path: Path) -> None:
    """Each waits for what the other writes: in sequence neither would end before its timeout."""

    async def both() -> list[str]:
        box = AsyncSandbox(timeout=60)
        meet = "touch {0}; until [ -e {1} ]; do sleep 0.01; done; echo {0}"
        results = await asyncio.gather(
            box.exec(meet.format("a", "b"), cwd=tmp_path), box.exec(meet.format("b", "a"), cwd=tmp_path)
        )
        return [result.check().text for result in results]

    assert asyncio.run(both()) == ["a\n", "b\n"]


def test_streams_and_input() -> None:
    async def talk() -> None:
        box = AsyncSandbox()
        async with await box.start_run(["cat"]) as process:
            process.stdin.write(b"one\n")
            await process.stdin.drain()
            assert await process.stdout.readline() == b"one\n"
            process.stdin.write(b"two\nthree\n")
            process.stdin.close()
            assert [line async for line in process] == [b"two\n", b"three\n"]
            assert (await process.wait()).report.controls["network"].status == "enforced"
        assert (await box.run(["wc", "-c"], input=b"1234")).text.strip() == "4"

    asyncio.run(talk())


def test_a_cancelled_wait_ends_the_command(tmp_path: Path) -> None:
    async def cancel() -> None:
        box = AsyncSandbox(flags=["--grace", "100ms"])
        task = asyncio.create_task(box.exec("touch started; sleep 1000; touch ended", cwd=tmp_path))
        while not (tmp_path / "started").exists():
            assert not task.done(), task
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    # The launcher was waited for: nothing of this process's is left to collect.
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
    assert not (tmp_path / "ended").exists()


def test_errors_are_those_of_the_other_class() -> None:
    async def fail() -> None:
        with pytest.raises(SandboxError, match="/does/not/exist"):
            await AsyncSandbox(read=["/does/not/exist"]).run(["true"])
        process = await AsyncSandbox().start_exec("echo said >&2", stderr=subprocess.PIPE)
        async with process:
            assert b"said" in (await process.wait()).stderr

    asyncio.run(fail())

"""Run programs and commands that are not trusted in the sandbox of ``mcp``.

>>> from mcp_sandbox import Sandbox
>>> Sandbox(write=["."]).exec("echo hello > greeting && cat greeting").text
'hello\n'

:class:`Sandbox` says what a program may have; nothing is granted by default. ``run`` starts a program or a package,
``exec`` the command of an agent, with the guard in front. Both return a :class:`Result`, whose ``report`` is what
the kernel confirmed. ``start_run`` and ``start_exec`` give a :class:`Process` with streams.
:class:`AsyncSandbox` is the same for asyncio.
"""

from ._aio import AsyncProcess, AsyncSandbox
from ._binary import find_binary
from ._report import Control, Ending, Guard, Network, Refusal, Report, Traffic, Undone, Usage
from ._result import CommandFailed, Result, SandboxError
from ._sync import Process, Sandbox

__all__ = [
    "AsyncProcess",
    "AsyncSandbox",
    "CommandFailed",
    "Control",
    "Ending",
    "Guard",
    "Network",
    "Process",
    "Refusal",
    "Report",
    "Result",
    "Sandbox",
    "SandboxError",
    "Traffic",
    "Undone",
    "Usage",
    "find_binary",
]

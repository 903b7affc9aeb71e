"""What comes back from a run, and what goes wrong."""

from __future__ import annotations

from dataclasses import dataclass, field

from ._report import Report


class SandboxError(Exception):
    """The command did not run: a bad option, a program that was not found, a boundary this machine cannot enforce.

    ``report`` is there where the launcher came far enough to write one.
    """

    def __init__(self, message: str, *, exit_code: int | None = None, report: Report | None = None) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.report = report


class CommandFailed(Exception):
    """The command ran (or the guard refused it), and its exit code is not 0. Raised by :meth:`Result.check`."""

    def __init__(self, result: Result) -> None:
        ending = result.report.ending
        words = f"exit code {result.exit_code}" if ending.kind == "exited" else ending.describe()
        lines = result.stderr.decode(errors="replace").strip().splitlines()
        # The command's own last line says why; hints of ours follow it.
        own = [line for line in lines if not line.startswith("mcp:")]
        super().__init__(": ".join([words, *(own or lines)[-1:]]))
        self.result = result


@dataclass(frozen=True)
class Result:
    """How a command ended."""

    #: The command's own; 128+n for signal n; 124 timeout; 126 refused by the guard.
    exit_code: int
    #: Empty where the stream was not captured.
    stdout: bytes = field(repr=False)
    #: What the command wrote, and lines of ours that begin with ``mcp:``.
    stderr: bytes = field(repr=False)
    #: What was enforced and used, as the kernel answered.
    report: Report = field(repr=False)

    @property
    def ok(self) -> bool:
        return self.exit_code == 0

    @property
    def text(self) -> str:
        """stdout as text; bytes that are no UTF-8 are replaced."""
        return self.stdout.decode(errors="replace")

    @property
    def refused(self) -> bool:
        """Whether the guard refused the command, so that nothing ran."""
        return self.report.guard is not None and self.report.ending.kind == "not_started"

    def check(self) -> Result:
        """This result, or :class:`CommandFailed` where the exit code is not 0."""
        if not self.ok:
            raise CommandFailed(self)
        return self

"""Against the installed package and its program: nothing here is a stand-in."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mcp_sandbox import CommandFailed, Report, Sandbox, SandboxError, find_binary
from mcp_sandbox._binary import is_ours

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="these commands are those of a Unix")


@contextmanager
def listener() -> Iterator[int]:
    """A port of this machine that takes every connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def take() -> None:
            while True:
                try:
                    server.accept()[0].close()
                except OSError:
                    return

        threading.Thread(target=take, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


def test_the_program_comes_with_the_package() -> None:
    assert Path(find_binary()).name.startswith("mcp-sandbox")
    assert is_ours(find_binary())


def test_a_program_runs_and_the_report_says_what_was_enforced() -> None:
    result = Sandbox().run(["echo", "hello"])
    assert (result.exit_code, result.text, result.ok) == (0, "hello\n", True)
    assert result.report.ending.kind == "exited"
    assert result.report.controls["network"].status == "enforced"
    assert result.report.controls["network"].by
    assert result.report.usage.wall_seconds > 0
    assert result.report.raw["version"] == result.report.version


def test_a_file_is_there_only_where_it_is_granted(tmp_path: Path) -> None:
    (tmp_path / "note").write_text("for whom it is meant")
    command = ["cat", str(tmp_path / "note")]
    refused = Sandbox().run(command)
    assert refused.exit_code != 0 and refused.stdout == b""
    granted = Sandbox(read=[tmp_path]).run(command)
    assert granted.check().text == "for whom it is meant"


def test_a_host_is_reached_only_where_it_is_allowed() -> None:
    with listener() as port:
        command = ["bash", "-c", f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached"]
        refused = Sandbox().run(command)
        assert refused.exit_code != 0 and refused.stdout == b""
        allowed = Sandbox(allow_net=[f"127.0.0.1:{port}"]).run(command)
        assert allowed.text == "reached\n"
        assert sum(traffic.connections for traffic in allowed.report.network.reached.values()) == 1


def test_values_arrive_and_are_on_no_command_line() -> None:
    value = "a value, with = and spaces"
    box = Sandbox(env={"TOKEN": value, "PATH": "/usr/bin:/bin:/nowhere"}, pass_env=["LANG"])
    with box.start_run(["sh", "-c", 'echo "$TOKEN"; echo "$PATH"; cat']) as process:
        assert process.stdout.readline().decode() == value + "\n"
        assert process.stdout.readline() == b"/usr/bin:/bin:/nowhere\n"
        if sys.platform == "linux":
            command_line = Path(f"/proc/{process.pid}/cmdline").read_bytes()
            assert b"TOKEN" in command_line and value.encode() not in command_line
        process.stdin.close()


def test_streams_are_live_both_ways() -> None:
    with Sandbox().start_run(["cat"]) as process:
        for word in (b"one\n", b"two\n"):
            process.stdin.write(word)
            process.stdin.flush()
            # The answer comes while the program runs.
            assert process.stdout.readline() == word
            assert process.poll() is None
        result = process.wait()
    assert result.exit_code == 0 and result.report.ending.kind == "exited"


def test_lines_come_as_they_are_written() -> None:
    with Sandbox().start_exec("for i in 1 2 3; do echo line $i; done; exit 7") as process:
        assert list(process) == [b"line 1\n", b"line 2\n", b"line 3\n"]
        assert process.wait().exit_code == 7


def test_leaving_a_process_ends_it() -> None:
    with Sandbox(flags=["--grace", "100ms"]).start_run(["sleep", "1000"]) as process:
        assert process.poll() is None
    assert process.poll() is not None


def test_input_and_exit_codes() -> None:
    assert Sandbox().run(["wc", "-c"], input=b"12345").text.strip() == "5"
    failed = Sandbox().run(["sh", "-c", "echo why >&2; exit 3"])
    assert failed.exit_code == 3
    with pytest.raises(CommandFailed, match="exit code 3: why"):
        failed.check()


def test_a_timeout_is_an_ending() -> None:
    result = Sandbox(timeout=0.3, flags=["--grace", "100ms"]).run(["sleep", "1000"])
    assert (result.exit_code, result.report.ending.kind) == (124, "timeout")


def test_exec_writes_the_project_and_nothing_else(tmp_path: Path) -> None:
    project, other = tmp_path / "project", tmp_path / "other"
    project.mkdir()
    other.mkdir()
    result = Sandbox().exec(f"echo in > file; echo out > {other}/file", cwd=project)
    assert result.exit_code != 0
    assert (project / "file").read_text() == "in\n"
    assert not (other / "file").exists()
    assert Sandbox(write=[other]).exec(f"echo out > {other}/file", cwd=project).ok
    assert (other / "file").read_text() == "out\n"


def test_what_the_guard_refuses_does_not_run(tmp_path: Path) -> None:
    refused = Sandbox().exec("touch ran && rm -rf /", cwd=tmp_path)
    assert refused.refused and refused.exit_code == 126
    assert refused.report.guard is not None and refused.report.guard.decision == "refuse"
    assert refused.report.guard.why
    assert not (tmp_path / "ran").exists()
    assert not Sandbox().exec("touch ran", cwd=tmp_path).refused
    assert (tmp_path / "ran").exists()


def test_strict_guard_refuses_what_the_usual_one_notes(tmp_path: Path) -> None:
    command = "python3 -c 'print(1)'"
    assert Sandbox().exec(command, cwd=tmp_path).text == "1\n"
    assert Sandbox(guard="strict").exec(command, cwd=tmp_path).refused


def test_what_was_undone_is_told(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    result = Sandbox().exec("mkdir -p .vscode && echo {} > .vscode/tasks.json && echo kept > file", cwd=tmp_path)
    assert [Path(it.path).name for it in result.report.undone] != []
    assert not (tmp_path / ".vscode" / "tasks.json").exists()
    assert (tmp_path / "file").read_text() == "kept\n"


@pytest.mark.parametrize(
    ("box", "command", "message"),
    [
        (Sandbox(), ["/does/not/exist"], "not found|No such|does not exist"),
        (Sandbox(read=["/does/not/exist"]), ["true"], "/does/not/exist"),
        (Sandbox(flags=["--no-such-flag"]), ["true"], "no-such-flag"),
        (Sandbox(binary="/does/not/exist/mcp"), ["true"], "not found, or not executable"),
        (Sandbox(memory="a lot"), ["true"], "a lot"),
    ],
)
def test_what_cannot_start_is_an_error_with_its_reason(box: Sandbox, command: list[str], message: str) -> None:
    with pytest.raises(SandboxError, match=message):
        box.run(command)


def test_mistakes_of_the_caller_are_told_before_anything_starts() -> None:
    with pytest.raises(TypeError, match=r"exec\(\)"):
        Sandbox().run("ls -l")
    with pytest.raises(ValueError, match="empty"):
        Sandbox().run([])
    with pytest.raises(ValueError, match="above 0"):
        Sandbox(timeout=-1).run(["true"])
    with pytest.raises(ValueError, match="name of a variable"):
        Sandbox(env={"A=B": "c"}).run(["true"])
    with pytest.raises(TypeError):
        Sandbox(reed=["/tmp"])  # type: ignore[call-arg]


def test_an_option_cannot_be_smuggled_in_by_a_value() -> None:
    # A path that begins with a dash stays a path.
    with pytest.raises(SandboxError) as error:
        Sandbox(read=["--network=host"]).run(["true"])
    assert "--network=host" in str(error.value)
    assert Sandbox().run(["echo", "--network=host"]).text == "--network=host\n"


def test_another_program_called_mcp_is_not_taken_for_ours(tmp_path: Path) -> None:
    other = tmp_path / "mcp"
    other.write_text("#!/bin/sh\necho 'MCP version 1.2'\n")
    other.chmod(0o755)
    assert not is_ours(str(other))
    assert not is_ours("/does/not/exist")


def test_reports_of_other_versions() -> None:
    raw = dict(Sandbox().run(["true"]).report.raw)
    raw["something_new"] = {"of": "a later version"}
    raw["usage"] = {**raw["usage"], "joules": 3}
    assert Report.from_json(json.loads(json.dumps(raw))).exit_code == 0
    with pytest.raises(ValueError, match="newer"):
        Report.from_json({**raw, "version": 99})
    for broken in ({}, {"version": 1}, {**raw, "controls": 3}, {**raw, "ending": {}}):
        with pytest.raises(ValueError):
            Report.from_json(broken)

//! Checks that need a real Windows.

use super::{WRITE, check};
use crate::commands::doctor::full::check::Expect::{Exit, Refused, Works};
use crate::commands::doctor::full::check::FullCheck;
use crate::commands::doctor::full::check::Program::{Guest, Host};

pub const WINDOWS: &[FullCheck] = &[
    check(
        "start.where",
        "a program of Windows starts in the container",
        Host(&["where.exe", "/Q", "cmd.exe"]),
        &[],
        Works,
    ),
    check("container.nul", "the NUL device is opened", Guest(&["write", "NUL"]), &[], Works),
    check("container.root", "attributes of the drive's root", Guest(&["stat", "C:\\"]), &[], Works),
    check("process.breakaway", "no process leaves the job", Guest(&["break-away"]), &[], Refused),
    check(
        "limits.cpu-time",
        "--max-cpu-time ends the run with 152",
        Guest(&["spin", "20"]),
        &["--max-cpu-time", "1s"],
        Exit(152),
    ),
    check(
        "cmd.echo",
        "cmd.exe runs a line",
        Host(&["cmd.exe", "/d", "/v:off", "/s", "/c", "echo ok"]),
        &[],
        Works,
    ),
    check(
        "powershell5",
        "Windows PowerShell prints",
        Host(&["powershell.exe", "-NoProfile", "-NonInteractive", "-Command", "'ok'"]),
        &[],
        Works,
    ),
    check(
        "powershell7",
        "PowerShell 7 prints",
        Host(&["pwsh.exe", "-NoProfile", "-NonInteractive", "-Command", "'ok'"]),
        &[],
        Works,
    ),
    check("node.version", "node starts", Host(&["node.exe", "-p", "6*7"]), &[], Works),
    check(
        "node.child",
        "node starts a child over pipes",
        Host(&[
            "node.exe",
            "-e",
            "process.stdout.write(require('child_process').execFileSync(process.execPath,['-p','6*7']))",
        ]),
        &[],
        Works,
    ),
    check(
        "npm.shim",
        "a shim of npm runs without cmd.exe",
        Host(&["npm", "--version"]),
        &[],
        Works,
    ),
    check(
        "python.temp",
        "Python makes a temporary directory",
        Host(&[
            "python.exe",
            "-c",
            "import tempfile,os;d=tempfile.mkdtemp();open(os.path.join(d,'x'),'w').close();print('ok')",
        ]),
        &[],
        Works,
    ),
    check(
        "git",
        "git makes a repository",
        Host(&["git.exe", "init", "-q", "{dir}\\grant\\r"]),
        WRITE,
        Works,
    ),
    check(
        "allowlist.relay",
        "an allowed port is reached through the relay",
        Guest(&["talk-proxied", "127.0.0.1:{port}"]),
        &["--allow-net", "127.0.0.1:{port}"],
        Works,
    ),
];

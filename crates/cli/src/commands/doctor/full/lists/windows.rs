//! Checks that need a real Windows.

use super::{WRITE, check};
use crate::commands::doctor::full::check::Expect::{Exit, Prints, Refused, Tree, UiLimit, Works};
use crate::commands::doctor::full::check::Program::{Copied, Guest, Host, InConsole, PowerShell};
use crate::commands::doctor::full::check::{FullCheck, Program};

/// What the checks of UI limits start by themselves.
const POWERSHELL: Program = Host(&["powershell.exe"]);

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
    check(
        "powershell.constrained",
        "a command of an agent is in constrained language mode",
        PowerShell("$ExecutionContext.SessionState.LanguageMode"),
        &[],
        Prints("ConstrainedLanguage"),
    ),
    check(
        "node.installer",
        "node where its installer puts it",
        Host(&["%ProgramFiles%\\nodejs\\node.exe", "-p", "6*7"]),
        &[],
        Works,
    ),
    check(
        "node.nvm",
        "node where nvm-windows puts it",
        Host(&["%NVM_SYMLINK%\\node.exe", "-p", "6*7"]),
        &[],
        Works,
    ),
    check(
        "node.fnm",
        "node where fnm puts it",
        Host(&["%FNM_MULTISHELL_PATH%\\node.exe", "-p", "6*7"]),
        &[],
        Works,
    ),
    check(
        "node.copied",
        "node in a directory of the user's",
        Copied(&["node.exe", "-p", "6*7"]),
        &[],
        Works,
    ),
    check("node.version", "node on PATH starts", Host(&["node.exe", "-p", "6*7"]), &[], Works),
    check(
        "node.child",
        "node starts a child over pipes",
        Host(&[
            "node.exe",
            "-e",
            "console.error('node',process.version,'libuv',process.versions.uv);process.stdout.write(require('child_process').execFileSync(process.execPath,['-p','6*7']))",
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
        "npx",
        "npx asks the registry through an allowlist",
        Host(&["npx", "--yes", "cowsay@1.6.0", "ok"]),
        &["--raw", "--allow-net", "registry.npmjs.org:443", "--max-memory", "1G"],
        Works,
    ),
    check(
        "uvx",
        "uvx asks the registry through an allowlist",
        Host(&["uvx", "cowsay@6.1", "-t", "ok"]),
        &["--raw", "--allow-net", "pypi.org:443", "--allow-net", "files.pythonhosted.org:443"],
        Works,
    ),
    check(
        "process.nested-job",
        "a program makes a job of its own",
        Guest(&["nested-job"]),
        &[],
        Works,
    ),
    check(
        "terminal.conpty",
        "a program in a console finds one of its own",
        InConsole(&["console"]),
        &[],
        Exit(0),
    ),
    check(
        "entries.tree",
        "a granted tree of 50,000 files: the time of its entries",
        Guest(&["read", "{dir}\\tree\\7\\7"]),
        &["--read", "{dir}\\tree"],
        Tree(50_000),
    ),
    check("ui.handles", "UI limit HANDLES", POWERSHELL, &[], UiLimit(0x1)),
    check("ui.read-clipboard", "UI limit READCLIPBOARD", POWERSHELL, &[], UiLimit(0x2)),
    check("ui.write-clipboard", "UI limit WRITECLIPBOARD", POWERSHELL, &[], UiLimit(0x4)),
    check("ui.parameters", "UI limit SYSTEMPARAMETERS", POWERSHELL, &[], UiLimit(0x8)),
    check("ui.display", "UI limit DISPLAYSETTINGS", POWERSHELL, &[], UiLimit(0x10)),
    check("ui.atoms", "UI limit GLOBALATOMS", POWERSHELL, &[], UiLimit(0x20)),
    check("ui.desktop", "UI limit DESKTOP", POWERSHELL, &[], UiLimit(0x40)),
    check("ui.exit", "UI limit EXITWINDOWS", POWERSHELL, &[], UiLimit(0x80)),
    check(
        "allowlist.relay",
        "an allowed port is reached through the relay",
        Guest(&["talk-proxied", "127.0.0.1:{port}"]),
        &["--allow-net", "127.0.0.1:{port}"],
        Works,
    ),
];

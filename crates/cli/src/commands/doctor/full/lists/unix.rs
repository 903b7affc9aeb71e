//! Programs of Linux and macOS, and what only Linux tries.

use super::{WRITE, check};
use crate::commands::doctor::full::check::Expect::{Refused, Works, WorksIntoFile};
use crate::commands::doctor::full::check::FullCheck;
use crate::commands::doctor::full::check::Program::{Guest, Host};

/// Programs of Linux and macOS.
pub const UNIX: &[FullCheck] = &[
    check(
        "start.true",
        "/usr/bin/true starts under the default policy",
        Host(&["/usr/bin/true"]),
        &[],
        Works,
    ),
    check(
        "process.exec",
        "--no-subprocess refuses another program",
        Host(&["/bin/sh", "-c", "/usr/bin/true; exit $?"]),
        &["--no-subprocess"],
        Refused,
    ),
    check(
        "files.symlink",
        "a link that was made inside leads nowhere",
        Host(&[
            "/bin/sh",
            "-c",
            "ln -s \"$1/secret\" \"$1/grant\"/l && cat \"$1/grant\"/l",
            "sh",
            "{dir}",
        ]),
        &["--write", "{dir}/grant"],
        Refused,
    ),
    check(
        "files.protect",
        "--protect keeps settings that agents read",
        Host(&["/bin/sh", "-c", "echo x > \"$1/grant\"/.mcp.json", "sh", "{dir}"]),
        &["--write", "{dir}/grant", "--protect"],
        Refused,
    ),
    check(
        "stdio.file",
        "output into a file that was not granted",
        Host(&["/bin/sh", "-c", "echo out"]),
        &[],
        WorksIntoFile,
    ),
    check(
        "stdio.devices",
        "/dev/null, /dev/stdin and /dev/fd",
        Host(&[
            "/bin/sh",
            "-c",
            "echo b > /dev/null; echo c | cat /dev/stdin; echo d | cat /dev/fd/0",
        ]),
        &[],
        Works,
    ),
    check(
        "stdio.reopen",
        "standard output is opened once more by its name",
        Host(&["/bin/sh", "-c", "echo a > /dev/stdout"]),
        &[],
        Works,
    ),
    check(
        "user.id",
        "the user has the same number",
        Host(&["/bin/sh", "-c", "test -n \"$(id -u)\" && echo known"]),
        &[],
        Works,
    ),
    check(
        "limits.files",
        "--max-fds bounds open files",
        Guest(&["open-files", "100"]),
        &["--max-fds", "50"],
        Refused,
    ),
    check(
        "git",
        "git makes a repository and a commit",
        Host(&[
            "/bin/sh",
            "-c",
            "cd \"$1/grant\" && git init -q . && git add x.c && git -c user.name=x -c user.email=x@x commit -qm x && git log --format=%s",
            "sh",
            "{dir}",
        ]),
        WRITE,
        Works,
    ),
    check(
        "cc",
        "a C compiler builds a program that runs",
        Host(&[
            "/bin/sh",
            "-c",
            "cd \"$1/grant\" && cc x.c -o x && ./x && echo built",
            "sh",
            "{dir}",
        ]),
        WRITE,
        Works,
    ),
    check(
        "cargo",
        "cargo builds and runs a program",
        Host(&["cargo", "run", "-q", "--offline", "--manifest-path", "{dir}/grant/Cargo.toml"]),
        WRITE,
        Works,
    ),
    check(
        "node.child",
        "node starts a child over pipes",
        Host(&[
            "node",
            "-e",
            "console.error('node',process.version,'libuv',process.versions.uv);process.stdout.write(require('child_process').execFileSync(process.execPath,['-p','6*7']))",
        ]),
        &[],
        Works,
    ),
    check(
        "node.file",
        "node writes to a file that is its output",
        Host(&["node", "-e", "console.log('out')"]),
        &[],
        WorksIntoFile,
    ),
    check(
        "node.interfaces",
        "os.networkInterfaces() with an allowlist",
        Host(&["node", "-e", "require('os').networkInterfaces();console.log('listed')"]),
        &["--allow-net", "127.0.0.1:{port}"],
        Works,
    ),
    check(
        "python.pool",
        "a pool of processes in Python",
        Host(&[
            "python3",
            "-c",
            "from concurrent.futures import ProcessPoolExecutor as P\nif __name__ == '__main__':\n    print(sum(P(2).map(abs, [-1, -2])))",
        ]),
        &[],
        Works,
    ),
    check(
        "python.pty",
        "a pseudo-terminal without a terminal",
        Host(&["python3", "-c", "import os,pty; m,s=pty.openpty(); print(os.isatty(s))"]),
        &[],
        Works,
    ),
    check(
        "python.manager",
        "a unix socket of Python's below TMPDIR",
        Host(&[
            "python3",
            "-c",
            "from multiprocessing import Manager\nif __name__ == '__main__':\n    m=Manager(); print(m.list([1,2]))",
        ]),
        &[],
        Works,
    ),
];

pub const LINUX: &[FullCheck] = &[
    check(
        "allowlist",
        "an allowed port is reached",
        Guest(&["connect", "127.0.0.1:{port}"]),
        &["--allow-net", "127.0.0.1:{port}"],
        Works,
    ),
    check(
        "limits.processes",
        "--max-pids bounds processes",
        Guest(&["fork", "40"]),
        &["--max-pids", "10"],
        Refused,
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
];

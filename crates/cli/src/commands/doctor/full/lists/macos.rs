//! Checks that need a real Mac.

use super::{WRITE, check};
use crate::commands::doctor::full::check::Expect::{ProfileForms, Serves, Works};
use crate::commands::doctor::full::check::FullCheck;
use crate::commands::doctor::full::check::Program::Host;

pub const MACOS: &[FullCheck] = &[
    check(
        "profile.forms",
        "each form of the profile by itself",
        Host(&["/usr/bin/sandbox-exec"]),
        &[],
        ProfileForms,
    ),
    check("git.apple", "Apple's git", Host(&["/usr/bin/git", "--version"]), &[], Works),
    check(
        "git.homebrew",
        "Homebrew's git, which reads etc/gitconfig of its prefix",
        Host(&["/opt/homebrew/bin/git", "config", "--list", "--show-origin"]),
        &[],
        Works,
    ),
    check(
        "clone",
        "a clone of a file (cp -c)",
        Host(&[
            "/bin/sh",
            "-c",
            "cp -c \"$1/grant\"/x.c \"$1/grant\"/y.c && cat \"$1/grant\"/y.c",
            "sh",
            "{dir}",
        ]),
        WRITE,
        Works,
    ),
    check(
        "uv.offline",
        "uv without a network, which old ones do not survive",
        Host(&["uv", "--offline", "python", "find"]),
        &[],
        Works,
    ),
    check("getpwuid", "the user's name", Host(&["/usr/bin/id", "-un"]), &[], Works),
    check(
        "allowlist.proxy",
        "curl reaches an allowed port through the proxy",
        Host(&[
            "/usr/bin/curl",
            "-sS",
            "-o",
            "/dev/null",
            "-w",
            "%{http_code}",
            "https://registry.npmjs.org/",
        ]),
        &["--allow-net", "registry.npmjs.org:443"],
        Works,
    ),
    check(
        "go.tls",
        "TLS of a Go program with --system-trust",
        Host(&["go", "env", "GOVERSION"]),
        &["--allow-net", "proxy.golang.org:443", "--system-trust"],
        Works,
    ),
    check(
        "listen.any",
        "a server that binds to every address",
        Host(&[
            "/usr/bin/python3",
            "-c",
            "import socket;s=socket.create_server(('',{free}));s.settimeout(9)\nwhile 1:\n    c,_=s.accept(); c.send(c.recv(1))",
        ]),
        &["--listen", "{free}"],
        Serves,
    ),
    check(
        "npx",
        "npx asks the registry through an allowlist",
        Host(&["npx", "--yes", "cowsay@1.6.0", "ok"]),
        &["--raw", "--allow-net", "registry.npmjs.org:443"],
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

//! A registry of npm's on loopback and an `npm` that only pretends, so that installations need no
//! network and can be looked at from inside.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::Command;

use crate::user::{User, text};

/// What the pretended npm does, inside its sandbox, for a package of this name.
const NPM: &str = r##"#!/bin/sh
verb=$1
for last; do :; done
name=${last%@*}
# As it was given: a shell drops variables with names such as npm's.
tr '\0' '\n' < "/proc/$$/environ" > "seen-$verb"
bash -c 'exec 3<>/dev/tcp/HOST/PORT' 2>/dev/null && echo reached >> "seen-$verb"
bash -c 'exec 3<>/dev/tcp/FILES' 2>/dev/null && echo reached-files >> "seen-$verb"
case $verb in
install)
    downloads=$(sed -n 's/^npm_config_cache=//p' seen-install)
    mkdir -p "$downloads" && echo downloaded > "$downloads/kept"
    touch started
    # As the real one: scripts run unless it is told not to, in either way.
    case " $* " in
    *" --ignore-scripts "*) ;;
    *) grep -qx npm_config_ignore_scripts=true "seen-$verb" || echo built > built ;;
    esac
    [ "$name" = slow ] && sleep 600
    [ "$name" = endless ] && while :; do head -c 1048576 /dev/zero >> fill 2>/dev/null; sleep 0.02; done
    mkdir -p "node_modules/$name"
    printf '{"name": "%s", "version": "1.2.3", "bin": "index.js", "description": ""}' "$name" > "node_modules/$name/package.json"
    [ "$name" = unfit ] && printf '{"name": "unfit", "version": "1.2.3", "bin": "index.js", "engines": {"node": "^98 || >=99"}}' > "node_modules/$name/package.json"
    [ "$name" = fit ] && printf '{"name": "fit", "version": "1.2.3", "bin": "index.js", "engines": {"node": "^98 || >=4"}}' > "node_modules/$name/package.json"
    printf 'console.log(JSON.stringify(process.argv.slice(2)))' > "node_modules/$name/index.js"
    [ "$name" = pipe ] && rm "node_modules/$name/index.js" && mkfifo "node_modules/$name/index.js"
    [ "$name" = pipe-manifest ] && rm "node_modules/$name/package.json" && mkfifo "node_modules/$name/package.json"
    printf '{"packages": {"": {}, "node_modules/%s": {"version": "1.2.3", "resolved": "http://127.0.0.1/x.tgz", "integrity": "sha512-x", "hasInstallScript": %s}}}' "$name" "$([ "$name" = scripted ] && echo true || echo false)" > package-lock.json
    if [ "$name" = elsewhere ]; then
        echo "npm error the cause" >&2
        echo "npm error A complete log of this run can be found in: /x/_logs/1-debug-0.log" >&2
        bash -c 'exec 3<>/dev/tcp/codeload.example/443'
        exit 1
    fi
    ;;
rebuild)
    echo built > built
    downloads=$(sed -n 's/^npm_config_cache=//p' seen-install)
    if cat "$downloads/kept" > /dev/null 2>&1; then echo sees-downloads >> seen-rebuild; fi
    ;;
esac
"##;

pub struct Index {
    port: u16,
    /// Where it says that files are, as a URL; itself without one.
    files: Option<String>,
}

impl Index {
    /// None without node, which is said.
    pub fn new(user: &User) -> Option<Index> {
        Index::at(user, "127.0.0.1", None)
    }

    /// On an address of this machine's, with files on another (`http://ADDRESS:PORT`).
    pub fn at(user: &User, host: &'static str, files: Option<String>) -> Option<Index> {
        Index::doing(user, host, files, || {})
    }

    /// The same, and does something at every request before it answers.
    pub fn doing(
        user: &User,
        host: &'static str,
        files: Option<String>,
        act: impl Fn() + Send + Sync + 'static,
    ) -> Option<Index> {
        if Command::new("node").arg("--version").output().is_err() {
            println!("SKIP: node: is not installed");
            return None;
        }
        let listener = TcpListener::bind((host, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let place = files.clone().unwrap_or_else(|| format!("http://{host}:{port}"));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                act();
                let place = place.clone();
                std::thread::spawn(move || {
                    let mut reader = BufReader::new(&stream);
                    let mut line = String::new();
                    let _ = reader.read_line(&mut line);
                    // What the pretended npm installs is the newest of this one.
                    let version = if line.contains("/current/") { "1.2.3" } else { "9.9.9" };
                    line.clear();
                    while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                        line.clear();
                    }
                    let body = format!(
                        r#"{{"version": "{version}", "engines": {{"node": ">=99"}}, "dist": {{"tarball": "{place}/x.tgz"}}}}"#
                    );
                    let _ = write!(
                        &stream,
                        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                        body.len()
                    );
                });
            }
        });
        let files_place = files.as_deref().unwrap_or("http://127.0.0.1:1");
        let files_place = files_place.trim_start_matches("http://").replace(':', "/");
        let script = NPM.replace("HOST", host).replace("PORT", &port.to_string());
        user.scratch.script("bin/npm", &script.replace("FILES", &files_place));
        user.scratch.file(
            "home/.npmrc",
            &format!(
                "registry=http://{host}:{port}/\n//{host}:{port}/:_authToken=hunter2\n//other.example/:_authToken=hunter3\n"
            ),
        );
        Some(Index { port, files })
    }

    /// With the pretended npm before the real one.
    pub fn command(&self, user: &User, words: &[&str]) -> Command {
        let mut command = user.command(words);
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", text(&user.path("bin"))));
        for name in ["npm_config_registry", "NPM_CONFIG_REGISTRY", "NPM_CONFIG_USERCONFIG"] {
            command.env_remove(name);
        }
        assert!(self.port != 0 && self.files.as_deref() != Some(""));
        command
    }
}

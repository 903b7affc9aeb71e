//! npx, npm exec, bunx, pnpm dlx, yarn dlx.

use super::{Meaning, Next, Options, PackageLine, owned};

/// Options that change nothing about which package runs.
const QUIET: &[&str] = &[
    "-y",
    "--yes",
    "-q",
    "--quiet",
    "--silent",
    "-s",
    "--no",
    "--no-install",
    "--prefer-online",
    "--prefer-offline",
    "--offline",
    "--ignore-existing",
    "--no-audit",
    "--no-fund",
    "--no-update-notifier",
    "--bun",
    "--no-color",
    "--verbose",
    "--ignore-scripts",
    "--legacy-peer-deps",
    "--force",
    "-f",
    "--shell-auto-fallback",
];

/// The same, with a value.
const QUIET_WITH_VALUE: &[&str] =
    &["--loglevel", "--cache", "--userconfig", "--node-options", "--reporter", "--node-arg", "-n"];

pub fn npx(runner: &str, rest: &[&str]) -> Meaning {
    let mut options = Options { rest };
    let mut packages: Vec<&str> = Vec::new();
    loop {
        match options.next() {
            Next::Option(name, glued) => match name {
                "-p" | "--package" => match options.value(glued) {
                    Some(package) => packages.push(package),
                    None => return Meaning::as_is(),
                },
                "-c" | "--call" => return Meaning::unknown_option(runner, name),
                name if QUIET.contains(&name) => {}
                name if QUIET_WITH_VALUE.contains(&name) => {
                    if options.value(glued).is_none() {
                        return Meaning::as_is();
                    }
                }
                name => return Meaning::unknown_option(runner, name),
            },
            Next::Word | Next::Ended => return package(packages, options.rest),
            Next::Nothing => return Meaning::as_is(),
        }
    }
}

/// `npm exec [options] -- package args`, `npm exec --package=p -- command args`.
pub fn npm_exec(rest: &[&str]) -> Meaning {
    match npx("npm exec", rest) {
        Meaning::Package(mut line) => {
            // npm takes a `--` after the package for itself too.
            if line.arguments.first().is_some_and(|word| word == "--") {
                line.arguments.remove(0);
            }
            Meaning::Package(line)
        }
        meaning => meaning,
    }
}

fn package(packages: Vec<&str>, words: &[&str]) -> Meaning {
    let Some((first, arguments)) = words.split_first() else {
        return Meaning::as_is();
    };
    let mut packages = packages.into_iter();
    let (package, program) = match packages.next() {
        None => (*first, None),
        Some(package) => (package, Some((*first).to_owned())),
    };
    if !is_registry_package(package) {
        return Meaning::AsIs {
            note: Some(format!(
                "{package} is no package of the npm registry; npx itself would fetch and run it (download it, and run \
                 the directory: mcp run ./DIR)"
            )),
        };
    }
    // `npx -p @scope/name name`: the program that the package is known by anyway.
    let base = name_of(package).rsplit('/').next().unwrap_or_default().to_owned();
    Meaning::Package(PackageLine {
        reference: format!("npm:{package}"),
        program: program.filter(|program| *program != base),
        with: packages.map(|package| format!("npm:{package}")).collect(),
        arguments: owned(arguments),
    })
}

/// Without its version.
fn name_of(package: &str) -> &str {
    match package.get(1..).and_then(|tail| tail.find('@')) {
        Some(at) => &package[..=at],
        None => package,
    }
}

/// A name of the registry, not a directory, an address or `user/repository`.
fn is_registry_package(package: &str) -> bool {
    let name = name_of(package);
    let slashes = name.matches('/').count();
    let scoped = name.starts_with('@') && slashes == 1;
    let version = package.get(name.len()..).unwrap_or_default();
    (scoped || slashes == 0)
        && !name.starts_with(['.', '-'])
        && !version.contains(char::is_whitespace)
        && !name.is_empty()
        && !version.contains([':', '/'])
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "@/._-~".contains(c))
}

//! A flag that is none of ours: what other tools mean by it, and what it is called here.

use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// `None` for another kind of mistake, and for a flag that no other tool has: clap knows what it resembles.
pub fn instead(error: &clap::Error) -> Option<String> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let words: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let verb = words.first().filter(|verb| matches!(verb.as_str(), "run" | "exec" | "add"))?;
    let at = words.iter().position(|word| word.starts_with(unknown.as_str()))?;
    let next = words.get(at + 1).map(String::as_str);
    let told = if verb == "add" { of_clients(&words[at]) } else { told(verb, &words[at], next) };
    // What it resembles, clap says better; its other advice is to have the flag for a program.
    let resembles = error.get(ContextKind::SuggestedArg).is_some();
    told.or_else(|| {
        (!resembles && unknown.starts_with('-')).then(|| {
            format!("{unknown} is no flag of mcp {verb}; mcp {verb} --help lists them (a flag of the command comes after its name)")
        })
    })
}

/// Flags of the clients' own commands: `claude mcp add --scope user --transport stdio`.
fn of_clients(word: &str) -> Option<String> {
    let flag = word.split_once('=').map_or(word, |(flag, _)| flag);
    let way = match flag {
        "--transport" | "-t" => "leave it out: mcp runs servers that talk over stdio",
        "--scope" | "-s" => {
            "leave it out for your own files, or type: --project DIR for those of a project"
        }
        "--to" | "--for" | "-c" | "--app" => "type: --client ID (mcp wire --status lists them)",
        _ => return None,
    };
    Some(format!("{flag} is no flag of mcp add; {way}"))
}

/// `next` is the word that follows.
fn told(verb: &str, word: &str, next: Option<&str>) -> Option<String> {
    let (flag, glued) = match word.split_once('=') {
        Some((flag, value)) => (flag, Some(value)),
        None => (word, None),
    };
    let value = glued.or(next.filter(|next| !next.starts_with('-')));
    let path = value.unwrap_or("PATH");
    let way = match flag {
        "--allow-read" | "--ro" | "--ro-bind" | "--read-only" | "--readonly" => {
            format!("type: -r {path}")
        }
        "--rw" | "--read-write" => format!("type: -w {path}"),
        "--mem" | "--memory-limit" | "-m" => {
            format!("type: --max-memory {}", value.unwrap_or("SIZE"))
        }
        "--tmp-size" | "--tmpfs" | "--tmp" | "--shm-size" => {
            format!(
                "type: --max-tmp {}",
                value.filter(|size| !size.contains('/')).unwrap_or("SIZE")
            )
        }
        "--pids" | "--nproc" => {
            format!("type: --max-pids {}", value.unwrap_or("NUMBER"))
        }
        "--cpus" | "--cpu" => "type: --max-cpu MILLICORES (1000 is one core)".to_owned(),
        "--nofile" | "--ulimit" => "type: --max-fds NUMBER".to_owned(),
        "--allow-env" | "--pass-env" | "--setenv" => "type: -e NAME, or -e NAME=VALUE".to_owned(),
        "--allow-all" | "-A" | "--privileged" | "--cap-add" => {
            "give what the command needs: -r PATH, -w PATH, -n HOST, -e NAME".to_owned()
        }
        "--allow-run" | "--user" | "-u" | "--name" | "--unshare-all" => {
            "leave it out: the command runs without rights of yours, and may start programs"
                .to_owned()
        }
        "--no-net" | "--no-network" | "--unshare-net" => network(Some("none")),
        "-d" | "--detach" | "--background" => {
            "leave it out, and end the line with &; mcp ps and mcp kill find it".to_owned()
        }
        "--cmd" | "--command" | "--args" => {
            "leave it out: the command and its words come last, as they are".to_owned()
        }
        "--volume" | "--mount" | "--bind" => format!("type: {}", mounted(path)),
        "-v" if value.is_some_and(|value| value.contains(':') || Path::new(value).is_dir()) => {
            format!("type: {}", mounted(path))
        }
        "-v" | "-vv" | "--verbose" | "--debug" => {
            "what was enforced and used: --report - (what would be: --explain)".to_owned()
        }
        "--net" | "--allow-network" | "--allow-host" | "--allow-domain" | "--allowed-domains"
        | "--host" | "--domain" => network(value),
        "-it" | "-ti" | "-i" | "-t" | "--interactive" | "--tty" | "--rm" => {
            "leave it out: the command has your terminal, and HOME is gone after the run".to_owned()
        }
        "-c" if verb == "exec" => {
            let text = value.unwrap_or("COMMAND").replace('\'', r"'\''");
            format!("leave it out; type: mcp exec '{text}'")
        }
        "--dry-run" => "type: --explain".to_owned(),
        "--version" | "-V" => "type: mcp --version".to_owned(),
        "--workdir" | "--chdir" => format!("type: --cwd {}", value.unwrap_or("DIR")),
        "-p" | "--publish" | "--port" => format!("type: --listen {}", port(value)),
        _ => return None,
    };
    Some(format!("{flag} is no flag of mcp {verb}; {way}"))
}

/// Never the host's whole network: that is for those who ask for it by its name.
fn network(value: Option<&str>) -> String {
    match value {
        Some("none" | "off" | "false") => {
            "leave it out: there is no network unless --allow-net gives some".to_owned()
        }
        Some(host) if host != "host" => format!("type: --allow-net {host}"),
        _ => "type: --allow-net HOST, once for each host that it needs".to_owned(),
    }
}

/// `HERE:INSIDE[:ro]` of a container: a path has one name in and out of the sandbox.
fn mounted(value: &str) -> String {
    let path = value.split(':').next().filter(|path| !path.is_empty()).unwrap_or("PATH");
    let flag = if value.ends_with(":ro") { "-r" } else { "-w" };
    format!("{flag} {path} (it has the same name inside)")
}

/// The port inside, of `8080:80`.
fn port(value: Option<&str>) -> &str {
    value.and_then(|value| value.rsplit(':').next()).unwrap_or("PORT")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_other_tools_call_it() {
        for (verb, word, next, said) in [
            ("run", "-v", Some("data:/work:ro"), "type: -r data ("),
            ("run", "-v", Some("data:/work"), "type: -w data ("),
            ("run", "-v", Some("node"), "--report -"),
            ("run", "--net=none", None, "leave it out"),
            ("run", "--net", Some("host"), "--allow-net HOST"),
            ("run", "--net", None, "--allow-net HOST"),
            ("run", "-p", Some("8080:80"), "--listen 80"),
            ("run", "--mem=1G", None, "--max-memory 1G"),
            ("run", "--tmpfs", Some("/tmp"), "--max-tmp SIZE"),
            ("run", "--no-net", Some("ls"), "leave it out"),
            ("exec", "-c", Some("echo 'a b'"), r"mcp exec 'echo '\''a b'\'''"),
        ] {
            let told = told(verb, word, next).unwrap_or_default();
            assert!(told.contains(said), "{word}: {told}");
        }
        assert_eq!(told("run", "-c", Some("ls")), None);
        assert_eq!(told("run", "--max-memroy", Some("1G")), None);
    }
}

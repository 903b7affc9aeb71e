//! `mcp serve`: Streamable HTTP in front of servers, each session or principal with a sandbox of its own.

use std::path::Path;

use mcp_serve::Config;

use crate::args::serve::{Serve, Verb};
use crate::failure::Failure;
use crate::render;

pub fn run(args: Serve) -> Result<u8, Failure> {
    if let Some(Verb::Token { name, servers }) = args.verb {
        return token(&name, &servers);
    }
    let words: Vec<String> =
        args.what.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let Some(first) = words.first() else {
        return Err(Failure::Usage(
            "nothing to serve; give a file or a package: mcp serve servers.toml, mcp serve npm:NAME".to_owned(),
        ));
    };
    let source = Path::new(first);
    let is_file = source.extension().is_some_and(|extension| extension == "toml");
    if is_file && words.len() > 1 {
        return Err(Failure::Usage(format!(
            "after {first} nothing may follow; what is run stands in it"
        )));
    }
    let mut config = if is_file {
        Config::read(source).map_err(refused)?
    } else {
        Config::single(words.clone())
    };
    if let Some(listen) = args.listen {
        config.listen = listen;
    }
    config.behind_proxy |= args.behind_proxy;
    if let Some(bytes) = args.max_message {
        config.limits.max_message = usize::try_from(bytes.0).unwrap_or(usize::MAX);
    }
    for (name, server) in &config.servers {
        startable(name, &server.run)?;
    }
    let program = std::env::current_exe().map_err(|e| Failure::file(Path::new("mcp"), &e))?;
    let scheme = if config.tls.is_some() { "https" } else { "http" };
    let names: Vec<String> = config.servers.keys().cloned().collect();
    let tell = |address| {
        for name in &names {
            render::say(&format!("{name}: {scheme}://{address}/mcp/{name}"));
        }
    };
    if args.check {
        config.judge().map_err(refused)?;
        tell(config.listen);
        return Ok(0);
    }
    let source = is_file.then_some(source);
    mcp_serve::serve(program, config, source, tell, mcp_sandbox::platform::give_back_memory)
        .map_err(refused)?;
    Ok(0)
}

/// Whether `mcp run` takes these words after the one that is set before them.
fn startable(name: &str, run: &[String]) -> Result<(), Failure> {
    let own = ["run", "--ephemeral", "--raw"].map(str::to_owned);
    let words: Vec<String> = own.into_iter().chain(run.iter().cloned()).collect();
    match crate::args::options_of_run(&words) {
        Some(_) => Ok(()),
        None => Err(Failure::Usage(format!(
            "servers.{name}: mcp run refuses these words with --ephemeral, which is set for every server (--home would be shared by all)"
        ))),
    }
}

fn token(name: &str, servers: &str) -> Result<u8, Failure> {
    let (token, line) = mcp_serve::token_line(name, servers)
        .map_err(|e| Failure::file(Path::new("/dev/urandom"), &e))?;
    render::say("for the file of tokens (it does not contain the token):");
    render::print(&format!("{line}\n"));
    render::say(&format!("for the client, shown once: {token}"));
    Ok(0)
}

fn refused(error: mcp_serve::Error) -> Failure {
    match error {
        mcp_serve::Error::File { path, why } => Failure::Input { path, why },
        mcp_serve::Error::Config(why) => Failure::Usage(why),
        other => Failure::Refused(other.to_string()),
    }
}

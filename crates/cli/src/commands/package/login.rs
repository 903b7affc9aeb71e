//! `mcp login` and `logout`: credentials in a file of ours, mode 0600.

use std::io::{BufRead, IsTerminal, Read, Write};

use mcp_package::registry::{Kept, Oci};

use crate::args::package::{Login, Logout};
use crate::failure::Failure;
use crate::packages::fetch;
use crate::{paths, render};

pub fn login(args: &Login) -> Result<u8, Failure> {
    let host = host(&args.host)?;
    let user = match &args.username {
        Some(user) => user.clone(),
        None => ask("user name: ")?,
    };
    if user.is_empty() || user.contains([':', '\n']) {
        return Err(Failure::Usage("expected a user name without a colon".to_owned()));
    }
    let password = match args.password_stdin {
        true => from_stdin()?,
        false => hidden("password: ")?,
    };
    // Tried before it is kept: a typing mistake is found here, not in an hour.
    let trial = Trial::new(host, &user, &password)?;
    let http = fetch::http();
    let mut oci = Oci::new(&http, &trial.kept, host, "mcp-login", fetch::scheme(args.plain_http));
    oci.check()?;
    let kept = Kept { own: paths::credentials(), others: Vec::new() };
    let path = kept.keep(host, &user, &password)?;
    render::say(&format!("credentials for {host} are kept in {} (mode 0600)", render::path(&path)));
    Ok(0)
}

pub fn logout(args: &Logout) -> Result<u8, Failure> {
    let host = host(&args.host)?;
    let kept = Kept { own: paths::credentials(), others: Vec::new() };
    let was_there = kept.forget(host)?;
    render::say(&match was_there {
        true => format!("forgot the credentials for {host}"),
        false => format!("there were no credentials for {host} of ours"),
    });
    Ok(u8::from(!was_there))
}

fn host(text: &str) -> Result<&str, Failure> {
    let host = text.strip_prefix("oci://").unwrap_or(text).trim_end_matches('/');
    match format!("oci://{host}/x").parse::<mcp_package::Reference>() {
        Ok(_) if !host.contains('/') => Ok(host),
        _ => Err(Failure::Usage(format!("{text}: expected a registry's HOST or HOST:PORT"))),
    }
}

/// The credentials in a file of their own, for the time of one question.
struct Trial {
    kept: Kept,
    directory: std::path::PathBuf,
}

impl Trial {
    fn new(host: &str, user: &str, password: &str) -> Result<Trial, Failure> {
        let own = paths::credentials().ok_or_else(|| {
            Failure::Usage(
                "there is no place for credentials: set HOME or XDG_CONFIG_HOME".to_owned(),
            )
        })?;
        let directory = own.with_file_name(format!(".login-{}", std::process::id()));
        let kept = Kept { own: Some(directory.join("credentials.json")), others: Vec::new() };
        let trial = Trial { kept, directory };
        trial.kept.keep(host, user, password)?;
        Ok(trial)
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn ask(question: &str) -> Result<String, Failure> {
    if !std::io::stdin().is_terminal() {
        return Err(Failure::Usage(
            "there is no terminal to ask on: give --username and --password-stdin".to_owned(),
        ));
    }
    eprint!("{question}");
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).map_err(|e| Failure::Usage(e.to_string()))?;
    Ok(answer.trim().to_owned())
}

fn from_stdin() -> Result<String, Failure> {
    let mut text = String::new();
    let read = std::io::stdin().lock().take(64 << 10).read_to_string(&mut text);
    read.map_err(|e| Failure::Usage(format!("the password cannot be read: {e}")))?;
    let password = text.trim_end_matches(['\r', '\n']);
    match password.is_empty() {
        true => Err(Failure::Usage("the password is empty".to_owned())),
        false => Ok(password.to_owned()),
    }
}

/// Not shown while it is typed.
pub fn hidden(question: &str) -> Result<String, Failure> {
    if !std::io::stdin().is_terminal() {
        return Err(Failure::Usage(
            "there is no terminal to ask for the password on: give it with --password-stdin, or in MCP_KEY_PASSWORD for a key".to_owned(),
        ));
    }
    eprint!("{question}");
    let _ = std::io::stderr().flush();
    let password = rpassword::read_password()
        .map_err(|e| Failure::Usage(format!("the password cannot be read: {e}")))?;
    eprintln!();
    Ok(password)
}

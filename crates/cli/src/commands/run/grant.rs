//! A manifest asks, a person grants: on the terminal, with `--yes`, or by flags and config before.
//! A yes is remembered with the package's digest; another version that asks for more asks again.

use std::collections::BTreeSet;
use std::io::{BufRead, IsTerminal};

use mcp_package::store::Grant;
use mcp_package::{Ask, Digest};
use mcp_policy::{Defaults, Layer, Policy};

use crate::args::Run;
use crate::commands::package::open_store;
use crate::failure::Failure;
use crate::render;

pub struct Question<'a> {
    /// What the answer is remembered under.
    pub package: &'a str,
    pub shown: &'a str,
    pub digest: Digest,
    pub asks: Vec<Ask>,
}

/// The layers that a person agreed to, now or before.
pub fn settle(
    question: &Question<'_>,
    layers: &[Layer],
    args: &Run,
) -> Result<Vec<Layer>, Failure> {
    let given = Policy::merge(layers, Defaults::run())?;
    let open: Vec<&Ask> = question.asks.iter().filter(|ask| !ask.is_granted_by(&given)).collect();
    if open.is_empty() {
        return Ok(Vec::new());
    }
    let store = open_store()?;
    let before = store.grants().find(question.package);
    let granted = before.as_ref().map(|grant| grant.granted.clone()).unwrap_or_default();
    let news: Vec<&Ask> = open.iter().copied().filter(|ask| !granted.contains(&ask.text)).collect();
    let agreed: Vec<&Ask> = if news.is_empty() || args.package.yes {
        open
    } else if args.package.without_grants {
        open.into_iter().filter(|ask| granted.contains(&ask.text)).collect()
    } else {
        ask(question, &news, &granted)?;
        open
    };
    let is_new = !news.is_empty() && !args.package.without_grants;
    let is_other = before.is_some_and(|grant| grant.digest != question.digest);
    if (is_new || is_other) && !args.starting.explain {
        let granted: BTreeSet<String> =
            agreed.iter().map(|ask| ask.text.clone()).chain(granted).collect();
        let package = question.package.to_owned();
        store.grants().remember(&Grant { package, digest: question.digest, granted })?;
    }
    Ok(agreed.into_iter().map(Ask::granted).collect())
}

fn ask(question: &Question<'_>, news: &[&Ask], granted: &BTreeSet<String>) -> Result<(), Failure> {
    let shown = render::plain(question.shown);
    let head = match granted.is_empty() {
        true => format!("{shown} asks for"),
        false => format!("{shown} asks for more than was granted before"),
    };
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        let flags: Vec<&str> = news.iter().map(|ask| ask.flag.as_str()).collect();
        let list = lines(news, |ask| ask.text.clone());
        return Err(Failure::Refused(format!(
            "not started: {head}:\n{list}\n     \
             give it with {}\n     \
             or once and for all with --yes (without it: --without-grants)",
            flags.join(" ")
        )));
    }
    render::say(&format!(
        "{head}:\n{}",
        lines(news, |ask| {
            if granted.is_empty() { ask.text.clone() } else { format!("+ {}", ask.text) }
        })
    ));
    eprint!("{} grant it, and remember that? [y/N] ", render::prefix());
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    match read {
        Ok(_) if matches!(answer.trim(), "y" | "Y" | "yes") => Ok(()),
        _ => Err(Failure::Refused("not started".to_owned())),
    }
}

fn lines(asks: &[&Ask], line: impl Fn(&Ask) -> String) -> String {
    asks.iter().map(|ask| format!("       {}", line(ask))).collect::<Vec<_>>().join("\n")
}

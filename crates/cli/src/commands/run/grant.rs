//! A manifest asks, a person grants: on the terminal, with `--yes`, or by flags and config before.
//! A yes is remembered for the package's source, name and digest: another version asks again, and so does
//! another package of the same name.

use std::collections::BTreeSet;
use std::io::{BufRead, IsTerminal};

use mcp_package::Ask;
use mcp_package::store::Holder;
use mcp_policy::{Defaults, Layer, Policy};

use crate::args::Run;
use crate::failure::Failure;
use crate::packages::open_store;
use crate::render;

pub struct Question<'a> {
    /// Whom the answer is remembered for.
    pub holder: Holder<'a>,
    pub shown: &'a str,
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
    let granted = store.grants().find(&question.holder);
    let news: Vec<&Ask> = open.iter().copied().filter(|ask| !granted.contains(&ask.text)).collect();
    let agreed: Vec<&Ask> = if news.is_empty() || args.package.yes {
        open
    } else if args.package.without_grants {
        open.into_iter().filter(|ask| granted.contains(&ask.text)).collect()
    } else {
        ask(question, &news, &store.grants().of_others(&question.holder))?;
        open
    };
    let is_new = !news.is_empty() && !args.package.without_grants;
    if is_new && !args.starting.explain {
        let granted = agreed.iter().map(|ask| ask.text.clone()).chain(granted).collect();
        store.grants().remember(&question.holder, granted)?;
    }
    Ok(agreed.into_iter().map(Ask::granted).collect())
}

/// `others` is what other versions have: what this one asks for beyond that is marked.
fn ask(question: &Question<'_>, news: &[&Ask], others: &BTreeSet<String>) -> Result<(), Failure> {
    let shown = render::plain(question.shown);
    let is_more = news.iter().any(|ask| !others.contains(&ask.text));
    let head = match (others.is_empty(), is_more) {
        (true, _) => format!("{shown} asks for"),
        (false, true) => format!("{shown} asks for more than was granted to another version"),
        (false, false) => format!("{shown} asks for what was granted to another version"),
    };
    let line = |ask: &Ask| match (others.is_empty(), others.contains(&ask.text)) {
        (true, _) => ask.text.clone(),
        (false, true) => format!("  {}", ask.text),
        (false, false) => format!("+ {}", ask.text),
    };
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        let flags: Vec<&str> = news.iter().map(|ask| ask.flag.as_str()).collect();
        let list = lines(news, line);
        return Err(Failure::Refused(format!(
            "not started: {head}:\n{list}\n     \
             give it with {}\n     \
             or once and for all with --yes (without it: --without-grants)",
            flags.join(" ")
        )));
    }
    render::say(&format!("{head}:\n{}", lines(news, line)));
    loop {
        eprint!("{} grant it, and remember that? [y/N] ", render::prefix());
        let mut answer = String::new();
        let read = std::io::stdin().lock().read_line(&mut answer);
        match (read, answer.trim()) {
            (Ok(1..), "y" | "Y" | "yes") => return Ok(()),
            (Ok(1..), word) if !matches!(word, "" | "n" | "N" | "no") => {
                render::say("answer y or n; Enter means the capital letter");
            }
            _ => return Err(Failure::Refused("not started".to_owned())),
        }
    }
}

fn lines(asks: &[&Ask], line: impl Fn(&Ask) -> String) -> String {
    asks.iter().map(|ask| format!("       {}", line(ask))).collect::<Vec<_>>().join("\n")
}

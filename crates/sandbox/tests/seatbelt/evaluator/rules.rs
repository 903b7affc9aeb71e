//! Rules and filters, and what they say to a question. Whatever is not understood is an error.

use std::collections::BTreeMap;

use super::operation::{End, KNOWN, Question, is_outside_default, levels};
use super::{Node, Regex, parse};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Allow,
    Deny,
}

/// Which rule of several decides. Apple documents neither.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Model {
    /// The last one that matches, of the most particular operation.
    LastMatch,
    /// The same among rules with filters; a rule without a filter never overrides one that has them, in either order.
    /// That was measured (microsoft/mxc pull requests 749 and 754).
    UnfilteredIsWeakest,
}

impl Model {
    pub const ALL: [Model; 2] = [Model::LastMatch, Model::UnfilteredIsWeakest];
}

#[derive(Debug)]
struct Rule {
    action: Action,
    operations: Vec<String>,
    /// One of these has to match; without any, the rule is about everything.
    filters: Vec<Filter>,
}

#[derive(Debug)]
enum Filter {
    Literal(String),
    Subpath(String),
    Regex(Regex),
    All(Vec<Filter>),
    Any(Vec<Filter>),
    Not(Box<Filter>),
    Name(String),
    NamePrefix(String),
    NameRegex(Regex),
    SameSandbox,
    Local(Place),
    Remote(Place),
    /// Given out by the system, to a process that makes a terminal.
    Extension,
    /// The kind of a socket is not asked about here.
    SocketDomain,
}

#[derive(Debug)]
enum Place {
    AnyIp,
    Ip { host: String, port: Option<u16> },
    Unix(Vec<Filter>),
}

#[derive(Debug)]
pub struct Rules {
    default: Action,
    rules: Vec<Rule>,
}

type Parameters = BTreeMap<String, String>;

impl Rules {
    pub fn new(text: &str, parameters: &Parameters) -> Result<Rules, String> {
        let mut rules = Rules { default: Action::Allow, rules: Vec::new() };
        for node in parse(text)? {
            let Node::List(nodes) = &node else { return Err(format!("not a form: {node:?}")) };
            let action = match nodes.first() {
                Some(Node::Symbol(word)) if word == "version" => continue,
                Some(Node::Symbol(word)) if word == "allow" => Action::Allow,
                Some(Node::Symbol(word)) if word == "deny" => Action::Deny,
                other => return Err(format!("unknown form {other:?}")),
            };
            let rule = rule(action, &nodes[1..], parameters)?;
            if rule.operations == ["default"] {
                rules.default = action;
            }
            rules.rules.push(rule);
        }
        Ok(rules)
    }

    pub fn decide(&self, model: Model, question: &Question) -> Action {
        let decided = match model {
            Model::LastMatch => self.last_match(question, |_| true),
            Model::UnfilteredIsWeakest => self
                .last_match(question, |rule| !rule.filters.is_empty())
                .or_else(|| self.last_match(question, |rule| rule.filters.is_empty())),
        };
        let otherwise =
            if is_outside_default(&question.operation) { Action::Allow } else { self.default };
        decided.unwrap_or(otherwise)
    }

    /// The last matching rule of the most particular operation that has one.
    fn last_match(&self, question: &Question, counts: impl Fn(&Rule) -> bool) -> Option<Action> {
        levels(&question.operation).iter().find_map(|level| {
            let on_level = self.rules.iter().filter(|rule| rule.operations.contains(level));
            let mut matching = on_level.filter(|rule| {
                let matches = |filter: &Filter| filter.matches(question);
                counts(rule) && (rule.filters.is_empty() || rule.filters.iter().any(matches))
            });
            matching.next_back().map(|rule| rule.action)
        })
    }

    /// The answer, which has to be the same under both models: no profile of ours may depend on which of them a Mac
    /// follows.
    #[track_caller]
    pub fn allows(&self, question: &Question) -> bool {
        let [last, weakest] = Model::ALL.map(|model| self.decide(model, question));
        assert_eq!(last, weakest, "the two models of precedence differ: {question:?}");
        last == Action::Allow
    }

    pub fn allows_under(&self, model: Model, question: &Question) -> bool {
        self.decide(model, question) == Action::Allow
    }
}

fn rule(action: Action, nodes: &[Node], parameters: &Parameters) -> Result<Rule, String> {
    let (mut operations, mut filters) = (Vec::new(), Vec::new());
    for node in nodes {
        match node {
            Node::Symbol(operation)
                if KNOWN.contains(&operation.as_str()) && filters.is_empty() =>
            {
                operations.push(operation.clone());
            }
            // What the log says of a refusal; it decides nothing.
            Node::List(parts) if matches!(parts.as_slice(), [Node::Symbol(with), Node::Symbol(message), Node::Text(_)] if with == "with" && message == "message") =>
                {}
            Node::List(_) => filters.push(filter(node, parameters)?),
            other => return Err(format!("no operation is called {other:?}")),
        }
    }
    match operations.is_empty() {
        true => Err("a rule about no operation".to_owned()),
        false => Ok(Rule { action, operations, filters }),
    }
}

fn filter(node: &Node, parameters: &Parameters) -> Result<Filter, String> {
    let Node::List(nodes) = node else { return Err(format!("no filter: {node:?}")) };
    let Some((Node::Symbol(kind), operands)) = nodes.split_first() else {
        return Err(format!("no filter: {node:?}"));
    };
    let text = || match operands {
        [one] => string(one, parameters),
        _ => Err(format!("{kind} takes one operand")),
    };
    let regex = || Regex::new(&text()?);
    let several = || -> Result<Vec<Filter>, String> {
        operands.iter().map(|node| filter(node, parameters)).collect()
    };
    Ok(match kind.as_str() {
        "literal" => Filter::Literal(text()?),
        "subpath" => Filter::Subpath(text()?),
        "regex" => Filter::Regex(regex()?),
        "require-all" => Filter::All(several()?),
        "require-any" => Filter::Any(several()?),
        "require-not" => match several()?.pop() {
            Some(one) => Filter::Not(Box::new(one)),
            None => return Err("require-not of nothing".to_owned()),
        },
        "global-name" | "ipc-posix-name" | "sysctl-name" => Filter::Name(text()?),
        "sysctl-name-prefix" => Filter::NamePrefix(text()?),
        "ipc-posix-name-regex" => Filter::NameRegex(regex()?),
        "target" if operands == [Node::Symbol("same-sandbox".to_owned())] => Filter::SameSandbox,
        "extension" => text().map(|_| Filter::Extension)?,
        "socket-domain" => Filter::SocketDomain,
        "local" => Filter::Local(place(operands, parameters)?),
        "remote" => Filter::Remote(place(operands, parameters)?),
        other => return Err(format!("unknown filter {other}")),
    })
}

fn place(operands: &[Node], parameters: &Parameters) -> Result<Place, String> {
    let Some((Node::Symbol(kind), rest)) = operands.split_first() else {
        return Err(format!("no place: {operands:?}"));
    };
    match (kind.as_str(), rest) {
        ("ip" | "tcp" | "udp", []) => Ok(Place::AnyIp),
        ("ip" | "tcp" | "udp", [address]) => {
            let address = string(address, parameters)?;
            let (host, port) = address.rsplit_once(':').ok_or("an address without a port")?;
            // The language knows no others.
            if !["localhost", "*"].contains(&host) {
                return Err(format!("host must be * or localhost, not {host}"));
            }
            let port = match port {
                "*" => None,
                port => Some(port.parse().map_err(|_| format!("no port: {port}"))?),
            };
            Ok(Place::Ip { host: host.to_owned(), port })
        }
        ("unix-socket", filters) => {
            let filters: Result<Vec<_>, _> =
                filters.iter().map(|f| filter(f, parameters)).collect();
            Ok(Place::Unix(filters?))
        }
        _ => Err(format!("no place: {operands:?}")),
    }
}

fn string(node: &Node, parameters: &Parameters) -> Result<String, String> {
    match node {
        Node::Text(text) => Ok(text.clone()),
        Node::List(nodes) => match nodes.as_slice() {
            [Node::Symbol(word), Node::Text(name)] if word == "param" => {
                parameters.get(name).cloned().ok_or_else(|| format!("no parameter {name}"))
            }
            [Node::Symbol(word), rest @ ..] if word == "string-append" => {
                rest.iter().map(|node| string(node, parameters)).collect()
            }
            [Node::Symbol(word), one] if word == "regex-quote" => {
                Ok(quoted(&string(one, parameters)?))
            }
            _ => Err(format!("no string: {node:?}")),
        },
        Node::Symbol(_) => Err(format!("no string: {node:?}")),
    }
}

fn quoted(text: &str) -> String {
    let syntax = |c: char| r"\^$.[]|()*+?{}".contains(c);
    text.chars().flat_map(|c| syntax(c).then_some('\\').into_iter().chain([c])).collect()
}

impl Filter {
    fn matches(&self, question: &Question) -> bool {
        let path = || question.path.as_deref().or(unix_path(question));
        let name = || question.name.as_deref();
        match self {
            Filter::Literal(own) => path().is_some_and(|path| path == own),
            Filter::Subpath(own) => path().is_some_and(|path| is_below(path, own)),
            Filter::Regex(own) => path().is_some_and(|path| own.is_match(path.as_bytes())),
            Filter::All(all) => all.iter().all(|filter| filter.matches(question)),
            Filter::Any(any) => any.iter().any(|filter| filter.matches(question)),
            Filter::Not(filter) => !filter.matches(question),
            Filter::Name(own) => name().is_some_and(|name| name == own),
            Filter::NamePrefix(own) => name().is_some_and(|name| name.starts_with(own)),
            Filter::NameRegex(own) => name().is_some_and(|name| own.is_match(name.as_bytes())),
            Filter::SameSandbox => question.is_same_sandbox,
            Filter::Local(place) => question.local.as_ref().is_some_and(|end| place.holds(end)),
            Filter::Remote(place) => question.remote.as_ref().is_some_and(|end| place.holds(end)),
            Filter::Extension => false,
            Filter::SocketDomain => true,
        }
    }
}

/// A filter on paths in a rule on the network means the socket's.
fn unix_path(question: &Question) -> Option<&str> {
    match question.remote.as_ref().or(question.local.as_ref())? {
        End::Unix(path) => Some(path),
        End::Ip { .. } => None,
    }
}

fn is_below(path: &str, above: &str) -> bool {
    let above = above.trim_end_matches('/');
    path == above || path.strip_prefix(above).is_some_and(|rest| rest.starts_with('/'))
}

impl Place {
    fn holds(&self, end: &End) -> bool {
        match (self, end) {
            (Place::AnyIp, End::Ip { .. }) => true,
            (Place::Ip { host, port }, End::Ip { host: to, port: at }) => {
                // A server on every address is at `localhost`, too (srt and mxc measured it).
                let localhost = ["::1", "localhost", "0.0.0.0", "::"].contains(&to.as_str())
                    || to.starts_with("127.");
                (host == "*" || localhost) && port.is_none_or(|port| port == *at)
            }
            (Place::Unix(filters), End::Unix(path)) => {
                let question = Question::path("network-outbound", path);
                filters.is_empty() || filters.iter().any(|filter| filter.matches(&question))
            }
            _ => false,
        }
    }
}

//! The servers written as a client's file, in a layout.

use mcp_clients::{Client, Container};

use super::{Layout, SERVERS, Server, around};

struct Writer {
    layout: Layout,
    out: String,
}

impl Writer {
    fn line(&mut self, depth: usize) {
        if self.layout.is_one_line {
            return;
        }
        self.out.push_str(self.layout.newline);
        self.out.push_str(&self.layout.indent.repeat(depth));
    }

    fn comment(&mut self, depth: usize, text: &str) {
        if self.layout.has_comments {
            self.line(depth);
            self.out.push_str(text);
        }
    }

    fn list(&mut self, words: &[&str], depth: usize, comment: Option<&str>) {
        if !self.layout.has_long_lists {
            let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
            let between = if self.layout.is_one_line { "," } else { ", " };
            self.out.push_str(&format!("[{}]", words.join(between)));
            return;
        }
        self.out.push('[');
        for (at, word) in words.iter().enumerate() {
            self.line(depth + 1);
            let is_last = at + 1 == words.len();
            let comma = if is_last && !self.layout.has_trailing_commas { "" } else { "," };
            self.out.push_str(&format!("\"{word}\"{comma}"));
            if let Some(comment) = comment.filter(|_| self.layout.has_comments && at % 2 == 0) {
                self.out.push_str(&format!(" {comment} {at}"));
            }
        }
        self.line(depth);
        self.out.push(']');
    }
}

pub fn json(client: &Client, layout: Layout) -> String {
    let mut w = Writer { layout, out: String::new() };
    let (before, after) = around(&client.id);
    let keys = &client.servers[0];
    if layout.has_comments {
        w.out.push_str("// settings, \"by hand\"");
        w.out.push_str(layout.newline);
    }
    w.out.push('{');
    for member in before {
        w.line(1);
        w.out.push_str(member);
        w.out.push(',');
    }
    w.comment(1, "/* the servers: { */");
    for (depth, key) in keys.iter().enumerate() {
        w.line(depth + 1);
        w.out.push_str(&format!("\"{key}\": {{"));
    }
    let depth = keys.len() + 1;
    for (at, server) in SERVERS.iter().enumerate() {
        w.comment(depth, &format!("// {}", server.name));
        w.line(depth);
        w.out.push_str(&format!("\"{}\": ", server.name));
        json_entry(&mut w, client, server, depth);
        if at + 1 < SERVERS.len() || layout.has_trailing_commas {
            w.out.push(',');
        }
    }
    for depth in (1..=keys.len()).rev() {
        w.line(depth);
        w.out.push('}');
    }
    for member in after {
        w.out.push(',');
        w.line(1);
        w.out.push_str(member);
    }
    if layout.has_trailing_commas {
        w.out.push(',');
    }
    w.line(0);
    w.out.push('}');
    w.out.push_str(layout.newline);
    w.out
}

/// The members of an entry, each as its own text.
fn json_entry(w: &mut Writer, client: &Client, server: &Server, depth: usize) {
    let fields = &client.fields;
    let mut members: Vec<(String, Option<&[&str]>, String)> = Vec::new();
    for (name, value) in &client.new_entry {
        members.push((name.clone(), None, value.to_string()));
    }
    match (server.url, server.words.split_first()) {
        (Some(url), _) => members.push(("url".to_owned(), None, format!("\"{url}\""))),
        (None, Some(_)) if fields.argv => {
            members.push((fields.command.clone(), Some(server.words), String::new()))
        }
        (None, Some((first, rest))) => {
            members.push((fields.command.clone(), None, format!("\"{first}\"")));
            if !rest.is_empty() {
                members.push((fields.args.clone(), Some(rest), String::new()));
            }
        }
        (None, None) => {}
    }
    if !server.env.is_empty() {
        let pairs: Vec<String> =
            server.env.iter().map(|(name, value)| format!("\"{name}\": \"{value}\"")).collect();
        members.push((fields.env.clone(), None, format!("{{ {} }}", pairs.join(", "))));
    }
    if let Some(off) =
        client.disabled.as_ref().filter(|off| !client.new_entry.contains_key(&off.name))
    {
        members.push((off.name.clone(), None, (!off.value).to_string()));
    }
    w.out.push('{');
    let count = members.len();
    for (at, (name, list, raw)) in members.into_iter().enumerate() {
        w.line(depth + 1);
        w.out.push_str(&format!("\"{name}\": "));
        match list {
            Some(words) => w.list(words, depth + 1, Some("// word")),
            None => w.out.push_str(&raw),
        }
        if at + 1 < count || w.layout.has_trailing_commas {
            w.out.push(',');
        }
    }
    w.line(depth);
    w.out.push('}');
}

pub fn toml(client: &Client, layout: Layout) -> String {
    let n = layout.newline;
    let mut w = Writer { layout, out: format!("model = \"gpt-5\"{n}") };
    if layout.has_comments {
        w.out.push_str(&format!("# how it thinks{n}[profiles.fast] # quick{n}model = 'o4'{n}"));
    }
    let key = client.servers[0].join(".");
    for server in SERVERS {
        w.out.push_str(n);
        if layout.has_comments {
            w.out.push_str(&format!("# {}{n}", server.name));
        }
        w.out.push_str(&match client.container {
            Container::List => format!("[[{key}]]{n}name = \"{}\"{n}", server.name),
            _ => format!("[{key}.\"{}\"]{n}", server.name),
        });
        if let Some(url) = server.url {
            w.out.push_str(&format!("url = \"{url}\"{n}"));
            continue;
        }
        let (first, rest) = server.words.split_first().unwrap();
        w.out.push_str(&format!("command = \"{first}\""));
        if layout.has_comments {
            w.out.push_str(" # runs it");
        }
        w.out.push_str(n);
        if !rest.is_empty() {
            w.out.push_str("args = ");
            w.list(rest, 0, Some("# word"));
            w.out.push_str(n);
        }
        w.out.push_str(&format!("startup_timeout_sec = 20{n}"));
        if !server.env.is_empty() {
            let pairs: Vec<String> =
                server.env.iter().map(|(name, value)| format!("{name} = \"{value}\"")).collect();
            w.out.push_str(&format!("env = {{ {} }}{n}", pairs.join(", ")));
        }
    }
    w.out
}

pub fn yaml(client: &Client, layout: Layout) -> String {
    let (n, i) = (layout.newline, layout.indent);
    let mut out =
        format!("# settings{n}name: mine{n}version: 1.0.0{n}{}:{n}", client.servers[0][0]);
    let fields = &client.fields;
    for server in SERVERS {
        if layout.has_comments {
            out.push_str(&format!("{i}# about {}{n}", server.name));
        }
        out.push_str(&match client.container {
            Container::List => format!("{i}- name: \"{}\"{n}", server.name),
            _ => format!("{i}\"{}\":{n}", server.name),
        });
        let deep = match client.container {
            Container::List => format!("{i}  "),
            _ => i.repeat(2),
        };
        if let Some(url) = server.url {
            out.push_str(&format!("{deep}url: {url}{n}"));
            continue;
        }
        for (name, value) in &client.new_entry {
            out.push_str(&format!("{deep}{name}: {}{n}", value.as_str().unwrap()));
        }
        let (first, rest) = server.words.split_first().unwrap();
        let note = if layout.has_comments { "   # runs it" } else { "" };
        out.push_str(&format!("{deep}{}: {first}{note}{n}", fields.command));
        match (rest.is_empty(), layout.has_long_lists) {
            (true, _) => {}
            (false, false) => {
                let words: Vec<String> = rest.iter().map(|word| format!("'{word}'")).collect();
                out.push_str(&format!("{deep}args: [{}]{n}", words.join(", ")));
            }
            (false, true) => {
                out.push_str(&format!("{deep}args:{n}"));
                for word in rest {
                    let is_plain = !word.is_empty() && !word.starts_with(['@', '-', '$']);
                    let word = if is_plain { (*word).to_owned() } else { format!("\"{word}\"") };
                    out.push_str(&format!("{deep}{i}- {word}{note}{n}"));
                }
            }
        }
        if !server.env.is_empty() {
            out.push_str(&format!("{deep}{}:{n}", fields.env));
            for (name, value) in server.env {
                out.push_str(&format!("{deep}{i}{name}: \"{value}\"{n}"));
            }
        }
    }
    out.push_str(&format!("rules:{n}{i}- Be brief: yes{n}"));
    out
}

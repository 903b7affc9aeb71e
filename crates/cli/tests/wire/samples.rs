//! Configuration files as people have them: every client of the first tier and those with formats of their
//! own, in the shapes that their documentation, their programs and people's hands leave.

use mcp_clients::{Client, Container, Format};

/// A file of a client.
pub struct Sample {
    pub client: &'static Client,
    pub layout: &'static str,
    pub bytes: Vec<u8>,
}

/// How a file is laid out.
#[derive(Clone, Copy, PartialEq)]
pub struct Layout {
    pub name: &'static str,
    indent: &'static str,
    newline: &'static str,
    has_mark: bool,
    has_comments: bool,
    has_trailing_commas: bool,
    /// Lists one word a line.
    has_long_lists: bool,
    is_one_line: bool,
}

const PLAIN: Layout = Layout {
    name: "two blanks",
    indent: "  ",
    newline: "\n",
    has_mark: false,
    has_comments: false,
    has_trailing_commas: false,
    has_long_lists: false,
    is_one_line: false,
};

pub const LAYOUTS: [Layout; 9] = [
    PLAIN,
    Layout { name: "four blanks, long lists", indent: "    ", has_long_lists: true, ..PLAIN },
    Layout { name: "tabs", indent: "\t", ..PLAIN },
    Layout { name: "one line", is_one_line: true, ..PLAIN },
    Layout { name: "crlf", newline: "\r\n", ..PLAIN },
    Layout {
        name: "crlf, mark, long lists",
        newline: "\r\n",
        has_mark: true,
        has_long_lists: true,
        ..PLAIN
    },
    Layout { name: "comments", has_comments: true, ..PLAIN },
    Layout {
        name: "comments, trailing commas, long lists",
        has_comments: true,
        has_trailing_commas: true,
        has_long_lists: true,
        ..PLAIN
    },
    Layout {
        name: "three blanks, trailing commas",
        indent: "   ",
        has_trailing_commas: true,
        ..PLAIN
    },
];

/// A server as people have it: name, words, variables, and what else its entry has.
struct Server {
    name: &'static str,
    words: &'static [&'static str],
    env: &'static [(&'static str, &'static str)],
    url: Option<&'static str>,
}

const SERVERS: &[Server] = &[
    server(
        "filesystem",
        &["npx", "-y", "@modelcontextprotocol/server-filesystem", "@HOME@/notes", "@HOME@/work"],
        &[],
    ),
    server(
        "github",
        &["npx", "-y", "@modelcontextprotocol/server-github"],
        &[("GITHUB_PERSONAL_ACCESS_TOKEN", "${input:token}")],
    ),
    server("time zone", &["uvx", "mcp-server-time", "--local-timezone=Europe/Berlin"], &[]),
    server(
        "git",
        &[
            "uvx",
            "--from",
            "mcp-server-git==2025.1.14",
            "mcp-server-git",
            "--repository",
            "@HOME@/work",
        ],
        &[("LOG", "1"), ("PATH", "/usr/bin:/bin")],
    ),
    server(
        "memory",
        &["npx", "--yes", "--quiet", "--no-audit", "@modelcontextprotocol/server-memory@latest"],
        &[("MEMORY_FILE_PATH", "@HOME@/notes/memory.json")],
    ),
    server("windows", &["cmd", "/c", "npx", "-y", "@upstash/context7-mcp"], &[]),
    server(
        "own",
        &["node", "@HOME@/work/build/index.js", "--stdio"],
        &[("API_KEY", "sk-\\\"quoted\\\" ü 🦀")],
    ),
    server("docker", &["docker", "run", "-i", "--rm", "mcp/fetch"], &[]),
    server("bare", &["my-server"], &[]),
    Server { name: "remote", words: &[], env: &[], url: Some("https://mcp.example.com/mcp") },
    server("@scope/odd name.1", &["python3", "-m", "my_server", ""], &[]),
];

const fn server(
    name: &'static str,
    words: &'static [&'static str],
    env: &'static [(&'static str, &'static str)],
) -> Server {
    Server { name, words, env, url: None }
}

/// What else is in the file of a client, as members of JSON before and after the servers.
fn around(client: &str) -> (&'static [&'static str], &'static [&'static str]) {
    match client {
        "claude-code" => (
            &[
                "\"numStartups\": 12",
                "\"projects\": {\"/home/me/x\": {\"allowedTools\": [], \"mcpServers\": {\"local\": {\"type\": \"stdio\", \"command\": \"npx\", \"args\": [\"-y\", \"some-server\"], \"env\": {}}}}}",
            ],
            &["\"tipsHistory\": {\"a\": 1.50, \"b\": -2e3}"],
        ),
        "claude-desktop" => {
            (&["\"globalShortcut\": \"\""], &["\"preferences\": {\"menuBarEnabled\": false}"])
        }
        "vscode" | "vscode-insiders" => (
            &[
                "\"inputs\": [{\"id\": \"token\", \"type\": \"promptString\", \"description\": \"// no comment\", \"password\": true}]",
            ],
            &[],
        ),
        "zed" => (
            &["\"theme\": {\"mode\": \"system\"}", "\"vim_mode\": true"],
            &["\"lsp\": {}", "\"tab_size\": 4"],
        ),
        "gemini-cli" | "qwen-code" => (
            &["\"selectedAuthType\": \"oauth-personal\"", "\"theme\": \"GitHub\""],
            &["\"mcp\": {\"allowed\": [\"github\"]}"],
        ),
        "opencode" | "kilo-code" => (
            &["\"$schema\": \"https://opencode.ai/config.json\"", "\"autoupdate\": true"],
            &["\"keybinds\": {}"],
        ),
        "crush" => (
            &[
                "\"$schema\": \"https://charm.land/crush.json\"",
                "\"lsp\": {\"go\": {\"command\": \"gopls\"}}",
            ],
            &[],
        ),
        "amp" => (&["\"amp.notifications.enabled\": true"], &["\"amp.tools.disable\": []"]),
        "cline" => (&[], &[]),
        _ => {
            (&["\"version\": 1"], &["\"other\": {\"mcpServers\": {\"x\": {\"command\": \"npx\"}}}"])
        }
    }
}

pub fn all(home: &str) -> Vec<Sample> {
    let mut samples = Vec::new();
    for client in mcp_clients::all() {
        let wanted = client.tier == 1 || matches!(client.format, Format::Toml | Format::Yaml);
        for layout in LAYOUTS {
            let text = match client.format {
                Format::Json | Format::Jsonc => json(client, layout),
                Format::Toml if !layout.is_one_line => toml(client, layout),
                // Tabs do not indent YAML.
                Format::Yaml if !layout.is_one_line && layout.indent != "\t" => {
                    yaml(client, layout)
                }
                _ => continue,
            };
            if wanted {
                let text = text.replace("@HOME@", home);
                let mark = if layout.has_mark { "\u{feff}" } else { "" };
                samples.push(Sample {
                    client,
                    layout: layout.name,
                    bytes: [mark, &text].concat().into_bytes(),
                });
            }
        }
    }
    samples.extend(by_hand(home));
    samples
}

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

/// The members of an entry, each as its own text.
fn json(client: &Client, layout: Layout) -> String {
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

fn toml(client: &Client, layout: Layout) -> String {
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

fn yaml(client: &Client, layout: Layout) -> String {
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

/// Shapes that no layout makes: old ones, odd ones, empty ones.
fn by_hand(home: &str) -> Vec<Sample> {
    let samples = [
        (
            "zed",
            "the old shape",
            "{\n  // extensions\n  \"context_servers\": {\n    \"old\": {\n      \"source\": \"custom\",\n      \"command\": {\n        \"path\": \"npx\",\n        \"args\": [\"-y\", \"some-server\"],\n        \"env\": {\"A\": \"1\"}\n      },\n      \"settings\": {}\n    },\n    \"extension\": { \"settings\": { \"x\": 1 } }\n  }\n}\n",
        ),
        (
            "zed",
            "the old shape without arguments",
            "{\"context_servers\":{\"old\":{\"command\":{\"path\":\"/bin/cat\"}}}}",
        ),
        (
            "claude-code",
            "flat",
            "{\n  \"one\": { \"command\": \"npx\", \"args\": [\"some-server\"] },\n  \"two\": { \"type\": \"http\", \"url\": \"https://x.example\" }\n}\n",
        ),
        (
            "claude-code",
            "local servers of projects",
            "{\"projects\":{\"/a\":{\"mcpServers\":{\"s\":{\"command\":\"uvx\",\"args\":[\"x\"]}}},\"/b\":{\"mcpServers\":{\"s\":{\"command\":\"uvx\",\"args\":[\"x\"]}}}},\"mcpServers\":{}}\n",
        ),
        (
            "cursor",
            "no newline at the end",
            "{\"mcpServers\":{\"a\":{\"command\":\"npx\",\"args\":[\"-y\",\"a\"]}}}",
        ),
        (
            "cursor",
            "an empty list",
            "{\"mcpServers\": {\"a\": {\"command\": \"my-server\", \"args\": []}}}\n",
        ),
        (
            "cursor",
            "an empty list with a comment",
            "{\"mcpServers\": {\"a\": {\"command\": \"my-server\", \"args\": [ /* none */ ]}}}\n",
        ),
        (
            "cursor",
            "one line for a shell",
            "{\"mcpServers\": {\"a\": {\"command\": \"npx -y some-server\"}}}\n",
        ),
        (
            "cursor",
            "escapes",
            "{\"mcp\\u0053ervers\": {\"\\u0061\": {\"\\u0063ommand\": \"n\\u0070x\", \"args\": [\"-y\", \"some\\u002dserver\", \"\\/x\"]}}}\n",
        ),
        (
            "cursor",
            "arguments before the command",
            "{\n\t\"mcpServers\":\n\t{\n\t\t\"a\":\n\t\t{\n\t\t\t\"args\": [ \"-y\" ,\"some-server\" ],\n\t\t\t\"command\" : \"npx\"\n\t\t}\n\t}\n}\n",
        ),
        (
            "cursor",
            "leading commas",
            "{ \"mcpServers\": {\n    \"a\": { \"command\": \"npx\"\n         , \"args\": [ \"-y\"\n                   , \"some-server\"\n                   ]\n         }\n  , \"b\": { \"command\": \"b\" }\n} }\n",
        ),
        (
            "gemini-cli",
            "variables of the client",
            "{\"mcpServers\":{\"a\":{\"command\":\"npx\",\"args\":[\"-y\",\"a\",\"$HOME/notes\",\"${HOME}/work\"],\"env\":{\"TOKEN\":\"$TOKEN\"},\"trust\":false}}}\n",
        ),
        (
            "vscode",
            "everything that VS Code has",
            "{\n\t\"servers\": {\n\t\t\"a\": {\n\t\t\t\"type\": \"stdio\",\n\t\t\t\"command\": \"npx\",\n\t\t\t\"args\": [\"-y\", \"a\", \"${workspaceFolder}\"],\n\t\t\t\"envFile\": \"${workspaceFolder}/.env\",\n\t\t\t\"sandboxEnabled\": true,\n\t\t\t\"dev\": {\"watch\": \"**/*.ts\"}\n\t\t}\n\t}\n}",
        ),
        (
            "codex",
            "inline tables",
            "mcp_servers = { a = { command = \"npx\", args = [\"-y\", \"a\"] }, b = { command = 'b' } }\n",
        ),
        (
            "codex",
            "dotted keys",
            "mcp_servers.a.command = \"npx\"\nmcp_servers.a.args = ['-y', \"\"\"a\"\"\", '''x''']\n[mcp_servers.b]\n  command = \"b\"   # two\n  [mcp_servers.b.env]\n  X = \"1\"\n",
        ),
        (
            "codex",
            "no newline at the end",
            "[mcp_servers.a]\ncommand = \"npx\"\nargs = [\"-y\", \"a\"]",
        ),
        (
            "goose",
            "a file without servers",
            "GOOSE_PROVIDER: openai\nextensions:\n  developer:\n    bundled: true\n    enabled: true\n    type: builtin\n",
        ),
        (
            "goose",
            "flow maps",
            "extensions: {time: {type: stdio, cmd: uvx, args: [mcp-server-time, --x], envs: {}, enabled: true}}\n",
        ),
        (
            "goose",
            "lists at the indent of their key",
            "extensions:\n  time:\n    cmd: uvx\n    args:\n    - mcp-server-time\n    - --local-timezone=UTC\n    type: stdio\n",
        ),
        (
            "continue",
            "a block file",
            "name: mine\nschema: v1\nmcpServers:\n  - name: one\n    command: npx\n    args:\n      - -y\n      - some-server\n  - name: two\n    type: sse\n    url: https://x.example\n",
        ),
    ];
    let sample = |(id, layout, text): &(&str, &'static str, &str)| Sample {
        client: mcp_clients::find(id).unwrap(),
        layout,
        bytes: text.replace("@HOME@", home).into_bytes(),
    };
    samples.iter().map(sample).collect()
}

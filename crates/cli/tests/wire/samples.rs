//! Configuration files as people have them: every client of the first tier and those with formats of their
//! own, in the shapes that their documentation, their programs and people's hands leave.

mod by_hand;
mod render;

use mcp_clients::{Client, Format};

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
                Format::Json | Format::Jsonc => render::json(client, layout),
                Format::Toml if !layout.is_one_line => render::toml(client, layout),
                // Tabs do not indent YAML.
                Format::Yaml if !layout.is_one_line && layout.indent != "\t" => {
                    render::yaml(client, layout)
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
    samples.extend(by_hand::all(home));
    samples
}

//! Shapes that no layout makes: old ones, odd ones, empty ones.

use super::Sample;

/// A client, what is odd, and the file.
type Shape = (&'static str, &'static str, &'static str);

pub fn all(home: &str) -> Vec<Sample> {
    let sample = |(id, layout, text): &Shape| Sample {
        client: mcp_clients::find(id).unwrap(),
        layout,
        bytes: text.replace("@HOME@", home).into_bytes(),
    };
    let shapes = [SEVERAL_SHAPES, CURSOR, OWN_MEMBERS, TOML, YAML];
    shapes.into_iter().flatten().map(sample).collect()
}

/// Clients that have had other shapes before, or have servers in several places.
const SEVERAL_SHAPES: &[Shape] = &[
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
];

/// The plain object of servers that most clients have, as hands leave it.
const CURSOR: &[Shape] = &[
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
];

/// Clients with variables and members of their own.
const OWN_MEMBERS: &[Shape] = &[
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
];

const TOML: &[Shape] = &[
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
];

const YAML: &[Shape] = &[
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

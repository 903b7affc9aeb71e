//! Lines as they stand in READMEs of servers: behind `mcp run`, in an empty home, each lists its tools.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use super::scene::Scene;
use super::session::{INSTALL_LIMIT, Session};
use crate::Result;

/// None needs an account to list its tools, nor a machine that is elsewhere.
const LINES: [&str; 16] = [
    "npx -y @modelcontextprotocol/server-everything",
    "npx -y @modelcontextprotocol/server-sequential-thinking",
    "npx -y @modelcontextprotocol/server-memory",
    "cmd /c npx -y @modelcontextprotocol/server-memory",
    "uvx mcp-server-time --local-timezone=America/New_York",
    "uvx mcp-server-fetch",
    "uvx mcp-server-git",
    "npx -y @upstash/context7-mcp",
    "npx @playwright/mcp@latest",
    "npx -y chrome-devtools-mcp@latest",
    "uvx duckduckgo-mcp-server",
    "npx -y @antv/mcp-server-chart",
    "npx -y figma-developer-mcp --figma-api-key=YOUR-KEY --stdio",
    "uvx awslabs.aws-documentation-mcp-server@latest",
    "npx -y exa-mcp-server",
    "npx -y @notionhq/notion-mcp-server",
];

pub async fn run(launcher: &Path) -> Result<ExitCode> {
    let home = Scene::new("home")?;
    let mut failed = 0;
    for line in LINES {
        match tools(launcher, &home.granted(), line).await {
            Ok(tools) => println!("{line}: {tools} tools"),
            Err(error) => {
                failed += 1;
                println!("{line}: FAILED: {error}");
            }
        }
    }
    println!("\n{} passed, {failed} failed", LINES.len() - failed);
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn tools(launcher: &Path, home: &Path, line: &str) -> Result<usize> {
    let mut command = Command::new(launcher);
    command.arg("run").args(line.split_whitespace()).current_dir(home).env("HOME", home);
    for (name, below) in [
        ("XDG_DATA_HOME", ".local/share"),
        ("XDG_STATE_HOME", ".local/state"),
        ("XDG_CONFIG_HOME", ".config"),
        ("XDG_CACHE_HOME", ".cache"),
    ] {
        fs::create_dir_all(home.join(below))?;
        command.env(name, home.join(below));
    }
    let session = Session::spawn(command.into(), INSTALL_LIMIT).await?;
    let tools = session.tools().await;
    let end = session.end().await?;
    tools.map_err(|error| format!("{error}{}", end.stderr_quoted()).into())
}

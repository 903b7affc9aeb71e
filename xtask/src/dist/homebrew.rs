//! A Homebrew formula that installs the archives of a release, each by its digest.

use super::archive::hex_sha256;
use super::platform::Platform;
use super::{Release, portable_name};
use crate::Result;

pub fn formula(
    release: &Release,
    base_url: &str,
    platforms: &[&Platform],
    made: &[(String, Vec<u8>)],
) -> Result<(String, Vec<u8>)> {
    let base_url = base_url.trim_end_matches('/');
    if !base_url.starts_with("https://") || base_url.contains(['"', '#', '\\', ' ', '\n']) {
        return Err(
            format!("--base-url {base_url}: must be a URL that begins with https://").into()
        );
    }
    let homepage = base_url.split("/releases/").next().unwrap_or(base_url);
    let mut systems = String::new();
    for system in ["on_macos", "on_linux"] {
        let mut machines = String::new();
        for platform in platforms {
            let Some((_, machine)) = platform.homebrew.filter(|(own, _)| *own == system) else {
                continue;
            };
            let file = format!("{}.tar.gz", portable_name(release, platform));
            let (_, content) = made.iter().find(|(name, _)| *name == file).ok_or("no archive")?;
            let digest = hex_sha256(content);
            machines += &format!(
                "    {machine} do\n      url \"{base_url}/{file}\"\n      sha256 \"{digest}\"\n    end\n"
            );
        }
        if !machines.is_empty() {
            systems += &format!("  {system} do\n{machines}  end\n\n");
        }
    }
    let text = format!(
        "# Made by `cargo xtask dist`.\n\
         class McpSandbox < Formula\n  \
           desc \"Run MCP servers and commands of agents in a sandbox\"\n  \
           homepage \"{homepage}\"\n  \
           version \"{}\"\n  \
           license any_of: [\"MIT\", \"Apache-2.0\"]\n\n\
         {systems}  \
           def install\n    \
             bin.install \"mcp\"\n    \
             bin.install_symlink \"mcp\" => \"mcp-sandbox\"\n    \
             man1.install Dir[\"man/*.1\"]\n    \
             bash_completion.install \"completions/mcp.bash\" => \"mcp\"\n    \
             zsh_completion.install \"completions/_mcp\"\n    \
             fish_completion.install \"completions/mcp.fish\"\n  \
           end\n\n  \
           test do\n    \
             assert_match \"mcp #{{version}}\", shell_output(\"#{{bin}}/mcp --version\")\n    \
             assert_equal \"hello\\n\", shell_output(\"#{{bin}}/mcp-sandbox run -- echo hello\")\n  \
           end\n\
         end\n",
        release.version
    );
    Ok(("mcp-sandbox.rb".to_owned(), text.into_bytes()))
}

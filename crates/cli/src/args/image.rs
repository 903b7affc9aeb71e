//! The command line of `mcp image`.

use std::path::PathBuf;

use clap::Args;

use super::package::Fetching;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcp image ./my-server --base ./base-layout --output image
  mcp image npm:@modelcontextprotocol/server-everything --base docker.io/library/node:22-slim --push registry.example.com/everything:1
  mcp image pypi:mcp-server-time --base registry.example.com/python@sha256:… --sbom --sign key --push registry.example.com/time:1

The image is the base with two layers more, mcp at /opt/mcp/bin/mcp and the package at /opt/mcp/package; nothing is executed, and the \
same input gives the same digest. The base has to have what the package needs (node, python). The digest that is printed is what \
`mcp export --image` takes.")]
pub struct Image {
    /// The package: npm:NAME, pypi:NAME, ./directory, ./file.mcpb, acme/test@1.0.0
    #[arg(value_name = "REFERENCE")]
    pub reference: std::ffi::OsString,
    /// What it is added to: HOST/NAME:TAG, HOST/NAME@sha256:DIGEST, or a directory in the layout of OCI
    #[arg(long, value_name = "IMAGE")]
    pub base: String,
    /// Send it to a registry: HOST/NAME:TAG
    #[arg(long, value_name = "HOST/NAME:TAG", required_unless_present = "output")]
    pub push: Option<String>,
    /// Write it into a new directory, in the layout of OCI
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Add what is in it, as SPDX, that refers to the image
    #[arg(long)]
    pub sbom: bool,
    /// Sign it with this minisign secret key (MCP_KEY_PASSWORD has its password, or it is asked for)
    #[arg(long, value_name = "FILE")]
    pub sign: Option<PathBuf>,
    /// A static mcp for the image (default: this program)
    #[arg(long, value_name = "FILE")]
    pub mcp: Option<PathBuf>,
    #[command(flatten)]
    pub fetching: Fetching,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

//! The command line of `mcp export`.

use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use mcp_policy::Duration;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcp export systemd servers.toml                       units for every server of the file
  mcp export systemd --output units servers.toml notes  one of them, into files
  mcp export kubernetes --image registry.example.com/notes@sha256:… servers.toml notes
  mcp export kubernetes --kind sandbox --image … npm:@modelcontextprotocol/server-everything
  mcp export podman --image … --policy notes.toml notes-server
  mcp export systemd --json servers.toml                what holds there, for a program

The words after the options are a servers.toml (docs/SERVE.md) and names of its servers, or the words after `mcp run` for one \
server. The output says of every control whether it is enforced, partial or unavailable there, and why (docs/EXPORT.md). Exit \
codes: 0; 2 what cannot be exported; 125 with --strict, where anything is less than asked for.")]
pub struct Export {
    /// For which engine
    #[arg(value_name = "TARGET")]
    pub target: Target,
    /// Write files into this directory (default: print them)
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Replace files that are there
    #[arg(long, requires = "output")]
    pub force: bool,
    /// Refuse when anything is less than asked for there
    #[arg(long)]
    pub strict: bool,
    /// As JSON: files, controls and notes
    #[arg(long, conflicts_with = "output")]
    pub json: bool,
    /// The name of a server that is given by the words after `mcp run` (server)
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Room for this many sandboxes at once (default: limits.sandboxes of the file, else 8)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub sandboxes: Option<u32>,
    /// Where `mcp` is there (/usr/bin/mcp; in an image /opt/mcp/bin/mcp)
    #[arg(long, value_name = "PATH")]
    pub mcp: Option<String>,
    /// Where clients connect, on systemd and podman (127.0.0.1:8808); several servers take the ports after it
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<SocketAddr>,
    #[command(flatten)]
    pub pod: Pod,
    #[command(flatten)]
    pub unit: Unit,
    /// A servers.toml and names of its servers, or the words after `mcp run` for one server
    #[arg(
        value_name = "SERVERS",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        required = true
    )]
    pub what: Vec<OsString>,
}

/// Of Kubernetes and podman.
#[derive(Debug, Args)]
#[command(next_help_heading = "Kubernetes and podman")]
pub struct Pod {
    /// The image, by its digest; several times with NAME= for several servers
    #[arg(long, value_name = "[NAME=]IMAGE")]
    pub image: Vec<String>,
    /// Take an image by tag, which may be another one tomorrow
    #[arg(long)]
    pub allow_tag: bool,
    /// What is at a path that may be read or written: PATH=CLAIM, or PATH=empty:SIZE
    #[arg(long, value_name = "PATH=VOLUME")]
    pub volume: Vec<String>,
    /// The namespace (default: that of kubectl)
    #[arg(long, value_name = "NAME")]
    pub namespace: Option<String>,
    /// Which object keeps the Pod (deployment)
    #[arg(long, value_enum, value_name = "KIND")]
    pub kind: Option<KindFlag>,
    /// How many Pods of a deployment (1)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub replicas: Option<u32>,
    /// What is left of a sandbox that expired (delete)
    #[arg(long, value_enum, value_name = "POLICY")]
    pub shutdown: Option<ShutdownFlag>,
    /// When a sandbox expires: 2027-01-01T00:00:00Z
    #[arg(long, value_name = "TIME")]
    pub shutdown_time: Option<String>,
    /// End the Pod of a sandbox after this time
    #[arg(long, value_name = "TIME", value_parser = super::parse::<Duration>)]
    pub deadline: Option<Duration>,
    /// Rules by host name as a CiliumNetworkPolicy
    #[arg(long)]
    pub cilium: bool,
    /// A namespace whose Pods may connect, such as that of an ingress controller
    #[arg(long, value_name = "NAME")]
    pub ingress_namespace: Vec<String>,
}

/// Of systemd.
#[derive(Debug, Args)]
#[command(next_help_heading = "systemd")]
pub struct Unit {
    /// A service that listens itself, without a socket unit
    #[arg(long)]
    pub no_socket: bool,
    /// The user of the service (default: one that systemd makes)
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// A name server of the target (default: those of this machine)
    #[arg(long, value_name = "ADDRESS")]
    pub resolver: Vec<IpAddr>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Target {
    /// Deployment or Sandbox, Service, NetworkPolicy, ConfigMap
    #[value(alias = "k8s")]
    Kubernetes,
    /// Service and socket
    Systemd,
    /// A Pod for `podman kube play`, and a quadlet
    Podman,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum KindFlag {
    /// apps/v1 Deployment and a Service
    Deployment,
    /// agents.x-k8s.io/v1beta1 Sandbox
    Sandbox,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ShutdownFlag {
    /// Nothing
    Delete,
    /// The object with its status
    Retain,
}

//! `mcp export`: servers.toml or a line of `mcp run` → manifests for another engine, with what holds there.

mod source;
mod write;

use std::net::SocketAddr;

use mcp_export::{Export, Image, Intent, Server, kubernetes, podman, systemd};
use mcp_policy::Bytes;
use serde_json::json;

use crate::args::export::{self as args, KindFlag, ShutdownFlag, Target};
use crate::failure::Failure;
use crate::render::{self, to_json};
use source::Source;

pub fn run(args: args::Export) -> Result<u8, Failure> {
    refuse_flags_of_others(&args)?;
    let words: Vec<String> =
        args.what.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let Source { servers, mut settings, listen } = source::read(&words, args.name.as_deref())?;
    if let Some(most) = args.sandboxes {
        settings.set_sandboxes(most);
    }
    let listen = args.listen.unwrap_or(listen);
    for text in &args.pod.volume {
        let volume = volume(text)?;
        if !servers.iter().any(|server| volume.is_granted(&server.policy)) {
            return Err(Failure::Usage(format!(
                "--volume {}: no server is granted anything there (--read or --write in its run line)",
                render::plain(&volume.path)
            )));
        }
    }
    let mut exports: Vec<Export> = Vec::new();
    for (number, server) in (0..).zip(&servers) {
        let at = nth(listen, number)?;
        let export = match args.target {
            Target::Kubernetes => {
                kubernetes::export(server, &settings, &pod(&args, server, servers.len())?)
            }
            Target::Podman => {
                let pod = pod(&args, server, servers.len())?;
                podman::export(server, &settings, &podman::Options { pod, listen: at })
            }
            Target::Systemd => systemd::export(server, &settings, &unit(&args, at)),
        };
        let export = export.map_err(|error| Failure::Usage(error.to_string()))?;
        if let Some(other) = exports.iter().find(|it| it.files[0].name == export.files[0].name) {
            return Err(Failure::Usage(format!(
                "servers.{} and servers.{} would both be {}; rename one",
                other.server, export.server, export.files[0].name
            )));
        }
        exports.push(export);
    }
    tell_gaps(&exports, args.strict)?;
    if let Some(directory) = &args.output {
        write::write(directory, &exports, args.force)?;
    } else if args.json {
        let target = format!("{:?}", args.target).to_lowercase();
        render::print(&(to_json(&json!({"target": target, "servers": exports})) + "\n"));
    } else {
        render::print(&write::joined(&exports));
    }
    Ok(0)
}

/// A flag that means nothing for a target is a mistake, and never left out in silence.
fn refuse_flags_of_others(args: &args::Export) -> Result<(), Failure> {
    let (pod, unit) = (&args.pod, &args.unit);
    let of_pods = [
        (!pod.image.is_empty(), "--image"),
        (pod.allow_tag, "--allow-tag"),
        (!pod.volume.is_empty(), "--volume"),
    ];
    let of_kubernetes = [
        (pod.namespace.is_some(), "--namespace"),
        (pod.kind.is_some(), "--kind"),
        (pod.replicas.is_some(), "--replicas"),
        (pod.shutdown.is_some(), "--shutdown"),
        (pod.shutdown_time.is_some(), "--shutdown-time"),
        (pod.deadline.is_some(), "--deadline"),
        (pod.cilium, "--cilium"),
        (!pod.ingress_namespace.is_empty(), "--ingress-namespace"),
    ];
    let of_systemd = [
        (unit.no_socket, "--no-socket"),
        (unit.user.is_some(), "--user"),
        (!unit.resolver.is_empty(), "--resolver"),
    ];
    let wrong: Vec<(bool, &str)> = match args.target {
        Target::Kubernetes => {
            of_systemd.into_iter().chain([(args.listen.is_some(), "--listen")]).collect()
        }
        Target::Podman => of_kubernetes.into_iter().chain(of_systemd).collect(),
        Target::Systemd => of_pods.into_iter().chain(of_kubernetes).collect(),
    };
    let target = format!("{:?}", args.target).to_lowercase();
    match wrong.into_iter().find(|(is_given, _)| *is_given) {
        Some((_, flag)) => {
            Err(Failure::Usage(format!("{flag} means nothing for {target}; leave it out")))
        }
        None => Ok(()),
    }
}

fn nth(listen: SocketAddr, number: u16) -> Result<SocketAddr, Failure> {
    match listen.port().checked_add(number) {
        Some(port) => Ok(SocketAddr::new(listen.ip(), port)),
        None => {
            Err(Failure::Usage("--listen: there are not enough ports after this one".to_owned()))
        }
    }
}

/// `servers` is how many there are.
fn pod(args: &args::Export, of: &Server, servers: usize) -> Result<kubernetes::Options, Failure> {
    let (pod, server) = (&args.pod, of.name.as_str());
    let usage = |error: mcp_export::Error| Failure::Usage(error.to_string());
    let given = pod.image.iter().map(|text| match text.split_once('=') {
        Some((name, image)) => (Some(name), image),
        None => (None, text.as_str()),
    });
    let image = given
        .filter(|(name, _)| name.map_or(servers == 1, |name| name == server))
        .map(|(_, image)| image)
        .next_back()
        .ok_or_else(|| {
            let name = if servers == 1 { String::new() } else { format!("{server}=") };
            Failure::Usage(format!(
                "servers.{server} has no image: --image {name}HOST/NAME@sha256:DIGEST (`mcp image` makes one)"
            ))
        })?;
    let image = match pod.allow_tag {
        true => Image::by_tag(image),
        false => Image::pinned(image),
    };
    let volumes: Result<Vec<_>, Failure> = pod.volume.iter().map(|text| volume(text)).collect();
    Ok(kubernetes::Options {
        image: image.map_err(usage)?,
        mcp: args.mcp.clone().unwrap_or_else(|| "/opt/mcp/bin/mcp".to_owned()),
        namespace: pod.namespace.clone(),
        kind: kind(pod)?,
        names: if pod.cilium { kubernetes::Names::Cilium } else { kubernetes::Names::ByPort },
        ingress_namespaces: pod.ingress_namespace.clone(),
        // Of several servers each has those that it is granted something in; `run` refuses one that none has.
        volumes: volumes?
            .into_iter()
            .filter(|it| servers == 1 || it.is_granted(&of.policy))
            .collect(),
    })
}

fn kind(pod: &args::Pod) -> Result<kubernetes::Kind, Failure> {
    let refuse = |flag: &str, kind: &str| {
        Err(Failure::Usage(format!("{flag} is for --kind {kind} alone; leave it out")))
    };
    if pod.kind == Some(KindFlag::Sandbox) {
        if pod.replicas.is_some() {
            return refuse("--replicas", "deployment");
        }
        if let Some(time) = pod.shutdown_time.as_deref().filter(|time| !is_time(time)) {
            return Err(Failure::Usage(format!(
                "--shutdown-time {}: write a time such as 2027-01-01T00:00:00Z",
                render::plain(time)
            )));
        }
        return Ok(kubernetes::Kind::Sandbox {
            shutdown: match pod.shutdown {
                Some(ShutdownFlag::Retain) => kubernetes::Shutdown::Retain,
                _ => kubernetes::Shutdown::Delete,
            },
            shutdown_time: pod.shutdown_time.clone(),
            deadline: pod.deadline,
        });
    }
    let of_sandbox = [
        (pod.shutdown.is_some(), "--shutdown"),
        (pod.shutdown_time.is_some(), "--shutdown-time"),
        // The Pods of a Deployment may not have one.
        (pod.deadline.is_some(), "--deadline"),
    ];
    match of_sandbox.into_iter().find(|(is_given, _)| *is_given) {
        Some((_, flag)) => refuse(flag, "sandbox"),
        None => Ok(kubernetes::Kind::Deployment { replicas: pod.replicas.unwrap_or(1) }),
    }
}

/// `2027-01-01T00:00:00Z`, in its shape.
fn is_time(text: &str) -> bool {
    let shape = "dddd-dd-ddTdd:dd:ddZ";
    text.len() == shape.len()
        && text.chars().zip(shape.chars()).all(|(c, of)| match of {
            'd' => c.is_ascii_digit(),
            of => c == of,
        })
}

fn volume(text: &str) -> Result<kubernetes::GrantedVolume, Failure> {
    let refuse = || {
        Failure::Usage(format!(
            "--volume {}: write PATH=CLAIM or PATH=empty:SIZE",
            render::plain(text)
        ))
    };
    let (path, source) = text.rsplit_once('=').ok_or_else(refuse)?;
    let source = match source.strip_prefix("empty:") {
        Some(size) => {
            kubernetes::GrantedSource::Empty(size.parse::<Bytes>().map_err(|_| refuse())?)
        }
        None => kubernetes::GrantedSource::Claim(source.to_owned()),
    };
    Ok(kubernetes::GrantedVolume { path: path.to_owned(), source })
}

fn unit(args: &args::Export, listen: SocketAddr) -> systemd::Options {
    let resolvers = match args.unit.resolver.is_empty() {
        true => source::name_servers(),
        false => args.unit.resolver.clone(),
    };
    systemd::Options {
        mcp: args.mcp.clone().unwrap_or_else(|| "/usr/bin/mcp".to_owned()),
        listen,
        activation: match args.unit.no_socket {
            true => systemd::Activation::Service,
            false => systemd::Activation::Socket,
        },
        user: args.unit.user.clone(),
        resolvers,
    }
}

/// A line for each server with gaps; with --strict they end it.
fn tell_gaps(exports: &[Export], strict: bool) -> Result<(), Failure> {
    let mut lines = Vec::new();
    for export in exports {
        let of = |is_meant: fn(&Intent) -> bool| -> Vec<&str> {
            let gaps = export.controls.gaps().filter(|(_, intent)| is_meant(intent));
            gaps.map(|(control, _)| control.name()).collect()
        };
        let partial = of(|intent| matches!(intent, Intent::Partial { .. }));
        let missing = of(|intent| matches!(intent, Intent::Unavailable { .. }));
        let kinds = [("partial", partial), ("unavailable", missing)];
        let parts: Vec<String> = kinds
            .iter()
            .filter(|(_, controls)| !controls.is_empty())
            .map(|(word, controls)| format!("{word}: {}", controls.join(", ")))
            .collect();
        if !parts.is_empty() {
            lines.push(format!("{} there {}", export.server, parts.join("; ")));
        }
    }
    if strict && !lines.is_empty() {
        return Err(Failure::Refused(format!(
            "not exported, because of --strict: {}; without it the output says why, control by control",
            lines.join(". ")
        )));
    }
    for line in &lines {
        render::say(&format!("{line} (the output says why)"));
    }
    Ok(())
}

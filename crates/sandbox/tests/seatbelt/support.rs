//! A Mac to ask questions about.

use std::collections::BTreeMap;
use std::path::PathBuf;

use mcp_policy::{Defaults, Layer, LayerBuilder, Policy};
use mcp_sandbox::macos::{self, MacFacts, Profile, Step};
use mcp_sandbox::{Home, Place, PlaceKind, Plan, Request, Stdio};

use crate::evaluator::{Question, Rules};

pub const PROJECT: &str = "/Users/me/project";

pub fn policy(flags: impl FnOnce(&mut LayerBuilder) -> &mut LayerBuilder) -> Policy {
    let mut builder = Layer::command_line("/Users/me", Some("/Users/me".into()));
    flags(&mut builder);
    Policy::merge(&[builder.build().unwrap()], Defaults::run()).unwrap()
}

pub fn directory(path: impl Into<PathBuf>) -> Place {
    Place { path: path.into(), kind: PlaceKind::Directory }
}

/// Nothing granted; paths of grants are canonical already.
pub fn request(policy: Policy) -> Request {
    let places = |paths: &[mcp_policy::Sourced<PathBuf>]| -> Vec<Place> {
        paths.iter().map(|path| directory(&path.value)).collect()
    };
    let (read, write) = (places(&policy.filesystem.read), places(&policy.filesystem.write));
    Request {
        policy,
        program: "/opt/homebrew/Cellar/node/22/bin/node".into(),
        argv: vec!["node".into()],
        shown: vec![directory("/opt/homebrew")],
        links: vec![],
        read,
        write,
        unix: vec![],
        stray_sockets: vec![],
        denied: vec![],
        withdrawn: vec![],
        protected: Vec::new(),
        unprotected: Vec::new(),
        other_names: Vec::new(),
        texts: Vec::new(),
        held_back: Vec::new(),
        unshown: Vec::new(),
        home: Home::Ephemeral,
        layer: None,
        scripts: vec![],
        watching: mcp_sandbox::Watching::Off,
        cwd: "/home/mcp".into(),
        env: vec![],
        secrets: vec![],
        stdio: [Stdio::Direct, Stdio::Direct, Stdio::Direct],
    }
}

pub fn plan(request: &Request) -> Plan<Step> {
    macos::plan(request, &MacFacts::usual())
}

pub fn profile(plan: &Plan<Step>) -> &Profile {
    let found = plan.steps.iter().find_map(|planned| match &planned.step {
        Step::Seatbelt { profile } => Some(profile),
        _ => None,
    });
    found.expect("a plan with a profile")
}

/// A profile, ready to be asked.
pub struct Mac(pub Rules);

impl Mac {
    pub fn with(flags: impl FnOnce(&mut LayerBuilder) -> &mut LayerBuilder) -> Mac {
        Mac::of(&request(policy(flags)))
    }

    pub fn of(request: &Request) -> Mac {
        Mac::under(profile(&plan(request)))
    }

    pub fn with_proxy(request: &Request, ports: Vec<u16>) -> Mac {
        Mac::under(&macos::profile_with(request, &MacFacts::usual(), ports))
    }

    pub fn under(profile: &Profile) -> Mac {
        let parameters: BTreeMap<_, _> =
            profile.parameters.iter().map(|p| (p.name.clone(), p.value.clone())).collect();
        Mac(Rules::new(&profile.text, &parameters).unwrap_or_else(|e| panic!("{e}\n{profile}")))
    }

    pub fn may(&self, operation: &str, path: &str) -> bool {
        self.0.allows(&Question::path(operation, path))
    }

    /// Reads the contents and the attributes.
    pub fn reads(&self, path: &str) -> bool {
        self.may("file-read-data", path) && self.may("file-read-metadata", path)
    }

    /// Any kind of change.
    pub fn changes(&self, path: &str) -> bool {
        let kinds = ["data", "create", "unlink", "mode", "owner", "times", "xattr", "flags"];
        kinds.iter().any(|kind| self.may(&format!("file-write-{kind}"), path))
    }

    /// What an editor does: all of it but removing the file.
    pub fn writes(&self, path: &str) -> bool {
        ["file-write-data", "file-write-create", "file-write-mode"]
            .iter()
            .all(|o| self.may(o, path))
    }

    pub fn executes(&self, path: &str) -> bool {
        ["process-exec", "file-read-data", "file-map-executable"].iter().all(|o| self.may(o, path))
    }

    /// Under a new name, or gone.
    pub fn moves(&self, path: &str) -> bool {
        self.may("file-write-unlink", path)
    }

    pub fn asks(&self, question: Question) -> bool {
        self.0.allows(&question)
    }

    pub fn looks_up(&self, service: &str) -> bool {
        self.asks(Question::name("mach-lookup", service))
    }
}

pub fn scratch(name: &str) -> String {
    MacFacts::usual().scratch.join(name).to_string_lossy().replace('\\', "/")
}

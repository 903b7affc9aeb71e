//! A Linux plan by phase. Each process takes its own part by name; `steps` lists all of it in the order in which it is
//! carried out, for `--explain` and the report.

use crate::core::control::Control;
use crate::core::host::Ids;
use crate::core::plan::{self, Intents};
use crate::linux::step::{
    CgroupSetting, ConnectionRelay, Descriptors, EnterCgroup, Execute, Filter, Hold, Hostname,
    Landlock, Limit, ListedStep, MapIds, Masks, Namespaces, NewRoot, Numbered, Placed,
    PrivateDirectories, Protect, Reopen, Routes, SandboxSockets, Step, SyscallProxy, Timeout,
    WatchMemory,
};

/// A step that has no operand.
pub type Bare = Numbered<()>;

#[derive(Debug, Clone, PartialEq)]
pub struct LinuxPlan {
    /// What is intended for each control.
    pub controls: Intents,
    pub cgroup: Option<CgroupPhase>,
    pub namespaces: Option<Numbered<Namespaces>>,
    pub watches: Watches,
    pub connection_relay: Option<Numbered<ConnectionRelay>>,
    pub syscall_proxy: Option<Numbered<SyscallProxy>>,
    pub init: InitPhase,
    pub target: TargetPhase,
}

/// What the launcher writes to the run's cgroup, before it starts init in there.
#[derive(Debug, Clone, PartialEq)]
pub struct CgroupPhase {
    pub settings: Vec<Numbered<CgroupSetting>>,
    pub enter: Numbered<EnterCgroup>,
}

/// The limits that the launcher keeps itself, while the command runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Watches {
    pub timeout: Option<Numbered<Timeout>>,
    pub memory: Option<Numbered<WatchMemory>>,
}

/// Pid 1 of the sandbox, before the command exists.
#[derive(Debug, Clone, PartialEq)]
pub struct InitPhase {
    pub cgroup_root: Option<Bare>,
    pub isolation: Isolation,
    pub hide_memory: Bare,
    pub new_session: Bare,
    pub new_keyring: Bare,
    pub forbid_namespaces: Option<Bare>,
    pub hostname: Option<Numbered<Hostname>>,
    pub network: Option<NetworkPhase>,
    pub reopened: Vec<Numbered<Reopen>>,
    pub root: Option<RootPhase>,
    pub terminal: Option<Bare>,
    pub drop_privileges: Bare,
}

/// What keeps init and the command apart from the host's processes, and whom they become.
#[derive(Debug, Clone, PartialEq)]
pub enum Isolation {
    Namespaces {
        ids: Numbered<MapIds>,
        die_with_launcher: Bare,
    },
    Plain {
        subreaper: Bare,
        directories: Numbered<PrivateDirectories>,
        user: Option<Numbered<Ids>>,
    },
}

/// The sandbox's own network.
#[derive(Debug, Clone, PartialEq)]
pub struct NetworkPhase {
    pub loopback: Bare,
    pub routes: Option<Numbered<Routes>>,
    pub sockets: Numbered<SandboxSockets>,
}

/// The sandbox's own root.
#[derive(Debug, Clone, PartialEq)]
pub struct RootPhase {
    pub new: Numbered<NewRoot>,
    pub placed: Vec<Numbered<Placed>>,
    pub protected: Option<ClosedStep<Protect>>,
    pub denied: Option<ClosedStep<Masks>>,
    /// Unix sockets of the host that no rule allows.
    pub stray_sockets: Option<ClosedStep<Masks>>,
    pub enter: Bare,
}

/// Places that are closed, and the directories above them that have to stay where they are.
#[derive(Debug, Clone, PartialEq)]
pub struct ClosedStep<T> {
    pub hold: Option<Numbered<Hold>>,
    pub closed: Numbered<T>,
}

/// The process that becomes the command.
#[derive(Debug, Clone, PartialEq)]
pub struct TargetPhase {
    pub landlock: Option<Numbered<Landlock>>,
    pub limits: Vec<Numbered<Limit>>,
    pub descriptors: Numbered<Descriptors>,
    pub filter: Option<Numbered<Filter>>,
    /// Limits that the filter must not be installed under.
    pub late_limits: Vec<Numbered<Limit>>,
    pub execute: Numbered<Execute>,
}

/// Numbers steps as they are planned, which is the order in which they are carried out.
#[derive(Debug, Default)]
pub struct Numbers(usize);

impl Numbers {
    pub fn step<T>(&mut self, step: T, for_controls: &[Control]) -> Numbered<T> {
        let number = self.0;
        self.0 += 1;
        Numbered { number, step, for_controls: for_controls.to_vec() }
    }
}

impl LinuxPlan {
    /// How many steps there are.
    pub fn count(&self) -> usize {
        self.target.execute.number + 1
    }

    /// All steps, in order.
    pub fn steps(&self) -> Vec<ListedStep<'_>> {
        let mut list = List::default();
        if let Some(cgroup) = &self.cgroup {
            list.add(&cgroup.settings, Step::SetCgroup);
            list.add([&cgroup.enter], Step::EnterCgroup);
        }
        list.add(&self.namespaces, Step::Namespaces);
        list.add(&self.watches.timeout, Step::Timeout);
        list.add(&self.watches.memory, Step::WatchMemory);
        list.add(&self.connection_relay, Step::ConnectionRelay);
        list.add(&self.syscall_proxy, Step::SyscallProxy);
        self.init.list(&mut list);
        self.target.list(&mut list);
        list.0
    }

    /// The plan as `--explain` and the report have it.
    pub fn outline(&self) -> plan::Plan<Step<'_>> {
        let steps = self.steps().into_iter().map(|ListedStep { step, for_controls, .. }| {
            plan::Planned { step, for_controls: for_controls.to_vec() }
        });
        plan::Plan { controls: self.controls.clone(), steps: steps.collect() }
    }

    /// The directories of a run without a root of its own.
    #[cfg(target_os = "linux")]
    pub fn private_directories(&self) -> Option<&PrivateDirectories> {
        match &self.init.isolation {
            Isolation::Plain { directories, .. } => Some(&directories.step),
            Isolation::Namespaces { .. } => None,
        }
    }

    /// Whom the command becomes without namespaces, where that is not the caller.
    #[cfg(target_os = "linux")]
    pub fn user(&self) -> Option<Ids> {
        match &self.init.isolation {
            Isolation::Plain { user, .. } => user.as_ref().map(|user| user.step),
            Isolation::Namespaces { .. } => None,
        }
    }

    /// How the ids of a user namespace are mapped.
    pub fn ids(&self) -> Option<&Numbered<MapIds>> {
        match &self.init.isolation {
            Isolation::Namespaces { ids, .. } => Some(ids),
            Isolation::Plain { .. } => None,
        }
    }

    /// What the root is filled with.
    pub fn placed(&self) -> &[Numbered<Placed>] {
        self.init.root.as_ref().map_or(&[], |root| &root.placed)
    }

    /// What is protected.
    #[cfg(target_os = "linux")]
    pub fn protected(&self) -> Option<&ClosedStep<Protect>> {
        self.init.root.as_ref()?.protected.as_ref()
    }
}

impl InitPhase {
    /// The steps of init, in order.
    pub fn steps(&self) -> Vec<ListedStep<'_>> {
        let mut list = List::default();
        self.list(&mut list);
        list.0
    }

    fn list<'a>(&'a self, list: &mut List<'a>) {
        list.add(&self.cgroup_root, |()| Step::CgroupRoot);
        match &self.isolation {
            Isolation::Namespaces { ids, die_with_launcher } => {
                list.add([ids], Step::MapIds);
                list.add([die_with_launcher], |()| Step::DieWithLauncher);
            }
            Isolation::Plain { subreaper, directories, user } => {
                list.add([subreaper], |()| Step::Subreaper);
                list.add([directories], Step::PrivateDirectories);
                list.add(user, Step::Become);
            }
        }
        list.add([&self.hide_memory], |()| Step::HideMemory);
        list.add([&self.new_session], |()| Step::NewSession);
        list.add([&self.new_keyring], |()| Step::NewKeyring);
        list.add(&self.forbid_namespaces, |()| Step::ForbidNamespaces);
        list.add(&self.hostname, Step::Hostname);
        if let Some(NetworkPhase { loopback, routes, sockets }) = &self.network {
            list.add([loopback], |()| Step::Loopback);
            list.add(routes, Step::Routes);
            list.add([sockets], Step::SandboxSockets);
        }
        list.add(&self.reopened, Step::Reopen);
        if let Some(root) = &self.root {
            root.list(list);
        }
        list.add(&self.terminal, |()| Step::Terminal);
        list.add([&self.drop_privileges], |()| Step::DropPrivileges);
    }
}

impl RootPhase {
    fn list<'a>(&'a self, list: &mut List<'a>) {
        list.add([&self.new], Step::NewRoot);
        list.add(&self.placed, Step::Placed);
        if let Some(ClosedStep { hold, closed }) = &self.protected {
            list.add(hold, Step::Hold);
            list.add([closed], Step::Protect);
        }
        for ClosedStep { hold, closed } in self.denied.iter().chain(&self.stray_sockets) {
            list.add(hold, Step::Hold);
            list.add([closed], Step::Mask);
        }
        list.add([&self.enter], |()| Step::EnterRoot);
    }
}

impl TargetPhase {
    fn list<'a>(&'a self, list: &mut List<'a>) {
        list.add(&self.landlock, Step::Landlock);
        list.add(&self.limits, Step::Limit);
        list.add([&self.descriptors], Step::Descriptors);
        list.add(&self.filter, Step::Filter);
        list.add(&self.late_limits, Step::Limit);
        list.add([&self.execute], Step::Execute);
    }
}

#[derive(Default)]
struct List<'a>(Vec<ListedStep<'a>>);

impl<'a> List<'a> {
    fn add<T: 'a>(
        &mut self,
        steps: impl IntoIterator<Item = &'a Numbered<T>>,
        step_of: impl Fn(&'a T) -> Step<'a>,
    ) {
        self.0.extend(steps.into_iter().map(|planned| ListedStep {
            number: planned.number,
            step: step_of(&planned.step),
            for_controls: &planned.for_controls,
        }));
    }
}

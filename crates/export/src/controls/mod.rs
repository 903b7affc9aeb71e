//! What each target enforces of a policy, control by control. Pure functions of the policy; what of it was tried says
//! docs/EXPORT.md.

pub mod pod;
pub mod systemd;

use mcp_policy::{NetworkMode, Policy, Protect, Subprocess};

use crate::{Control, Intent, Intents};

/// Whether the policy asks for a control at all.
pub fn is_asked(control: Control, policy: &Policy) -> bool {
    let limits = &policy.limits;
    match control {
        Control::Deny => !policy.filesystem.deny.is_empty(),
        Control::Protect => {
            policy.protect.value == Protect::Usual && !policy.filesystem.write.is_empty()
        }
        Control::Network => policy.network.mode.value != NetworkMode::Host,
        Control::Subprocess => policy.process.subprocess.value == Subprocess::Refused,
        Control::Memory => limits.memory.value.is_some(),
        Control::Cpu => limits.cpu.value.is_some(),
        Control::CpuTime => limits.cpu_time.value.is_some(),
        Control::Io => limits.io.value.is_some(),
        Control::Processes => limits.processes.value.is_some(),
        Control::OpenFiles => limits.open_files.value.is_some(),
        Control::FileSize => limits.file_size.value.is_some(),
        Control::AddressSpace => limits.address_space.value.is_some(),
        Control::Timeout => limits.timeout.value.is_some(),
        _ => true,
    }
}

/// Every control with what `intent` says of it, where it is asked for.
pub fn intents(policy: &Policy, intent: impl Fn(Control) -> Intent) -> Intents {
    let all = Control::ALL.into_iter();
    all.map(|control| match is_asked(control, policy) {
        true => (control, intent(control)),
        false => (control, Intent::NotRequested),
    })
    .collect()
}

/// What is the same wherever `mcp` starts a server: the process itself restricts it.
pub fn by_mcp(control: Control) -> Option<Intent> {
    Some(match control {
        Control::Subprocess => Intent::enforce("mcp: system call filter"),
        Control::Environment => Intent::enforce("mcp: an environment made from the policy alone"),
        Control::Descriptors => Intent::enforce("mcp: close_range, and 0-2 checked by kind"),
        Control::OpenFiles => Intent::enforce("mcp: RLIMIT_NOFILE for each process"),
        Control::FileSize => Intent::enforce("mcp: RLIMIT_FSIZE for each process"),
        Control::AddressSpace => Intent::enforce("mcp: RLIMIT_AS for each process"),
        Control::Timeout => Intent::enforce("mcp ends the sandbox"),
        Control::CpuTime => Intent::partial(
            "mcp: RLIMIT_CPU",
            "each process has the whole time: the sum over processes is not bounded",
        ),
        _ => return None,
    })
}

/// One line for each control, for people.
pub fn lines(intents: &Intents) -> Vec<String> {
    let line = |(control, intent): (&Control, &Intent)| match intent {
        Intent::Enforce { by } => format!("{control:<18} enforced: {by}"),
        Intent::Partial { by, missing, .. } => {
            format!("{control:<18} PARTIAL: {by}; MISSING: {missing}")
        }
        Intent::Unavailable { why, remedy } => {
            format!("{control:<18} UNAVAILABLE: {why}; {remedy}")
        }
        Intent::NotRequested => format!("{control:<18} not asked for"),
        other => format!("{control:<18} {other:?}"),
    };
    intents.into_iter().map(line).collect()
}

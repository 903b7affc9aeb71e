//! Advice for each finding of `doctor`.

use std::fs;

use mcp_sandbox::{CgroupMeans, Fact, LinuxFacts};

pub fn recommendations(host: &LinuxFacts, starts: bool, leaves_open: bool) -> Vec<String> {
    let mut advice = Vec::new();
    if let Fact::Fails { .. } = &host.namespaces {
        advice.extend(namespace_settings());
    } else if !host.private_root.usable() || !host.own_proc.usable() {
        advice.push(
            "The /proc of this host is partly masked, as in a container: run mcp outside of it, or \
             start the container with an unmasked /proc (docker: --security-opt systempaths=unconfined)."
                .to_owned(),
        );
    }
    if starts && leaves_open {
        advice.push(
            "mcp run works here: files, network and processes are closed, and what is marked [!] \
             above is left open. mcp run --strict refuses to start."
                .to_owned(),
        );
        return advice;
    }
    if starts {
        advice.push(
            "The default policy is enforced on this machine: mcp run is safe to use.".to_owned(),
        );
        advice.extend(cgroup(host));
    } else if advice.is_empty() {
        advice.push(
            "Do not rely on mcp run here: what is marked [⚠] above does not hold.".to_owned(),
        );
    }
    advice
}

/// What would give limits on the whole tree, where they are missing.
fn cgroup(host: &LinuxFacts) -> Option<String> {
    let facts = &host.cgroup;
    let text = match (&facts.held, &facts.mount) {
        (Some(held), _) => {
            let missing: Vec<_> =
                ["memory", "pids", "cpu"].into_iter().filter(|name| !facts.has(name)).collect();
            if missing.is_empty() {
                return None;
            }
            let missing = missing.join(", ");
            let remedy = match held.means {
                CgroupMeans::Systemd => {
                    "as root, `systemctl edit user@.service` with [Service] Delegate=cpu memory pids io"
                }
                _ => "have it enabled in cgroup.subtree_control of the cgroup above ours",
            };
            format!("Not handed over to us: {missing}; {remedy}.")
        }
        (None, None) => "Memory is watched, not reserved, and --max-cpu has no mechanism: mount \
                         cgroup v2 (boot with systemd.unified_cgroup_hierarchy=1)."
            .to_owned(),
        (None, Some(_)) => {
            "Memory is watched, not reserved, and --max-cpu has no mechanism: start mcp \
                            where a systemd user manager runs (a login session; loginctl \
                            enable-linger for services), or in a delegated cgroup with the memory, \
                            pids and cpu controllers (systemd-run --user --scope -p Delegate=yes)."
                .to_owned()
        }
    };
    Some(text)
}

/// The settings that are known to refuse user namespaces, and are set here.
fn namespace_settings() -> Vec<String> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    if status.lines().any(|line| line.strip_prefix("Seccomp:").map(str::trim) == Some("2")) {
        return vec![
            "A system call filter is on this process, as in a container or another sandbox, and \
             refuses user namespaces: run mcp outside of it."
                .to_owned(),
        ];
    }
    let known = [
        ("/proc/sys/user/max_user_namespaces", "0", "sysctl -w user.max_user_namespaces=15000"),
        (
            "/proc/sys/kernel/unprivileged_userns_clone",
            "0",
            "sysctl -w kernel.unprivileged_userns_clone=1",
        ),
        (
            "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0 (or an AppArmor profile for mcp \
             with `userns,`)",
        ),
    ];
    let mut advice: Vec<String> = known
        .iter()
        .filter(|(path, bad, _)| fs::read_to_string(path).is_ok_and(|value| value.trim() == *bad))
        .map(|(path, bad, remedy)| format!("{path} is {bad}: as root, {remedy}"))
        .collect();
    if advice.is_empty() {
        advice.push(
            "User namespaces are refused by something else (a container, a hardened kernel)."
                .to_owned(),
        );
    }
    advice
}

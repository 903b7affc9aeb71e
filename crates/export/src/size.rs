//! How much a gateway with its sandboxes needs: limits of a policy are for one sandbox, those of an engine for all of them.

use mcp_policy::{Bytes, Cores, Limits};

/// The gateway itself, measured as a few megabytes and given room for messages.
const GATEWAY: u64 = 128 << 20;
/// The launcher of one sandbox, beside what its server takes.
const LAUNCHER: u64 = 16 << 20;
/// Threads of the gateway and processes of a launcher.
const TASKS: u64 = 64;
const TASKS_OF_LAUNCHER: u64 = 4;

/// All sandboxes of one gateway together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Total {
    /// Without temporary files; none where the policy has no limit.
    pub memory: Option<u64>,
    /// Of one sandbox and the gateway: what is surely needed.
    pub least_memory: u64,
    pub temporary: u64,
    pub millicores: Option<u64>,
    pub tasks: Option<u64>,
}

impl Total {
    pub fn of(limits: &Limits, sandboxes: u64) -> Total {
        let each = |bytes: Bytes| bytes.get().saturating_add(LAUNCHER);
        let memory = limits.memory.value.map(each);
        Total {
            memory: memory.map(|each| each.saturating_mul(sandboxes).saturating_add(GATEWAY)),
            least_memory: GATEWAY.saturating_add(memory.unwrap_or(0)),
            temporary: limits.tmp_size.value.get().saturating_mul(sandboxes),
            millicores: limits.cpu.value.map(|share| millicores(share).saturating_mul(sandboxes)),
            tasks: limits.processes.value.map(|each| {
                (u64::from(each) + TASKS_OF_LAUNCHER).saturating_mul(sandboxes) + TASKS
            }),
        }
    }
}

fn millicores(share: Cores) -> u64 {
    u64::from(share.millicores())
}

/// A quantity as Kubernetes and people write it.
pub fn quantity(bytes: u64) -> String {
    for (shift, unit) in [(30, "Gi"), (20, "Mi"), (10, "Ki")] {
        if bytes > 0 && bytes.trailing_zeros() >= shift {
            return format!("{}{unit}", bytes >> shift);
        }
    }
    bytes.to_string()
}

#[cfg(test)]
mod tests {
    use mcp_policy::Defaults;

    use super::*;

    #[test]
    fn an_engine_gets_the_sum_over_all_sandboxes() {
        let mut limits = Defaults::run().limits;
        limits.cpu.value = Some(Cores::from_millicores(250));
        let total = Total::of(&limits, 4);
        assert_eq!(total.memory, Some(4 * ((512 + 16) << 20) + (128 << 20)));
        assert_eq!(total.temporary, 4 * (256 << 20));
        assert_eq!(total.millicores, Some(1000));
        assert_eq!(total.tasks, Some(4 * 132 + 64));
    }

    #[test]
    fn quantities_are_exact() {
        for (bytes, text) in
            [(512 << 20, "512Mi"), (3 << 30, "3Gi"), (1000, "1000"), (1 << 10, "1Ki"), (0, "0")]
        {
            assert_eq!(quantity(bytes), text);
        }
    }
}

//! Limits from peaks: half as much again, rounded up to a figure that a person would write.

use mcp_policy::Bytes;

const MIB: u64 = 1 << 20;
/// Less than this is less than most programs need to start.
const LEAST_BYTES: u64 = 32 * MIB;
const LEAST_COUNT: u64 = 16;

/// A peak of bytes with headroom.
#[must_use]
pub fn bytes_with_headroom(peak: u64) -> Bytes {
    let wanted = (peak.saturating_add(peak / 2)).max(LEAST_BYTES);
    let step = match wanted / MIB {
        ..256 => 16 * MIB,
        256..1024 => 64 * MIB,
        _ => 256 * MIB,
    };
    Bytes(rounded_up(wanted, step))
}

/// A peak of processes and threads with headroom.
#[must_use]
pub fn count_with_headroom(peak: u64) -> u32 {
    let wanted = (peak.saturating_add(peak.div_ceil(2))).max(LEAST_COUNT);
    let step = if wanted < 256 { 8 } else { 64 };
    u32::try_from(rounded_up(wanted, step)).unwrap_or(u32::MAX)
}

fn rounded_up(value: u64, step: u64) -> u64 {
    value.checked_next_multiple_of(step).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn figures_are_round() {
        assert_eq!(bytes_with_headroom(0), Bytes::mib(32));
        assert_eq!(bytes_with_headroom(68 * MIB), Bytes::mib(112));
        assert_eq!(bytes_with_headroom(300 * MIB), Bytes::mib(512));
        assert_eq!(count_with_headroom(11), 24);
        assert_eq!(count_with_headroom(0), 16);
    }

    proptest! {
        #[test]
        fn there_is_always_headroom(peak in 0..1_u64 << 40) {
            let limit = bytes_with_headroom(peak).0;
            prop_assert!(limit >= peak + peak / 2);
            prop_assert!(limit <= (peak + peak / 2).max(LEAST_BYTES) + 256 * MIB);
            let count = u64::from(count_with_headroom(peak % 100_000));
            prop_assert!(count >= peak % 100_000 * 3 / 2);
        }
    }
}

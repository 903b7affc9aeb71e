//! The identity of the process: ids, capabilities, session, host name.

use std::fs;
use std::io;

use crate::spec::{Args, Failure, Said};
use crate::sys::{Arg, call};

fn status() -> Result<String, Failure> {
    Ok(fs::read_to_string("/proc/self/status")?)
}

/// The five capability sets, one `CapXxx hex` per line.
pub(crate) fn caps(_: Args<'_>) -> Said {
    let status = status()?;
    let sets: Vec<_> = status
        .lines()
        .filter(|line| line.starts_with("Cap"))
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ").replace(':', ""))
        .collect();
    Ok(sets.join("\n"))
}

/// `1` when no_new_privs is set.
pub(crate) fn no_new_privileges(_: Args<'_>) -> Said {
    let operation = Arg::Num(libc::PR_GET_NO_NEW_PRIVS as u64);
    let answer = call(libc::SYS_prctl, &mut [operation])?;
    Ok(answer.to_string())
}

pub(crate) fn status_field(args: Args<'_>) -> Said {
    let prefix = format!("{}:", args.text(0));
    let status = status()?;
    let value = status.lines().find_map(|line| line.strip_prefix(&prefix));
    let value = value.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    Ok(value.trim().to_owned())
}

/// Real, effective and saved uid.
pub(crate) fn uid(_: Args<'_>) -> Said {
    let (mut real, mut effective, mut saved) = ([0u64], [0u64], [0u64]);
    call(
        libc::SYS_getresuid,
        &mut [Arg::Words(&mut real), Arg::Words(&mut effective), Arg::Words(&mut saved)],
    )?;
    // The kernel fills four bytes each.
    let [real, effective, saved] =
        [real, effective, saved].map(|[word]| u32::from_ne_bytes(first_half(word)));
    Ok(format!("{real} {effective} {saved}"))
}

fn first_half(word: u64) -> [u8; 4] {
    let [a, b, c, d, ..] = word.to_ne_bytes();
    [a, b, c, d]
}

/// The gid, then the supplementary groups.
pub(crate) fn gids(_: Args<'_>) -> Said {
    const MOST: usize = 65536;
    let gid = call(libc::SYS_getgid, &mut [])?;
    let mut groups = vec![0u8; MOST * 4];
    let count =
        call(libc::SYS_getgroups, &mut [Arg::Num(MOST as u64), Arg::Bytes(&mut groups)])? as usize;
    let mut text = vec![gid.to_string()];
    for group in groups.chunks_exact(4).take(count) {
        text.push(u32::from_ne_bytes([group[0], group[1], group[2], group[3]]).to_string());
    }
    Ok(text.join(" "))
}

/// `pid= ppid= pgid= sid= tpgid=`; tpgid is -1 without a controlling terminal.
pub(crate) fn session(_: Args<'_>) -> Said {
    let stat = fs::read_to_string("/proc/self/stat")?;
    // The name in parentheses may hold anything; the numbers start after the last one closes.
    let after = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let fields: Vec<&str> = after.split_whitespace().collect();
    let field = |index: usize| fields.get(index).copied().unwrap_or("?");
    let pid = std::process::id();
    Ok(format!("pid={pid} ppid={} pgid={} sid={} tpgid={}", field(1), field(2), field(3), field(5)))
}

pub(crate) fn hostname(_: Args<'_>) -> Said {
    const FIELD: usize = 65;
    let mut names = [0u8; FIELD * 6];
    call(libc::SYS_uname, &mut [Arg::Bytes(&mut names)])?;
    let node = names[FIELD..2 * FIELD].split(|byte| *byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(node).into_owned())
}

pub(crate) fn set_hostname(args: Args<'_>) -> Said {
    let mut name = args.text_or(0, "mcp-probe").into_owned().into_bytes();
    let length = name.len() as u64;
    call(libc::SYS_sethostname, &mut [Arg::Bytes(&mut name), Arg::Num(length)])?;
    Ok("set".into())
}

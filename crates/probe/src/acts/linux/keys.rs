//! Kernel keyrings: shared by all processes of a user or a session, whatever their namespaces.

use crate::spec::{Args, Failure, Said};
use crate::sys::{Arg, call};

use super::c_string;

const GET_KEYRING_ID: u64 = 0;
const JOIN_SESSION_KEYRING: u64 = 1;
const DESCRIBE: u64 = 6;
const SEARCH: u64 = 10;
const READ: u64 = 11;

const fn special(id: i64) -> u64 {
    id.cast_unsigned()
}

const RINGS: [(&str, u64); 3] =
    [("process", special(-2)), ("session", special(-3)), ("user", special(-4))];

/// Gives the probe a new, empty session keyring that goes with its last process.
pub(crate) fn join_session(_: Args<'_>) -> Said {
    Ok(keyctl(&mut [Arg::Num(JOIN_SESSION_KEYRING), Arg::Null])?.to_string())
}

/// Adds a key to a keyring and gives its serial number.
pub(crate) fn add(args: Args<'_>) -> Said {
    let ring_name = args.text_or(2, "session");
    let ring = RINGS
        .iter()
        .find(|(name, _)| *name == ring_name)
        .ok_or_else(|| Failure::usage(format!("no keyring is named {ring_name}")))?;
    let (kind, name) = (c_string("user")?, c_string(args.text(0).as_ref())?);
    let mut value = args.text(1).into_owned().into_bytes();
    let length = value.len() as u64;
    let serial = call(
        libc::SYS_add_key,
        &mut [
            Arg::Text(&kind),
            Arg::Text(&name),
            Arg::Bytes(&mut value),
            Arg::Num(length),
            Arg::Num(ring.1),
        ],
    )?;
    Ok(serial.to_string())
}

/// Without a name: describes the session and user keyrings. With one: reads that key.
pub(crate) fn read(args: Args<'_>) -> Said {
    if args.get(0).is_some() {
        return read_key(&args.text(0));
    }
    let mut lines = Vec::new();
    for (name, ring) in &RINGS[1..] {
        let serial = keyctl(&mut [Arg::Num(GET_KEYRING_ID), Arg::Num(*ring), Arg::Num(0)])?;
        let mut text = vec![0u8; 256];
        let length = keyctl(&mut [
            Arg::Num(DESCRIBE),
            Arg::Num(serial),
            Arg::Bytes(&mut text),
            Arg::Num(256),
        ])?;
        text.truncate((length as usize).saturating_sub(1).min(256));
        lines.push(format!("{name} {serial} {}", String::from_utf8_lossy(&text)));
    }
    Ok(lines.join("\n"))
}

fn read_key(name: &str) -> Said {
    let (kind, name) = (c_string("user")?, c_string(name)?);
    let search = |ring: u64| {
        keyctl(&mut [
            Arg::Num(SEARCH),
            Arg::Num(ring),
            Arg::Text(&kind),
            Arg::Text(&name),
            Arg::Num(0),
        ])
    };
    let serial = search(RINGS[1].1).or_else(|_| search(RINGS[2].1))?;
    let mut value = vec![0u8; 4096];
    let length =
        keyctl(&mut [Arg::Num(READ), Arg::Num(serial), Arg::Bytes(&mut value), Arg::Num(4096)])?;
    value.truncate(length as usize);
    Ok(String::from_utf8_lossy(&value).into_owned())
}

fn keyctl(args: &mut [Arg<'_>]) -> Result<u64, Failure> {
    Ok(call(libc::SYS_keyctl, args)?)
}

//! Parts of the kernel with a history of holes, and calls by bare number.

use std::io;

use crate::spec::{Args, Said};
use crate::sys::{Arg, call, raw};

fn open_and_close(answer: io::Result<u64>) -> Said {
    call(libc::SYS_close, &mut [Arg::Num(answer?)])?;
    Ok("made".into())
}

pub(crate) fn io_uring(_: Args<'_>) -> Said {
    let mut parameters = [0u64; 15];
    let entries = Arg::Num(4);
    open_and_close(call(libc::SYS_io_uring_setup, &mut [entries, Arg::Words(&mut parameters)]))
}

/// Makes an array map of one element.
pub(crate) fn bpf(_: Args<'_>) -> Said {
    const MAP_CREATE: u64 = 0;
    const ARRAY: u32 = 2;
    let mut attributes = [0u8; 128];
    for (index, value) in [ARRAY, 4, 4, 1].into_iter().enumerate() {
        attributes[index * 4..index * 4 + 4].copy_from_slice(&value.to_ne_bytes());
    }
    open_and_close(call(
        libc::SYS_bpf,
        &mut [Arg::Num(MAP_CREATE), Arg::Bytes(&mut attributes), Arg::Num(128)],
    ))
}

/// Counts the processor time of this very process, user space only.
pub(crate) fn perf(_: Args<'_>) -> Said {
    const SOFTWARE: u32 = 1;
    const SIZE: u32 = 128;
    const EXCLUDE_KERNEL_AND_HYPERVISOR: u64 = 0b110_0000;
    let mut attributes = [0u64; SIZE as usize / 8];
    attributes[0] = u64::from(SOFTWARE) | (u64::from(SIZE) << 32);
    attributes[5] = EXCLUDE_KERNEL_AND_HYPERVISOR;
    let everything = u64::MAX;
    open_and_close(call(
        libc::SYS_perf_event_open,
        &mut [
            Arg::Words(&mut attributes),
            Arg::Num(0),
            Arg::Num(everything),
            Arg::Num(everything),
            Arg::Num(0),
        ],
    ))
}

pub(crate) fn userfaultfd(_: Args<'_>) -> Said {
    const USER_MODE_ONLY: u64 = 1;
    open_and_close(call(libc::SYS_userfaultfd, &mut [Arg::Num(USER_MODE_ONLY)]))
}

/// Sets the personality (0xffffffff only asks) and gives the one before.
pub(crate) fn personality(args: Args<'_>) -> Said {
    let before = call(libc::SYS_personality, &mut [Arg::Num(args.number(0)?)])?;
    Ok(format!("{before:#x}"))
}

/// Any call at all. Add 0x40000000 to the number for x32.
pub(crate) fn syscall(args: Args<'_>) -> Said {
    let mut registers = [0u64; 6];
    for (index, register) in registers.iter_mut().enumerate() {
        *register = args.number_or(index + 1, 0)?;
    }
    Ok(raw(args.number(0)?, registers)?.to_string())
}

/// A call without arguments through the 32-bit entry (20 is `getpid` there).
#[cfg(target_arch = "x86_64")]
pub(crate) fn int80(args: Args<'_>) -> Said {
    let number = u32::try_from(args.number(0)?)
        .map_err(|_| crate::spec::Failure::usage("a 32-bit call has a small number"))?;
    match crate::sys::call_by_int80(number) {
        answer if answer < 0 => Err(io::Error::from_raw_os_error(-answer).into()),
        answer => Ok(answer.to_string()),
    }
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn int80(_: Args<'_>) -> Said {
    Err(io::Error::from_raw_os_error(libc::ENOSYS).into())
}

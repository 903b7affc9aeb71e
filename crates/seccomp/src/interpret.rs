//! A filter program as the kernel would run it. Whatever the kernel's checker would not accept
//! ends the test.

use crate::bpf::{self, Instruction};
use crate::compile::{ARCH, ARGUMENTS, NUMBER};
use crate::decide::Call;

/// The kernel takes no more (BPF_MAXINSNS).
pub const LONGEST: usize = 4096;

/// The value the program returns, and how many instructions it took.
pub fn run(program: &[Instruction], call: &Call) -> (u32, usize) {
    assert!(program.len() <= LONGEST, "{} instructions", program.len());
    let mut accumulator = 0u32;
    let mut at = 0;
    for steps in 1.. {
        let Instruction { code, yes, no, k } = program[at];
        let jump = |holds: bool| usize::from(if holds { yes } else { no });
        let skip = match code {
            bpf::LOAD => {
                accumulator = word(call, k);
                0
            }
            bpf::AND => {
                accumulator &= k;
                0
            }
            bpf::JUMP => k as usize,
            bpf::JUMP_IF_EQUAL => jump(accumulator == k),
            bpf::JUMP_IF_AT_LEAST => jump(accumulator >= k),
            bpf::JUMP_IF_ANY_BIT => jump(accumulator & k != 0),
            bpf::RETURN => return (k, steps),
            other => panic!("instruction {other:#x}"),
        };
        at += 1 + skip;
    }
    unreachable!("jumps lead forwards only")
}

fn word(call: &Call, offset: u32) -> u32 {
    assert!(offset.is_multiple_of(4), "offset {offset}");
    match offset {
        NUMBER => call.number,
        ARCH => call.arch,
        _ => {
            let index = (offset - ARGUMENTS) as usize;
            let register = call.arguments[index / 8];
            if index.is_multiple_of(8) { register as u32 } else { (register >> 32) as u32 }
        }
    }
}

//! Classic BPF: the instructions a filter needs, and their assembly.
//!
//! All jumps lead forwards, so a program is assembled from its end: whatever a jump leads to is
//! already there, and its distance is known. A conditional jump reaches 255 instructions; what
//! is farther gets an unconditional one in between.

/// As the kernel reads it (`struct sock_filter`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction {
    /// The operation (`BPF_LD`, `BPF_JMP`, `BPF_RET` …).
    pub code: u16,
    /// How many instructions to skip if the comparison holds (`jt`).
    pub yes: u8,
    /// How many instructions to skip if it does not hold (`jf`).
    pub no: u8,
    /// The operand.
    pub k: u32,
}

/// Loads a word of `struct seccomp_data`.
pub const LOAD: u16 = 0x20;
pub const AND: u16 = 0x54;
pub const JUMP: u16 = 0x05;
pub const JUMP_IF_EQUAL: u16 = 0x15;
pub const JUMP_IF_AT_LEAST: u16 = 0x35;
pub const JUMP_IF_ANY_BIT: u16 = 0x45;
pub const RETURN: u16 = 0x06;

/// An instruction that was emitted, counted from the end of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Label(usize);

#[derive(Default)]
pub struct Assembler {
    reversed: Vec<Instruction>,
}

impl Assembler {
    pub fn finish(mut self) -> Vec<Instruction> {
        self.reversed.reverse();
        self.reversed
    }

    pub fn answer(&mut self, value: u32) -> Label {
        self.emit(RETURN, 0, 0, value)
    }

    /// Loads the word at `offset` and goes on at `next`.
    pub fn load(&mut self, offset: u32, next: Label) -> Label {
        self.before(next);
        self.emit(LOAD, 0, 0, offset)
    }

    /// Keeps the bits of `mask` of what was loaded and goes on at `next`.
    pub fn and(&mut self, mask: u32, next: Label) -> Label {
        self.before(next);
        self.emit(AND, 0, 0, mask)
    }

    pub fn branch(&mut self, test: u16, k: u32, yes: Label, no: Label) -> Label {
        // A detour to `yes` would come between this jump and `no`.
        let no = self.within_reach(no, 1);
        let yes = self.within_reach(yes, 0);
        let (yes, no) = (self.distance(yes) as u8, self.distance(no) as u8);
        self.emit(test, yes, no, k)
    }

    /// How many instructions the next one would have to skip.
    fn distance(&self, to: Label) -> usize {
        self.reversed.len() - 1 - to.0
    }

    fn within_reach(&mut self, to: Label, room: usize) -> Label {
        if self.distance(to) + room <= usize::from(u8::MAX) { to } else { self.jump(to) }
    }

    fn jump(&mut self, to: Label) -> Label {
        let distance = self.distance(to) as u32;
        self.emit(JUMP, 0, 0, distance)
    }

    /// Makes `next` the instruction that follows the one emitted next.
    fn before(&mut self, next: Label) {
        if self.distance(next) > 0 {
            self.jump(next);
        }
    }

    fn emit(&mut self, code: u16, yes: u8, no: u8, k: u32) -> Label {
        self.reversed.push(Instruction { code, yes, no, k });
        Label(self.reversed.len() - 1)
    }
}

//! Filter → program. The number of a call is found by binary search, so that the depth grows with
//! the logarithm of the number of rules; rules that are equal share their code.

use std::collections::BTreeMap;

use crate::bpf::{Assembler, Instruction, JUMP_IF_ANY_BIT, JUMP_IF_AT_LEAST, JUMP_IF_EQUAL, Label};
use crate::filter::{Action, FOREIGN, Filter, Rule, Test, Width};

/// Offsets into `struct seccomp_data`. Both architectures are little-endian: the low half of an
/// argument comes first.
pub const NUMBER: u32 = 0;
pub const ARCH: u32 = 4;
pub const ARGUMENTS: u32 = 16;

const RETURN_ERRNO: u32 = 0x0005_0000;
const RETURN_NOTIFY: u32 = 0x7fc0_0000;
const RETURN_ALLOW: u32 = 0x7fff_0000;

static ALLOWED: Rule = Rule::Do(Action::Allow);
static REFUSED_AS_FOREIGN: Rule = Rule::Do(FOREIGN);

pub fn compile(filter: &Filter) -> Vec<Instruction> {
    let mut compiler = Compiler { code: Assembler::default(), shared: BTreeMap::new() };
    let allow = compiler.rule(&ALLOWED);
    let foreign = compiler.rule(&REFUSED_AS_FOREIGN);
    let rules: Vec<(u32, Label)> =
        filter.rules.iter().map(|(number, rule)| (*number, compiler.rule(rule))).collect();
    let mut search = compiler.search(&ranges(&rules, allow));
    if let Some(first) = filter.arch.foreign_numbers() {
        search = compiler.code.branch(JUMP_IF_AT_LEAST, first, foreign, search);
    }
    let number = compiler.code.load(NUMBER, search);
    let native = compiler.code.branch(JUMP_IF_EQUAL, filter.arch.audit(), number, foreign);
    compiler.code.load(ARCH, native);
    compiler.code.finish()
}

/// Where numbers begin that share a rule: neighbours often do, and the kernel's time to load a
/// program grows with its length. Rules come in the order of their numbers.
fn ranges(rules: &[(u32, Label)], none: Label) -> Vec<(u32, Label)> {
    let mut ranges = vec![(0, none)];
    for (number, rule) in rules {
        // Right behind the one before.
        ranges.pop_if(|(start, _)| start == number);
        ranges.push((*number, *rule));
        ranges.extend(number.checked_add(1).map(|next| (next, none)));
    }
    ranges.dedup_by_key(|(_, rule)| *rule);
    ranges
}

pub fn encode(action: Action) -> u32 {
    match action {
        Action::Allow => RETURN_ALLOW,
        Action::Errno(errno) => RETURN_ERRNO | u32::from(errno),
        Action::Notify => RETURN_NOTIFY,
    }
}

struct Compiler<'a> {
    code: Assembler,
    shared: BTreeMap<&'a Rule, Label>,
}

impl<'a> Compiler<'a> {
    /// Expects the number of the call to be loaded.
    fn search(&mut self, ranges: &[(u32, Label)]) -> Label {
        if let [(_, rule)] = ranges {
            return *rule;
        }
        let (low, high) = ranges.split_at(ranges.len() / 2);
        let pivot = high[0].0;
        let high = self.search(high);
        let low = self.search(low);
        self.code.branch(JUMP_IF_AT_LEAST, pivot, high, low)
    }

    fn rule(&mut self, rule: &'a Rule) -> Label {
        if let Some(label) = self.shared.get(rule) {
            return *label;
        }
        let label = match rule {
            Rule::Do(action) => self.code.answer(encode(*action)),
            Rule::If { argument, width, test, then, otherwise } => {
                let otherwise = self.rule(otherwise);
                let then = self.rule(then);
                self.test(Halves::of(*argument, *width), test, then, otherwise)
            }
        };
        self.shared.insert(rule, label);
        label
    }

    fn test(&mut self, at: Halves, test: &Test, then: Label, otherwise: Label) -> Label {
        match test {
            Test::OneOf(set) => {
                let mut next = otherwise;
                for value in set.iter().rev() {
                    next = self.equal(at, u64::MAX, *value, then, next);
                }
                next
            }
            Test::Masked { mask, value } => self.equal(at, *mask, *value, then, otherwise),
            Test::AnyBit(mask) => self.any_bit(at, *mask, then, otherwise),
        }
    }

    fn equal(&mut self, at: Halves, mask: u64, value: u64, then: Label, otherwise: Label) -> Label {
        if at.high.is_none() && value > u64::from(u32::MAX) {
            // No 32-bit value is that large.
            return otherwise;
        }
        let low = self.half_equal(at.low, mask as u32, value as u32, then, otherwise);
        match at.high {
            None => low,
            Some(high) => {
                self.half_equal(high, (mask >> 32) as u32, (value >> 32) as u32, low, otherwise)
            }
        }
    }

    fn half_equal(&mut self, at: u32, mask: u32, value: u32, yes: Label, no: Label) -> Label {
        let mut next = self.code.branch(JUMP_IF_EQUAL, value, yes, no);
        if mask != u32::MAX {
            next = self.code.and(mask, next);
        }
        self.code.load(at, next)
    }

    fn any_bit(&mut self, at: Halves, mask: u64, then: Label, otherwise: Label) -> Label {
        let low = self.code.branch(JUMP_IF_ANY_BIT, mask as u32, then, otherwise);
        let low = self.code.load(at.low, low);
        match at.high {
            Some(high) if mask >> 32 != 0 => {
                let test = self.code.branch(JUMP_IF_ANY_BIT, (mask >> 32) as u32, then, low);
                self.code.load(high, test)
            }
            _ => low,
        }
    }
}

/// Where the parts of an argument are that the kernel looks at.
#[derive(Clone, Copy)]
struct Halves {
    low: u32,
    high: Option<u32>,
}

impl Halves {
    fn of(argument: u8, width: Width) -> Halves {
        let low = ARGUMENTS + 8 * u32::from(argument);
        let high = match width {
            Width::Low32 => None,
            Width::Full64 => Some(low + 4),
        };
        Halves { low, high }
    }
}

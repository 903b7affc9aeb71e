//! The plain reading of a filter: the compiled program must decide the same about every call.

use crate::filter::{Action, FOREIGN, Filter, Rule, Test, Width};

/// What the kernel tells a filter about a call (`struct seccomp_data`, without the address of
/// the instruction, which no rule looks at).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    pub number: u32,
    pub arch: u32,
    pub arguments: [u64; 6],
}

impl Filter {
    pub fn decide(&self, call: &Call) -> Action {
        let foreign = self.arch.foreign_numbers().is_some_and(|first| call.number >= first);
        if call.arch != self.arch.audit() || foreign {
            return FOREIGN;
        }
        self.rules.get(&call.number).map_or(Action::Allow, |rule| rule.decide(call))
    }
}

impl Rule {
    fn decide(&self, call: &Call) -> Action {
        match self {
            Rule::Do(action) => *action,
            Rule::If { argument, width, test, then, otherwise } => {
                let register = call.arguments[usize::from(*argument)];
                let value = match width {
                    Width::Low32 => register & 0xffff_ffff,
                    Width::Full64 => register,
                };
                if test.holds(value) { then.decide(call) } else { otherwise.decide(call) }
            }
        }
    }
}

impl Test {
    fn holds(&self, value: u64) -> bool {
        match self {
            Test::OneOf(set) => set.contains(&value),
            Test::Masked { mask, value: wanted } => value & mask == *wanted,
            Test::AnyBit(mask) => value & mask != 0,
        }
    }
}

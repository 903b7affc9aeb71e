//! The compiled program decides as the filter does: for any filter, and for ours.

use proptest::prelude::*;

use crate::compile::{compile, encode};
use crate::decide::Call;
use crate::filter::{Action, Arch, Filter, Rule, Test, Width};
use crate::interpret::run;
use crate::rules::{filter, with};
use crate::{Connects, Ground, NewProcesses, Sockets, SyscallProxy, plain};

/// No call of today has a larger number.
const NUMBERS: std::ops::RangeInclusive<u32> = 0..=520;
const X32: u32 = 0x4000_0000;
const I386: u32 = 0x4000_0003;
const ARM: u32 = 0x4000_0028;

fn arch() -> impl Strategy<Value = Arch> {
    prop_oneof![Just(Arch::X86_64), Just(Arch::Aarch64)]
}

fn audit() -> impl Strategy<Value = u32> {
    prop_oneof![
        4 => arch().prop_map(Arch::audit),
        1 => prop_oneof![Just(I386), Just(ARM), Just(0), any::<u32>()],
    ]
}

fn number() -> impl Strategy<Value = u32> {
    prop_oneof![
        8 => NUMBERS,
        2 => NUMBERS.prop_map(|number| X32 + number),
        1 => prop_oneof![Just(X32 - 1), Just(X32), Just(u32::MAX), any::<u32>()],
    ]
}

/// Values that rules test for, their neighbours, and the same with high bits set.
fn register() -> impl Strategy<Value = u64> {
    let low = prop_oneof![
        4 => 0u64..20,
        1 => prop::sample::select(vec![
            0x5412, 0x541c, 0x5423, 0o4755, 0o2755, 0o6000, 0o100, 0o20_000_000, 0o20_000_100,
            0x1_0000, 0x2000_0000, 0x1000_0000, 0x0002_0000, 0x80, 0xffff_ffff, 0x7fff_ffff,
        ]),
        1 => (0u32..32).prop_map(|bit| 1u64 << bit),
        1 => any::<u32>().prop_map(u64::from),
    ];
    let high = prop_oneof![3 => Just(0u64), 1 => Just(1), 1 => Just(0xffff_ffff), 1 => 0u64..20];
    (low, high).prop_map(|(low, high)| high << 32 | low)
}

fn call() -> impl Strategy<Value = Call> {
    (number(), audit(), prop::array::uniform6(register()))
        .prop_map(|(number, arch, arguments)| Call { number, arch, arguments })
}

fn rule() -> impl Strategy<Value = Rule> {
    let action = prop_oneof![
        Just(Action::Allow),
        Just(Action::Notify),
        (0u16..4096).prop_map(Action::Errno),
    ];
    let test = || {
        prop_oneof![
            prop::collection::vec(register(), 0..5).prop_map(|set| Test::OneOf(set.leak())),
            (register(), register()).prop_map(|(mask, value)| Test::Masked { mask, value }),
            // A value that the mask lets through, so that both branches are taken.
            (register(), register())
                .prop_map(|(mask, value)| Test::Masked { mask, value: value & mask }),
            register().prop_map(Test::AnyBit),
        ]
    };
    action.prop_map(Rule::Do).prop_recursive(4, 12, 2, move |inner| {
        let width = prop_oneof![Just(Width::Low32), Just(Width::Full64)];
        (0u8..6, width, test(), inner.clone(), inner).prop_map(
            |(argument, width, test, then, otherwise)| Rule::If {
                argument,
                width,
                test,
                then: Box::new(then),
                otherwise: Box::new(otherwise),
            },
        )
    })
}

fn any_filter() -> impl Strategy<Value = Filter> {
    (arch(), prop::collection::btree_map(number(), rule(), 0..40))
        .prop_map(|(arch, rules)| Filter { arch, rules })
}

fn agrees(filter: &Filter, program: &[crate::bpf::Instruction], call: &Call) {
    let (answer, _) = run(program, call);
    assert_eq!(answer, encode(filter.decide(call)), "{call:x?}");
}

proptest! {
    #[test]
    fn a_program_decides_as_its_filter(
        filter in any_filter(),
        calls in prop::collection::vec(call(), 20),
    ) {
        let program = compile(&filter);
        for call in calls {
            agrees(&filter, &program, &call);
            // The numbers that have rules, with the same arguments.
            for number in filter.rules.keys() {
                agrees(&filter, &program, &Call { number: *number, ..call });
            }
        }
    }
}

proptest! {
    // Each case is a look at every number.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn our_programs_decide_as_our_filters(
        arguments in prop::array::uniform6(register()),
        audit in audit(),
    ) {
        for arch in [Arch::X86_64, Arch::Aarch64] {
            for processes in [NewProcesses::Allowed, NewProcesses::Refused] {
                let plainly =
                    |landlock| Ground::Plain { landlock, syscall_proxy: SyscallProxy::Asked };
                for (connects, more) in [
                    (Connects::Free, plain::tables(Sockets::All, Ground::Namespaces)),
                    (Connects::Announced, plain::tables(Sockets::All, Ground::Namespaces)),
                    (Connects::Free, plain::tables(Sockets::None, plainly(1))),
                    (Connects::Free, plain::tables(Sockets::Internet, plainly(6))),
                    (Connects::Free, plain::tables(Sockets::Proxied, plainly(7))),
                ] {
                    let filter = with(arch, processes, connects, &more);
                    let program = compile(&filter);
                    let numbers = NUMBERS.flat_map(|number| [number, X32 + number]);
                    for number in numbers.chain([u32::MAX]) {
                        agrees(&filter, &program, &Call { number, arch: arch.audit(), arguments });
                        agrees(&filter, &program, &Call { number, arch: audit, arguments });
                    }
                }
            }
        }
    }
}

/// Jumps over more than 255 instructions, in dispatch and in rules.
#[test]
fn long_programs_are_right_too() {
    let deep = |number: u32| {
        let set: Vec<u64> = (0..3).map(|n| u64::from(number * 7 + n)).collect();
        Rule::If {
            argument: (number % 6) as u8,
            width: Width::Low32,
            test: Test::OneOf(set.leak()),
            then: Box::new(Rule::Do(Action::Errno(number as u16))),
            otherwise: Box::new(Rule::Do(Action::Notify)),
        }
    };
    let filter = Filter { arch: Arch::X86_64, rules: (0..250).map(|n| (n * 3, deep(n))).collect() };
    let program = compile(&filter);
    assert!(program.len() > 1000);
    for number in 0..800 {
        for value in [0, u64::from(number / 3 * 7), u64::from(number / 3 * 7 + 2)] {
            let call = Call { number, arch: Arch::X86_64.audit(), arguments: [value; 6] };
            agrees(&filter, &program, &call);
        }
    }
}

#[test]
fn depth_is_logarithmic() {
    for (processes, most) in [(NewProcesses::Allowed, 13), (NewProcesses::Refused, 13)] {
        let program = compile(&filter(Arch::X86_64, processes, Connects::Announced));
        let ruled = filter(Arch::X86_64, processes, Connects::Announced).rules;
        let unruled = NUMBERS.filter(|number| !ruled.contains_key(number));
        let deepest = unruled
            .map(|number| Call { number, arch: Arch::X86_64.audit(), arguments: [0; 6] })
            .map(|call| run(&program, &call).1)
            .max();
        assert!(deepest <= Some(most), "{deepest:?}");
    }
}

use super::*;
use crate::{Context, Strictness, judge};

/// The rules of the files, read as a user's file is read.
fn sources() -> Rules {
    load::parse(SOURCES).unwrap()
}

fn built_in() -> Rules {
    Rules { store: Store::Packed(Packed::new()) }
}

const SHELLS: [Shell; 3] = [Shell::Bash, Shell::PowerShell, Shell::Cmd];

#[test]
fn packed_rules_are_those_of_the_files() {
    let (sources, packed) = (sources(), built_in());
    assert!(sources.count() > 300, "{}", sources.count());
    assert_eq!(sources.count(), packed.count());
    for (source, packed) in sources.iter().zip(packed.iter()) {
        // Examples stay in the files.
        let source = Rule { matches: Vec::new(), passes: Vec::new(), ..source.clone() };
        assert_eq!(format!("{source:?}"), format!("{packed:?}"));
    }
    assert_eq!(sources.class_texts(), packed.class_texts());
}

#[test]
fn packed_rules_are_found_by_their_ids() {
    let packed = built_in();
    for rule in sources().iter() {
        assert_eq!(packed.get(&rule.id).map(|found| &found.id), Some(&rule.id));
    }
    for none in ["", "a", "zzz", "delete-everythin", "delete-everything-"] {
        assert!(packed.get(none).is_none(), "{none}");
    }
}

/// For every name that a rule or a class has, as it stands, in capitals and with something after it.
#[test]
fn packed_rules_are_found_by_the_names_they_are_about() {
    let (sources, packed) = (sources(), built_in());
    let lists = sources.class_texts().into_values().flatten();
    let mut names: Vec<String> =
        sources.iter().flat_map(|rule| rule.command.clone()).chain(lists).collect();
    names.extend(["", "true", "ls", "zzz", "@everything"].map(str::to_owned));
    let capital = names.iter().map(|name| name.to_uppercase());
    let longer = names.iter().map(|name| format!("{name}3.11"));
    let starless = names.iter().map(|name| name.replace(['*', '?'], "x"));
    let all: Vec<String> = capital.chain(longer).chain(starless).chain(names.clone()).collect();
    let mut about = 0;
    for (name, shell) in all.iter().flat_map(|name| SHELLS.map(|shell| (name, shell))) {
        let ids = |rules: &Rules| -> Vec<String> {
            rules.about(name, shell).iter().map(|rule| rule.id.clone()).collect()
        };
        assert_eq!(ids(&sources), ids(&packed), "{name} {shell:?}");
        about += ids(&packed).len();
    }
    assert!(about > 10_000, "{about}");
}

/// Nothing is read for a command before it is judged, and then only what could be about it.
#[test]
fn few_rules_are_read_for_one_command() {
    let rules = built_in();
    assert_eq!(read_so_far(&rules), 0);
    let about = rules.about("true", Shell::Bash).len();
    assert_eq!(read_so_far(&rules), about);
    assert!((1..40).contains(&about), "{about}");
}

fn read_so_far(rules: &Rules) -> usize {
    match &rules.store {
        Store::Packed(packed) => packed.read_so_far(),
        Store::Read(read) => read.all.len(),
    }
}

/// Each line of each corpus in its shell, as it stands and without the words before the command. Without optimization every third
/// line, which takes seconds instead of a quarter of a minute; `nightly.yml` has the whole.
#[test]
fn packed_rules_give_the_same_verdicts_on_every_corpus() {
    let contexts = [sources(), built_in()]
        .map(|rules| Context { rules: Arc::new(rules), ..Context::default() });
    let (mut lines, mut found) = (0, 0);
    let mut section = Shell::Bash;
    let every = if cfg!(debug_assertions) { 3 } else { 1 };
    for (number, line) in CORPORA.lines().enumerate() {
        let before = line.split([' ', ':']).next().unwrap_or_default();
        let shell = match before {
            "powershell" => Shell::PowerShell,
            "cmd" => Shell::Cmd,
            _ => section,
        };
        match before {
            "[bash]" => section = Shell::Bash,
            "[powershell]" => section = Shell::PowerShell,
            "[cmd]" => section = Shell::Cmd,
            _ => {}
        }
        if number % every != 0 {
            continue;
        }
        let command = line.splitn(3, ' ').last().unwrap_or(line);
        for text in [line, command].map(|text| text.replace('⏎', "\n").replace('⇥', "\t")) {
            let [source, packed] = contexts.each_ref().map(|context| judge(&text, shell, context));
            assert_eq!(source, packed, "{shell:?}: {text}");
            found += packed.findings.len();
        }
        lines += 1;
    }
    assert!(lines > 6_000 / every && found > 2_000 / every, "{lines} lines, {found} findings");
}

#[test]
fn packed_rules_are_noted_behind_a_sandbox_as_those_of_the_files() {
    let strictness = Strictness::Confined;
    for line in include_str!("../../corpus/everyday-confined.txt").lines() {
        let verdicts = [sources(), built_in()].map(|rules| {
            let context = Context { rules: Arc::new(rules), strictness, ..Context::default() };
            judge(line, Shell::Bash, &context)
        });
        assert_eq!(verdicts[0], verdicts[1], "{line}");
    }
}

const CORPORA: &str = concat!(
    include_str!("../../corpus/everyday.txt"),
    include_str!("../../corpus/everyday-windows.txt"),
    include_str!("../../corpus/everyday-confined.txt"),
    include_str!("../../corpus/fresh/tuned.txt"),
    include_str!("../../corpus/fresh/held-out.txt"),
    include_str!("../../corpus/fresh/tuned-by-class.txt"),
    include_str!("../../corpus/fresh/blind-2026-11-first-viewed.txt"),
    include_str!("../../corpus/fresh/blind-windows-2026-11-first-viewed.txt"),
    // The last, because it has sections.
    include_str!("../../corpus/dangerous.txt"),
);

//! No text of the user's is ever part of the language.

use proptest::prelude::*;

use crate::evaluator::parse;
use crate::support::{Mac, plan, policy, profile, request};

/// Names with everything in them that could mean something, to the language or to an expression.
pub fn odd_name() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("\""),
        Just("\\"),
        Just("("),
        Just(")"),
        Just("\n"),
        Just(";"),
        Just("#\""),
        Just(" "),
        Just("'"),
        Just("ü"),
        Just("e\u{301}"),
        Just("日"),
        Just("."),
        Just("^"),
        Just("$"),
        Just("|"),
        Just("+"),
        Just("{"),
        Just("}"),
        Just("(allow default)"),
        Just("param"),
        Just("a"),
        Just("B"),
        Just("_0"),
        Just("\t"),
        Just("%"),
    ];
    proptest::collection::vec(piece, 1..8)
        .prop_map(|pieces| pieces.concat())
        .prop_filter("a name", |name| name != "." && name != ".." && !name.ends_with(' '))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// The profile's text is the same, whatever the paths are: they are parameters.
    #[test]
    fn a_path_is_only_ever_a_parameter(read in odd_name(), write in odd_name(), deny in odd_name()) {
        let text = |read: &str, write: &str, deny: &str| {
            let request = request(policy(|f| {
                f.read(format!("/Users/me/r{read}")).write(format!("/Users/me/w{write}"));
                f.deny(format!("/Users/me/w{write}/{deny}"))
            }));
            profile(&plan(&request)).text.clone()
        };
        let odd = text(&read, &write, &deny);
        // Braces make several rules of one; that many and no others.
        prop_assume!(!deny.contains(['{', '}']) && !write.contains(['{', '}']));
        prop_assume!(!write.contains('[') && !deny.contains('['));
        prop_assert_eq!(&odd, &text("x", "y", "z"));
        prop_assert!(parse(&odd).is_ok());
    }

    #[test]
    fn grants_and_denials_mean_their_own_paths(root in odd_name(), name in odd_name()) {
        prop_assume!(!root.contains(['{', '}']) && !name.contains(['{', '}']));
        let root = format!("/Users/me/w{root}");
        let mac = Mac::with(|f| f.write(&root).deny(format!("{root}/d/{name}")));
        let own = format!("{root}/d/{name}");
        let (inside, below) = (format!("{root}/file"), format!("{own}/below"));
        let (above, beside) = (format!("{root}/d"), format!("{root}x"));
        prop_assert!(mac.writes(&inside));
        prop_assert!(!mac.may("file-read-data", &own));
        prop_assert!(!mac.changes(&below));
        prop_assert!(!mac.moves(&above), "what a denied path is in can be moved");
        prop_assert!(!mac.may("file-read-data", "/Users/me/other"));
        prop_assert!(!mac.may("file-read-data", &beside));
    }
}

#[test]
fn globs_are_parameters_too() {
    let request = request(policy(|f| {
        f.write("/Users/me/project").deny("**/*.\"(allow default)\"").deny("**/;[a-z]?)x")
    }));
    let plan = plan(&request);
    assert!(!profile(&plan).text.contains("allow default"));
    let mac = Mac::of(&request);
    assert!(!mac.reads("/Users/me/project/x.\"(allow default)\""));
    assert!(!mac.reads("/Users/me/project/deep/;q1)x"));
    assert!(mac.reads("/Users/me/project/x.txt"));
}

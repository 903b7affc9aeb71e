use mcp_policy::{Defaults, Layer, LayerKind, LayerSource, Policy};
use proptest::prelude::*;

use super::*;
use crate::observation::Evidence;

fn policy(text: &str) -> Policy {
    let source = LayerSource {
        kind: LayerKind::PolicyFile,
        path: "p.toml".into(),
        base: "/".into(),
        home: None,
    };
    let layer = Layer::from_toml(text, source).unwrap_or_else(|e| panic!("{e}\n{text}"));
    Policy::merge(&[layer], Defaults::run()).unwrap()
}

fn merged(text: &str, grants: &[Grant]) -> Result<String, Unmergeable> {
    let given = Draft::of(&policy(text)).unwrap();
    let mut draft = given.clone();
    for grant in grants {
        draft.learn(grant.clone(), &Evidence { times: 2, first: "ls".to_owned() });
    }
    insert(text, &given, &draft)
}

fn read(path: &str) -> Grant {
    Grant::Read(path.into())
}

#[test]
fn the_rest_of_the_file_stays() {
    for (text, expected) in [
        ("", "[filesystem]\nread = [\n    \"/n\", # 2 times, first by ls\n]\n"),
        (
            "# mine\n[filesystem]\nread = [\"/a\"] # keep\n",
            "# mine\n[filesystem]\nread = [\"/a\",\n    \"/n\", # 2 times, first by ls\n] # keep\n",
        ),
        (
            "[filesystem]\nread = [\n    \"/a\", # why, and more\n]\n[limits]\nmemory = '64M'\n",
            "[filesystem]\nread = [\n    \"/a\", # why, and more\n    \"/n\", # 2 times, first by ls\n]\n[limits]\nmemory = '64M'\n",
        ),
        (
            "[limits]\nmemory = '64M'",
            "[limits]\nmemory = '64M'\n\n[filesystem]\nread = [\n    \"/n\", # 2 times, first by ls\n]\n",
        ),
        (
            "[filesystem]\nwrite = []\n",
            "[filesystem]\nread = [\n    \"/n\", # 2 times, first by ls\n]\nwrite = []\n",
        ),
        (
            "[filesystem]\nread = []\n",
            "[filesystem]\nread = [\n    \"/n\", # 2 times, first by ls\n]\n",
        ),
    ] {
        assert_eq!(merged(text, &[read("/n")]).unwrap(), expected, "{text}");
        assert!(
            policy(expected)
                .filesystem
                .read
                .iter()
                .any(|path| path.value == std::path::Path::new("/n"))
        );
    }
}

#[test]
fn what_is_there_is_not_added_again() {
    let text = "[filesystem]\nwrite = [\"/srv\"]\n";
    assert_eq!(merged(text, &[read("/srv/x")]).unwrap(), text);
}

#[test]
fn secrets_are_keys() {
    let text =
        merged("[env]\nallow = ['A']\n", &[Grant::Secret("TOKEN".parse().unwrap())]).unwrap();
    assert!(
        text.ends_with("[env.secrets]\nTOKEN = \"env:TOKEN\" # 2 times, first by ls\n"),
        "{text}"
    );
    policy(&text);
    let inline = "[env]\nsecrets = { A = 'env:B' }\n";
    assert_eq!(
        merged(inline, &[Grant::Secret("TOKEN".parse().unwrap())]),
        Err(Unmergeable::Form("env.secrets".to_owned()))
    );
}

proptest! {
    #[test]
    fn a_merge_gives_both(
        old in prop::collection::btree_set("/[a-f]{1,3}", 0..6),
        new in prop::collection::btree_set("/[a-f]{1,3}", 0..6),
        lines: bool,
    ) {
        let between = if lines { ", # x\n  " } else { ", " };
        let items: Vec<String> = old.iter().map(|path| format!("'{path}'")).collect();
        let text = format!("[filesystem]\nread = [{}]\n[limits]\nmemory = '64M' # mine\n", items.join(between));
        let grants: Vec<Grant> = new.iter().map(|path| read(path)).collect();
        let after = policy(&merged(&text, &grants).unwrap());
        let has: std::collections::BTreeSet<String> =
            after.filesystem.read.iter().map(|path| path.value.display().to_string()).collect();
        prop_assert_eq!(has, old.union(&new).cloned().collect());
    }
}

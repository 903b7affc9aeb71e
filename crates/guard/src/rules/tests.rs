use super::*;

#[test]
fn built_in_rules_can_be_read() {
    load::parse(BUILT_IN).unwrap();
}

#[test]
fn every_example_is_true() {
    let rules = Rules::built_in();
    assert!(rules.iter().count() > 50, "the built-in rules could not be read");
    let wrong: Vec<String> = rules
        .iter()
        .flat_map(|rule| load::failing(&rules, rule))
        .map(|error| error.to_string())
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    rules.verify().unwrap();
}

use super::*;

#[test]
fn built_in_rules_can_be_read() {
    load::parse(BUILT_IN).unwrap();
}

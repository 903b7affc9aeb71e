use super::*;

/// The rules without their examples, one to a line so that a change shows as one.
fn ready() -> String {
    let mut file: serde_json::Value = toml::from_str(SOURCES).unwrap();
    for rule in file["rule"].as_array_mut().unwrap() {
        let rule = rule.as_object_mut().unwrap();
        rule.remove("matches");
        rule.remove("passes");
    }
    let classes: Vec<String> = file["classes"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, list)| format!("{}:{list}", serde_json::Value::from(name.as_str())))
        .collect();
    let rules: Vec<String> =
        file["rule"].as_array().unwrap().iter().map(ToString::to_string).collect();
    format!(
        "{{\"classes\":{{\n{}\n}},\"rule\":[\n{}\n]}}\n",
        classes.join(",\n"),
        rules.join(",\n")
    )
}

#[test]
fn built_in_rules_can_be_read() {
    let sources = load::parse(SOURCES).unwrap();
    let shipped = load::parse_ready(BUILT_IN).unwrap();
    assert_eq!(sources.iter().count(), shipped.iter().count());
}

#[test]
fn shipped_rules_are_those_of_the_files() {
    let ready = ready();
    if std::env::var_os("UPDATE_RULES").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/rules/builtin.json");
        std::fs::write(path, &ready).unwrap();
        return;
    }
    assert!(ready == BUILT_IN, "UPDATE_RULES=1 cargo test -p mcp-guard --lib rules::");
}

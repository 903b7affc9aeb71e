use mcp_policy::{Defaults, Policy};

use super::*;

fn server() -> Server {
    Server {
        name: "notes".to_owned(),
        policy: Policy::merge(&[], Defaults::run()).unwrap(),
        options: vec!["--no-log".to_owned()],
        start: Start::Command(vec!["cat".to_owned(), "a\"b\n".to_owned()]),
    }
}

fn place() -> Place {
    Place {
        listen: "0.0.0.0:8808".to_owned(),
        behind_proxy: Some(true),
        hosts: vec!["notes".to_owned()],
        tls: None,
        tokens: Some("/run/mcp/auth/tokens"),
        jwks: None,
        policy: "/etc/mcp/policy.toml".to_owned(),
        package: Some("/opt/mcp/package"),
        secrets: "/run/mcp/secrets".to_owned(),
    }
}

#[test]
fn places_change_and_the_rest_stays() {
    let source = "listen = '127.0.0.1:1'\nhosts = ['mcp.example.com']\nlater = { key = 1 }\n[limits]\nidle = '1m'\n\
                  [servers.notes]\nrun = ['x']\n[servers.other]\nrun = ['y']\n";
    let text = Settings::read(source).unwrap().text(&server(), &place()).unwrap();
    let table: Table = text.parse().unwrap();
    assert_eq!(table["listen"].as_str(), Some("0.0.0.0:8808"));
    assert_eq!(table["hosts"].as_array().unwrap().len(), 2);
    assert_eq!(table["later"]["key"].as_integer(), Some(1));
    assert_eq!(table["limits"]["idle"].as_str(), Some("1m"));
    assert_eq!(table["limits"]["sandboxes"].as_integer(), Some(SANDBOXES));
    let servers = table["servers"].as_table().unwrap();
    assert_eq!(servers.keys().collect::<Vec<_>>(), ["notes"]);
    let words: Vec<&str> =
        servers["notes"]["run"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(words, ["--policy", "/etc/mcp/policy.toml", "--no-log", "--", "cat", "a\"b\n"]);
}

#[test]
fn a_package_is_the_one_in_the_image() {
    let mut server = server();
    server.start = Start::Package {
        reference: "npm:x".to_owned(),
        fetching: Vec::new(),
        arguments: vec!["-v".to_owned()],
    };
    let text = Settings::default().text(&server, &place()).unwrap();
    assert!(text.contains("\"/opt/mcp/package\", \"--\", \"-v\""), "{text}");
    let outside = Place { package: None, ..place() };
    let text = Settings::default().text(&server, &outside).unwrap();
    assert!(text.contains("\"npm:x\", \"--\", \"-v\""), "{text}");
}

#[test]
fn a_scope_keeps_the_server_that_is_there() {
    let source = "[auth.oauth]\nissuer = 'i'\nresource = 'r'\njwks = 'https://id.example.com/k'\n\
                  [auth.oauth.scopes.a]\nservers = ['notes', 'other']\n[auth.oauth.scopes.b]\nservers = ['other']\n";
    let settings = Settings::read(source).unwrap();
    assert!(settings.has_oauth());
    let table: Table = settings.text(&server(), &place()).unwrap().parse().unwrap();
    let scopes = &table["auth"]["oauth"]["scopes"];
    assert_eq!(scopes["a"]["servers"].as_array().unwrap().len(), 1);
    // It still exists: without any scope every token would do.
    assert!(scopes["b"]["servers"].as_array().unwrap().is_empty());
}

//! What a package writes to its standard output: a client reads JSON there, and nothing else.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use crate::require;
use crate::user::{User, text};

/// A banner, a message, a warning that begins as JSON does, a long message, and one that is not finished.
const SERVER: &str = r#"echo 'Server started'
echo '{"jsonrpc":"2.0","id":1,"result":{}}'
echo '[WARN] something'
printf '{"jsonrpc":"2.0","id":2,"result":"'; head -c 300000 /dev/zero | tr '\0' x; printf '"}\n'
while read -r line; do echo "{\"answer\":$line}"; done
printf '{"jsonrpc":"2.0","id":3'"#;

fn package(user: &User) -> String {
    let source = user.path("noisy");
    std::fs::create_dir_all(&source).unwrap();
    std::fs::write(source.join("server.sh"), SERVER).unwrap();
    let server = "[server]\ncommand = 'sh'\nargs = ['${__dirname}/server.sh']\n";
    let manifest = format!("[package]\nname = 'acme/noisy'\nversion = '1.0.0'\n{server}");
    std::fs::write(source.join("mcp.toml"), manifest).unwrap();
    text(&source).to_owned()
}

#[test]
fn a_client_reads_json_only_and_the_rest_is_shown() {
    require!("userns");
    let user = User::new();
    let source = package(&user);
    let said = user.mcp(&["run", &source]).ok();
    let lines: Vec<&str> = said.out.lines().collect();
    assert_eq!(lines.len(), 2, "{:.300}", said.out);
    assert_eq!(lines[0], r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    assert!(lines[1].len() > 300_000 && lines[1].ends_with("\"}"));
    let notice = "are not JSON are shown here";
    assert_eq!(said.err.matches(notice).count(), 1, "{}", said.err);
    for shown in ["Server started\n", "[WARN] something\n", "{\"jsonrpc\":\"2.0\",\"id\":3"] {
        assert!(said.err.contains(shown), "{shown}: {}", said.err);
    }
    let raw = user.mcp(&["run", "--raw", &source]).ok();
    assert!(raw.out.starts_with("Server started\n{"), "{:.100}", raw.out);
    assert!(raw.out.contains("[WARN]") && !raw.err.contains(notice), "{}", raw.err);
}

#[test]
fn an_answer_is_there_before_the_server_ends() {
    require!("userns");
    let user = User::new();
    let source = package(&user);
    let mut command = user.command(&["run", &source]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for number in 0..3 {
        writeln!(stdin, "{number}").unwrap();
        let wanted = format!("{{\"answer\":{number}}}");
        assert!(lines.by_ref().any(|line| line.unwrap() == wanted), "{number}");
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

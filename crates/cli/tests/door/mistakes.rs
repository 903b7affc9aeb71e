//! Mistakes that a beginner makes, and the message that names the next step.

use crate::person::Person;
use crate::require;

/// What is typed, the exit code, and what the message must say.
const MISTAKES: &[(&str, i32, &str)] = &[
    // Verbs that are none.
    ("mcp rnu ls", 2, "did you mean: mcp run ls"),
    ("mcp npx -y some-server", 2, "mcp run npx -y some-server"),
    ("mcp install some-server", 2, "type: mcp pull some-server"),
    ("mcp start x", 2, "type: mcp run x"),
    ("mcp stop x", 2, "type: mcp kill x"),
    ("mcp uninstall npm:x", 2, "type: mcp remove npm:x"),
    ("mcp npm:some-server", 2, "mcp run npm:some-server"),
    ("mcp frobnicate", 2, "mcp help lists them"),
    ("mcp help rnu", 2, "did you mean: mcp run"),
    // Nothing, or something that is no program.
    ("mcp run", 2, "mcp run npx -y NAME"),
    ("mcp run --", 2, "mcp run npx -y NAME"),
    ("mcp exec", 2, "mcp exec"),
    ("mcp run some-server-that-is-not-here", 127, "mcp run npm:some-server-that-is-not-here"),
    ("mcp run @scope/server", 2, "npm:@scope/server"),
    ("mcp run server.py", 2, "type: mcp run -r . python3 server.py"),
    ("mcp run ./server.js", 2, "type: mcp run -r . node ./server.js"),
    ("mcp run TOKEN=hunter2 ls", 2, "mcp run -e TOKEN=… ls"),
    ("mcp run 'ls -la'", 2, "write its words apart: mcp run ls -la"),
    ("mcp run 'ls | wc'", 2, "mcp exec 'ls | wc'"),
    ("mcp run cd /tmp", 127, "mcp exec 'cd /tmp"),
    ("mcp run sudo ls", 2, "leave it out: mcp run ls"),
    ("mcp run https://example.com/server", 2, "packages (npm:NAME, pypi:NAME"),
    ("mcp run ./sub", 2, "mcp run -r ./sub PROGRAM"),
    ("mcp run server.mcpb", 2, "mcp pack DIR"),
    ("mcp run npm:", 2, "npm:name or npm:@scope/name"),
    ("mcp run npm:@scope", 2, "npm:@scope/name"),
    // Flags.
    ("mcp run --max-memroy 1G ls", 2, "'--max-memory'"),
    ("mcp run --max-memory 1X ls", 2, "use B, KiB, MiB"),
    ("mcp run --max-memory lots ls", 2, "write it like"),
    ("mcp run --max-cpu 50% ls", 2, "500 is half a core"),
    ("mcp run -n https://api.github.com/x ls", 2, "write api.github.com:443"),
    ("mcp run -n '*' ls", 2, "write public"),
    ("mcp run -n any ls", 2, "write public"),
    ("mcp run -n all ls", 2, "write public"),
    ("mcp run --read nosuch ls", 125, "create it first"),
    ("mcp run --env 'A B' ls", 2, "-e A -e B"),
    ("mcp run --secret TOKEN ls", 2, "NAME=env:VARIABLE"),
    ("mcp run --secret TOKEN=env:NOT_SET_HERE ls", 125, "NOT_SET_HERE is not set"),
    ("mcp run --policy nosuch.toml ls", 2, "nosuch.toml"),
    ("mcp run --cwd /nonexistent ls", 125, "add --read or --write"),
    ("mcp run --home ../x ls", 2, "expected letters, digits"),
    ("mcp run --json ls", 2, "--report FILE"),
    ("mcp run --network none ls", 2, "isolated"),
    ("mcp run -n udp://public:53 ls", 2, "udp://1.1.1.1:53"),
    ("mcp run --listen 99999 ls", 2, "65535"),
    // Things that are not there.
    ("mcp kill 12", 1, "`mcp ps` lists those that run"),
    ("mcp remove acme/nothing", 125, "mcp pull acme/nothing"),
    ("mcp pull acme/nothing", 125, "--registry HOST"),
    ("mcp grants revoke acme/nothing", 1, "mcp grants lists"),
    ("mcp exec 'rm -rf /'", 126, "Name the files or directories to remove"),
];

#[test]
fn each_mistake_is_told_with_the_next_step() {
    require!("userns");
    assert!(MISTAKES.len() >= 40);
    let person = Person::new();
    let mut wrong = Vec::new();
    for (line, code, said) in MISTAKES {
        let finished = person.types(line);
        let is_told = finished.stderr.contains(said) && !finished.stderr.contains("hunter2");
        if finished.code != *code || !is_told {
            wrong.push(format!("{line}: exit {code} and {said:?}\n{finished}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

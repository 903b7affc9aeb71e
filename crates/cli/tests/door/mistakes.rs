//! Mistakes that a beginner makes, and the message that names the next step.

use crate::person::Person;
use crate::require;

/// What is typed, the exit code, and what the message must say.
const MISTAKES: &[(&str, i32, &str)] = &[
    // Verbs that are none.
    ("mcp rnu ls", 2, "did you mean: mcp run ls"),
    ("mcp npx -y some-server", 2, "mcp run npx -y some-server"),
    ("mcp install some-server", 2, "type: mcp pull npm:some-server, or mcp pull pypi:some-server"),
    ("mcp install npm:some-server", 2, "type: mcp pull npm:some-server"),
    ("mcp stop", 2, "mcp ps lists what runs; then type: mcp kill ID"),
    ("mcp start x", 2, "type: mcp run x"),
    ("mcp stop x", 2, "type: mcp kill x"),
    ("mcp uninstall npm:x", 2, "type: mcp remove npm:x"),
    ("mcp npm:some-server", 2, "mcp run npm:some-server"),
    ("mcp frobnicate", 2, "mcp help lists them"),
    ("mcp help rnu", 2, "did you mean: mcp run"),
    // Nothing, or something that is no program.
    ("mcp run", 2, "mcp run npx -y NAME"),
    ("mcp run --", 2, "mcp run npx -y NAME"),
    ("mcp run --report true", 2, "--report takes the word after it, true"),
    ("mcp run --allow-net true", 2, "--allow-net takes the word after it, true"),
    ("mcp run -e TOKEN=hunter2", 2, "-e takes the word after it, TOKEN=…)"),
    ("mcp exec", 2, "give the command as one text: mcp exec 'make && make test'"),
    ("mcp run some-server-that-is-not-here", 127, "mcp run npm:some-server-that-is-not-here"),
    ("mcp run @scope/server", 2, "npm:@scope/server"),
    ("mcp run server.py", 2, "type: mcp run -r . python3 server.py"),
    ("mcp run ./server.js", 2, "type: mcp run -r . node ./server.js"),
    ("mcp run nothere.py", 127, "there is no nothere.py in "),
    ("mcp run -- -nothere", 127, "-nothere: command not found\n"),
    ("mcp run python3 nothere.py", 2, "there is no nothere.py in "),
    ("mcp run -r . python3 nothere.py", 2, "there is no nothere.py in "),
    ("mcp run TOKEN=hunter2 ls", 2, "mcp run -e TOKEN=… ls"),
    ("mcp run 'ls -la'", 2, "write its words apart: mcp run ls -la"),
    ("mcp run -e A=hunter2 -r . 'ls -la'", 2, "apart: mcp run -e A=… -r . ls -la"),
    ("mcp run -r . server.py --port 3", 2, "type: mcp run -r . python3 server.py --port 3"),
    ("mcp run 'ls | wc'", 2, "mcp exec 'ls | wc'"),
    ("mcp run cd /tmp", 127, "mcp exec 'cd /tmp"),
    ("mcp run sudo ls", 2, "leave it out: mcp run ls"),
    ("mcp run -q sudo ls", 2, "leave it out: mcp run -q ls"),
    ("mcp run https://example.com/server", 2, "packages (npm:NAME, pypi:NAME"),
    ("mcp run ./sub", 2, "mcp run -r ./sub PROGRAM"),
    ("mcp run server.mcpb", 2, "mcp pack DIR"),
    ("mcp run npm:", 2, "npm:name or npm:@scope/name"),
    ("mcp run npm:@scope", 2, "npm:@scope/name"),
    // Flags.
    ("mcp run --max-memroy 1G ls", 2, "'--max-memory'"),
    ("mcp run --allow-read . ls", 2, "type: -r ."),
    ("mcp run --allow-write . ls", 125, "to let it write there: --write "),
    ("mcp run --net example.com ls", 2, "type: --allow-net example.com"),
    ("mcp run -v .:/work ls", 2, "type: -w . ("),
    ("mcp run --rw . ls", 2, "type: -w ."),
    ("mcp run -it ls", 2, "leave it out"),
    ("mcp exec -c 'ls -l'", 2, "type: mcp exec 'ls -l'"),
    ("mcp run --dry-run ls", 2, "type: --explain"),
    ("mcp run --verbose ls", 2, "--report -"),
    ("mcp run ls --read .", 2, "it comes first: mcp run --read . ls"),
    ("mcp run -r . ./fails.sh -w sub", 3, "it comes first: mcp run -r . -w sub ./fails.sh"),
    ("mcp run -r ~ true", 0, "your whole home"),
    ("mcp run -w ~ true", 0, "your whole home"),
    ("mcp run -e NOT_SET_HERE true", 0, "NOT_SET_HERE is not set here"),
    ("mcp run --max-memory 1X ls", 2, "use B, KiB, MiB"),
    ("mcp run --max-memory lots ls", 2, "write it like"),
    ("mcp run --max-cpu 50% ls", 2, "500 is half a core"),
    ("mcp run -n https://api.github.com/x ls", 2, "write api.github.com:443"),
    ("mcp run -n '*' ls", 2, "write public"),
    ("mcp run -n any ls", 2, "write public"),
    ("mcp run -n all ls", 2, "write public"),
    ("mcp run --read nosuch ls", 125, "create it first"),
    ("mcp run -w ./out ls", 125, "/out, or leave it out"),
    ("mcp run --env 'A B' ls", 2, "-e A -e B"),
    ("mcp run --secret TOKEN ls", 2, "NAME=env:VARIABLE"),
    ("mcp run --secret TOKEN=env:NOT_SET_HERE ls", 125, "NOT_SET_HERE is not set"),
    ("mcp run --policy nosuch.toml ls", 2, "nosuch.toml"),
    ("mcp run --cwd /nonexistent ls", 125, "does not exist"),
    ("mcp run --cwd . ls", 125, "add --read or --write"),
    ("mcp run --home ../x ls", 2, "expected letters, digits"),
    ("mcp run --json ls", 2, "--report FILE"),
    ("mcp run --tmp-size 1M ls", 2, "type: --max-tmp 1M"),
    ("mcp run -m 512m npx -y x", 2, "type: --max-memory 512m"),
    ("mcp run --cpus 2 ls", 2, "type: --max-cpu MILLICORES (1000 is one core)"),
    ("mcp run --allow-all ls", 2, "-r PATH, -w PATH, -n HOST, -e NAME"),
    ("mcp run -d ls", 2, "end the line with &"),
    ("mcp run --frobnicate ls", 2, "mcp run --help lists them"),
    ("mcp exec 'ls -la' --json", 2, "it comes first: mcp exec --json 'ls -la'"),
    ("mcp exec 'ls -la' sub", 2, "as one text: mcp exec 'ls -la sub'"),
    // Clients' own commands to add a server.
    ("mcp add", 2, "mcp add npx -y NAME"),
    ("mcp add some-server", 2, "type: mcp add npm:some-server, or mcp add pypi:some-server"),
    ("mcp add @scope/server", 2, "npm:@scope/server"),
    ("mcp add --scope user x -- npx -y some-server", 2, "type: --project DIR"),
    ("mcp add --transport http x https://example.com/mcp", 2, "leave it out"),
    ("mcp add x https://example.com/mcp", 2, "add it to the client as it stands"),
    ("mcp add x -- node server.js", 2, "then type: mcp wire"),
    ("mcp add docker run -i mcp/time", 2, "mcp run npm:NAME"),
    ("mcp add npx -y some-server --client cursor", 2, "write it before npx"),
    ("mcp add --client Nothing npx -y some-server", 2, "mcp wire --status lists them"),
    ("mcp run --network none ls", 2, "isolated"),
    ("mcp run -n udp://public:53 ls", 2, "udp://1.1.1.1:53"),
    ("mcp run --listen 99999 ls", 2, "65535"),
    ("mcp run --listen 8080:80 ls", 2, "the same number inside and outside"),
    ("mcp run --listen http ls", 2, "a number from 1 to 65535"),
    ("mcp run --version", 2, "type: mcp --version"),
    ("mcp -r . ls", 2, "type: mcp run -r . ls"),
    ("mcp run npx", 2, "mcp run npx -y NAME"),
    ("mcp run npx -y", 2, "mcp run npx -y NAME"),
    ("mcp run uvx", 2, "mcp run uvx NAME"),
    // Words that verbs want, and words that they do not.
    ("mcp pull", 2, "mcp pull npm:NAME"),
    ("mcp pull some-server", 2, "mcp pull npm:some-server, or mcp pull pypi:some-server"),
    ("mcp pull npx -y some-server@1.2.3", 2, "type: mcp pull npm:some-server@1.2.3"),
    ("mcp pull uvx some-server", 2, "type: mcp pull pypi:some-server"),
    ("mcp kill", 2, "mcp ps lists those that run"),
    ("mcp stats", 2, "mcp ps lists those that run"),
    ("mcp remove", 2, "mcp list shows what is in the store"),
    ("mcp completions", 2, "mcp completions bash"),
    ("mcp man", 2, "mcp completions man"),
    ("mcp policy check", 2, "mcp policy check policy.toml"),
    ("mcp policy validate x.toml", 2, "mcp policy check FILE"),
    ("mcp grants list", 2, "type: mcp grants"),
    ("mcp grants revoke", 2, "mcp grants lists what was granted"),
    ("mcp wire cursor", 2, "mcp wire --client cursor"),
    ("mcp doctor node", 2, "mcp doctor --only node"),
    ("mcp log -n many", 2, "--last 20"),
    ("mcp log nothing-like-it", 0, "no run in the log fits"),
    ("mcp pack", 2, "mcp pack ."),
    ("mcp search", 2, "mcp search filesystem"),
    ("mcp export", 2, "mcp export kubernetes npm:NAME"),
    // Things that are not there.
    // Where no other sandbox of this user's is.
    ("XDG_RUNTIME_DIR=$HOME mcp kill 12", 1, "`mcp ps` lists those that run"),
    ("mcp remove acme/nothing", 125, "acme/nothing is not in the store; mcp list"),
    ("mcp remove npm:nothing", 125, "npm:nothing is not in the store; mcp list"),
    ("mcp inspect npm:nothing", 125, "mcp pull npm:nothing"),
    ("mcp check rm -rf /", 1, ""),
    ("mcp check 'rm -rf /' --json", 1, ""),
    ("mcp check echo hi", 0, ""),
    ("mcp wire --client Nothing", 2, "no such client"),
    ("mcp wire --client Cursor", 0, ""),
    ("mcp policy check wrong.toml", 0, "/nowhere does not exist here"),
    ("mcp run ./packed", 125, "write command = \"python3\", args = [\"main.py\"]"),
    ("mcp pull acme/nothing", 125, "--registry HOST"),
    ("mcp grants revoke acme/nothing", 1, "mcp grants lists"),
    ("mcp exec 'rm -rf /'", 126, "Name the files or directories to remove"),
];

#[test]
fn each_mistake_is_told_with_the_next_step() {
    require!("userns");
    assert!(MISTAKES.len() >= 40);
    let person = Person::new();
    person.program("fails.sh", "#!/bin/sh\nexit 3\n");
    person.file("wrong.toml", "[filesystem]\nread = [\"/nowhere\"]\n");
    person.file(
        "packed/mcp.toml",
        "[package]\nname = \"acme/test\"\nversion = \"1.0.0\"\n[server]\ncommand = \"python3 main.py\"\n",
    );
    let mut wrong = Vec::new();
    for (line, code, said) in MISTAKES {
        let finished = person.types(line);
        // Never the value of a variable, and never the most dangerous flag as a way out.
        let is_told = finished.stderr.contains(said)
            && !finished.stderr.contains("hunter2")
            && !(line.contains("--net ") && finished.stderr.contains("--network"));
        if finished.code != *code || !is_told {
            wrong.push(format!("{line}: exit {code} and {said:?}\n{finished}"));
        }
    }
    assert!(!person.has("true"), "a report of nothing");
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

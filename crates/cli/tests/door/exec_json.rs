//! `mcp exec` as an agent's shell: its result as JSON, its streams and exit codes as a shell has them.

use serde_json::Value;

use crate::person::Person;
use crate::require;

#[track_caller]
fn result(person: &Person, line: &str) -> Value {
    let finished = person.types(line);
    let value: Value =
        serde_json::from_str(&finished.text()).unwrap_or_else(|_| panic!("{finished}"));
    assert_eq!(value["exit_code"], finished.code, "{finished}");
    value
}

#[test]
fn one_object_has_what_came_of_it() {
    require!("userns");
    let person = Person::new();
    let good =
        result(&person, "echo from-stdin | mcp exec --json 'cat; echo to-stderr >&2; exit 7'");
    assert_eq!(good["exit_code"], 7);
    assert_eq!(good["stdout"], "from-stdin\n");
    assert_eq!(good["stderr"], "to-stderr\n");
    assert_eq!(good["report"]["exit_code"], 7);
    assert_eq!(good["report"]["controls"]["filesystem"]["status"], "enforced", "{good}");
    assert_eq!((good["refused"].is_null(), good["timed_out"].as_bool()), (true, Some(false)));

    let refused = result(&person, "mcp exec --json 'rm -rf /'");
    assert_eq!(refused["exit_code"], 126);
    assert_eq!(refused["refused"]["rules"][0], "delete-everything", "{refused}");

    let undone =
        result(&person, "mcp exec --json 'mkdir -p .vscode && echo {} > .vscode/tasks.json'");
    assert!(undone["undone"][0]["path"].as_str().unwrap().contains(".vscode"), "{undone}");
    assert!(!person.has(".vscode/tasks.json"));

    let blocked = result(&person, "mcp exec --json 'getent hosts name.example'");
    assert_eq!(blocked["blocked"][0]["to"], "name.example", "{blocked}");
    assert_eq!(blocked["blocked"][0]["allow"], "--allow-net name.example", "{blocked}");

    let hidden = result(&person, "mcp exec --json 'cat ../beside/note.txt'");
    assert_eq!(hidden["hints"], serde_json::json!([]), "what is not there: {hidden}");
    person.file("../beside/note.txt", "note\n");
    let hidden = result(&person, "mcp exec --json 'cat ../beside/note.txt'");
    assert!(hidden["hints"][0].as_str().unwrap().contains("add -r ../beside/note.txt"), "{hidden}");
    assert!(!hidden["stderr"].as_str().unwrap().contains("mcp:"), "{hidden}");

    // The kernel tells a refused allocation to the process alone, and the process says so.
    let starved = "mcp exec --json 'python3 -c \"x = bytearray(5 << 30)\"'";
    let starved = result(&person, starved);
    let words = starved["hints"][0].as_str().unwrap_or_default();
    if starved["stderr"].as_str().unwrap().contains("MemoryError")
        && starved["report"]["controls"]["memory"]["by"].as_str().unwrap().contains("RLIMIT")
    {
        assert!(words.contains("MemoryError") && words.contains("--max-memory 16GiB"), "{starved}");
    }
    let fine = result(&person, "mcp exec --json 'echo MemoryError >&2'");
    assert_eq!(fine["hints"], serde_json::json!([]), "{fine}");

    let slow = result(&person, "mcp exec --json --timeout 100ms --grace 100ms 'sleep 60'");
    assert_eq!(
        (slow["exit_code"].as_i64(), slow["timed_out"].as_bool()),
        (Some(124), Some(true)),
        "{slow}"
    );
    let left: Vec<_> = std::fs::read_dir(std::env::temp_dir()).unwrap().flatten().collect();
    let is_ours =
        |entry: &std::fs::DirEntry| entry.file_name().to_string_lossy().starts_with("mcp-exec-");
    assert!(!left.iter().any(is_ours), "{left:?}");
}

#[test]
fn a_stream_comes_as_lines_and_the_result_is_the_last() {
    require!("userns");
    let person = Person::new();
    let finished = person.types("mcp exec --json --stream 'printf ä; echo e >&2; exit 3'");
    let text = finished.text();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |name: &str| -> String {
        let pieces = lines.iter().filter(|line| line["stream"] == name);
        pieces.map(|line| line["data"].as_str().unwrap()).collect()
    };
    assert_eq!((of("stdout").as_str(), of("stderr").as_str()), ("ä", "e\n"));
    assert_eq!(lines.last().unwrap()["exit_code"], 3);
    assert_eq!(finished.code, 3);
}

/// Without --json it is a shell: streams are the command's own, and codes as everybody knows them.
#[test]
fn exit_codes_and_streams_are_a_shells() {
    require!("userns");
    let person = Person::new();
    for (line, code, text) in [
        ("mcp exec 'exit 42'", 42, ""),
        ("mcp exec 'kill -9 $$'", 137, ""),
        ("mcp exec 'no-such-program-here'", 127, ""),
        ("mcp exec ./file.txt", 126, ""),
        ("printf 'a\\nb\\n' | mcp exec 'wc -l'", 0, "2\n"),
        ("mcp exec 'false | true'", 0, ""),
        ("mcp exec 'echo out; echo err >&2' 2>/dev/null", 0, "out\n"),
        ("mcp exec echo 'a  b' '$HOME'", 0, "a  b $HOME\n"),
    ] {
        let finished = person.types(line);
        assert_eq!((finished.code, finished.text().as_str()), (code, text), "{line}\n{finished}");
    }
}

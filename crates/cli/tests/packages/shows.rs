//! The seeds' own check, run inside a package from a real registry: limits that are really there.

use std::fs;

use crate::registry::{Door, Registry};
use crate::user::{Said, User, text};

/// Prints what holds for the process, and then tries it.
const SCRIPT: &str = r##"
import mmap, os, resource, sys

def limit(name):
    soft, hard = resource.getrlimit(getattr(resource, name))
    print(f"{name}: soft={soft}, hard={hard}")

limit("RLIMIT_AS")
limit("RLIMIT_DATA")
for line in open("/proc/self/cgroup"):
    number, controllers, path = line.strip().split(":", 2)
    if number == "0":
        place = "/sys/fs/cgroup" + path + "/memory.max"
        print("memory.max:", open(place).read().strip() if os.path.exists(place) else "not shown inside")
sys.stdout.flush()
try:
    held = bytearray(int(sys.argv[1]) << 20)
    for at in range(0, len(held), 4096):
        held[at] = 1
    print("allocated")
except MemoryError:
    print("MemoryError")
"##;

fn has_python() -> bool {
    let found = std::process::Command::new("python3").arg("--version").output().is_ok();
    if !found {
        println!("SKIP: python3: is not installed");
    }
    found
}

#[test]
fn the_limits_of_a_package_from_a_registry_are_there() {
    crate::require!("userns");
    let user = User::new();
    let Some(registry) = Registry::start(&user, Door::Open) else { return };
    if !has_python() {
        return;
    }
    let source = user.scratch.dir("source");
    let text_of_manifest = "[package]\nname = 'acme/test'\nversion = '1.0.0'\n[server]\ncommand = 'python3'\nargs = ['${__dirname}/verify.py']\n";
    fs::write(source.join("mcp.toml"), text_of_manifest).unwrap();
    fs::write(source.join("verify.py"), SCRIPT).unwrap();
    let mcp = |user: &User, words: &[&str]| -> Said {
        user.command(words).env("MCP_REGISTRY", &registry.host).output().unwrap().into()
    };
    user.mcp(&["pack", text(&source)]).ok();
    mcp(&user, &["push", text(&user.path("cwd/test-1.0.0.mcpb"))]).ok();
    let other = User::new();
    mcp(&other, &["pull", "acme/test@1.0.0"]).ok();
    let report = other.path("report.json");
    let run = |flags: &[&str], size: &str| {
        let words =
            [&["run", "--raw", "acme/test@1.0.0"], flags, &["--report", text(&report), "--", size]]
                .concat();
        let said = mcp(&other, &words);
        println!("{}{}", said.out, said.err);
        (said, fs::read_to_string(&report).unwrap())
    };
    // Without a limit: the control.
    let (said, _) = run(&["--max-memory", "none", "--max-cpu", "100"], "100");
    said.ok().says("RLIMIT_DATA: soft=-1").says("allocated");
    let (said, told) = run(&["--max-memory", "64M", "--max-cpu", "100"], "100");
    assert!(!said.out.contains("allocated"), "{}", said.out);
    let by_cgroup = told.contains("memory.max");
    match by_cgroup {
        true => assert!(told.contains("memory_limit"), "{told}"),
        false => {
            assert!(said.out.contains("RLIMIT_DATA: soft=67108864, hard=67108864"), "{}", said.out);
        }
    }
    // What fits is given.
    let (said, _) = run(&["--max-memory", "64M", "--max-cpu", "100"], "1");
    said.ok().says("allocated");
    let (said, _) = run(&["--max-address-space", "64M", "--max-memory", "none"], "100");
    said.says("RLIMIT_AS: soft=67108864, hard=67108864").says("MemoryError");
}

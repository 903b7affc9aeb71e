//! Installations by the real pip (and uv, where it is on this machine) from an index on loopback.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::Command;

use crate::require;
use crate::user::{Said, User};

/// Makes an index below `index`: NAME VERSION KIND…, KIND being `any`, `windows` (a wheel for another machine) or `source`.
/// A source distribution builds itself, without anything from an index.
const MAKE: &str = r##"
import hashlib, io, os, sys, tarfile, zipfile
BACKEND = '''
import zipfile
def get_requires_for_build_wheel(settings=None): return []
def build_wheel(directory, settings=None, metadata=None):
    name = "NAME-VERSION-py3-none-any.whl"
    with zipfile.ZipFile(directory + "/" + name, "w") as wheel:
        for path, text in FILES.items(): wheel.writestr(path, text)
    return name
def build_sdist(directory, settings=None): raise SystemExit(1)
'''
def files(name, version, needs):
    info = f"{name}-{version}.dist-info/"
    requires = "".join(f"Requires-Dist: {need}\n" for need in needs)
    made = {
        f"{name}.py": f"def main():\n    import json\n    print(json.dumps(['{name} {version}']))\n",
        info + "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}",
        info + "WHEEL": "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        info + "entry_points.txt": f"[console_scripts]\n{name} = {name}:main\n",
    }
    made[info + "RECORD"] = "".join(f"{path},,\n" for path in made) + info + "RECORD,,\n"
    return made
for line in sys.argv[1:]:
    name, version, kind, *needs = line.split()
    content = files(name, version, needs)
    os.makedirs(f"index/simple/{name}", exist_ok=True)
    if kind == "source":
        file = f"{name}-{version}.tar.gz"
        backend = BACKEND.replace("NAME", name).replace("VERSION", version).replace("FILES", repr(content))
        sources = {
            "backend.py": backend,
            "PKG-INFO": content[f"{name}-{version}.dist-info/METADATA"],
            "pyproject.toml": "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n",
        }
        with tarfile.open("index/" + file, "w:gz") as archive:
            for path, text in sources.items():
                member = tarfile.TarInfo(f"{name}-{version}/{path}")
                member.size = len(text.encode())
                archive.addfile(member, io.BytesIO(text.encode()))
    else:
        file = f"{name}-{version}-py3-none-{'any' if kind == 'any' else 'win_amd64'}.whl"
        with zipfile.ZipFile("index/" + file, "w") as wheel:
            for path, text in content.items():
                wheel.writestr(path, text)
    digest = hashlib.sha256(open("index/" + file, "rb").read()).hexdigest()
    with open(f"index/simple/{name}/index.html", "a") as page:
        page.write(f'<a href="/{file}#sha256={digest}">{file}</a><br>\n')
"##;

struct Pypi {
    url: String,
    /// Programs that are found first.
    path: String,
}

/// The tools of this machine, each by the words that an installation says it is made with.
fn tools() -> Vec<&'static str> {
    let works = |program: &str, words: &[&str]| {
        Command::new(program).args(words).output().is_ok_and(|output| output.status.success())
    };
    let mut tools = Vec::new();
    if works("python3", &["-m", "pip", "--version"]) {
        tools.push("with pip");
    }
    if works("uv", &["--version"]) {
        tools.push("with uv");
    }
    if tools.is_empty() {
        println!("SKIP: pip: is not installed");
    }
    tools
}

impl Pypi {
    fn new(user: &User, tool: &str, projects: &[&str]) -> Pypi {
        user.scratch.dir("index/simple");
        let mut make = Command::new("python3");
        make.args(["-c", MAKE]).args(projects).current_dir(user.scratch.join("."));
        assert!(make.status().unwrap().success());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/simple/", listener.local_addr().unwrap());
        let directory = user.path("index");
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let directory = directory.clone();
                std::thread::spawn(move || {
                    let mut reader = BufReader::new(&stream);
                    let mut line = String::new();
                    let _ = reader.read_line(&mut line);
                    let asked = line.split(' ').nth(1).unwrap_or("/").trim_matches('/').to_owned();
                    while reader.read_line(&mut line).is_ok_and(|read| read > 2) {}
                    let page = directory.join(&asked).join("index.html");
                    let (kind, body) = match std::fs::read(page) {
                        Ok(page) => ("text/html", Ok(page)),
                        Err(_) => {
                            ("application/octet-stream", std::fs::read(directory.join(&asked)))
                        }
                    };
                    let (status, body) =
                        body.map_or(("404 no", Vec::new()), |body| ("200 OK", body));
                    let _ = write!(
                        &stream,
                        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                        body.len()
                    );
                    let _ = (&stream).write_all(&body);
                });
            }
        });
        // A uv that does not start is none.
        if tool == "with pip" {
            user.scratch.script("bin/uv", "#!/bin/sh\nexit 1\n");
        }
        let path = format!("{}:{}", user.path("bin").display(), std::env::var("PATH").unwrap());
        Pypi { url, path }
    }

    fn mcp(&self, user: &User, words: &[&str]) -> Said {
        let mut command = user.command(words);
        for name in ["PIP_FIND_LINKS", "PIP_CERT", "UV_INDEX_URL", "UV_DEFAULT_INDEX"] {
            command.env_remove(name);
        }
        command.env("PIP_INDEX_URL", &self.url).env("PATH", &self.path).output().unwrap().into()
    }
}

/// What the newest is made of decides what is installed, and each version before it is told.
#[test]
fn no_other_version_than_the_newest_without_a_word() {
    require!("userns");
    for tool in tools() {
        let user = User::new();
        let pypi = Pypi::new(
            &user,
            tool,
            &[
                "stepback 1.0 any",
                "stepback 1.1 source",
                "foreign 1.0 any",
                "foreign 2.0 windows",
                "plain 1.0 any",
                "plain 1.1 any",
                "plain 1.2rc1 any",
                "needs 1.0 any plain",
                "needs 2.0 any stepback>1.0",
            ],
        );
        let pull = |word: &str| pypi.mcp(&user, &["pull", word]);
        let said = pull("pypi:stepback").ok();
        assert!(said.err.contains(tool), "{}", said.err);
        assert!(
            said.err.contains("stepback 1.0 is installed, not 1.1, which has no wheel"),
            "{tool}: {}",
            said.err
        );
        let said = pull("pypi:foreign").ok();
        assert!(said.err.contains("foreign 1.0 is installed, not 2.0"), "{tool}: {}", said.err);
        // The control: of one whose newest has a wheel nothing is said.
        let said = pull("pypi:plain").ok();
        assert!(!said.err.contains(" is installed, not "), "{tool}: {}", said.err);
        pypi.mcp(&user, &["run", "pypi:plain"]).ok().says("plain 1.1");
        // A dependency without a wheel is no reason for an older version: it is named.
        let said = pull("pypi:needs").fails(125, "--allow-build");
        assert!(said.err.contains("stepback"), "{tool}: {}", said.err);
        // An index that cannot be asked is not what --allow-build helps with.
        let gone = Pypi { url: "http://127.0.0.1:9/simple/".to_owned(), path: pypi.path.clone() };
        assert!(!gone.mcp(&user, &["pull", "pypi:other"]).err.contains("--allow-build"));
    }
}

/// The flag counts for a package that is in the store without it, and is not built a second time.
#[test]
fn a_stored_older_version_is_replaced_by_one_that_is_built() {
    require!("userns");
    for tool in tools() {
        let user = User::new();
        let pypi = Pypi::new(&user, tool, &["stepback 1.0 any", "stepback 1.1 source"]);
        pypi.mcp(&user, &["run", "pypi:stepback"]).ok().says("stepback 1.0");
        let built =
            pypi.mcp(&user, &["run", "--allow-build", "pypi:stepback"]).ok().says("stepback 1.1");
        assert!(built.err.contains("installing"), "{tool}: {}", built.err);
        for flags in [&["--allow-build"][..], &[]] {
            let words = [&["run"], flags, &["pypi:stepback"]].concat();
            let said = pypi.mcp(&user, &words).ok().says("stepback 1.1");
            assert!(!said.err.contains("installing"), "{tool}: {}", said.err);
        }
    }
}

/// What a bundle of type uv depends on is built after the same yes as any other package.
#[test]
fn a_uv_bundle_is_built_after_a_yes() {
    require!("userns");
    for tool in tools() {
        let user = User::new();
        let pypi = Pypi::new(&user, tool, &["onlysource 1.0 source"]);
        user.scratch.file(
            "bundle/manifest.json",
            r#"{"manifest_version": "0.4", "name": "acme/uv", "version": "1.0.0", "description": "x", "author": {"name": "x"},
                "server": {"type": "uv", "entry_point": "server.py", "mcp_config": {"command": "uv", "args": ["run", "server.py"]}}}"#,
        );
        user.scratch.file(
            "bundle/pyproject.toml",
            "[project]\nname = 'x'\nversion = '1'\ndependencies = ['onlysource']\n",
        );
        user.scratch.file("bundle/server.py", "import onlysource\nonlysource.main()\n");
        let bundle = user.path("uv.mcpb");
        let bundle = crate::user::text(&bundle);
        pypi.mcp(&user, &["pack", crate::user::text(&user.path("bundle")), "-o", bundle]).ok();
        pypi.mcp(&user, &["run", bundle]).fails(125, "--allow-build");
        pypi.mcp(&user, &["run", "--allow-build", bundle]).ok().says("onlysource 1.0");
    }
}

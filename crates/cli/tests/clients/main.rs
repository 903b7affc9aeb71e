//! Programs that know nothing of the sandbox: with a rule they reach the host they ask for, and
//! fail by themselves, with their ordinary error, for any other.
//!
//! Servers, names and certificates are the test's own, in namespaces of its own. What is not
//! installed is skipped, with `SKIP:` and its name.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/mod.rs"]
mod support;

mod place;
mod registry;

use std::process::Command;

use place::{HELLO, Place, find, missing, user, write};

/// A place, or a line that says what there is not.
fn place(programs: &[&str]) -> Option<Place> {
    if !support::available("userns") {
        return None;
    }
    match missing(&[&["python3", "openssl", "timeout"], programs].concat()) {
        None => Some(Place::new()),
        Some(reason) => {
            println!("SKIP: {reason}");
            None
        }
    }
}

fn words<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}

#[test]
fn curl() {
    let Some(place) = place(&["curl"]) else { return };
    let certificate = place.certificate();
    place.check(&[443], HELLO, |host| {
        words(["curl", "-sS", "--cacert", &certificate, &format!("https://{host}/")])
    });
    place.check(&[80], HELLO, |host| words(["curl", "-sS", &format!("http://{host}/")]));
}

#[test]
fn wget() {
    let Some(place) = place(&["wget"]) else { return };
    let certificate = format!("--ca-certificate={}", place.certificate());
    place.check(&[443], HELLO, |host| {
        words(["wget", "-qO-", "--tries=1", &certificate, &format!("https://{host}/")])
    });
}

#[test]
fn git() {
    let Some(place) = place(&["git"]) else { return };
    place.prepare(&["git", "init", "-q", "work"]);
    let commit = ["git", "-C", "work", "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q"];
    place.prepare(&[&commit[..], &["--allow-empty", "-m", "x"]].concat());
    place.prepare(&["git", "clone", "-q", "--bare", "work", "www/repo.git"]);
    place.prepare(&["git", "-C", "www/repo.git", "update-server-info"]);
    let certificate = format!("http.sslCAInfo={}", place.certificate());
    place.check(&[443], "\tHEAD", |host| {
        words(["git", "-c", &certificate, "ls-remote", &format!("https://{host}/repo.git")])
    });
}

/// The server speaks first.
#[test]
fn ssh() {
    let Some(place) = place(&["ssh", "ssh-keygen", "sshd"]) else { return };
    if !std::path::Path::new("/run/sshd").is_dir() {
        println!("SKIP: sshd is here, but /run/sshd, where it locks itself up, is not");
        return;
    }
    place.prepare(&["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "hostkey"]);
    place.prepare(&["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "key"]);
    let here = place.path("").display().to_string();
    let here = here.trim_end_matches('/');
    write(
        &place.path("sshd_config"),
        &format!(
            "ListenAddress 9.9.9.9:22\nHostKey {here}/hostkey\nAuthorizedKeysFile {here}/key.pub\n\
             StrictModes no\nUsePAM no\nPidFile none\nPermitRootLogin yes\n"
        ),
    );
    let sshd = find("sshd").unwrap();
    let config = place.path("sshd_config");
    let tried = Command::new(&sshd).arg("-t").arg("-f").arg(&config).output().unwrap();
    if !tried.status.success() {
        println!("SKIP: sshd cannot run here: {}", String::from_utf8_lossy(&tried.stderr).trim());
        return;
    }
    write(&place.path("sshd_path"), &sshd.display().to_string());
    let key = format!("{here}/key");
    let to = user();
    place.check(&[22], "hello by ssh", |host| {
        words([
            "ssh",
            "-F",
            "none",
            "-i",
            &key,
            "-o",
            "BatchMode=yes",
            "-o",
            "StrictHostKeyChecking=no",
            "-o",
            "UserKnownHostsFile=/dev/null",
            "-o",
            "GlobalKnownHostsFile=/dev/null",
            &format!("{to}@{host}"),
            "echo hello by ssh",
        ])
    });
}

/// The same as far as a stand-in goes: the client waits for the server's words, and hears them.
#[test]
fn ssh_hears_who_speaks_first() {
    let Some(place) = place(&["ssh", "grep"]) else { return };
    place.check(&[2222], "hello_by_a_stand-in", |host| {
        let options = "-v -F none -p 2222 -o BatchMode=yes -o ConnectTimeout=20";
        let script = format!("ssh {options} {host} true 2>&1 | grep 'remote software version'");
        words(["sh", "-c", &script])
    });
}

/// Against the registry that this machine reaches.
#[test]
fn pip() {
    let script = "cd && python3 -m pip download -q --disable-pip-version-check --no-deps \
                  --no-cache-dir --retries 0 -d . six==1.16.0 && ls";
    registry::check(&["python3"], &["pypi.org", "files.pythonhosted.org"], script, "six-1.16.0");
}

#[test]
fn npm() {
    let script = "cd && npm pack --silent --fetch-retries=0 left-pad@1.3.0 && ls";
    registry::check(&["npm"], &["registry.npmjs.org"], script, "left-pad-1.3.0.tgz");
}

/// The client speaks first, in a language of its own.
#[test]
fn psql() {
    let Some(place) = place(&["psql"]) else { return };
    place.check(&[5432], "hello by postgres", |host| {
        let to = format!("host={host} user=x dbname=x sslmode=prefer connect_timeout=20");
        words(["psql", &to, "-Atc", "select 1"])
    });
}

/// Two hundred at one time.
#[test]
fn node() {
    let Some(place) = place(&["node"]) else { return };
    let script =
        "Promise.all(Array.from({length: 200}, () => fetch('https://HOST/').then(r => r.text())))
        .then(all => console.log(new Set(all).size, all[0]))
        .catch(error => { console.error(error.cause ?? error); process.exit(1) })";
    place.check(&[443], &format!("1 {HELLO}"), |host| {
        words(["node", "-e", &script.replace("HOST", host)])
    });
}

#[test]
fn python_asyncio() {
    let Some(place) = place(&["python3"]) else { return };
    let script = "import asyncio
async def one():
    reader, writer = await asyncio.open_connection('HOST', 443, ssl=True)
    writer.write(b'GET / HTTP/1.0\\r\\nHost: HOST\\r\\n\\r\\n')
    return (await reader.read()).decode().splitlines()[-1]
async def main():
    print(set(await asyncio.gather(*(one() for _ in range(50)))))
asyncio.run(main())";
    place.check(&[443], &format!("{{'{HELLO}'}}"), |host| {
        words(["python3", "-c", &script.replace("HOST", host)])
    });
}

/// Static, with a resolver of its own.
#[test]
fn go() {
    let Some(place) = place(&["go"]) else { return };
    write(
        &place.path("main.go"),
        "package main\nimport (\"fmt\"; \"io\"; \"net/http\"; \"os\")\nfunc main() {\n\
         r, err := http.Get(\"https://\" + os.Args[1] + \"/\")\n\
         if err != nil { fmt.Fprintln(os.Stderr, err); os.Exit(1) }\n\
         b, _ := io.ReadAll(r.Body); fmt.Print(string(b)) }\n",
    );
    let cache = format!("GOCACHE={}", place.path("cache").display());
    place.prepare(&["env", &cache, "CGO_ENABLED=0", "go", "build", "-o", "client", "main.go"]);
    let client = place.path("client").display().to_string();
    place.check(&[443], HELLO, |host| words([&client, host]));
}

#[test]
fn java() {
    let Some(place) = place(&["java", "keytool"]) else { return };
    write(
        &place.path("Client.java"),
        "import java.net.URI; import java.net.http.*;\npublic class Client {\n\
         public static void main(String[] a) throws Exception {\n\
         var request = HttpRequest.newBuilder(URI.create(\"https://\" + a[0] + \"/\")).build();\n\
         System.out.print(HttpClient.newHttpClient().send(request, \
         HttpResponse.BodyHandlers.ofString()).body()); } }\n",
    );
    place.prepare(&[
        "keytool",
        "-importcert",
        "-noprompt",
        "-alias",
        "x",
        "-file",
        "cert.pem",
        "-keystore",
        "trust.p12",
        "-storetype",
        "PKCS12",
        "-storepass",
        "changeit",
    ]);
    let trust = format!("-Djavax.net.ssl.trustStore={}", place.path("trust.p12").display());
    let password = "-Djavax.net.ssl.trustStorePassword=changeit";
    let client = place.path("Client.java").display().to_string();
    place.check(&[443], HELLO, |host| {
        words(["java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", &trust, password, &client, host])
    });
}

/// A static binary of another C library.
#[test]
fn musl() {
    let Some(place) = place(&["musl-gcc"]) else { return };
    write(
        &place.path("client.c"),
        "#include <netdb.h>\n#include <stdio.h>\n#include <string.h>\n#include <unistd.h>\n\
         int main(int c, char **v) { struct addrinfo *a, h = {.ai_socktype = SOCK_STREAM};\n\
         int e = getaddrinfo(v[1], \"80\", &h, &a); if (e) { fprintf(stderr, \"%s\\n\", gai_strerror(e)); return 1; }\n\
         int s = socket(a->ai_family, SOCK_STREAM, 0);\n\
         if (connect(s, a->ai_addr, a->ai_addrlen)) { perror(\"connect\"); return 1; }\n\
         dprintf(s, \"GET / HTTP/1.0\\r\\nHost: %s\\r\\n\\r\\n\", v[1]);\n\
         char b[4096]; ssize_t n; while ((n = read(s, b, sizeof b)) > 0) write(1, b, n); return 0; }\n",
    );
    place.prepare(&["musl-gcc", "-static", "-o", "client", "client.c"]);
    let client = place.path("client").display().to_string();
    place.check(&[80], HELLO, |host| words([&client, host]));
}

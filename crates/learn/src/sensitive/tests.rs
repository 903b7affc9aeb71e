use proptest::prelude::*;

use super::*;

fn reason(path: &str) -> Option<&'static str> {
    path_reason(Path::new(path), Some(Path::new("/home/ada")))
}

#[test]
fn credentials_are_never_proposed() {
    for path in [
        "/home/ada/.ssh",
        "/home/ada/.ssh/id_ed25519",
        "/home/ada/.ssh/known_hosts",
        "/home/ada/.gnupg/private-keys-v1.d/a.key",
        "/home/ada/.aws/credentials",
        "/home/ada/.config/gcloud/application_default_credentials.json",
        "/home/ada/.docker/config.json",
        "/home/ada/.mozilla/firefox/x/logins.json",
        "/home/ada/.local/share/keyrings/login.keyring",
        "/home/ada/project/.env",
        "/home/ada/project/.env.production",
        "/home/ada/.netrc",
        "/home/ada/Library/Keychains/login.keychain-db",
        "/srv/app/.env",
        "/srv/keys/id_rsa",
        "/srv/keys/vault.kdbx",
        "/etc/shadow",
        "/etc/ssh/ssh_host_rsa_key",
        "/run/secrets/token",
        // What is above shows what is in it.
        "/home/ada/.config",
        "/home/ada/.local/share",
        "/home/ada/.local",
        "/home/ada/.cargo",
        "/home/ada",
        "/home",
        "/",
        "/home/eve/notes",
        "/root/x",
        "/proc/1/environ",
        "/proc",
        "/dev/mem",
        "/etc",
        "/var",
    ] {
        assert!(reason(path).is_some(), "{path}");
    }
}

#[test]
fn everyday_places_may_be_proposed() {
    for path in [
        "/home/ada/notes",
        "/home/ada/project/src/main.rs",
        "/home/ada/project/.env.example",
        "/home/ada/.config/my-server/config.toml",
        "/home/ada/.cache/my-server",
        "/home/ada/.cargo/registry",
        "/home/ada/keys/id_rsa.pub",
        "/srv/data",
        "/etc/timezone",
        "/var/lib/my-server",
        "/tmp/x",
    ] {
        assert_eq!(reason(path), None, "{path}");
    }
}

#[test]
fn sockets_that_act_for_the_user_are_withheld() {
    let home = Some(Path::new("/home/ada"));
    for path in [
        "/run/docker.sock",
        "/run/user/1000/bus",
        "/tmp/ssh-abc/agent.12",
        "/tmp/.X11-unix/X0",
        "/run/user/1000/gnupg/S.gpg-agent",
        "/run/user/1000/wayland-0",
    ] {
        assert!(socket_reason(Path::new(path), home).is_some(), "{path}");
    }
    assert_eq!(socket_reason(Path::new("/srv/app/app.sock"), home), None);
}

#[test]
fn private_networks_are_withheld() {
    for rule in [
        "localhost:80",
        "127.0.0.1:80",
        "10.1.2.3:5432",
        "192.168.0.1",
        "169.254.169.254:80",
        "100.64.0.1",
        "[::1]:80",
        "[fd00::1]:80",
        "[fe80::1]:80",
        "[64:ff9b::a00:1]:80",
        "printer.local",
        "db.internal:5432",
        "intranet",
        "*.example.com",
        "public",
    ] {
        let rule: NetRule = rule.parse().unwrap();
        assert!(net_reason(&rule).is_some(), "{rule}");
    }
    for rule in ["api.github.com:443", "8.8.8.8:53", "[2606:4700::1111]:443"] {
        let rule: NetRule = rule.parse().unwrap();
        assert_eq!(net_reason(&rule), None, "{rule}");
    }
}

proptest! {
    #[test]
    fn nothing_below_or_above_a_place_of_credentials(at in 0..IN_HOME.len(), tail in "[a-z]{1,8}(/[a-z]{1,8}){0,3}") {
        let home = Path::new("/home/ada");
        let place = home.join(IN_HOME[at].replace('*', "x"));
        prop_assert!(path_reason(&place.join(&tail), Some(home)).is_some());
        let last = if IN_HOME[at].contains('*') { 1 } else { usize::MAX };
        for above in place.ancestors().take(last) {
            prop_assert!(path_reason(above, Some(home)).is_some(), "{above:?}");
        }
        // The spelling of a case-blind file system.
        let loud = home.join(IN_HOME[at].replace('*', "x").to_uppercase()).join(&tail);
        prop_assert!(path_reason(&loud, Some(home)).is_some());
    }
}

/// What the guard calls a secret file is a place of credentials here too.
#[test]
fn the_guards_secret_files_are_never_proposed() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../guard/src/rules/builtin.toml");
    let text = std::fs::read_to_string(file).unwrap();
    let (_, list) = text.split_once("\nsecret-file = [").unwrap();
    let (list, _) = list.split_once("\n]").unwrap();
    let patterns: Vec<&str> = list.split('"').skip(1).step_by(2).collect();
    assert!(patterns.len() > 100, "{patterns:?}");
    let missing: Vec<&str> = patterns
        .into_iter()
        .filter(|pattern| pattern.starts_with(['~', '/']))
        .filter(|pattern| {
            let path = pattern.replacen('~', "/home/ada", 1).replace("**", "a/b").replace('*', "x");
            reason(&path).is_none()
        })
        .collect();
    assert_eq!(missing, [""; 0]);
}

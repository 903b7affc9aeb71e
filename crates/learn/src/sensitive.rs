//! What is never proposed unless a person asks for it: places of credentials, whole homes, the network at home.
//!
//! A name that is missing here is proposed, and a person sees it before it is granted; with `--yes` no person does. So the table is wide.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Component, Path, PathBuf};

use mcp_policy::{Host, NetRule, Wildcard};

/// Below a home directory; also `XDG` places. Compared without regard to case. `*` ends a name, or is one.
const IN_HOME: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".oci",
    ".bluemix",
    ".terraform.d",
    ".vault-token",
    ".vault_pass*",
    ".ansible",
    ".aliyun",
    ".fly",
    ".cloudflared",
    ".railway",
    ".supabase",
    ".wrangler",
    ".netlify",
    ".vercel",
    ".huggingface",
    ".cache/huggingface/token",
    ".kaggle",
    ".snowsql",
    ".mc",
    ".s3cfg",
    ".boto",
    ".databrickscfg",
    ".sentryclirc",
    ".terraformrc",
    ".jira.d",
    ".age",
    ".pulumi",
    ".password-store",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".git-credentials",
    ".msmtprc",
    ".smbcredentials",
    ".vnc",
    ".putty",
    ".purple",
    ".weechat",
    ".wallet*",
    ".bitcoin",
    ".ethereum",
    ".electrum",
    ".cargo/credentials",
    ".cargo/credentials*",
    ".gem/credentials",
    ".composer/auth.json",
    ".m2/settings.xml",
    ".m2/settings-security.xml",
    ".gradle/gradle.properties",
    ".config/gcloud",
    ".config/gh",
    ".config/glab-cli",
    ".config/hub",
    ".config/anthropic",
    ".config/openai",
    ".config/github-copilot",
    ".config/opencode",
    ".config/.wrangler",
    ".config/netlify",
    ".config/vercel",
    ".config/flyctl",
    ".config/sentry",
    ".config/pulumi",
    ".config/stripe",
    ".config/ngrok",
    ".config/jira",
    ".config/composer/auth.json",
    ".config/configstore",
    ".config/code/user/globalstorage",
    ".config/atuin",
    ".config/neomutt",
    ".config/filezilla",
    ".config/solana",
    ".config/git/credentials",
    ".config/op",
    ".config/rclone",
    ".config/sops",
    ".config/doctl",
    ".config/heroku",
    ".config/containers",
    ".config/google-chrome",
    ".config/chromium",
    ".config/bravesoftware",
    ".config/microsoft-edge",
    ".config/vivaldi",
    ".config/opera",
    ".config/1password",
    ".config/bitwarden*",
    ".config/keepassxc",
    ".config/slack",
    ".config/discord",
    ".config/signal",
    ".config/mcp",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".local/share/com.vercel.cli",
    ".local/share/opencode",
    ".local/share/atuin",
    ".local/share/telegramdesktop",
    ".local/share/fish/fish_history",
    ".local/share/mcp",
    ".local/state/mcp",
    ".mozilla",
    ".thunderbird",
    ".bash_history",
    ".zsh_history",
    ".python_history",
    ".node_repl_history",
    ".psql_history",
    ".mysql_history",
    ".sqlite_history",
    ".rediscli_history",
    ".lesshst",
    ".claude",
    ".claude.json",
    ".codex",
    ".gemini",
    ".cursor",
    "snap/firefox",
    "snap/chromium",
    "library/keychains",
    "library/cookies",
    "library/mail",
    "library/messages",
    "library/safari",
    "library/application support/google",
    "library/application support/firefox",
    "library/application support/bravesoftware",
    "library/application support/slack",
    "library/application support/mcp",
    "appdata/roaming/microsoft/credentials",
    "appdata/roaming/microsoft/protect",
    "appdata/roaming/mozilla",
    "appdata/local/microsoft/credentials",
    "appdata/local/google",
    "appdata/roaming/gcloud",
    "appdata/roaming/gh",
    "appdata/roaming/github cli",
    "appdata/roaming/microsoft/windows/powershell/psreadline",
    "appdata/local/microsoft/edge",
    "appdata/roaming/*/user/globalstorage",
];

/// Anywhere, by the name alone.
const NAMES: &[&str] = &[
    ".env",
    ".envrc",
    ".netrc",
    "_netrc",
    ".pgpass",
    ".npmrc",
    ".pypirc",
    ".htpasswd",
    ".git-credentials",
    ".vault-token",
    ".dockercfg",
    ".ssh",
    ".gnupg",
    ".aws",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "authorized_keys",
    "credentials.json",
    "service-account.json",
    "client_secret.json",
    "login data",
    "cookies.sqlite",
    "key4.db",
    "logins.json",
];
const ENDINGS: &[&str] = &[".kdbx", ".pfx", ".p12", ".keystore", ".jks", ".ppk", ".ovpn"];
/// Files of these names are examples without secrets.
const EXAMPLES: &[&str] = &["example", "sample", "template", "dist", "defaults"];

/// Of the machine.
const SYSTEM: &[&str] = &[
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/ssh",
    "/etc/ssl/private",
    "/etc/pki/tls/private",
    "/etc/krb5.keytab",
    "/etc/master.passwd",
    "/etc/passwd-",
    "/etc/exports",
    "/etc/ipsec.secrets",
    "/etc/ppp",
    "/etc/openvpn",
    "/etc/docker/key.json",
    "/etc/machine-id",
    "/etc/kubernetes",
    "/etc/rancher",
    "/etc/NetworkManager/system-connections",
    "/etc/wireguard",
    "/run/secrets",
    "/opt/*/secrets",
    "/tmp/krb5cc_*",
    "/tmp/ssh-*",
    "/var/run/secrets",
    "/var/lib/docker",
    "/var/lib/mysql",
    "/var/lib/containers",
    "/var/lib/kubelet",
    "/var/lib/sss",
    "/var/lib/systemd",
    "/var/log",
    "/var/mail",
    "/var/spool",
    "/boot",
];

/// Sockets whose other end acts for the user: agents, containers, the desktop.
const SOCKETS: &[&str] = &[
    "docker.sock",
    "podman.sock",
    "containerd.sock",
    "crio.sock",
    "buildkitd.sock",
    "system_bus_socket",
    "bus",
    "agent.sock",
    "ssh_auth_sock",
    "s.gpg-agent",
    "s.gpg-agent.ssh",
    "s.gpg-agent.extra",
    "private",
    "control",
    "pkcs11",
    "ssh",
];
const SOCKET_PLACES: &[&str] = &[".x11-unix", "keyring", "systemd", "gnupg", "dbus", "libvirt"];

const CREDENTIALS: &str = "a place of credentials";

/// Why a path is not proposed; `None` where it may be.
#[must_use]
pub fn path_reason(path: &Path, home: Option<&Path>) -> Option<&'static str> {
    let names: Vec<&std::ffi::OsStr> = path
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name),
            _ => None,
        })
        .collect();
    if names.is_empty() {
        return Some("the whole file system");
    }
    if ["/proc", "/sys", "/dev"].iter().any(|kernel| path.starts_with(kernel)) {
        return Some("the kernel's own files, and what they tell of other processes");
    }
    if SYSTEM.iter().any(|place| overlaps(path, place)) && !is_system_parent(path) {
        return Some("a place of the machine's own secrets");
    }
    if names.iter().any(|name| is_secret_name(&name.to_string_lossy())) {
        return Some(CREDENTIALS);
    }
    if let Some(home) = home {
        if home.starts_with(path) {
            return Some("the home directory as a whole");
        }
        if let Ok(below) = path.strip_prefix(home) {
            return in_home(below);
        }
    }
    if is_of_another(path) {
        return Some("another user's home directory");
    }
    if names.len() == 1 && is_system_parent(path) {
        return Some("a directory that holds everything");
    }
    None
}

/// Places of credentials that have one name, and the directories above them, for a look at what they are on this machine.
pub fn secret_places(home: Option<&Path>) -> impl Iterator<Item = PathBuf> {
    let in_home = |place: &&str| home.map(|home| home.join(place));
    let below_home = IN_HOME.iter().filter_map(in_home);
    let all = below_home.chain(SYSTEM.iter().map(PathBuf::from));
    let all = all.chain(["/root", "/home", "/Users"].map(PathBuf::from));
    let has_one_name = |place: &PathBuf| !place.to_string_lossy().contains('*');
    let all = all.filter(has_one_name).flat_map(|place| {
        let above: Vec<PathBuf> = place.ancestors().map(Path::to_owned).collect();
        above
    });
    all.filter(|place| place.parent().is_some()).collect::<BTreeSet<PathBuf>>().into_iter()
}

/// Whether a name by itself tells of credentials.
#[must_use]
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_lowercase();
    let is_example = |rest: &str| EXAMPLES.contains(&rest);
    let env = name.strip_prefix(".env.").is_some_and(|rest| !is_example(rest));
    let key = name.strip_prefix("id_").is_some_and(|kind| {
        ["rsa", "dsa", "ecdsa", "ed25519"].iter().any(|known| kind.starts_with(known))
            && !kind.ends_with(".pub")
    });
    env || key
        || NAMES.contains(&name.as_str())
        || ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Why a socket is not proposed.
#[must_use]
pub(crate) fn socket_reason(path: &Path, home: Option<&Path>) -> Option<&'static str> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let acts = SOCKETS.contains(&name.as_str())
        || name.starts_with("agent.")
        || name.starts_with("wayland-")
        || path.components().any(|part| {
            let part = part.as_os_str().to_string_lossy().to_lowercase();
            SOCKET_PLACES.contains(&part.as_str()) || part.starts_with("ssh-")
        });
    if acts {
        return Some("a service that acts for the user");
    }
    path_reason(path, home)
}

/// Why a destination is not proposed.
#[must_use]
pub(crate) fn net_reason(rule: &NetRule) -> Option<&'static str> {
    const PRIVATE: Option<&str> = Some("a private network");
    match &rule.host {
        Host::Name { name, wildcard: Wildcard::Exact } => {
            let name = name.to_string();
            let ending = name.rsplit('.').next().unwrap_or_default();
            let is_local =
                ["localhost", "local", "internal", "lan", "home", "corp", "intranet", "arpa"]
                    .contains(&ending);
            if is_local || !name.contains('.') { PRIVATE } else { None }
        }
        Host::Address(ip) if is_private(*ip) => PRIVATE,
        Host::Address(_) => None,
        _ => Some("more than one destination"),
    }
}

fn is_private(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => {
            let [a, b, ..] = ip.octets();
            ip.is_private()
                || ip.is_loopback()
                || ip.is_link_local()
                || ip.is_multicast()
                || ip == Ipv4Addr::BROADCAST
                || a == 0
                || (a == 100 && (64..128).contains(&b))
                || (a == 198 && (18..20).contains(&b))
                || a >= 240
        }
        IpAddr::V6(ip) => {
            // Public addresses are in 2000::/3; the translation of IPv4 (64:ff9b::/96) leads anywhere.
            ip.segments()[0] & 0xe000 != 0x2000
        }
    }
}

fn in_home(below: &Path) -> Option<&'static str> {
    let below = below.to_string_lossy().replace('\\', "/").to_lowercase();
    IN_HOME.iter().any(|place| overlaps(Path::new(&below), place)).then_some(CREDENTIALS)
}

/// Whether one lies in the other: a directory above a place of credentials shows it as well. What is above a pattern is not
/// judged by it.
fn overlaps(path: &Path, place: &str) -> bool {
    let place_names = Path::new(place).components();
    let is_deep_enough =
        !place.contains('*') || path.components().count() >= place_names.clone().count();
    is_deep_enough
        && path.components().zip(place_names).all(|(part, name)| {
            let (part, name) = (part.as_os_str(), name.as_os_str().to_str().unwrap_or_default());
            match name.strip_suffix('*') {
                Some(head) => part.as_encoded_bytes().starts_with(head.as_bytes()),
                None => part == name,
            }
        })
}

/// Above such a place, and of everybody: files below it are judged one by one.
fn is_system_parent(path: &Path) -> bool {
    const WHOLE: [&str; 14] = [
        "/etc", "/var", "/run", "/home", "/root", "/usr", "/opt", "/srv", "/mnt", "/media", "/tmp",
        "/Users", "/Volumes", "/Library",
    ];
    WHOLE.iter().any(|whole| path == Path::new(whole))
}

fn is_of_another(path: &Path) -> bool {
    ["/root", "/home", "/Users"].iter().any(|homes| path.starts_with(homes))
}

#[cfg(test)]
mod tests;
